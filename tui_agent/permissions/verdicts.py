"""Findings, and their combination into one decision: all are collected, the strictest decides.

The consequences of a shell command in a few words, such as `deletes files`, explain a question and decide nothing: a
command without a known consequence is not harmless.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from tui_agent.protocol.permissions import (
    PLAN_MODE_DENIAL,
    DecisionPart,
    DecisionSource,
    PermissionDecision,
    PermissionMode,
    Verdict,
)

from .commands.catalogue import INTERPRETERS, SHELLS, canonical_name, consequence_rows, group, pairs, subcommand_at
from .rules.rule import Rule
from .shell.syntax import MARKS, names

STRICTNESS: dict[Verdict, int] = {"allow": 0, "ask": 1, "deny": 2}
"""Rank of each verdict; the larger wins."""
_WEIGHTS = {"read_only": 0, "rule": 1, "grant": 2}
"""Weight of an allowing source among several; of others it is larger."""
AccessKind = Literal["look", "effect", "edit"]
"""Kind of action for the mode to decide: read, change something, edit a file of the workspace."""

MAX_TRACE = 400
"""Maximum length of a decision's trace, in lines."""

_ELLIPSES = str.maketrans(dict.fromkeys(MARKS, "…"))

_SOURCE_ORDER: tuple[DecisionSource, ...] = ("invalid", "floor", "rule", "hook", "grant", "mode", "read_only")
"""Sources of findings, the hardest to override first."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason for a verdict."""

    decision: Verdict
    source: DecisionSource
    reason: str
    rule: Rule | None = None
    """The rule behind it."""
    is_outside: bool = False
    """True if the reason names a path outside the workspace."""

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
        """The strictest finding; among equals the one hardest to override, one outside the workspace, the first."""
        return min(self.findings, key=_order)


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


def finding_for_rule(rule: Rule, *, is_open: bool = False, is_grant: bool = False) -> Finding:
    """Return the finding of a rule that matches, or may match (`is_open`), as only the running shell knows."""
    if is_open:
        reason = f"the rule {rule.shown} may apply: that depends on values known only when the command runs"
        return Finding("ask", "rule", reason, rule)
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
    finding = min(decided, key=_urgency)[1]
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
                dangers=tuple(one for one in part.consequences if one not in ORDINARY),
            )
            for part, found in decided
        ),
        trace=(
            *(line.translate(_ELLIPSES) for line in trace[:MAX_TRACE]),
            *([f"… and {len(trace) - MAX_TRACE} more lines"] if trace[MAX_TRACE:] else []),
        ),
        targets=tuple(dict.fromkeys(targets)),
    )


# --- consequences -----------------------------------------------------------------------------------------------------

NETWORK_CODE = "runs code from the network"
OUTSIDE = "outside the workspace"
MAY_CHANGE = "may change files"
"""Words for a command whose consequences are not known."""
_OF_PROJECT = "runs code of the project"
_OF_REPOSITORY = "changes the repository"
_SCRIPT = "runs a script"
ORDINARY = frozenset((_OF_PROJECT, _SCRIPT, "changes files", _OF_REPOSITORY, MAY_CHANGE))
"""Consequences that most of a session's questions have; all others are dangers."""
_LONGEST_READ = 4_000
"""Characters of a command that are searched for options."""


@dataclass(frozen=True, slots=True)
class _Facts:
    commands: frozenset[str]
    """Programs, and programs with a subcommand."""
    pattern: re.Pattern[str]
    """Pattern for words without the program's own options and its directory."""
    implies: frozenset[str]
    """Consequences that need no mention beside this one."""


@cache
def _known() -> dict[str, _Facts]:
    """Return all consequences, the worst first."""
    found: dict[str, _Facts] = {}
    for text, row in consequence_rows().items():
        # Files of programs add their own subcommands and patterns.
        added = [words.split(" ", 1) for words, other in pairs("subcommand_consequences") if other == text]
        subcommands = (
            f"{program} {action}"
            for programs, actions in (*row.get("subcommands", ()), *added)
            for program in programs.split()
            for action in actions.split()
        )
        patterns = (pattern for pattern, other in pairs("consequence_patterns") if other == text)
        commands = names(row.get("programs", "")) | frozenset(subcommands)
        pattern = re.compile("|".join((row.get("pattern", "(?!)"), *patterns)))
        found[text] = _Facts(commands, pattern, frozenset(row.get("implies", ())))
    return found


def consequences_of(words: Sequence[str], *, runs_project: bool = False) -> tuple[str, ...]:
    """Return the known consequences of a simple command, the worst first."""
    return sorted_consequences([*([_OF_PROJECT] if runs_project else []), *_of_words(words)])


def runs_input(words: Sequence[str]) -> bool:
    """True if a command may run the text that it reads or that its words hold."""
    name = canonical_name(words[0]) if words else ""
    return name in SHELLS or name in INTERPRETERS or name in ("eval", "source", ".")


def sorted_consequences(found: Iterable[str]) -> tuple[str, ...]:
    """Return consequences without duplicates and without those that another one implies, the worst first."""
    found = set(found)
    if not found:
        return ()
    implied = {less for one in found for less in _known()[one].implies}
    return tuple(one for one in _known() if one in found - implied)


def severity(consequences: Sequence[str]) -> int:
    """Return the place of the worst consequence among all, from 0; the worse, the smaller."""
    return list(_known()).index(consequences[0]) if consequences else len(_known())


def _of_words(words: Sequence[str]) -> Iterator[str]:
    if not words:
        return
    name = words[0].rpartition("/")[2]
    rest = words[subcommand_at(words) if name in group("version_control") else 1 :]
    subcommand = next((word for word in rest if not word.startswith(("-", "+"))), "")
    line = " ".join((name, *rest))[:_LONGEST_READ]
    for text, facts in _known().items():
        if not facts.commands.isdisjoint((name, f"{name} {subcommand}")) or facts.pattern.match(line):
            yield text
    if name in group("version_control"):
        yield _OF_REPOSITORY
    elif "/" in words[0] and not words[0].startswith("/"):
        yield _OF_PROJECT
    elif runs_input(words):
        yield _SCRIPT
