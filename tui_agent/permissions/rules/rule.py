"""A permission rule (a verdict, a tool, and a pattern for the tool's calls), and findings: the strictest decides."""

import difflib
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias, cast, get_args

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.permissions import (
    PLAN_MODE_DENIAL,
    DecisionPart,
    DecisionSource,
    PermissionDecision,
    PermissionMode,
    Verdict,
)
from tui_agent.protocol.value_checks import wrong_kind

Intent = Literal["read", "write", "search"]
"""Reads of a path by a call."""

_RULE = re.compile(r"\s*([\w*][\w.*:-]*)\s*(?:\((.*)\))?\s*\Z", re.DOTALL)
_COVERS = {"edit": frozenset(("edit", "write")), "read": frozenset(("read", "grep", "glob", "lookup"))}
"""Other tools that a tool's rules cover."""
_INTENTS: dict[str, frozenset[Intent]] = {
    "edit": frozenset(("write",)),
    "write": frozenset(("write",)),
    "read": frozenset(("read", "search")),
}


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule, as written."""

    verdict: Verdict
    tool: str
    """A tool's name; `*` matches any text."""
    pattern: str | None
    """Pattern for the call's subject; None for every call."""
    text: str
    """Text as written, without the verdict."""
    origin: str = ""
    """Source of the rule, such as `config.toml:12`."""

    @classmethod
    def parse(cls, verdict: str, text: str, origin: str = "") -> "Rule":
        """Parse `tool` or `tool(pattern)`; `origin` says where it is written, for errors and decisions.

        Raises:
            ConfigurationError: the verdict or the text has another form.
        """
        if verdict not in get_args(Verdict):
            raise ConfigurationError(f"{_at(origin)}a rule must say allow, ask or deny, not {verdict!r}")
        match = _RULE.match(text)
        if match is None:
            raise ConfigurationError(f"{_at(origin)}a rule must be `tool` or `tool(pattern)`, not {text!r}")
        tool, pattern = match.group(1), match.group(2)
        if pattern is not None and (not pattern.strip() or "\x00" in pattern):
            raise ConfigurationError(f"{_at(origin)}the pattern of {text!r} is empty; write `{tool}` for every call")
        if tool == "fetch" and pattern is not None and not re.match(r"domain:[^\s/:]+\Z", pattern.strip()):
            raise ConfigurationError(f"{_at(origin)}a pattern for fetch must be `domain:HOST`, not {pattern!r}")
        return cls(cast(Verdict, verdict), tool, pattern, text.strip(), origin)

    @classmethod
    def of(cls, rule: "RuleLike", origin: str = "") -> "Rule":
        """Return a `Rule` from one, from `"allow bash(make:*)"` or from `("allow", "bash(make:*)")`.

        Raises:
            ConfigurationError: it has another form; the text names the right one.
        """
        if isinstance(rule, Rule):
            return rule
        if isinstance(rule, str):
            verdict, _, text = rule.strip().partition(" ")
        elif isinstance(rule, list | tuple) and len(rule) == 2 and all(isinstance(part, str) for part in rule):  # pyright: ignore[reportUnnecessaryIsInstance] — callers may be untyped
            verdict, text = rule
        else:
            wanted = 'a text such as "allow bash(ls:*)", a pair such as ("allow", "bash(ls:*)") or a Rule'
            raise wrong_kind(f"{_at(origin)}a rule", wanted, cast(object, rule))
        if verdict not in get_args(Verdict):
            written = f"{verdict} {text}".strip()
            near = difflib.get_close_matches(verdict.lower().rstrip(":"), get_args(Verdict), 1)
            right = f"{near[0]} {text}" if near else f"allow {written}"
            raise ConfigurationError(
                f"{_at(origin)}a rule must begin with allow, ask or deny, and {written!r} does not; "
                f"did you mean {right.strip()!r}?"
            )
        return cls.parse(verdict, text, origin)

    @property
    def is_unbounded(self) -> bool:
        """True if the rule covers every call of its tool."""
        return self.pattern is None or self.pattern.strip() in ("*", ":*")

    @property
    def cited(self) -> str:
        """The rule as written, with its source."""
        return f"{self.text} ({self.origin})" if self.origin else self.text

    @property
    def shown(self) -> str:
        """The rule with its verdict and its source, for display."""
        return f"{self.verdict} {self.cited}"

    def require_tool(self, names: Collection[str]) -> None:
        """Check that the rule can apply to a call: a deny rule that never applies is worse than none.

        Rules may also name `mcp__SERVER__TOOL` and names with a `*`.

        Raises:
            ConfigurationError: no tool has the rule's name; the text has the closest one.
        """
        if self.tool in names or "*" in self.tool or self.tool.startswith("mcp__"):
            return
        near = difflib.get_close_matches(self.tool, names, n=1)
        known = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
        raise ConfigurationError(f"{_at(self.origin)}the rule {self.text!r} names no tool; {known}")

    def applies_to(self, tool: str) -> bool:
        """True if the rule covers a tool of this name."""
        if "*" in self.tool:
            return fnmatchcase(tool, self.tool)
        return self.tool == tool or tool in _COVERS.get(self.tool, ())

    def applies_to_path(self, tool: str | None, intent: Intent) -> bool:
        """True if the rule covers this use of a path by `tool`.

        A rule that forbids covers every tool with that intent, an `allow` only the tools of its name. None stands for
        a shell command's effect, which only rules for the file tools cover.
        """
        by_intent = intent in _INTENTS.get(self.tool, ())
        if tool is None:
            return by_intent
        return self.applies_to(tool) or (by_intent and self.verdict != "allow")


RuleLike: TypeAlias = Rule | str | Sequence[str]


def _at(origin: str) -> str:
    return f"{origin}: " if origin else ""


STRICTNESS: dict[Verdict, int] = {"allow": 0, "ask": 1, "deny": 2}
"""Rank of each verdict; the larger wins."""
_WEIGHTS = {"read_only": 0, "rule": 1, "grant": 2}
"""Weight of an allowing source among several; of others it is larger."""
AccessKind = Literal["look", "effect", "edit"]
"""Kind of action for the mode to decide: read, change something, edit a file of the workspace."""

MAX_TRACE = 400
"""Maximum length of a decision's trace, in lines."""

_ELLIPSES = str.maketrans({"\ud800": "…"})

_SOURCE_ORDER: tuple[DecisionSource, ...] = ("invalid", "floor", "rule", "hook", "grant", "mode", "read_only")
"""Sources of findings, the hardest to override first."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason for a verdict."""

    decision: Verdict
    source: DecisionSource
    reason: str
    rule: Rule | None = None
    is_outside: bool = False
    """True if the reason names a path outside the workspace."""
    is_open: bool = False
    """True if only the running shell knows whether the rule matches."""

    @property
    def is_named(self) -> bool:
        """True if a rule with a pattern decided."""
        return self.rule is not None and self.rule.pattern is not None

    def names(self, name: str) -> bool:
        """True if a rule decided whose pattern contains this name, or is a single path."""
        pattern = (self.rule.pattern if self.rule else None) or "*"
        return name.lower() in pattern.lower() or "*" not in pattern


@dataclass(frozen=True, slots=True)
class PartFindings:
    """All findings for one part of a call."""

    text: str
    findings: tuple[Finding, ...]
    consequences: tuple[str, ...] = ()
    """Known consequences of its text, the worst first."""
    operator: str = ""

    @property
    def deciding(self) -> Finding:
        """The strictest finding; among equals the one hardest to override, one outside the workspace, the first."""
        return min(self.findings, key=_order)


def _order(finding: Finding) -> tuple[int, int, bool]:
    return -STRICTNESS[finding.decision], _SOURCE_ORDER.index(finding.source), not finding.is_outside


def finding_for_mode(mode: PermissionMode, access_kind: AccessKind, what: str, *, asks: str = "") -> Finding:
    """Return the mode's finding for an action that no rule decides (S1-16).

    Args:
        mode: the mode.
        access_kind: the kind of the action: plan mode asks about a `look` and denies the others.
        what: the action in words, such as `reading a.txt`.
        asks: reason of a question; empty: that no rule allows it.
    """
    if mode is PermissionMode.ALLOW or (mode is PermissionMode.ACCEPT_EDITS and access_kind == "edit"):
        return Finding("allow", "mode", f"mode {mode.words} permits {what}")
    if mode is PermissionMode.DENY:
        return Finding("deny", "mode", f"mode deny refuses {what}, and no rule allows it")
    # Plan mode only forbids changes; reading outside the workspace may be needed for a plan.
    if mode is PermissionMode.PLAN and access_kind != "look":
        return Finding("deny", "floor", f"{PLAN_MODE_DENIAL}: {what}")
    return Finding("ask", "mode", asks or f"no rule allows {what.removesuffix(',')}")


def finding_for_rule(rule: Rule, *, is_open: bool = False, is_grant: bool = False) -> Finding:
    """Return the finding of a rule that matches, or may match (`is_open`), as only the running shell knows."""
    if is_open:
        reason = f"the rule {rule.shown} may apply: that depends on values known only when the command runs"
        return Finding("ask", "rule", reason, rule, is_open=True)
    reasons: dict[Verdict, str] = {
        "allow": f"the rule {rule.shown} allows it",
        "ask": f"a rule says to ask first: {rule.cited}",
        "deny": f"the rule {rule.shown} denies it",
    }
    return Finding(rule.verdict, "grant" if is_grant else "rule", reasons[rule.verdict], rule)


def invalid(reason: str, trace: Sequence[str] = ()) -> PermissionDecision:
    """Return the decision on input that is not a proper call."""
    return PermissionDecision(decision="deny", source="invalid", reason=reason, trace=tuple(trace))


def decision_of(parts: Sequence[PartFindings], trace: Sequence[str], targets: Iterable[str] = ()) -> PermissionDecision:
    """Combine the findings of all parts of a call into one decision. Its texts show unknown values as `…`."""
    decided = [(part, part.deciding) for part in parts]
    finding = min((found for _, found in decided), key=_order)
    if finding.decision == "allow":
        # The reason is that of the part that was hardest to allow.
        finding = max((found for _, found in decided), key=lambda found: _WEIGHTS.get(found.source, 3))
    return PermissionDecision(
        decision=finding.decision,
        source=finding.source,
        reason=finding.reason.translate(_ELLIPSES),
        rule=finding.rule and finding.rule.cited,
        parts=tuple(
            DecisionPart(
                text=part.text.translate(_ELLIPSES),
                decision=found.decision,
                rule=found.rule and found.rule.cited,
                reason=found.reason.translate(_ELLIPSES),
                operator=part.operator,
                dangers=part.consequences,
            )
            for part, found in decided
        ),
        trace=(
            *(line.translate(_ELLIPSES) for line in trace[:MAX_TRACE]),
            *([f"… and {len(trace) - MAX_TRACE} more lines"] if trace[MAX_TRACE:] else []),
        ),
        targets=tuple(dict.fromkeys(targets)),
    )
