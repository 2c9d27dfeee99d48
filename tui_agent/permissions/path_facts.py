"""What is to be known of a path before anybody decides: where it leads, whose it is, what protects it."""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .path_resolution import is_within, resolve
from .protected_paths import holds_protected, protected_name, protected_repository
from .shell_syntax import MARKS

_APART = ("/proc", "/dev")
"""Reached from anywhere and part of no workspace."""
_SECRET_NAMES = frozenset(("environ", "mem", "auxv"))
"""Files of `/proc` that are known by their name alone."""
_SECRET_PLACES = frozenset(("fd", "cwd", "root", "map_files"))
"""Directories of `/proc` that lead to what another process uses."""
_PROCESS = re.compile(r"/proc(?:/[^/]+(?:/task(?:/[^/]+)?)?)?\Z")
_OURS = "the agent's own settings or sessions"
_OTHERS = "it shows what another process holds"
_STREAMS = frozenset(("/dev/stdin", "/dev/stdout", "/dev/stderr"))
_SECRET = re.compile(
    r"/proc/[^/]+(?:/task/[^/]+)?/(?:environ|mem|maps|smaps|auxv|fd(?:/.*)?|cwd/.*|root/.*|map_files/.*)\Z"
)


@dataclass(frozen=True, slots=True)
class PathFacts:
    """One path, as a call names it and as it is."""

    given: str
    """As the call names it."""
    lexical: str
    """Absolute, by text alone; what a rule's author had in mind."""
    resolved: str
    """Absolute, links followed."""
    is_inside: bool
    """In the workspace, by components, without any way through `/proc` or `/dev`."""
    is_device: bool
    """`/dev/null`, or one of the command's own streams."""
    private: str | None
    """Why it is nobody's business but the person's: our own settings and sessions, other processes' secrets."""


class PathLookup:
    """Looks paths up for one workspace. Holds no state but the names of places."""

    def __init__(
        self, workspace: Path, private_paths: Sequence[Path] = (), readable_paths: Sequence[Path] = ()
    ) -> None:
        self.root = os.path.abspath(workspace)
        """The workspace as it was named, absolute."""
        self.workspace = os.path.realpath(workspace)
        """The workspace, links followed."""
        self._private = tuple(
            {os.path.abspath(path) for path in private_paths} | {os.path.realpath(path) for path in private_paths}
        )
        self._readable = tuple(os.path.realpath(path) for path in readable_paths)
        self._apart = tuple(top for top in _APART if not is_within(self.workspace, top))

    @property
    def absolute_private_paths(self) -> tuple[str, ...]:
        """Our own settings and sessions, absolute."""
        return self._private

    def look(self, given: str, directory: str | None = None) -> PathFacts:
        """The facts of a path.

        Args:
            given: as the call names it; a leading `~` is the person's home.
            directory: what it is relative to, absolute; None: the workspace.
        """
        base = directory or self.workspace
        named = os.path.expanduser(given) if given.startswith("~") else given
        found = resolve(named, base)
        lexical = os.path.normpath(os.path.join(base if directory else self.root, named))
        is_inside = found.is_certain and is_within(found.path, self.workspace) and found.passed.isdisjoint(self._apart)
        is_readable = found.is_certain and any(is_within(found.path, place) for place in self._readable)
        return PathFacts(
            given,
            lexical,
            found.path,
            is_inside,
            named in _STREAMS or (found.path == "/dev/null" and "/proc" not in found.passed),
            None if is_readable else self._why_private(lexical, found.path),
        )

    def is_readable(self, facts: PathFacts) -> bool:
        """Whether reading needs no answer: inside the workspace and not private, or in a place opened for reading."""
        if facts.is_device:
            return True
        return facts.private is None and (
            facts.is_inside or any(is_within(facts.resolved, place) for place in self._readable)
        )

    def is_directory(self, facts: PathFacts) -> bool:
        """Whether there is a directory of that name."""
        return os.path.isdir(facts.resolved)

    def why_maybe_private(self, given: str, directory: str | None) -> str | None:
        """Why a path of which only the running shell knows a part may be private; None if what is plain to see of it
        tells against that."""
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
            if any(os.path.dirname(place) == start.resolved for place in self._private) and first + 1 < len(names):
                return f"it may be {_OURS}"
        elif first and directory is not None:
            return self.why_maybe_private(f"{directory}/{given}", None)
        if names[-1] in _SECRET_NAMES or (first < len(names) and "fd" in known_later):
            return _OTHERS
        return self.may_be_private(known_later)

    def why_tree_private(self, facts: PathFacts) -> str | None:
        """What private is in a directory that is read with everything below it; None if nothing is known to be."""
        if facts.resolved == "/" or _PROCESS.match(facts.resolved):
            return "it holds what other processes hold"
        inside = next((place for place in self._private if is_within(place, facts.resolved)), None)
        return f"it holds {_OURS}" if inside and os.path.lexists(inside) else None

    def why_protected(self, facts: PathFacts) -> str | None:
        """Why a path is never written; None if it may be."""
        if facts.is_device:
            return None
        names = (self._below(facts.lexical), self._below(facts.resolved), self._below(facts.given))
        for name in names:
            if why := protected_name(name):
                return why
        if why := self._why_private(facts.lexical, facts.resolved):
            return why
        return protected_repository(facts.resolved, self.workspace)

    def may_be_private(self, names: Iterable[str]) -> str | None:
        """Why a path may be private of which only these names are known."""
        tails = {os.path.basename(place) for place in self._private}
        name = next((name for name in names if name in tails), None)
        return f"{name} may be the agent's own settings or sessions" if name else None

    def why_tree_protected(self, facts: PathFacts) -> str | None:
        """What protected is in a directory that is to be changed as a whole; None if nothing is known to be."""
        if is_within(self.workspace, facts.resolved) and facts.resolved != self.workspace:
            return "the workspace is in it"
        if held := holds_protected(facts.resolved):
            return f"it holds {held}"
        inside = next((place for place in self._private if is_within(place, facts.resolved)), None)
        return f"it holds {inside}" if inside else None

    def below(self, path: str) -> str | None:
        """An absolute path relative to the workspace; None if it is elsewhere."""
        for top in (self.workspace, self.root):
            if is_within(path, top):
                return path[len(top) :].lstrip("/")
        return None

    def _below(self, path: str) -> str:
        below = self.below(path)
        return path if below is None else below

    def _why_private(self, *paths: str) -> str | None:
        for path in paths:
            if any(is_within(path, place) for place in self._private):
                return f"it belongs to {_OURS}"
            if _SECRET.match(path):
                return _OTHERS
        return None


def _is_plain(name: str) -> bool:
    return MARKS.isdisjoint(name)
