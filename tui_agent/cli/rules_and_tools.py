"""Rules, tools and permission policy, for the app, for print mode and for the commands that check calls."""

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.permissions import PermissionPolicy, Rule
from tui_agent.permissions.protected_tree import protected_tree
from tui_agent.permissions.read_only_predicate import is_read_only_command
from tui_agent.protocol.messages import AssistantMessage, ToolCall
from tui_agent.protocol.permissions import GrantScope
from tui_agent.protocol.tool import Tool
from tui_agent.settings import LoadedSettings, Locations, RuleSetting, Settings
from tui_agent.tools import BUILT_IN_TOOLS, Sandbox, Workspace, default_tools
from tui_agent.tools.content_store import ContentStore
from tui_agent.tools.spool_file import SESSION_SPOOL_LIMIT

from .rule_store import RuleStore

if TYPE_CHECKING:
    # The commands that check calls run without the agent.
    from tui_agent.agent import AgentLoop

MAX_CALLS_CHECKED = 200
"""Most calls, the newest ones, that `RuleImpact` checks while the user waits."""

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
    """Return the built-in tools for a workspace.

    Args:
        root: the workspace.
        spool_dir: directory for long output; None: one in the system's temporary directory, created on demand.
        sandbox: sandbox of shell commands; None: they run without one.
        contents: stores the content of files before a change; None: it is not stored.
        private: tui-agent's own directories, in which changes by commands are not looked for.
        output_limit: most bytes of long outputs that are saved; None: the default.
        warn: called with a warning for the user once this limit is reached.
    """
    spool = spool_dir or Path(tempfile.gettempdir()) / "tui-agent-spool"
    return default_tools(
        Workspace(
            root,
            spool_dir=spool,
            contents=contents,
            private=private,
            spool_limit=SESSION_SPOOL_LIMIT if output_limit is None else output_limit,
            warn=warn,
        ),
        is_read_only_command=lambda command: is_read_only_command(command, root, (spool,)),
        sandbox=sandbox,
    )


def tool_finder(root: Path) -> Callable[[str], Tool | None]:
    """Return a function that finds a built-in tool by its name."""
    tools = {tool.name: tool for tool in built_in_tools(root)}
    return tools.get


def parse_rules(rules: Sequence[RuleSetting]) -> list[list[Rule]]:
    """Return the rules of each settings layer, in order.

    Raises:
        ConfigurationError: a rule cannot be parsed, or names an unknown tool; the message has the rule and its origin.
    """
    layers: dict[str, list[Rule]] = {}
    for rule in rules:
        parsed = Rule.parse(rule.verdict, rule.text, rule.origin)
        parsed.require_tool(RULE_TOOL_NAMES)
        layers.setdefault(rule.layer, []).append(parsed)
    return list(layers.values())


def build_sandbox(settings: Settings, locations: Locations, archive: Path) -> Sandbox | None:
    """Return the sandbox that the settings ask for; None if they ask for none.

    Args:
        settings: the settings.
        locations: tui-agent's own directories, which commands do not see.
        archive: directory of saved tool output, which commands may read.
    """
    if settings.sandbox == "off":
        return None
    own = tuple(Path(os.path.realpath(path)) for path in (locations.config_dir, locations.state_dir))
    return Sandbox(
        lambda root: protected_tree(root, own),
        hidden=own,
        shown=(Path(os.path.realpath(archive)),),
        network=settings.sandbox_network,
    )


def sandbox_note(sandbox: Sandbox | None) -> str:
    """Return the note about the sandbox for the trace of a decision; empty without a sandbox."""
    return f"a command {sandbox.words}" if sandbox is not None else ""


def build_policy(
    loaded: LoadedSettings,
    layers: Sequence[Sequence[Rule]],
    root: Path,
    locations: Locations,
    archive: Path,
    *,
    sandbox: Sandbox | None = None,
    is_trusted: bool,
) -> PermissionPolicy:
    """Return the policy that the settings ask for.

    Args:
        loaded: the settings.
        layers: their rules, from `parse_rules`.
        root: the workspace.
        locations: tui-agent's own directories, which calls must not touch.
        archive: directory of saved tool output, which calls may read.
        sandbox: sandbox of shell commands.
        is_trusted: True if the user trusts everything that the workspace brings.
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


class RuleImpact:
    """Effects of a rule that the approval dialog offers; implements `ui.bridge.services.GrantFacts`."""

    def __init__(self, loop: "AgentLoop", policy: PermissionPolicy, locations: Locations, root: Path) -> None:
        self._loop = loop
        self._policy = policy
        self._store = RuleStore(locations, root)
        self._find = tool_finder(root)

    def file_of(self, scope: GrantScope) -> str | None:
        """Return the file that stores rules of a scope; None if they are not stored."""
        path = self._store.file_of(scope)
        return None if path is None else str(path)

    def answered(self, rule: str, but_call: str) -> Sequence[str]:
        """Return the calls of this session that need an approval and would run without one under the rule."""
        lines = rule.splitlines()
        messages = [message for message in self._loop.history.messages() if isinstance(message, AssistantMessage)]
        calls = [call for message in messages for call in message.tool_calls if call.id != but_call]
        return [
            _describe(call)
            for call in calls[-MAX_CALLS_CHECKED:]
            if self._is_answered(lines, call, self._find(call.name))
        ]

    def _is_answered(self, lines: Sequence[str], call: ToolCall, tool: Tool | None) -> bool:
        if tool is None or call.malformed is not None:
            return False
        asks = self._policy.check(tool, call.arguments).decision == "ask"
        return asks and self._policy.passes_with(lines, tool, call.arguments)


def _describe(call: ToolCall) -> str:
    """Return the call's tool and its first text argument."""
    argument = next((value for value in call.arguments.values() if isinstance(value, str)), "")
    return f"{call.name}  {argument}"
