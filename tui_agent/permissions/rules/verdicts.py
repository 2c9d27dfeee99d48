"""Findings, and their combination into one decision: all are collected, the strictest decides."""

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

from .rule import Rule

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
    """Consequences that its words tell, the worst first."""
    operator: str = ""

    @property
    def deciding(self) -> Finding:
        """The strictest finding; among equals the one hardest to override, one outside the workspace, the first."""
        return min(self.findings, key=_order)


def _order(finding: Finding) -> tuple[int, int, bool]:
    return -STRICTNESS[finding.decision], _SOURCE_ORDER.index(finding.source), not finding.is_outside


def finding_for_mode(mode: PermissionMode, access_kind: AccessKind, what: str, *, asks: str = "") -> Finding:
    """Return the mode's finding for an action that no rule decides (S1-16)."""
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
