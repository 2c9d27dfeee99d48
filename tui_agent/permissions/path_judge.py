"""Paths of one workspace: where they lead, whose they are, and whether they may be read or written."""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from tui_agent.git.protected_tree import names_project_definition, obeyed_name, protected_name
from tui_agent.git.repository_layout import protected_repository
from tui_agent.git.repository_safety import settings_with_secret
from tui_agent.permissions.rules.rule import Intent
from tui_agent.permissions.rules.rule_set import RuleSet
from tui_agent.permissions.rules.verdicts import AccessKind, Finding, finding_for_mode
from tui_agent.protocol.permissions import PermissionMode

from .rules.path_resolution import PathFacts, WorkspaceRoots, is_within, resolve

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
        self._readable = _Places(os.path.realpath(path) for path in readable_paths)

    def look(self, given: str, directory: str | None = None) -> PathFacts:
        """Return the facts of a path.

        Args:
            given: as the call names it; a leading `~` is the user's home.
            directory: absolute directory that it is relative to; None for the workspace.
        """
        # The lexical path starts at the workspace as named, because rules are written for that name.
        base = directory or self.roots.workspace
        named = os.path.expanduser(given) if given.startswith("~") else given
        found = resolve(named, base)
        lexical = os.path.normpath(os.path.join(base if directory else self.roots.named, named))
        is_inside = found.is_certain and self.roots.hold(found.path)
        is_device = named in _STREAMS or (found.is_certain and found.path == "/dev/null")
        is_open = found.is_certain and self._readable.hold(found.path)
        private = None if is_open else self._why_private(lexical, found.path)
        is_readable = is_device or (private is None and (is_inside or is_open))
        return PathFacts(given, lexical, found.path, found.is_certain, is_inside, is_device, private, is_readable)

    def why_tree_private(self, facts: PathFacts) -> str | None:
        """Return which private files a recursive read of a directory would include, or None if none are known."""
        # Searching `/` or a process's directory reads `environ` and the like.
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
        named = (protected_name(self.roots.below(path)) for path in (facts.lexical, facts.resolved, facts.given))
        return (
            next(filter(None, named), None)
            or self._why_private(facts.lexical, facts.resolved)
            or protected_repository(facts.resolved, self.roots.workspace)
        )

    def why_lasting(self, facts: PathFacts) -> str | None:
        """Return why a change would count in later sessions, or None if it would not."""
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
        if relaxed and facts.is_readable:
            trace.append(f"read-only: {facts.resolved} may be read")
            return Finding("allow", "read_only", "it only reads, and only inside the workspace")
        return _by_mode(facts, mode, "look", "reading")

    def writing(self, tool: str, facts: PathFacts, mode: PermissionMode, trace: list[str]) -> Finding:
        """Decide a change of a path by a tool, which never changes a protected one, in any mode (S1-12)."""
        if protected := self.path_lookup.why_protected(facts):
            trace.append(f"floor: {facts.resolved} is protected: {protected}")
            return Finding("deny", "floor", f"{facts.given} is protected and never changed: {protected}")
        if facts.is_device:
            return Finding("allow", "read_only", f"{facts.given} stores nothing")
        what = f"changing {facts.given}"
        if mode is PermissionMode.PLAN:
            return finding_for_mode(mode, "effect", what)
        found = self.rules.judge_path(tool, facts, "write", trace)
        if found and found.decision == "deny":
            return found
        obeyed = self.path_lookup.obeyed_name(facts)
        is_meant = found is not None and found.names(obeyed or facts.resolved)
        if (why := self.path_lookup.why_lasting(facts)) and not is_meant:
            trace.append(f"floor: {facts.resolved} lasts: {why}")
            return _asking(mode, "effect", what, f"changes {facts.given}: {why}")
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
