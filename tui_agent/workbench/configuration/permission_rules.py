"""Permission rules: parsed from the settings, applied by the policy, stored and explained for the approval dialog."""

import fcntl
import os
import re
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.permissions import PermissionPolicy, Rule
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import Noticed, Warned
from tui_agent.protocol.messages import AssistantMessage, JsonObject, ToolCall
from tui_agent.protocol.permissions import GrantScope
from tui_agent.protocol.regular_file import make_private_directories, read_regular_file
from tui_agent.protocol.setting_files import parse_toml
from tui_agent.protocol.tool import Tool
from tui_agent.settings import PROJECT_FILE, Locations, RuleSetting, Settings
from tui_agent.tools import BUILT_IN_TOOLS, JOB_TOOLS, WEB_TOOLS
from tui_agent.tools.atomic_write import write_atomically

from .launch_options import LaunchOptions
from .project_trust import TrustStore

if TYPE_CHECKING:
    # The commands that check calls run without the agent.
    from tui_agent.agent import AgentLoop

MAX_CALLS_CHECKED = 200
"""Most calls, the newest ones, that `RuleImpact` checks while the user waits."""

RULE_TOOL_NAMES = (*BUILT_IN_TOOLS, *JOB_TOOLS, *WEB_TOOLS, "agent")
"""Tools that rules may name: built-in ones, whether their packages are installed or not, and sub-agents."""


def parse_rules(rules: Sequence[RuleSetting]) -> list[list[Rule]]:
    """Return the rules of each settings layer, in order.

    Raises:
        ConfigurationError: a rule cannot be parsed, or names an unknown tool; the message has the rule and its origin.
    """
    layers: dict[str, list[Rule]] = {}
    for rule in rules:
        parsed = Rule.parse(rule.verdict, rule.text, rule.origin)
        parsed.require_tool(RULE_TOOL_NAMES if parsed.tool in RULE_TOOL_NAMES else rule_tool_names())
        layers.setdefault(rule.layer, []).append(parsed)
    return list(layers.values())


def shadowed_rules(layers: Sequence[Sequence[Rule]]) -> list[str]:
    """Return a message about each rule whose calls an earlier rule of its list decides in another way."""
    return [
        f"rule `{rule.verdict} {rule.cited}` can never decide: `{first.verdict} {first.cited}` comes before it and "
        "matches the same calls; put the narrower rule first"
        for rules in layers
        for place, rule in enumerate(rules)
        if (first := next((one for one in rules[:place] if _covers(one, rule)), None)) and first.verdict != rule.verdict
    ]


def _covers(wide: Rule, narrow: Rule) -> bool:
    """Return True if a rule matches every call that another one matches."""
    if not wide.applies_to(narrow.tool):
        return False
    if wide.pattern is None or wide.pattern == narrow.pattern:
        return True
    if narrow.pattern is None or (wide.tool, narrow.tool) != ("bash", "bash"):
        return wide.pattern.strip() in ("*", "**")
    glob, text = (re.sub(r":\*$", " *", one.strip()) for one in (wide.pattern, narrow.pattern))
    # A star of the narrow pattern is matched only by one of the wide pattern.
    parts = (re.escape(part) for part in glob.split("*"))
    return text == glob.removesuffix(" *") or re.fullmatch(".*".join(parts), text, re.DOTALL) is not None


def rule_tool_names() -> tuple[str, ...]:
    """Return the tools that rules may name, those of plugins included. Blocks."""
    # Imported here, because most rules name a built-in tool.
    from tui_agent.workbench.plugins.plugin_entries import plugin_tool_names

    return (*RULE_TOOL_NAMES, *plugin_tool_names())


def added_folders(options: LaunchOptions, settings: Settings) -> tuple[Path, ...]:
    """Return the folders that the settings and the command line add to the workspace. Blocks.

    Raises:
        ConfigurationError: one is not a folder, or contains the workspace.
    """
    named = (Path(os.path.expanduser(name)) for name in settings.permissions.folders)
    return tuple(check_folder(folder, options.cwd) for folder in (*named, *options.folders))


def check_folder(folder: Path, workspace: Path) -> Path:
    """Return a folder with links followed, if it can be added to the workspace. Blocks.

    Raises:
        ConfigurationError: it is not a folder, or contains the workspace.
    """
    found = Path(os.path.realpath(workspace / folder))
    if not found.is_dir():
        raise ConfigurationError(f"cannot add {folder}: it is not a folder")
    if Path(os.path.realpath(workspace)).is_relative_to(found):
        raise ConfigurationError(f"cannot add {folder}: it contains the folder in which tui-agent works")
    return found


def kept_folders(bus: EventBus, cwd: Path, given: Iterable[Path], earlier: Iterable[str]) -> tuple[Path, ...]:
    """Return the folders that a session had before and that still exist, and publish which folders it has. Blocks.

    Args:
        given: the folders of the command line.
        earlier: the folders that the session had.

    Raises:
        ConfigurationError: one of `given` is not a folder, or contains the workspace.
    """
    known = {str(check_folder(folder, cwd)) for folder in given}
    found: list[Path] = []
    for name in earlier:
        try:
            found.append(check_folder(Path(name), cwd))
        except ConfigurationError as error:
            bus.publish(Warned(code="left_out", text=f"A folder of this session: {error}."))
    if found:
        text = f"Still part of the workspace: {', '.join(map(str, found))}."
        bus.publish(Noticed(code="folders_kept", text=text))
    for name in sorted(known - set(map(str, found))):
        text = f"Added to the workspace: {name}."
        bus.publish(Noticed(code="folder_added", text=text, context={"folder": name}))
    return tuple(found)


class RuleStore:
    """Stores grants beyond the session, in the settings of the user or of the project."""

    def __init__(self, locations: Locations, project: Path) -> None:
        self._locations = locations
        self._project = Path(os.path.realpath(project))
        self._trust = TrustStore(locations)

    def file_of(self, scope: GrantScope) -> Path | None:
        """Return the settings file for rules of a scope; None if they are not stored."""
        return {"user": self._locations.user_file, "project": self._project / PROJECT_FILE}.get(scope)

    def store(self, rules: Sequence[Rule], scope: GrantScope) -> str | None:
        """Add allow rules to the settings file of a scope and return its path; None for a scope without a file. Blocks.

        Raises:
            ConfigurationError: the file cannot be read or written, or the project is not trusted; nothing was changed.
        """
        path = self.file_of(scope)
        if path is None:
            return None
        self._add(path, rules, for_project=scope == "project")
        return str(path)

    def _add(self, path: Path, rules: Sequence[Rule], *, for_project: bool) -> None:
        path = Path(os.path.realpath(path))
        if for_project and not path.is_relative_to(self._project):
            raise ConfigurationError(
                f"{path} is outside the project, so the rule cannot be stored there; "
                "allow the call for this session instead"
            )
        try:
            make_private_directories(path.parent)
            with directory_lock(path.parent):
                before = read_regular_file(str(path)) if path.exists() else None
                if for_project and not self._trust.may_renew(self._project, before):
                    raise ConfigurationError(
                        "this folder's own allow rules are not trusted; allow it for this session or for you instead"
                    )
                parse_toml(before or b"")
                text = (before or b"").decode("utf-8-sig")
                for rule in rules:
                    text = with_rule(text, rule)
                after = text.encode("utf-8")
                if after == before:
                    return
                write_atomically(path, after)
                if for_project:
                    self._trust.renew(self._project, after)
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"{path}: the rule was not stored: {error}") from error


def with_rule(text: str, rule: Rule) -> str:
    """Return the text of a settings file with one more rule; comments and order stay.

    The rule is inserted before the first ask rule, which it must override, and so after the deny rules before that.

    Raises:
        ConfigurationError: the text is not a settings file.
    """
    # Imported here because most sessions store no rule. The parser of the standard library would lose comments.
    import tomlkit
    from tomlkit.exceptions import TOMLKitError
    from tomlkit.items import Array, InlineTable, Table

    try:
        document = tomlkit.parse(text)
        section = document.setdefault("permissions", tomlkit.table())
        rules = section.setdefault("rules", tomlkit.array()) if isinstance(section, Table | InlineTable) else None
        if not isinstance(rules, Array):
            raise ConfigurationError("`permissions.rules` is not a list; the rule was not stored")
        written: list[object] = rules.unwrap()
        if [rule.verdict, rule.text] in written:
            return text
        asking = (at for at, entry in enumerate(written) if isinstance(entry, list) and entry[:1] == ["ask"])
        rules.insert(next(asking, len(written)), [rule.verdict, rule.text])
        if not written:
            rules.multiline(True)
        return tomlkit.dumps(document)
    except TOMLKitError as error:
        raise ConfigurationError(f"the settings are not valid TOML; the rule was not stored: {error}") from error


class RuleImpact:
    """Effects of a rule that the approval dialog offers."""

    def __init__(
        self, loop: "AgentLoop", policy: PermissionPolicy, store: RuleStore, find: Callable[[str], Tool | None]
    ) -> None:
        self._loop = loop
        self._policy = policy
        self._store = store
        self._find = find

    def file_of(self, scope: GrantScope) -> str | None:
        """Return the file that stores rules of a scope; None if they are not stored."""
        path = self._store.file_of(scope)
        return None if path is None else str(path)

    def answered(self, rule: str, but_call: str) -> Sequence[str]:
        """Return the calls of this session that need an approval and would run without one under the rule.

        Only the last `MAX_CALLS_CHECKED` calls are checked, the oldest first.

        Args:
            rule: a rule, or several, a line each.
            but_call: id of a call to leave out.
        """
        lines = rule.split("\n")
        messages = [message for message in self._loop.history.messages() if isinstance(message, AssistantMessage)]
        calls = [call for message in messages for call in message.tool_calls if call.id != but_call]
        return [
            _describe(call)
            for call in calls[-MAX_CALLS_CHECKED:]
            if self._is_answered(lines, call, self._find(call.name))
        ]

    def refusal(self, rule: str, tool: str, arguments: JsonObject) -> str:
        """Return why a typed rule may not be stored for a call, in words; empty if it may."""
        found = self._find(tool)
        if found is None:
            return f"A rule for {tool} can only be taken as proposed."
        return self._policy.grant_refusal(rule, found, arguments)

    def _is_answered(self, lines: Sequence[str], call: ToolCall, tool: Tool | None) -> bool:
        if tool is None or call.malformed is not None:
            return False
        asks = self._policy.check(tool, call.arguments).decision == "ask"
        return asks and self._policy.passes_with(lines, tool, call.arguments)


@contextmanager
def directory_lock(directory: Path) -> Generator[None]:
    """Keep other tui-agent processes from changing files of the directory at the same time; wait for them. Blocks.

    Raises:
        OSError: the directory cannot be opened or locked.
    """
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _describe(call: ToolCall) -> str:
    """Return the call's tool and its first text argument."""
    argument = next((value for value in call.arguments.values() if isinstance(value, str)), "")
    return f"{call.name}  {argument}"
