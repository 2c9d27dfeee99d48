"""Names that no tool writes, in any mode, and the protected paths that exist in a workspace.

Version control, hooks, installed packages and our own settings are recognised at any depth and in any spelling,
whether they exist or not. A repository under another path is as protected as the file that points to it.
"""

import os
import stat
import sys
import threading
import time
import unicodedata
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import islice
from pathlib import Path

from .repository_layout import (
    OWN_DIRECTORY,
    REPOSITORY_NAMES,
    data_directories,
    files_of_repository,
    holds_repository,
    is_within,
)


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


PROTECTED_NAMES = {
    **dict.fromkeys(REPOSITORY_NAMES, "version control data"),
    ".husky": "commit hooks",
    "node_modules": "installed packages",
    ".tui-agent": "the agent's own settings",
    ".mcp.json": "tool servers that the agent starts",
}
"""Names of directories (or files) that are never written, with their contents."""

DEFINITIONS = {
    ".claude": ("settings*.json", "hooks", "skills", "commands", "agents"),
    ".agents": ("skills",),
}
"""Directories of a project, and patterns of names in them: agents run or read what is there."""

_RUN_LATER = {
    ".git/hooks": "git runs it",
    ".git/config": "git obeys it, and runs programs that it names",
    ".git/info": "git obeys it",
    ".git": "git obeys it",
    ".gitmodules": "git fetches what it names",
    ".gitattributes": "git runs the filters that it names",
    ".husky": "git runs it as a hook",
    ".envrc": "direnv runs it",
    ".vscode": "the editor runs and obeys it",
    ".cursor": "Cursor runs and obeys it",
    ".codex": "Codex runs and obeys it",
    ".claude": "agents run and obey it",
    ".agents": "agents run and obey it",
    ".mcp.json": "agents start the servers that it names",
    ".tui-agent": "tui-agent obeys it",
    ".github/workflows": "GitHub runs it",
    ".github": "GitHub obeys it",
    "node_modules": "programs load their packages from it",
    "agents.md": "agents obey it",
    "claude.md": "agents obey it",
}
"""Programs that run or obey files later by themselves, by names in their paths; a pair of names counts first."""

_PLAIN_DOT_NAMES = _names(
    ".gitignore .dockerignore .npmignore .prettierignore .eslintignore .editorconfig .gitkeep .keep .env.example"
)
"""Names with a dot that no program runs anything from; all others are settings of some program."""
_OBEYED_NAMES = _names(
    "agents.md agent.md agents.override.md claude.md claude.local.md gemini.md qwen.md warp.md opencode.json* "
    "jenkinsfile azure-pipelines.yml bitbucket-pipelines.yml appveyor.yml cloudbuild.y*ml buildspec.y*ml "
    "lefthook*.y*ml mise.toml mise.*.toml *.code-workspace sitecustomize.py usercustomize.py *.pth"
)
"""Patterns for other names of what programs run or agents obey by themselves."""

_IGNORABLE_RANGES = ((0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x3164, 0x3164),
                     (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xE0000, 0xE0FFF))  # fmt: skip


def protected_name(path: str) -> str | None:
    """Return why one of a path's names is protected, or None. Backslashes separate names, too."""
    for name in path.replace("\\", "/").split("/"):
        if len(name) >= 4 and (what := PROTECTED_NAMES.get(fold_name(name))):
            return f"{name} contains {what}"
    return None


def run_later(path: str) -> str:
    """Return the program that runs or obeys a file by itself, such as `git runs it`; empty if none is known."""
    names = [fold_name(name) for name in path.split("/") if name]
    for place, name in enumerate(names):
        pair = "/".join(names[place : place + 2])
        if found := _RUN_LATER.get(pair) or _RUN_LATER.get(name):
            return found
    return ""


def names_project_definition(path: str) -> bool:
    """Return True if a path is that of a definition or hook that agents take from a project, or contains some."""
    names = [fold_name(name) for name in path.replace("\\", "/").split("/") if name not in ("", ".")]
    for place, name in enumerate(names):
        if name in DEFINITIONS:
            return place + 1 == len(names) or is_definition(name, names[place + 1])
    return False


def is_definition(directory: str, name: str) -> bool:
    """Return True if agents run or read what has this name in a directory of that name."""
    patterns = DEFINITIONS.get(fold_name(directory), ())
    return any(fnmatchcase(fold_name(name), pattern) for pattern in patterns)


def obeyed_name(path: str) -> str | None:
    """Return the name in a path for which other programs may run or obey the file by themselves, or None."""
    for name in path.replace("\\", "/").split("/"):
        folded = fold_name(name)
        is_setting = folded.startswith(".") and folded.strip(".") and folded not in _PLAIN_DOT_NAMES
        if is_setting or any(fnmatchcase(folded, pattern) for pattern in _OBEYED_NAMES):
            return name
    return None


@lru_cache(maxsize=4_096)
def fold_name(name: str) -> str:
    """Return a file name as the most lenient file system compares it.

    Case, ignorable characters and stream suffixes do not count.
    """
    if name.isascii():
        folded = name.lower()
    else:
        composed = unicodedata.normalize("NFKC", name).casefold()
        folded = "".join(letter for letter in composed if not _is_ignorable(letter))
    return folded.partition(":")[0].rstrip(". ") or folded


def _is_ignorable(letter: str) -> bool:
    code = ord(letter)
    return unicodedata.category(letter) in ("Cf", "Cc") or any(low <= code <= high for low, high in _IGNORABLE_RANGES)


MAX_DIRECTORIES = 100_000
"""Maximum number of directories to scan."""
MAX_FILES = 10_000
"""Maximum number of files to list."""
MAX_FILES_OF_PLACE = 2_000
"""Maximum number of files to list in one protected directory, so that one cannot crowd out the others."""
SCAN_SECONDS = 1.0
"""Maximum duration of a scan for the files; the next one gets further, as it knows the directories of this one."""
_CLOCK = 5 if sys.platform == "linux" else time.CLOCK_REALTIME
"""`CLOCK_REALTIME_COARSE`, from which Linux takes the times of files; Python has no name for it."""
_TICK_NS = 50_000_000
"""Nanoseconds in which a directory may change twice with the same times."""


@dataclass(frozen=True, slots=True)
class _Directory:
    """A directory as it was listed."""

    identity: tuple[int, int, int, int]
    """Device, inode, times of content and of status."""
    is_settled: bool
    """True if the same identity means the same entries."""
    below: tuple[str, ...] = ()
    """Directories to scan next."""
    places: tuple[str, ...] = ()
    """Protected entries, and the directory itself if it is a repository's data or unreadable."""
    links: tuple[str, ...] = ()
    """Links with a protected name."""


class ProtectedTree:
    """The protected paths of one workspace. Blocks; thread-safe.

    A directory with the same inode and times as before is not listed again: a scan of a known tree takes one `lstat`
    for each directory.
    """

    def __init__(self, workspace: Path, private_paths: Sequence[Path] = ()) -> None:
        """
        Args:
            workspace: absolute, links followed.
            private_paths: our own settings and sessions, which are not listed.
        """
        self._top = str(workspace)
        # Found also if the scan stops early.
        self._always = {os.path.join(self._top, name) for name in PROTECTED_NAMES}
        self._private = {str(path) for path in private_paths}
        self._known: dict[str, _Directory] = {}
        self._lock = threading.Lock()

    def files(self) -> tuple[dict[str, str], bool]:
        """Return the protected files that could make a program run, by path below the workspace; True if all are there.

        In a large workspace the deepest ones may be missing, and the last ones of a very large directory; all are if
        the workspace cannot be listed.

        These are the settings and hooks of repositories, files that point to one, links with a protected name, and the
        files in other protected directories; of installed packages only the directory. The value is empty for a file,
        and for a directory its inode, which differs if another one takes its place.
        """
        with self._lock:
            try:
                places, is_complete = self._scan()
            except OSError:
                return {}, False
            links = [link for directory in self._known.values() for link in directory.links]
        found = dict.fromkeys(links[:MAX_FILES], "")
        is_complete = is_complete and len(links) <= MAX_FILES
        # The outermost first: what is deep in the tree never displaces the workspace's own repository.
        for place in sorted(_outermost(places), key=lambda path: path.count("/")):
            most = 1 if len(found) > MAX_FILES else MAX_FILES_OF_PLACE
            listed = list(islice(_files_of(place), most + 1))
            is_complete = is_complete and len(listed) <= most
            found |= dict(entry for entry in listed[:most] if entry is not None)
        start = len(self._top) + 1
        return {path[start:]: identity for path, identity in found.items() if self._is_watched(path)}, is_complete

    def _is_watched(self, path: str) -> bool:
        return is_within(path, self._top) and not any(is_within(path, private) for private in self._private)

    def _scan(self) -> tuple[set[str], bool]:
        """Return the protected paths and False if some are missing, those in the deepest directories.

        Stops after `SCAN_SECONDS`, or at `MAX_DIRECTORIES`.

        Raises:
            OSError: the workspace cannot be listed.
        """
        began, end = time.clock_gettime_ns(_CLOCK), time.monotonic() + SCAN_SECONDS
        found, waiting = set(self._always), deque([self._top])
        known, self._known = self._known, {}
        while waiting:
            if len(self._known) >= MAX_DIRECTORIES or time.monotonic() > end:
                return found, False
            directory = waiting.popleft()
            listed = _list_directory(directory, self._top, known.get(directory), began)
            if listed is None:
                continue
            self._known[directory] = listed
            found.update(listed.places)
            waiting += listed.below
        return found, True


def _outermost(paths: Iterable[str]) -> list[str]:
    """Return the paths that are not inside another one, sorted."""
    kept: list[str] = []
    for path in sorted(paths, key=lambda path: path.split("/")):
        if not kept or not is_within(path, kept[-1]):
            kept.append(path)
    return sorted(kept)


def _list_directory(directory: str, top: str, known: _Directory | None, began: int) -> _Directory | None:
    """Return the protected entries of one directory and those to scan next; None if it is gone.

    Raises:
        OSError: the workspace itself cannot be listed.
    """
    try:
        status = os.lstat(directory)
        identity = (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns)
        if known is not None and known.is_settled and known.identity == identity:
            return known
        with os.scandir(directory) as entries:
            listed = list(entries)
    except OSError as error:
        if directory == top:
            raise
        # Not settled: whether it can be read may change without a change of the directory.
        return None if isinstance(error, FileNotFoundError) else _Directory((0, 0, 0, 0), False, places=(directory,))
    is_settled = max(status.st_mtime_ns, status.st_ctime_ns) < began - _TICK_NS
    if any(entry.name == "HEAD" for entry in listed) and holds_repository(directory):
        return _Directory(identity, is_settled, places=(directory,))
    below: list[str] = []
    links: list[str] = []
    places: set[str] = set()
    folder = os.path.basename(directory)
    for entry in listed:
        if protected_name(entry.name) or (folder.startswith(".") and is_definition(folder, entry.name)):
            own = _places_of(entry, directory, top)
            places |= own
            links += [entry.path] if entry.is_symlink() else []
            # A link or a pointer file leads elsewhere as soon as its target changes, a repository with its `commondir`.
            is_plain = not entry.is_file() and entry.name.lower() != OWN_DIRECTORY
            is_settled = is_settled and own == {entry.path} and is_plain
        elif entry.is_dir(follow_symlinks=False):
            below.append(entry.path)
    return _Directory(identity, is_settled, tuple(below), tuple(places), tuple(links))


def _places_of(entry: os.DirEntry[str], directory: str, top: str) -> set[str]:
    """Return the paths behind one protected entry: itself, a link's target, a pointer file's targets."""
    places = {os.path.realpath(entry.path) if entry.is_symlink() else entry.path}
    if entry.name == OWN_DIRECTORY:
        places |= set(data_directories(directory)) - ({entry.path} if entry.is_symlink() else set())
    return {place for place in places if is_within(place, top) and place != top}


def _files_of(place: str) -> Iterator[tuple[str, str] | None]:
    """Yield path and identity of the files of a protected path; for a directory that is listed as a whole, its own.

    Yields None for each directory that was searched, so that the caller can limit the work.
    """
    try:
        status = os.lstat(place)
    except OSError:
        return
    if not stat.S_ISDIR(status.st_mode):
        yield place, ""
        return
    yield place, f"{status.st_dev}:{status.st_ino}"
    name = os.path.basename(place).lower()
    if name == OWN_DIRECTORY or holds_repository(place):
        yield from files_of_repository(place)
    elif name != "node_modules":
        for directory, directories, files in os.walk(place):
            yield None
            links = (name for name in directories if os.path.islink(os.path.join(directory, name)))
            yield from ((os.path.join(directory, name), "") for name in (*files, *links))
