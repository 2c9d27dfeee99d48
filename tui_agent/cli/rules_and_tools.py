"""The pieces that the app, the headless mode and the checking commands all judge calls with."""

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from tui_agent.permissions import PermissionPolicy, Rule
from tui_agent.permissions.protected_tree import protected_tree
from tui_agent.permissions.read_only_predicate import is_read_only_command
from tui_agent.protocol.tool import Tool
from tui_agent.settings import LoadedSettings, Locations, RuleSetting, Settings
from tui_agent.tools import BUILT_IN_TOOLS, Sandbox, Workspace, default_tools
from tui_agent.tools.content_store import ContentStore
from tui_agent.tools.spool_file import SESSION_SPOOL_LIMIT

from .rule_store import RuleStore

RULE_TOOL_NAMES = (*BUILT_IN_TOOLS, "agent", "fetch")
"""Tools that rules may name: built-in ones, sub-agents, and `fetch`, whose rules may exist before the tool does."""


def built_in_tools(
    root: Path,
    spool_dir: Path | None = None,
    sandbox: Sandbox | None = None,
    contents: ContentStore | None = None,
    private: Sequence[Path] = (),
    output_limit: int | None = None,
    warn: Callable[[str], None] | None = None,
) -> list[Tool]:
    """The tools for a workspace.

    Args:
        root: the workspace.
        spool_dir: where long output goes; a directory of the system's, made when needed, if not given.
        sandbox: what shell commands run in; None: they run as they are.
        contents: keeps what files held before they were changed; None: nobody does.
        private: directories of ours, in which no changes of commands are looked for.
        output_limit: most bytes saved of long outputs; None: the default.
        warn: called with a warning for the user once this limit is reached.
    """
    kept = spool_dir or Path(tempfile.gettempdir()) / "tui-agent-spool"
    return default_tools(
        Workspace(
            root,
            spool_dir=kept,
            contents=contents,
            private=private,
            spool_limit=SESSION_SPOOL_LIMIT if output_limit is None else output_limit,
            warn=warn,
        ),
        is_read_only_command=lambda command: is_read_only_command(command, root, (kept,)),
        sandbox=sandbox,
    )


def sandbox_of(settings: Settings, locations: Locations, archive: Path) -> Sandbox | None:
    """The sandbox these settings ask for; None: none.

    Args:
        settings: the settings.
        locations: our own files, which commands do not see.
        archive: kept tool output, which may be read all the same.
    """
    if settings.sandbox == "off":
        return None
    ours = tuple(Path(os.path.realpath(path)) for path in (locations.config_dir, locations.state_dir))
    return Sandbox(
        lambda root: protected_tree(root, ours),
        hidden=ours,
        shown=(Path(os.path.realpath(archive)),),
        network=settings.sandbox_network,
    )


def tool_finder(root: Path) -> Callable[[str], Tool | None]:
    """Finds a built-in tool by its name."""
    tools = {tool.name: tool for tool in built_in_tools(root)}
    return tools.get


def parse_rules(rules: Sequence[RuleSetting]) -> list[list[Rule]]:
    """The rules of each layer, in order.

    Raises:
        ConfigurationError: a rule cannot be read or names no tool; the text names it and where it stands.
    """
    layers: dict[str, list[Rule]] = {}
    for rule in rules:
        parsed = Rule.parse(rule.verdict, rule.text, rule.origin)
        parsed.require_tool(RULE_TOOL_NAMES)
        layers.setdefault(rule.layer, []).append(parsed)
    return list(layers.values())


def sandbox_note(sandbox: Sandbox | None) -> str:
    """How commands run, for the trace of a decision; empty where there is nothing to say."""
    return f"a command {sandbox.words}" if sandbox is not None else ""


def policy_of(
    loaded: LoadedSettings,
    layers: Sequence[Sequence[Rule]],
    root: Path,
    locations: Locations,
    archive: Path,
    *,
    sandbox: Sandbox | None = None,
    is_trusted: bool,
) -> PermissionPolicy:
    """The policy these settings ask for.

    Args:
        loaded: the settings.
        layers: their rules, as `parse_rules` reads them.
        root: the workspace.
        locations: our own files, which calls do not touch.
        archive: kept tool output, which may be read all the same.
        sandbox: what shell commands run in.
        is_trusted: whether a person trusts all that the workspace brings.
    """
    chosen = loaded.settings.permissions
    return PermissionPolicy(
        root,
        layers=layers,
        mode=chosen.mode,
        resolution=chosen.rule_resolution,
        private_paths=(locations.config_dir, locations.state_dir),
        readable_paths=(archive,),
        store_grant=RuleStore(locations, root).store,
        is_trusted=is_trusted,
        command_note=sandbox_note(sandbox),
    )
