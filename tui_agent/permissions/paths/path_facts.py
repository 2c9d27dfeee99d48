"""Facts about a path: where it leads, whose it is, and what protects it."""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tui_agent.permissions.shell.syntax import MARKS

from .path_resolution import is_within, resolve
from .protected_paths import holds_protected, names_project_definition, protected_name
from .repository import protected_repository

_APART = ("/proc", "/dev")
"""Directories that any path may reach and that belong to no workspace."""
_SECRET_NAMES = frozenset(("environ", "mem", "auxv"))
"""Files of `/proc` recognised by their name alone."""
_SECRET_PLACES = frozenset(("fd", "cwd", "root", "map_files"))
"""Directories of `/proc` that lead to files another process uses."""
_PROCESS = re.compile(r"/proc(?:/[^/]+(?:/task(?:/[^/]+)?)?)?\Z")
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


@dataclass(frozen=True, slots=True)
class PathFacts:
    """One path as a call names it and as it resolves."""

    given: str
    """Path as the call names it."""
    lexical: str
    """Absolute path by text alone, as the author of a rule sees it."""
    resolved: str
    """Absolute path, links followed."""
    is_inside: bool
    """True if the path is in the workspace, compared by components, and did not pass through `/proc` or `/dev`."""
    is_device: bool
    """True for `/dev/null` and for the command's own streams."""
    private: str | None
    """Reason why only the user may decide: our own settings and sessions, other processes' secrets."""
    passed: frozenset[str] | None
    """Top-level directories on the way, such as `/proc`; None if the path may lead anywhere."""


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
        self._apart = tuple(top for top in _APART if not is_within(self.workspace, top))

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
        is_inside = found.is_certain and is_within(found.path, self.workspace) and found.passed.isdisjoint(self._apart)
        is_readable = found.is_certain and self._readable.hold(found.path)
        return PathFacts(
            given,
            lexical,
            found.path,
            is_inside,
            named in _STREAMS or (found.path == "/dev/null" and "/proc" not in found.passed),
            None if is_readable else self._why_private(lexical, found.path),
            found.passed if found.is_certain else None,
        )

    def is_readable(self, facts: PathFacts) -> bool:
        """True if reading needs no answer: in the workspace and not private, or below a path opened for reading."""
        is_open = facts.is_inside or self._readable.hold(facts.resolved)
        return facts.is_device or (facts.private is None and is_open)

    def why_maybe_private(self, given: str, directory: str | None) -> str | None:
        """Return why a partly known path may be private, or None if its known parts rule that out."""
        names = given.split("/")
        first = next((at for at, name in enumerate(names) if not _is_plain(name)), len(names))
        known_later = [name for name in names[first:] if _is_plain(name)]
        if given.startswith(("/", "~")) and first:
            start = self.look("/".join(names[:first]) or "/")
            if start.private:
                return start.private
            if is_within(start.resolved, "/proc"):
                shows = not _is_plain(names[-1]) or names[-1] in (*_SECRET_NAMES, "maps", "smaps")
                return _OTHERS if shows or not _SECRET_PLACES.isdisjoint(known_later) else None
            if any(os.path.dirname(place) == start.resolved for place in self._private.tops) and first + 1 < len(names):
                return f"it may be {_OURS}"
        elif first and directory is not None:
            return self.why_maybe_private(f"{directory}/{given}", None)
        if names[-1] in _SECRET_NAMES or (first < len(names) and "fd" in known_later):
            return _OTHERS
        return self.may_be_private(known_later)

    def why_tree_private(self, facts: PathFacts) -> str | None:
        """Return which private files a recursive read of a directory would include, or None if none are known."""
        # Searching `/` or a process's directory reads `environ` and the like.
        if facts.resolved == "/" or _PROCESS.match(facts.resolved):
            return "it shows the data of other processes"
        inside = self._private.below(facts.resolved)
        return f"it contains {_OURS}" if inside and os.path.lexists(inside) else None

    def why_protected(self, facts: PathFacts) -> str | None:
        """Return why a path is never written, or None if it may be."""
        if facts.is_device:
            return None
        # Relative to the workspace, so that a workspace below a protected name is not protected as a whole.
        for name in dict.fromkeys(map(self._below, (facts.lexical, facts.resolved, facts.given))):
            if why := protected_name(name):
                return why
        if why := self._why_private(facts.lexical, facts.resolved):
            return why
        return protected_repository(facts.resolved, self.workspace)

    def may_be_private(self, names: Iterable[str]) -> str | None:
        """Return why a path may be private of which only these names are known, or None."""
        tails = {os.path.basename(place) for place in self._private.tops}
        name = next((name for name in names if name in tails), None)
        return f"{name} may be the agent's own settings or sessions" if name else None

    def why_lasting(self, facts: PathFacts) -> str | None:
        """Return why a change would count in later sessions, or None if it would not."""
        if self._own_definitions.hold(facts.lexical) or self._own_definitions.hold(facts.resolved):
            return "later sessions take your own skills, commands, sub-agents and hooks from there"
        # Relative to the workspace, so that a workspace below such a folder is not one as a whole.
        is_brought = any(map(names_project_definition, {self._below(facts.lexical), self._below(facts.resolved)}))
        return "agents take hooks, skills, commands and sub-agents from there" if is_brought else None

    def why_too_much(self, facts: PathFacts) -> str | None:
        """Return why a directory may not be changed as a whole because of a rule for a command, or None if it may."""
        if is_within(self.workspace, facts.resolved):
            return "it is the workspace" if facts.resolved == self.workspace else "the workspace is in it"
        home = os.path.realpath(os.path.expanduser("~"))
        return "it is your home" if facts.resolved == home else None

    def why_tree_protected(self, facts: PathFacts) -> str | None:
        """Return which protected files are in a directory that is to be changed as a whole, or None."""
        if is_within(self.workspace, facts.resolved) and facts.resolved != self.workspace:
            return "the workspace is in it"
        if held := holds_protected(facts.resolved):
            return f"it contains {held}"
        inside = self._private.below(facts.resolved)
        return f"it contains {inside}" if inside else None

    def below(self, path: str) -> str | None:
        """Return an absolute path relative to the workspace, or None if it is elsewhere."""
        for top in (self.workspace, self.root):
            if is_within(path, top):
                return path[len(top) :].lstrip("/")
        return None

    def _below(self, path: str) -> str:
        below = self.below(path)
        return path if below is None else below

    def _why_private(self, *paths: str) -> str | None:
        for path in paths:
            if self._private.hold(path):
                return f"it belongs to {_OURS}"
            if _SECRET.match(path):
                return _OTHERS
        return None


def _is_plain(name: str) -> bool:
    return MARKS.isdisjoint(name)


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
