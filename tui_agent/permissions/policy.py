"""The one checker that every call passes: floor, rules, read-only relaxation, mode, in this order."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import GrantScope, PermissionDecision, PermissionMode
from tui_agent.protocol.tool import CommandSubject, PathSubject, Subject, Tool, UrlSubject

from .call_judge import CallJudge, host_of, subject_of
from .grant_proposals import rule_for_command, rule_for_path
from .path_facts import PathBook
from .path_judge import PathJudge
from .rule import Rule
from .rule_book import RuleBook, RuleResolution

MAX_GRANTS_AT_ONCE = 8
"""Most rules that one approval may store."""


class PermissionPolicy:
    """Judges calls in one workspace. Implements `protocol.permissions.PermissionChecker`."""

    def __init__(
        self,
        workspace: Path,
        *,
        rules: Sequence[Rule] = (),
        layers: Iterable[Sequence[Rule]] = (),
        mode: PermissionMode = PermissionMode.ASK,
        resolution: RuleResolution = "first_match",
        private_paths: Sequence[Path] = (),
        readable_paths: Sequence[Path] = (),
        relaxed_reads: bool = True,
        store_grant: Callable[[Rule, GrantScope], None] | None = None,
    ) -> None:
        """
        Args:
            workspace: the directory that calls work in.
            rules: one list of rules, first match first.
            layers: more lists; each gives its own verdict and the strictest wins (C17).
            mode: what happens to calls that no rule decides.
            resolution: which rule of a list decides.
            private_paths: our own settings and sessions: never written, and read only with an answer.
            readable_paths: places outside the workspace that may be read like it, such as kept tool output.
            relaxed_reads: read-only calls in the workspace need no answer (S1-17, C18).
            store_grant: keeps a grant beyond the session; None: such a scope is refused.
        """
        book = PathBook(workspace, private_paths, readable_paths)
        self._rules = RuleBook((*((rules,) if rules else ()), *layers), book.workspace, book.root, resolution)
        self._workspace = book.workspace
        self._judge = CallJudge(PathJudge(book, self._rules), relaxed_reads=relaxed_reads)
        self._mode = mode
        self._store_grant = store_grant

    @property
    def mode(self) -> PermissionMode:
        """The mode in force."""
        return self._mode

    def set_mode(self, mode: PermissionMode) -> None:
        """Changes the mode for every decision from now on."""
        self._mode = mode

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Every rule in force, list by list, without grants."""
        return self._rules.rules

    def set_rules(self, layers: Iterable[Sequence[Rule]]) -> None:
        """Takes other rules, for every decision from now on; grants stay."""
        self._rules.replace(layers)

    def floor(self, tool: Tool, arguments: JsonObject) -> PermissionDecision | None:
        """The part of a judgement nothing can override: a protected place, plan mode, an explicit deny (C14, C16)."""
        decision = self.check(tool, arguments)
        is_floor = decision.decision == "deny" and decision.source in ("floor", "rule", "invalid")
        return decision if is_floor else None

    def check(self, tool: Tool, arguments: JsonObject) -> PermissionDecision:
        """The whole judgement; never raises."""
        return self.check_in_mode(tool, arguments, self._mode)

    def check_in_mode(self, tool: Tool, arguments: JsonObject, mode: PermissionMode) -> PermissionDecision:
        """What the judgement would be in another mode."""
        return self._judge.judge(tool, arguments, mode)

    def grant_rule(self, tool: Tool, arguments: JsonObject) -> str | None:
        """The narrowest rule that would let this call pass; several stand on lines of their own."""
        decision = self.check(tool, arguments)
        if decision.decision != "ask":
            return None
        needed, more = self._proposed(tool, subject_of(tool, arguments), decision)
        if not needed or len(needed) + len(more) > MAX_GRANTS_AT_ONCE:
            return None
        if self._passes_with(needed, tool, arguments):
            return "\n".join(needed)
        if not self._passes_with([*needed, *more], tool, arguments):
            return None
        for text in more:
            others = [*needed, *(other for other in more if other != text)]
            if self._passes_with(others, tool, arguments):
                more = [other for other in more if other != text]
        return "\n".join([*needed, *more])

    def grant(self, rule: str, scope: GrantScope) -> None:
        """Stores what `grant_rule` proposed. It answers an `ask`, never a `deny` (C17).

        Raises:
            ConfigurationError: the rule's text cannot be read or its scope cannot be stored.
        """
        granted = [Rule.parse("allow", line, f"granted for the {scope}") for line in rule.splitlines() if line.strip()]
        if not granted:
            raise ConfigurationError("there is no rule to grant")
        if scope == "once":
            return
        if scope != "session":
            if self._store_grant is None:
                raise ConfigurationError(f"rules cannot be stored for the {scope} here; grant it for the session")
            for one in granted:
                self._store_grant(one, scope)
        self._rules.grants.extend(one for one in granted if one not in self._rules.grants)

    def _passes_with(self, texts: Sequence[str], tool: Tool, arguments: JsonObject) -> bool:
        """Whether a call would pass if these rules were granted."""
        before = len(self._rules.grants)
        self._rules.grants.extend(Rule.parse("allow", text) for text in texts)
        passes = self.check(tool, arguments).decision == "allow"
        del self._rules.grants[before:]
        return passes

    def _proposed(
        self, tool: Tool, subject: Subject | None, decision: PermissionDecision
    ) -> tuple[list[str], list[str]]:
        """Rules for everything in a call that asks (empty where one of them should not be stored), and rules that may
        be needed beside them."""
        match subject:
            case CommandSubject():
                return self._proposed_for_parts(tool.name, decision)
            case PathSubject():
                texts = [rule_for_path(tool.name, target, self._workspace) for target in decision.targets]
                return [text for text in texts if text], []
            case UrlSubject():
                host = host_of(subject.url)
                return ([f"{tool.name}(domain:{host})"] if host else []), []
            case None:
                return [tool.name], []

    def _proposed_for_parts(self, tool: str, decision: PermissionDecision) -> tuple[list[str], list[str]]:
        texts = [rule_for_command(tool, part.text) for part in decision.parts if part.decision == "ask"]
        if not texts or None in texts:
            return [], []
        paths = [
            rule_for_path(path_tool, target, self._workspace)
            for target in decision.targets
            for path_tool in ("edit", "read")
        ]
        return list(dict.fromkeys(text for text in texts if text)), [path for path in paths if path]
