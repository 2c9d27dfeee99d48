"""Combination of findings into one decision: all are collected, the strictest decides."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from tui_agent.protocol.permissions import (
    PLAN_MODE_DENIAL,
    DecisionPart,
    DecisionSource,
    PermissionDecision,
    PermissionMode,
    Verdict,
)

from .commands.consequences import ORDINARY, OUTSIDE, severity, sorted_consequences
from .rules.rule_set import STRICTNESS, Ruling

_WEIGHTS = {"read_only": 0, "rule": 1, "grant": 2}
"""Weight of an allowing source among several; of others it is larger."""
AccessKind = Literal["look", "effect", "edit"]
"""Kind of action for the mode to decide: read, change something, edit a file of the workspace."""

MAX_TRACE = 400
"""Maximum length of a decision's trace, in lines."""

_SOURCE_ORDER: tuple[DecisionSource, ...] = ("invalid", "floor", "rule", "hook", "grant", "mode", "read_only")
"""Sources of findings, the hardest to override first."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason for a verdict."""

    decision: Verdict
    source: DecisionSource
    reason: str
    rule: str | None = None
    """The rule behind it, as written, with its source."""
    is_outside: bool = False
    """True if the reason names a path outside the workspace."""


@dataclass(frozen=True, slots=True)
class PartFindings:
    """All findings for one part of a call."""

    text: str
    findings: tuple[Finding, ...]
    known_consequences: tuple[str, ...] = ()
    """Consequences that its words tell."""
    operator: str = ""
    """As in `DecisionPart`."""

    @property
    def consequences(self) -> tuple[str, ...]:
        """Everything that an answer should know, the worst first."""
        is_outside = any(finding.is_outside for finding in self.findings)
        return sorted_consequences((*self.known_consequences, *((OUTSIDE,) if is_outside else ())))

    @property
    def deciding(self) -> Finding:
        """The finding that decides for the part."""
        return deciding(self.findings)


def deciding(findings: Iterable[Finding]) -> Finding:
    """Return the strictest finding; among equals the one hardest to override, one outside the workspace, the first."""
    return min(findings, key=_order)


def _urgency(decided: tuple[PartFindings, Finding]) -> tuple[int, int, bool, int]:
    """Return the order of parts: of several that only the mode decides, the one with the worst consequence speaks."""
    part, finding = decided
    return *_order(finding), severity(part.consequences) if finding.source == "mode" else 0


def _order(finding: Finding) -> tuple[int, int, bool]:
    return -STRICTNESS[finding.decision], _SOURCE_ORDER.index(finding.source), not finding.is_outside


def finding_for_mode(mode: PermissionMode, access_kind: AccessKind, what: str, *, asks: str = "") -> Finding:
    """Return the mode's finding for an action that no rule decides (S1-16).

    Args:
        mode: the mode.
        access_kind: the kind of action.
        what: the action, as an object of `allows`.
        asks: reason for a question; by default only that no rule allows the action.
    """
    if mode is PermissionMode.ALLOW or (mode is PermissionMode.ACCEPT_EDITS and access_kind == "edit"):
        return Finding("allow", "mode", f"mode {mode.value} permits {what}")
    if mode is PermissionMode.DENY:
        return Finding("deny", "mode", f"mode deny refuses {what}, and no rule allows it")
    # Plan mode only forbids changes; reading outside the workspace may be needed for a plan.
    if mode is PermissionMode.PLAN and access_kind != "look":
        return Finding("deny", "floor", f"{PLAN_MODE_DENIAL}: {what}")
    return Finding("ask", "mode", asks or f"no rule allows {what.removesuffix(',')}")


def finding_for_rule(ruling: Ruling) -> Finding | None:
    """Return the rules' finding, or None if no rule matches."""
    if ruling.verdict is None or ruling.rule is None:
        return None
    shown, cited = ruling.rule.shown, ruling.rule.cited
    if ruling.is_open:
        reason = f"the rule {shown} may apply: that depends on values known only when the command runs"
        return Finding("ask", "rule", reason, cited)
    reasons: dict[Verdict, str] = {
        "allow": f"the rule {shown} allows it",
        "ask": f"a rule says to ask first: {cited}",
        "deny": f"the rule {shown} denies it",
    }
    return Finding(ruling.verdict, "grant" if ruling.is_grant else "rule", reasons[ruling.verdict], cited)


def invalid(reason: str, trace: Sequence[str] = ()) -> PermissionDecision:
    """Return the decision on input that is not a proper call."""
    return PermissionDecision(decision="deny", source="invalid", reason=reason, trace=tuple(trace))


def decision_of(parts: Sequence[PartFindings], trace: Sequence[str], targets: Iterable[str] = ()) -> PermissionDecision:
    """Combine the findings of all parts of a call into one decision."""
    decided = [(part, part.deciding) for part in parts]
    finding = min(decided, key=_urgency)[1]
    if finding.decision == "allow":
        # The reason is that of the part that was hardest to allow.
        finding = max((found for _, found in decided), key=lambda found: _WEIGHTS.get(found.source, 3))
    return PermissionDecision(
        decision=finding.decision,
        source=finding.source,
        reason=finding.reason,
        rule=finding.rule,
        parts=tuple(
            DecisionPart(
                text=part.text,
                decision=found.decision,
                rule=found.rule,
                reason=found.reason,
                operator=part.operator,
                dangers=tuple(one for one in part.consequences if one not in ORDINARY),
            )
            for part, found in decided
        ),
        trace=shortened(trace),
        targets=tuple(dict.fromkeys(targets)),
    )


def shortened(trace: Sequence[str]) -> tuple[str, ...]:
    """Return a trace of readable length."""
    if len(trace) <= MAX_TRACE:
        return tuple(trace)
    return (*trace[:MAX_TRACE], f"… and {len(trace) - MAX_TRACE} more lines")
