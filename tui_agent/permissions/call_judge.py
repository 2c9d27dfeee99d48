"""Decisions on any tool call by the subject that its tool declares; no tool is known here by name."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import NO_CONTAINMENT, Containment, PermissionDecision, PermissionMode
from tui_agent.protocol.tool import Accesses, CommandSubject, PathSubject, Subject, Tool, UrlSubject
from tui_agent.protocol.web_address import host_of

from .evaluator.command_judge import CommandJudge
from .paths.path_judge import PathJudge, PathLookup
from .rules.rule_set import RuleSet
from .verdicts import AccessKind, Finding, PartFindings, decision_of, finding_for_mode, invalid

_PREDICATE_ERRORS = (ArithmeticError, AssertionError, AttributeError, LookupError, OSError, RuntimeError, TuiAgentError,
                     TypeError, ValueError)  # fmt: skip
"""Exceptions that a tool's predicates may raise; they count as the more careful answer."""
_SENDS_DATA = ("web_search",)
"""Tools that change nothing here, yet their arguments leave the machine."""
_REMOTE_PREFIX = "mcp__"
"""Prefix of tools of MCP servers. Their claim to be read-only does not loosen a decision."""


class CallJudge:
    """Decides calls of any tool."""

    def __init__(
        self,
        paths: PathJudge,
        commands: CommandJudge,
        *,
        relaxed_reads: bool,
        containment: Containment = NO_CONTAINMENT,
    ) -> None:
        self._paths = paths
        self._commands = commands
        self._relaxed_reads = relaxed_reads
        self.containment = containment
        """The sandbox that shell commands can run in; it may change between two decisions."""

    def judge(self, tool: Tool, arguments: JsonObject, mode: PermissionMode) -> PermissionDecision:
        """Decide one call; never raises."""
        trace = [f"mode {mode.value}"]
        try:
            subject = tool.subject(arguments)
        except _PREDICATE_ERRORS as error:
            return invalid(f"the tool cannot tell what this call is about: {type(error).__name__}", trace)
        if isinstance(subject, CommandSubject):
            return self._judge_command(tool.name, subject, mode, trace)
        return self._judge_subject(tool, arguments, subject, mode, trace)

    def _judge_command(
        self, tool: str, subject: CommandSubject, mode: PermissionMode, trace: list[str]
    ) -> PermissionDecision:
        """Decide a command, and whether it runs in the sandbox."""
        containment = self.containment
        if subject.leaves_sandbox:
            # Judged as on a machine without a sandbox: a call cannot get more by leaving it than by its absence.
            decision = self._commands.judge(tool, subject.command, mode, trace)
            if decision.decision != "allow" or containment.setting == "off":
                return decision
            stays = self._commands.judge(tool, subject.command, mode, [], containment)
            return _asked_to_leave(decision) if containment.confines_all or stays.confinement else decision
        decision = self._commands.judge(tool, subject.command, mode, trace, containment)
        return _confined(decision, containment.words) if containment.confines_all else decision

    def _judge_subject(
        self,
        tool: Tool,
        arguments: JsonObject,
        subject: PathSubject | UrlSubject | None,
        mode: PermissionMode,
        trace: list[str],
    ) -> PermissionDecision:
        is_read_only = _is_read_only(tool, arguments)
        if isinstance(subject, PathSubject):
            return self._on_path(tool.name, subject, mode, trace, is_read_only=is_read_only)
        if mode is PermissionMode.PLAN and not is_read_only:
            return _decision(tool.name, finding_for_mode(mode, "effect", tool.name), trace)
        access_kind: AccessKind = "look" if is_read_only else "effect"
        rules = self._paths.rules
        if isinstance(subject, UrlSubject):
            host = host_of(subject.url)
            found = rules.judge_host(tool.name, host, trace)
            what = f"fetching from {host}" if host else "fetching from an unclear address"
            return _decision(subject.url, found or finding_for_mode(mode, access_kind, what), trace)
        found = rules.judge_tool(tool.name, trace)
        if found is None and is_read_only and self._relaxes(tool.name):
            found = Finding("allow", "read_only", f"{tool.name} only reads")
        return _decision(tool.name, found or finding_for_mode(mode, access_kind, f"the tool {tool.name}"), trace)

    def _on_path(
        self, tool: str, subject: PathSubject, mode: PermissionMode, trace: list[str], *, is_read_only: bool
    ) -> PermissionDecision:
        if "\x00" in subject.path:
            return invalid("a path cannot contain a NUL character", trace)
        facts = self._paths.path_lookup.look(subject.path)
        if subject.intent == "write" or not is_read_only:
            found = self._paths.writing(tool, facts, mode, trace)
        else:
            relaxed = self._relaxes(tool)
            filtered = subject.leaves_out_denied and subject.intent == "search"
            found = self._paths.reading(tool, facts, subject.intent, mode, trace, relaxed=relaxed, filtered=filtered)
        return _decision(subject.path, found, trace, facts.resolved)

    def denied_below(self, tool: Tool, arguments: JsonObject) -> Callable[[str], bool]:
        """Return a predicate for paths below the directory of a search, relative to it: True if a rule denies them."""
        subject = subject_of(tool, arguments)
        if not isinstance(subject, PathSubject) or "\x00" in subject.path:
            return lambda _: False
        return self._paths.rules.denied_below(tool.name, self._paths.path_lookup.look(subject.path))

    def _relaxes(self, tool: str) -> bool:
        return self._relaxed_reads and tool not in _SENDS_DATA and not tool.startswith(_REMOTE_PREFIX)


def subject_of(tool: Tool, arguments: JsonObject) -> Subject | None:
    """Return a call's subject, or None if the tool cannot tell."""
    try:
        return tool.subject(arguments)
    except _PREDICATE_ERRORS:
        return None


def _confined(decision: PermissionDecision, words: str) -> PermissionDecision:
    return decision.model_copy(update={"confinement": words, "trace": (*decision.trace, words)})


def _asked_to_leave(decision: PermissionDecision) -> PermissionDecision:
    """Return the decision on a command that asks to leave the sandbox that it would run in: no mode allows that."""
    asks = {"decision": "ask", "source": "floor", "rule": None, "reason": "it asks to run outside the sandbox"}
    return decision.model_copy(update=asks)


def _is_read_only(tool: Tool, arguments: JsonObject) -> bool:
    try:
        return tool.is_read_only(arguments)
    except _PREDICATE_ERRORS:
        return False


def _decision(text: str, finding: Finding, trace: list[str], *targets: str) -> PermissionDecision:
    return decision_of([PartFindings(text, (finding,))], trace, targets).model_copy(update={"parts": ()})


def is_read_only_command(command: str, workspace: Path, readable_paths: Sequence[Path] = ()) -> bool:
    """True if a command is known to only read; never raises, and is False in doubt.

    Args:
        command: byte for byte as it would run.
        workspace: the directory that it may read.
        readable_paths: paths outside that may be read like it.
    """
    judge = _judge_without_rules(workspace, tuple(readable_paths))
    return judge.judge("bash", command, PermissionMode.ASK, []).decision == "allow"


def accesses_of_command(command: str, workspace: Path) -> Accesses | None:
    """Return every path that a command reads or changes; None unless the list is certainly complete. Never raises.

    Args:
        command: byte for byte as it would run.
        workspace: the directory in which it runs.
    """
    return _judge_without_rules(workspace, ()).accesses(command)


@lru_cache(maxsize=8)
def _judge_without_rules(workspace: Path, readable_paths: tuple[Path, ...]) -> CommandJudge:
    path_lookup = PathLookup(workspace, readable_paths=readable_paths)
    return CommandJudge(PathJudge(path_lookup, RuleSet((), path_lookup.workspace, path_lookup.root)))
