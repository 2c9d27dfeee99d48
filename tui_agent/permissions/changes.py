"""Decision on what a command changed in a trial: by path rules, by the sort of each path, and by the mode.

Only the user keeps what is protected, in conflict, or outside the workspace; no one keeps what a rule denies.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.permissions import PLAN_MODE_DENIAL, ChangesDecision, DecisionSource, PermissionMode
from tui_agent.protocol.tool import Verdict
from tui_agent.protocol.trial import REPOSITORY, ChangeSort, ProposedChanges, ProposedFile, ProposedTree

from .path_judge import PathJudge
from .rules.path_resolution import PathFacts
from .rules.rule import Rule
from .rules.suggestions import escape_path
from .rules.verdicts import Finding

MAX_RULES = 8
"""Maximum number of rules that one answer may store."""
MAX_NAMED = 3

_ASKING_SORTS: dict[ChangeSort, str] = {"packages": "installed packages", "repository": "the repository"}
"""Sorts that accept_edits does not keep, in words."""


@dataclass(frozen=True, slots=True)
class _Judged:
    """One path with its verdict."""

    path: str
    verdict: Verdict
    source: DecisionSource
    reason: str
    can_have_rule: bool = False
    """True if a rule may keep such a change from now on."""


class ChangesJudge:
    """Decides on the changes of commands in one workspace."""

    def __init__(self, paths: PathJudge) -> None:
        self._paths = paths

    def decide(self, changes: ProposedChanges, mode: PermissionMode) -> ChangesDecision:
        """Return the decision on everything that one command changed; never raises."""
        if changes.problem:
            return ChangesDecision(decision="deny", source="floor", reason=changes.problem)
        if mode in (PermissionMode.PLAN, PermissionMode.DENY):
            reason = PLAN_MODE_DENIAL if mode is PermissionMode.PLAN else "mode deny keeps no changes"
            return ChangesDecision(decision="deny", source="mode", reason=reason)
        judged = self._judge_all(changes, mode)
        kept = tuple(one.path for one in judged if one.verdict == "allow")
        asked = [one for one in judged if one.verdict == "ask"]
        denied = [one for one in judged if one.verdict == "deny"]
        speaking = asked or [one for one in judged if one.verdict == "allow"] or denied
        if not speaking:
            return ChangesDecision(decision="allow", source="read_only", reason="it changed nothing")
        # A floor is named before a rule, and a rule before the mode.
        first = min(speaking, key=lambda one: ("floor", "rule", "grant", "mode").index(one.source))
        reasons = dict.fromkeys((first.reason, *(f"not kept: {one.path}: {one.reason}" for one in denied[:MAX_NAMED])))
        return ChangesDecision(
            decision=first.verdict,
            source=first.source,
            reason="; ".join(reasons) if first.verdict != "deny" else first.reason,
            kept=kept,
            asked=tuple(one.path for one in asked),
            rules=rules_that_keep([one.path for one in asked if one.can_have_rule]),
        )

    def why_never_kept(self, path: str) -> str:
        """Return the rule that denies a change of a path, in words; empty if none does."""
        found = self._by_rule(path)
        return found.reason if found is not None and found.decision == "deny" else ""

    def is_protected(self, path: str) -> bool:
        """True if something may run or obey a path later, so that only the user keeps a change of it."""
        lookup, facts = self._paths.path_lookup, self._facts(path)
        return bool(lookup.why_protected(facts) or lookup.why_lasting(facts))

    def refusal(self, rule: str, changes: ProposedChanges, decide: Callable[[Sequence[Rule]], ChangesDecision]) -> str:
        """Return why a typed rule may not be stored with an answer to these changes; empty if it may."""
        lines = [line.strip() for line in rule.split("\n") if line.strip()]
        if not lines or len(lines) > MAX_RULES:
            return f"Type one to {MAX_RULES} rules, or press escape."
        try:
            typed = [Rule.parse("allow", line) for line in lines]
        except ConfigurationError as error:
            return str(error)
        for one in typed:
            if one.tool != "edit" or one.pattern is None or one.pattern.strip().startswith(("//", "~")):
                return f"`{one.text}` keeps no changes here: write `edit(/…)` with a path in the workspace."
        before, after = decide(()), decide(typed)
        if set(before.asked) == set(after.asked):
            return "This would keep none of these changes."
        judged = self._judge_all(changes, PermissionMode.ASK)
        ruled = {one.path for one in judged if one.can_have_rule}
        left = [one for one in after.asked if one in ruled]
        return f"This would not keep {left[0]}." if left else ""

    def _judge_all(self, changes: ProposedChanges, mode: PermissionMode) -> list[_Judged]:
        bound = set(changes.repository_files)
        judged = [self._judge(one, mode) for one in (*changes.files, *changes.trees)]
        alone = [one for one in judged if one.path not in bound]
        if not changes.repository:
            return judged
        # The repository is kept as a whole with its files, so the strictest verdict on one of them is that of all.
        whole = [_by_mode(REPOSITORY, "repository", mode), *(one for one in judged if one.path in bound)]
        strictest = max(whole, key=lambda one: (("allow", "ask", "deny").index(one.verdict), one.source == "floor"))
        together = [replace(strictest, path=one.path, can_have_rule=False) for one in whole]
        return [*alone, *together]

    def _judge(self, changed: ProposedFile | ProposedTree, mode: PermissionMode) -> _Judged:
        path, is_tree = changed.path, isinstance(changed, ProposedTree)
        if changed.sort == "refused":
            note = "" if isinstance(changed, ProposedTree) else changed.note
            return _Judged(path, "deny", "floor", note or f"{path} is never kept")
        facts = self._facts(path)
        found = self._by_rule(path, whole=is_tree)
        if found is not None and found.decision == "deny":
            return _Judged(path, "deny", "rule", found.reason)
        if reason := self._why_user_only(changed, facts):
            return _Judged(path, "ask", "floor", reason)
        obeyed = self._paths.path_lookup.obeyed_name(facts)
        # Programs run these at once, so that a rule must name them: one for all files is not meant for them.
        name = os.path.basename(path.rstrip("/")) if changed.sort == "packages" else obeyed
        if found is not None and found.decision == "allow" and name and not found.names(name):
            found = None
        if found is not None and (found.decision == "ask" or facts.is_inside or found.is_named):
            return _Judged(path, found.decision, found.source, found.reason)
        if not facts.is_inside:
            return _Judged(path, "ask", "floor", f"{path} is outside the workspace")
        return _by_mode(path, changed.sort, mode)

    def _why_user_only(self, changed: ProposedFile | ProposedTree, facts: PathFacts) -> str:
        """Return why no rule and no mode keeps a change; empty if they may."""
        if isinstance(changed, ProposedFile) and changed.conflict:
            return changed.conflict
        lookup = self._paths.path_lookup
        why = lookup.why_protected(facts) or lookup.why_lasting(facts) if changed.sort != "repository" else None
        if why or changed.sort == "protected":
            return f"{changed.path} is protected: {changed.runs_later or why or 'something may run or obey it later'}"
        overlapping = self._paths.rules.may_forbid_below(facts) if isinstance(changed, ProposedTree) else None
        return f"the rule {overlapping.shown} may apply to files in {changed.path}" if overlapping else ""

    def _facts(self, path: str) -> PathFacts:
        """Return the facts of an entry itself: what is kept replaces a link, not its target."""
        directory, name = os.path.split(path.rstrip("/"))
        facts = self._paths.path_lookup.look(directory or ".")
        lexical, resolved = os.path.join(facts.lexical, name), os.path.join(facts.resolved, name)
        return replace(facts, given=path, lexical=lexical, resolved=resolved)

    def _by_rule(self, path: str, *, whole: bool = False) -> Finding | None:
        return self._paths.rules.judge_path("edit", self._facts(path), "write", [], whole=whole)


def _by_mode(path: str, sort: ChangeSort, mode: PermissionMode) -> _Judged:
    if mode is PermissionMode.ALLOW or (mode is PermissionMode.ACCEPT_EDITS and sort not in _ASKING_SORTS):
        return _Judged(path, "allow", "mode", f"mode {mode.words} keeps changes of {path}")
    what = _ASKING_SORTS.get(sort, path)
    return _Judged(path, "ask", "mode", f"changes {what}; no rule keeps it", sort != "repository")


def rules_that_keep(paths: Sequence[str]) -> tuple[str, ...]:
    """Return the rules that would keep changes of these paths, narrowest first: the files and trees, their directories,
    the directory of all."""
    inside = [path for path in paths if not path.startswith(("/", "~")) and path.isprintable() and "\\" not in path]
    if not paths or len(inside) != len(paths):
        return ()
    parents = [path if path.endswith("/") or "/" not in path else f"{os.path.dirname(path)}/" for path in inside]
    common = os.path.commonpath(parents) if parents and all(one.endswith("/") for one in parents) else ""
    steps = (inside, parents, [f"{common}/"] if common else [])
    offers = ("\n".join(f"edit({_pattern(path)})" for path in _outermost(step)) for step in steps)
    return tuple(text for text in dict.fromkeys(offers) if text and text.count("\n") < MAX_RULES)


def _outermost(paths: Sequence[str]) -> list[str]:
    tops = [path for path in dict.fromkeys(paths) if path.endswith("/")]
    return [path for path in dict.fromkeys(paths) if not any(path != top and path.startswith(top) for top in tops)]


def _pattern(path: str) -> str:
    return f"/{escape_path(path)}**" if path.endswith("/") else f"/{escape_path(path)}"
