"""Paths of one workspace: where they lead, whose they are, and whether they may be read or written."""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from tui_agent.git.repository import protected_repository
from tui_agent.git.repository_safety import settings_with_secret
from tui_agent.permissions.commands.invocation import FileFilter
from tui_agent.permissions.rules.rule import Intent
from tui_agent.permissions.rules.rule_set import RuleSet
from tui_agent.permissions.shell.syntax import MARKS, UNKNOWN
from tui_agent.permissions.verdicts import OUTSIDE, AccessKind, Finding, finding_for_mode
from tui_agent.protocol.permissions import PermissionMode

from .path_resolution import PathFacts, is_within, resolve
from .protected_paths import TreeSearch, names_project_definition, obeyed_name, protected_name

_OWN_DEFINITIONS = (
    *("~/.claude", "~/.claude/skills", "~/.claude/commands", "~/.claude/agents"),
    *("~/.agents", "~/.agents/skills"),
)
"""Directories of the user's own definitions. Each may be a link to elsewhere."""
_OURS = "the agent's own settings or sessions"
_OTHERS = "it shows the data of another process"
_STREAMS = frozenset(("/dev/stdin", "/dev/stdout", "/dev/stderr"))
_SECRET = re.compile(
    r"/proc/[^/]+(?:/task/[^/]+)?/(?:environ|mem|maps|smaps|auxv|fd(?:/.*)?|cwd/.*|root/.*|map_files/.*)\Z"
)
_SECRET_NAMES = frozenset(("environ", "mem", "auxv", "fd"))
"""Files and directories of `/proc` recognised by their name alone."""
_SECRET_PLACES = _SECRET_NAMES | {"maps", "smaps", "cwd", "root", "map_files"}
"""Names of them in a directory of `/proc`."""
_PROCESS = re.compile(r"/proc(?:/[^/]+(?:/task(?:/[^/]+)?)?)?\Z")


class PathLookup:
    """Looks up paths for one workspace. Its only state is the workspace's and the private paths."""

    def __init__(
        self, workspace: Path, private_paths: Sequence[Path] = (), readable_paths: Sequence[Path] = ()
    ) -> None:
        self.root = os.path.abspath(workspace)
        """The workspace as named, absolute."""
        self.workspace = os.path.realpath(workspace)
        """The workspace, links followed."""
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
        base = directory or self.workspace
        named = os.path.expanduser(given) if given.startswith("~") else given
        found = resolve(named, base)
        lexical = os.path.normpath(os.path.join(base if directory else self.root, named))
        is_inside = found.is_certain and is_within(found.path, self.workspace)
        is_device = named in _STREAMS or (found.is_certain and found.path == "/dev/null")
        is_open = found.is_certain and self._readable.hold(found.path)
        private = None if is_open else self._why_private(lexical, found.path)
        is_readable = is_device or (private is None and (is_inside or is_open))
        return PathFacts(given, lexical, found.path, found.is_certain, is_inside, is_device, private, is_readable)

    def is_open(self, path: str) -> bool:
        """True if a resolved path may be read like the workspace."""
        return is_within(path, self.workspace) or self._readable.hold(path)

    def why_maybe_private(self, given: str, directory: str | None) -> str | None:
        """Return why a partly known path may be private, or None if its known parts rule that out."""
        if not given.startswith(("/", "~")):
            given = f"{directory or UNKNOWN}/{given}"
        names = given.split("/")
        first = next((at for at, name in enumerate(names) if not MARKS.isdisjoint(name)), len(names))
        if first:
            start = self.look("/".join(names[:first]) or "/")
            if start.private:
                return start.private
            if is_within(start.resolved, "/proc"):
                may_show = not MARKS.isdisjoint(names[-1]) or not _SECRET_PLACES.isdisjoint(names[first:])
                return _OTHERS if may_show else None
            if any(os.path.dirname(place) == start.resolved for place in self._private.tops) and first + 1 < len(names):
                return f"it may be {_OURS}"
        return self.may_be_private(names[first:]) if _SECRET_NAMES.isdisjoint(names[first:]) else _OTHERS

    def may_be_private(self, names: Iterable[str]) -> str | None:
        """Return why a path may be private of which only these names are known, or None."""
        tails = {os.path.basename(place) for place in self._private.tops}
        name = next((name for name in names if name in tails), None)
        return f"{name} may be {_OURS}" if name else None

    def why_tree_private(self, facts: PathFacts) -> str | None:
        """Return which private files a recursive read of a directory would include, or None if none are known."""
        # Searching `/` or a process's directory reads `environ` and the like.
        if facts.resolved == "/" or _PROCESS.match(facts.resolved):
            return "it shows the data of other processes"
        inside = self._private.below(facts.resolved)
        return f"it contains {_OURS}" if inside and os.path.lexists(inside) else None

    def why_secret(
        self, facts: PathFacts, includes: FileFilter | None, *, is_search: bool, is_command: bool
    ) -> str | None:
        """Return why the settings of a repository at a path, or below it in a search, contain a secret, or None."""
        if not is_search and not os.path.basename(facts.resolved).startswith("config"):
            return None
        for file in settings_with_secret(facts.resolved):
            # The tools for searches look into a repository's data only if they are asked to.
            is_searched = is_search and (is_command or is_within(facts.resolved, os.path.dirname(file)))
            is_included = includes is None or includes.includes(os.path.relpath(file, facts.resolved))
            if file == facts.resolved or (is_searched and is_included):
                return f"a URL in {file} contains a secret"
        return None

    def why_protected(self, facts: PathFacts) -> str | None:
        """Return why a path is never written, or None if it may be."""
        if facts.is_device:
            return None
        named = (protected_name(self._below(path)) for path in (facts.lexical, facts.resolved, facts.given))
        return (
            next(filter(None, named), None)
            or self._why_private(facts.lexical, facts.resolved)
            or protected_repository(facts.resolved, self.workspace)
        )

    def why_lasting(self, facts: PathFacts) -> str | None:
        """Return why a change would count in later sessions, or None if it would not."""
        for path in (facts.lexical, facts.resolved):
            if self._own_definitions.hold(path):
                return "later sessions take your own skills, commands, sub-agents and hooks from there"
            if names_project_definition(self._below(path)):
                return "agents take hooks, skills, commands and sub-agents from there"
        return None

    def obeyed_name(self, facts: PathFacts) -> str | None:
        """Return the name for which other programs may run or obey a file by themselves, or None."""
        return next(filter(None, (obeyed_name(self._below(path)) for path in (facts.lexical, facts.resolved))), None)

    def why_too_much(self, facts: PathFacts) -> str | None:
        """Return why a directory may not be changed as a whole because of a rule for a command, or None if it may."""
        if is_within(self.workspace, facts.resolved):
            return "it is the workspace" if facts.resolved == self.workspace else "the workspace is in it"
        return "it is your home" if facts.resolved == os.path.realpath(os.path.expanduser("~")) else None

    def why_tree_protected(self, facts: PathFacts, tree_search: TreeSearch) -> str | None:
        """Return which protected files are in a directory that is to be changed as a whole, or None."""
        if is_within(self.workspace, facts.resolved) and facts.resolved != self.workspace:
            return "the workspace is in it"
        held = tree_search.find_protected(facts.resolved) or self._private.below(facts.resolved)
        return f"it contains {held}" if held else None

    def _below(self, path: str) -> str:
        """Return a path relative to the workspace, so that one below a protected name is not protected as a whole."""
        top = next((top for top in (self.workspace, self.root) if is_within(path, top)), "")
        return path[len(top) :]

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
        intent: Intent | Literal["list"],
        mode: PermissionMode,
        trace: list[str],
        *,
        relaxed: bool,
        includes: FileFilter | None = None,
        filtered: bool = False,
        shows_settings: bool = True,
    ) -> Finding:
        """Decide a read of a path.

        Args:
            tool: the tool that reads; None for a shell command.
            facts: the path.
            intent: `read`, `search` (with everything below it) or `list` (the names of everything below it).
            mode: the mode in force.
            trace: gets a line for every rule and check.
            relaxed: reading in the workspace needs no answer.
            includes: the files of a directory that are read; None for all.
            filtered: files that a rule denies are left out, so that such a rule does not decide for the directory.
            shows_settings: a search may show the settings of repositories; False for git.
        """
        accessed: Intent = "read" if intent == "list" else intent
        found = self.rules.judge_path(tool, facts, accessed, trace, includes=includes, filtered=filtered)
        if found and found.rule in self.rules.secrets and mode is PermissionMode.ALLOW:
            found = None
        private = facts.private or (self.path_lookup.why_tree_private(facts) if intent != "read" else None)
        if private is None and intent != "list" and shows_settings:
            private = self.path_lookup.why_secret(
                facts, includes, is_search=intent == "search", is_command=tool is None
            )
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

    def writing(
        self,
        tool: str | None,
        facts: PathFacts,
        mode: PermissionMode,
        trace: list[str],
        *,
        whole: bool = False,
        allowed_by: Finding | None = None,
        is_spelled: bool = False,
        tree_search: TreeSearch | None = None,
    ) -> Finding:
        """Decide a change of a path. Tools never change a protected one, in any mode (S1-12); commands that do ask.

        Args:
            tool: the tool that changes it; None for a shell command, to which accept_edits does not apply.
            facts: the path.
            mode: the mode in force.
            trace: gets a line for every rule and check.
            whole: everything below it is changed, too.
            allowed_by: the finding that allowed the whole command, if it covers this change.
            is_spelled: a rule of the settings spells the whole command out, and so means protected paths, too.
            tree_search: the search that the decision shares; None for a new one.
        """
        protected = self.path_lookup.why_protected(facts)
        if protected:
            trace.append(f"floor: {facts.resolved} is protected: {protected}")
        if protected and tool is not None:
            return Finding("deny", "floor", f"{facts.given} is protected and never changed: {protected}")
        if facts.is_device:
            return Finding("allow", "read_only", f"{facts.given} stores nothing")
        what = f"changing {facts.given}"
        if mode is PermissionMode.PLAN:
            return finding_for_mode(mode, "effect", what)
        found = self.rules.judge_path(tool, facts, "write", trace, whole=whole)
        if found and found.decision == "deny":
            return found
        if protected and not is_spelled:
            return _asking(mode, "effect", what, f"{facts.given} is protected: {protected}")
        obeyed = self.path_lookup.obeyed_name(facts)
        is_meant = found is not None and found.names(obeyed or facts.resolved)
        if (why := self.path_lookup.why_lasting(facts)) and not is_meant:
            trace.append(f"floor: {facts.resolved} lasts: {why}")
            return _asking(mode, "effect", what, f"changes {facts.given}: {why}")
        if tool is not None and obeyed and mode is not PermissionMode.ALLOW and not is_meant:
            trace.append(f"floor: {facts.resolved} may be run or obeyed by other programs")
            return _asking(mode, "effect", what, f"changes {facts.given}, which other programs may run or obey")
        if whole and (held := self.path_lookup.why_tree_protected(facts, tree_search or TreeSearch())):
            trace.append(f"floor: {facts.resolved} is changed as a whole: {held}")
            return Finding("ask", "floor", f"{facts.given} is changed with everything in it: {held}")
        if found:
            return found
        # Outside the workspace the mode gives the same verdict with a reason that names the place.
        if allowed_by is not None and (facts.is_inside or allowed_by.source != "mode"):
            return allowed_by
        # accept_edits covers only the file tools, and only inside the workspace.
        kind: AccessKind = "edit" if tool is not None and facts.is_inside else "effect"
        return _by_mode(facts, mode, kind, "changing", f"changes {facts.given}; no rule allows it")


def _asking(mode: PermissionMode, kind: AccessKind, what: str, reason: str) -> Finding:
    """Return a question that no mode answers; a mode may deny it."""
    found = finding_for_mode(mode, kind, what)
    return found if found.decision == "deny" else Finding("ask", "floor", reason)


def _by_mode(facts: PathFacts, mode: PermissionMode, kind: AccessKind, doing: str, asks: str = "") -> Finding:
    """Return the mode's finding; outside the workspace its reason names the place."""
    if facts.is_inside:
        return finding_for_mode(mode, kind, f"{doing} {facts.given}", asks=asks)
    asks = f"{OUTSIDE}: {facts.given}; no rule allows {doing} it"
    return replace(finding_for_mode(mode, kind, f"{doing} {facts.given} {OUTSIDE}", asks=asks), is_outside=True)
