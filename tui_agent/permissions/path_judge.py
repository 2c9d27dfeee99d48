"""Paths of one workspace: where they lead, whose they are, and whether they may be read, written, or kept as changed.

What a command changed in a trial is decided by path rules, by the sort of each path, and by the mode. Only the user
keeps what is protected, in conflict, or outside the workspace; no one keeps what a rule denies.
"""

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tui_agent.git.protected_tree import names_project_definition, obeyed_name, protected_name
from tui_agent.git.repository_layout import protected_repository
from tui_agent.git.repository_safety import settings_with_secret
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.permissions import PLAN_MODE_DENIAL, ChangesDecision, DecisionSource, PermissionMode
from tui_agent.protocol.tool import Verdict
from tui_agent.protocol.trial import REPOSITORY, ChangeSort, ProposedChanges, ProposedFile, ProposedTree

from .rules.path_resolution import PathFacts, WorkspaceRoots, is_within, resolve
from .rules.rule import AccessKind, Finding, Intent, Rule, finding_for_mode
from .rules.rule_set import RuleSet
from .rules.suggestions import escape_path

_OWN_DEFINITIONS = (
    *("~/.claude", "~/.claude/skills", "~/.claude/commands", "~/.claude/agents"),
    *("~/.agents", "~/.agents/skills"),
)
"""Directories of the user's own definitions. Each may be a link to elsewhere."""
_OUTSIDE = "outside the workspace"
_OURS = "the agent's own settings or sessions"
_OTHERS = "it shows the data of another process"
_STREAMS = frozenset(("/dev/stdin", "/dev/stdout", "/dev/stderr"))
_SECRET = re.compile(
    r"/proc/[^/]+(?:/task/[^/]+)?/(?:environ|mem|maps|smaps|auxv|fd(?:/.*)?|cwd/.*|root/.*|map_files/.*)\Z"
)
_PROCESS = re.compile(r"/proc(?:/[^/]+(?:/task(?:/[^/]+)?)?)?\Z")


class PathLookup:
    """Looks up paths for one workspace. Its only state is the workspace's, its added folders and the private paths."""

    def __init__(
        self, roots: WorkspaceRoots, private_paths: Sequence[Path] = (), readable_paths: Sequence[Path] = ()
    ) -> None:
        self.roots = roots
        self._private = _Places(map(str, private_paths))
        self._own_definitions = _Places(map(os.path.expanduser, _OWN_DEFINITIONS))
        # Only as resolved: a link that someone puts at their name opens nothing.
        self._readable = _Places(os.path.realpath(path) for path in readable_paths)

    def look(self, given: str, directory: str | None = None) -> PathFacts:
        """Return the facts of a path.

        Args:
            given: as the call names it; a leading `~` is the user's home.
            directory: absolute directory that it is relative to; None for the workspace.
        """
        # The lexical path starts at the workspace as named, because rules are written for that name.
        base = directory or self.roots.workspace
        # As a shell would: the question must name the file that is really meant.
        named = os.path.expanduser(given) if given.startswith("~") else given
        found = resolve(named, base)
        lexical = os.path.normpath(os.path.join(base if directory else self.roots.named, named))
        is_inside = found.is_certain and self.roots.hold(found.path)
        # Followed to its end: a link is what it leads to.
        is_device = named in _STREAMS or (found.is_certain and found.path == "/dev/null")
        is_open = found.is_certain and self._readable.hold(found.path)
        private = None if is_open else self._why_private(lexical, found.path)
        is_readable = is_device or (private is None and (is_inside or is_open))
        return PathFacts(given, lexical, found.path, found.is_certain, is_inside, is_device, private, is_readable)

    def why_tree_private(self, facts: PathFacts) -> str | None:
        """Return which private files a recursive read of a directory would include, or None if none are known."""
        # Searching `/` or a process's directory reads `environ` and the like.
        # No list of private files below could be complete here.
        if facts.resolved == "/" or _PROCESS.match(facts.resolved):
            return "it shows the data of other processes"
        inside = self._private.below(facts.resolved)
        return f"it contains {_OURS}" if inside and os.path.lexists(inside) else None

    def why_secret(self, facts: PathFacts, *, is_search: bool) -> str | None:
        """Return why the settings of a repository at a path, or below it in a search, contain a secret, or None."""
        if not is_search and not os.path.basename(facts.resolved).startswith("config"):
            return None
        for file in settings_with_secret(facts.resolved):
            # The tools for searches look into a repository's data only if they are asked to.
            is_searched = is_search and is_within(facts.resolved, os.path.dirname(file))
            if file == facts.resolved or is_searched:
                return f"a URL in {file} contains a secret"
        return None

    def why_protected(self, facts: PathFacts) -> str | None:
        """Return why a path is never written, or None if it may be."""
        if facts.is_device:
            return None
        # All three spellings: a link must not hide a protected name, neither at its start nor at its end.
        named = (protected_name(self.roots.below(path)) for path in (facts.lexical, facts.resolved, facts.given))
        return (
            next(filter(None, named), None)
            or self._why_private(facts.lexical, facts.resolved)
            or protected_repository(facts.resolved, self.roots.workspace)
        )

    def why_lasting(self, facts: PathFacts) -> str | None:
        """Return why a change would count in later sessions, or None if it would not."""
        # Either name is enough: programs find the file by both.
        for path in (facts.lexical, facts.resolved):
            if self._own_definitions.hold(path):
                return "later sessions take your own skills, commands, sub-agents and hooks from there"
            if names_project_definition(self.roots.below(path)):
                return "agents take hooks, skills, commands and sub-agents from there"
        return None

    def obeyed_name(self, facts: PathFacts) -> str | None:
        """Return the name for which other programs may run or obey a file by themselves, or None."""
        return next(
            filter(None, (obeyed_name(self.roots.below(path)) for path in (facts.lexical, facts.resolved))), None
        )

    def _why_private(self, *paths: str) -> str | None:
        if any(map(self._private.hold, paths)):
            return f"it belongs to {_OURS}"
        return _OTHERS if any(map(_SECRET.match, paths)) else None


class _Places:
    """Paths, as named and with links followed, and everything below them."""

    def __init__(self, paths: Iterable[str]) -> None:
        both = (spell(path) for path in paths for spell in (os.path.abspath, os.path.realpath))
        self.tops = tuple(dict.fromkeys(both))
        self._starts = tuple(f"{top.rstrip('/')}/" for top in self.tops)

    def hold(self, path: str) -> bool:
        """True if an absolute path is one of them or below one."""
        return path in self.tops or path.startswith(self._starts)

    def below(self, directory: str) -> str | None:
        """Return the first of them that is in a directory, or is the directory, or None."""
        return next((top for top in self.tops if is_within(top, directory)), None)


class PathJudge:
    """Judges paths by the floor, the rules and the mode, for file tools and shell commands alike."""

    def __init__(self, path_lookup: PathLookup, rules: RuleSet) -> None:
        self.path_lookup = path_lookup
        self.rules = rules

    def reading(
        self,
        tool: str | None,
        facts: PathFacts,
        intent: Intent,
        mode: PermissionMode,
        trace: list[str],
        *,
        relaxed: bool,
        filtered: bool = False,
    ) -> Finding:
        """Decide a read of a path.

        Args:
            tool: the tool that reads; None for a shell command.
            facts: the path.
            intent: `read` or `search` (with everything below it).
            mode: the mode in force.
            trace: gets a line for every rule and check.
            relaxed: reading in the workspace needs no answer.
            filtered: files that a rule denies are left out, so that such a rule does not decide for the directory.
        """
        found = self.rules.judge_path(tool, facts, intent, trace, filtered=filtered)
        # The default rules for secrets are a courtesy, and this mode has declined questions.
        if found and found.rule in self.rules.secrets and mode is PermissionMode.ALLOW:
            found = None
        private = facts.private or (self.path_lookup.why_tree_private(facts) if intent != "read" else None)
        private = private or self.path_lookup.why_secret(facts, is_search=intent == "search")
        # A rule without a pattern, such as `allow read`, does not open private paths; one that names them does.
        is_decided = found and (found.decision == "deny" or (found.decision == "allow" and found.is_named))
        if private and not is_decided:
            trace.append(f"private: {facts.resolved}: {private}")
            return _asking(mode, "look", f"reading {facts.given}", f"{facts.given} is private: {private}")
        if found:
            return found
        # After the rules: a user's own rule on reading always counts.
        if relaxed and facts.is_readable:
            trace.append(f"read-only: {facts.resolved} may be read")
            return Finding("allow", "read_only", "it only reads, and only inside the workspace")
        return _by_mode(facts, mode, "look", "reading")

    def writing(self, tool: str, facts: PathFacts, mode: PermissionMode, trace: list[str]) -> Finding:
        """Decide a change of a path by a tool, which never changes a protected one, in any mode (S1-12)."""
        if protected := self.path_lookup.why_protected(facts):
            trace.append(f"floor: {facts.resolved} is protected: {protected}")
            return Finding("deny", "floor", f"{facts.given} is protected and never changed: {protected}")
        # Before plan mode: output that goes nowhere changes nothing.
        if facts.is_device:
            return Finding("allow", "read_only", f"{facts.given} stores nothing")
        what = f"changing {facts.given}"
        if mode is PermissionMode.PLAN:
            return finding_for_mode(mode, "effect", what)
        found = self.rules.judge_path(tool, facts, "write", trace)
        if found and found.decision == "deny":
            return found
        obeyed = self.path_lookup.obeyed_name(facts)
        # `allow edit` alone was not written with a git hook in mind.
        is_meant = found is not None and found.names(obeyed or facts.resolved)
        if (why := self.path_lookup.why_lasting(facts)) and not is_meant:
            trace.append(f"floor: {facts.resolved} lasts: {why}")
            return _asking(mode, "effect", what, f"changes {facts.given}: {why}")
        # A Makefile or a hook is run later by someone who did not see this change.
        if obeyed and mode is not PermissionMode.ALLOW and not is_meant:
            trace.append(f"floor: {facts.resolved} may be run or obeyed by other programs")
            return _asking(mode, "effect", what, f"changes {facts.given}, which other programs may run or obey")
        if found:
            return found
        # accept_edits covers only paths inside the workspace.
        kind: AccessKind = "edit" if facts.is_inside else "effect"
        return _by_mode(facts, mode, kind, "changing", f"changes {facts.given}; no rule allows it")


def _asking(mode: PermissionMode, kind: AccessKind, what: str, reason: str) -> Finding:
    """Return a question that no mode answers; a mode may deny it."""
    found = finding_for_mode(mode, kind, what)
    return found if found.decision == "deny" else Finding("ask", "floor", reason)


def _by_mode(facts: PathFacts, mode: PermissionMode, kind: AccessKind, doing: str, asks: str = "") -> Finding:
    """Return the mode's finding; outside the workspace its reason names the place."""
    if facts.is_inside:
        return finding_for_mode(mode, kind, f"{doing} {facts.given}", asks=asks)
    asks = f"{_OUTSIDE}: {facts.given}; no rule allows {doing} it"
    return replace(finding_for_mode(mode, kind, f"{doing} {facts.given} {_OUTSIDE}", asks=asks), is_outside=True)


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
        # What could not be read as a whole cannot be judged as a whole.
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
        # Nothing but refused files, or nothing at all.
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
            # Only `edit` covers every change, and outside the workspace nothing is kept by a rule.
            if one.tool != "edit" or one.pattern is None or one.pattern.strip().startswith(("//", "~")):
                return f"`{one.text}` keeps no changes here: write `edit(/…)` with a path in the workspace."
        before, after = decide(()), decide(typed)
        # A rule that changes nothing would be stored for no reason the user could see.
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
        whole = [_sorted_by_mode(REPOSITORY, "repository", mode), *(one for one in judged if one.path in bound)]
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
        return _sorted_by_mode(path, changed.sort, mode)

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


def _sorted_by_mode(path: str, sort: ChangeSort, mode: PermissionMode) -> _Judged:
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
