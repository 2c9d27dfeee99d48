"""Sorting of changed paths by how they are decided: caches, ignored files, packages, protected and refused paths.

Only git knows what a rule of `.gitignore` matches. Most paths have not the words of any rule, so that tui-agent asks
git about the others only.
"""

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from tui_agent.git.git_program import identity_of, users_config_dir, users_settings
from tui_agent.git.read_only_git import read_git
from tui_agent.git.repository_layout import data_directories, repository_roots
from tui_agent.protocol.regular_file import read_regular_file
from tui_agent.protocol.trial import MOST_FILES, ChangeSort, LayerChange

from .layer_files import kind_of, status_of

_MOST_PATHS = 64
"""Most paths that are compared with rules; git is faster with many."""
_SETTINGS = ("config", "config.worktree")
_NAMES_FILES = re.compile(rb"excludesfile|include", re.IGNORECASE)
"""Text without which a file of settings names neither rules nor other files of settings."""
_SPECIAL = re.compile(rb"[\[\\\0].*", re.DOTALL)
"""Rest of a rule from a character on after which its text need not be in the path."""
_BETWEEN = re.compile(rb"[*?/]+")

_Rules = tuple[frozenset[bytes], ...]
"""Of each rule the words, in lower case, that are in every path which it matches; of one that may match any, none."""


def may_be_ignored(workspace: str, paths: Sequence[str]) -> Sequence[str]:
    """Return the paths that git may ignore: all in doubt. Blocks.

    Args:
        workspace: absolute, links followed.
        paths: relative to it.
    """
    top = next(iter(repository_roots(workspace)), None)
    if top is None or len(paths) > _MOST_PATHS or (shared := _shared_rules(top)) is None:
        return paths
    known: dict[str, _Rules | None] = {}

    def is_possible(path: str) -> bool:
        name = f"{workspace}/{path}"
        words = os.fsencode(name).lower()
        for directory in _above(name, top):
            if directory not in known:
                known[directory] = _rules_in(f"{directory}/.gitignore")
        rules = (shared, *(known[directory] for directory in _above(name, top)))
        return any(some is None or any(all(word in words for word in rule) for rule in some) for some in rules)

    return [path for path in paths if is_possible(path)]


def _above(path: str, top: str) -> Iterator[str]:
    """Yield the directories above a path, up to the top of its repository."""
    while path not in (top, ""):
        path = path.rpartition("/")[0]
        yield path


def _shared_rules(top: str) -> _Rules | None:
    """Return the rules for a whole repository, its own and the user's; None if they are not certain."""
    places = data_directories(top)
    # git ignores a repository without a head, and takes the one around it.
    if not places or not os.path.lexists(f"{places[0]}/HEAD"):
        return None
    if any(_names_files(f"{place}/{name}") for place in places for name in _SETTINGS):
        return None
    settings, _ = users_settings()
    users = os.path.expanduser(settings.get("core.excludesfile", f"{users_config_dir()}/ignore"))
    # Conditions may include more for this repository; beginnings of a path other than `~` have meanings for git.
    if any(name.startswith("includeif.") for name in settings) or not (os.path.isabs(users) or not users):
        return None
    files = [*(f"{place}/info/exclude" for place in places), *filter(None, (users,))]
    rules = [_rules_in(file) for file in files]
    return None if None in rules else tuple(rule for some in rules for rule in some or ())


def _names_files(settings: str) -> bool:
    try:
        return bool(_NAMES_FILES.search(read_regular_file(settings)))
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _rules_in(file: str) -> _Rules | None:
    """Return the rules of a file, none if it is missing; None if it cannot be read."""
    return _read_rules(file, identity_of(file)) if os.path.lexists(file) else ()


@lru_cache(maxsize=256)
def _read_rules(file: str, _: tuple[int, int, int]) -> _Rules | None:
    try:
        text = read_regular_file(file).removeprefix(b"\xef\xbb\xbf").lower()
    except OSError:
        return None
    # A rule that makes an exception ignores nothing.
    rules = (line for line in text.split(b"\n") if line.strip() and not line.startswith((b"#", b"!")))
    return tuple(dict.fromkeys(map(_words_of, rules)))


def _words_of(rule: bytes) -> frozenset[bytes]:
    return frozenset(filter(None, _BETWEEN.split(_SPECIAL.sub(b"", rule).strip())))


CACHES = frozenset(
    {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".import_linter_cache", ".pytype"}
    | {".eslintcache", ".parcel-cache", ".turbo", ".ccache", ".sass-cache"}
)
"""Names of directories and files that programs make anew whenever they need them."""

PACKAGES = frozenset({".venv", "venv", "vendor"})
_PROTECTED = frozenset(
    {".git", ".husky", "node_modules", ".tui-agent", ".mcp.json", ".gitmodules", ".gitattributes", ".envrc", ".vscode"}
    | {".cursor", ".codex", ".github", "agents.md", "claude.md"}
)
"""Names that are protected whatever the caller knows, in lower case."""
_SPECIAL_BITS = stat.S_ISUID | stat.S_ISGID
_GIT_SECONDS = 20.0
_UP_AFTER_NAME = re.compile(r"(?:^|/)(?!\.\.?/)[^/]+/(?:.*/)?\.\.(?:/|$)", re.DOTALL)


class PathSorter:
    """Sorts the changed paths of one workspace."""

    def __init__(
        self,
        workspace: Path,
        *,
        is_protected: Callable[[str], bool] = lambda _: False,
        is_denied: Callable[[str], bool] = lambda _: False,
        is_trusted: bool = False,
    ) -> None:
        """Create a sorter.

        Args:
            workspace: absolute, links followed.
            is_protected: True for a path that a call may not write without an answer of the user. Paths are as in
                `ProposedFile.path`.
            is_denied: True for a path that a rule forbids to edit.
            is_trusted: True if git may run here without walls.
        """
        self._workspace = workspace
        self._is_protected = is_protected
        self._is_denied = is_denied
        self._is_trusted = is_trusted
        self._tops: dict[str, str] = {}

    def sort(self, found: Sequence[LayerChange], places: Sequence[Path]) -> tuple[list[LayerChange], int]:
        """Set sort, reason and tree of each path; return them without known caches, and the number of those. Blocks.

        Args:
            found: the changed paths.
            places: the covered directories, to one of which each link must lead.
        """
        kept = [change for change in found if not self._is_cache(change)]
        ignored = self._ignored(kept)
        for change in kept:
            change.reason = self._refusal(change, places)
            self._sort_one(change, ignored)
        _group(kept)
        return kept, len(found) - len(kept)

    def _sort_one(self, change: LayerChange, ignored: dict[str, str]) -> None:
        path = change.path
        parts = path.split("/")
        if change.reason:
            change.sort = "refused"
        if change.sort != "workspace":
            return
        named = next((at for at, name in enumerate(parts) if name.lower() in _PROTECTED), None)
        if named is not None or self._is_protected(path):
            change.sort = "protected"
            is_tree = named is not None and named < len(parts) - 1
            change.tree = "/".join(parts[: named + 1]) + "/" if is_tree and named is not None else ""
            return
        if (packages := self._packages(path.rpartition("/")[0])) or path in ignored:
            change.sort = "packages" if packages else "ignored"
            change.tree = packages or ignored[path]

    def _refusal(self, change: LayerChange, places: Sequence[Path]) -> str:
        """Return why a change is never kept; empty if it may be."""
        if self._is_denied(change.path):
            return "a rule denies to edit it"
        if change.new == "special":
            return "it is a device, a socket or a pipe"
        if change.new == "file" and change.mode & _SPECIAL_BITS:
            return "it would run with the rights of its owner or group"
        if change.new == "link":
            return _leads_out(change, places)
        return ""

    def _packages(self, directory: str) -> str:
        """Return the topmost environment or directory of packages around a path; empty if there is none."""
        if not directory:
            return ""
        if directory not in self._tops:
            above, _, name = directory.rpartition("/")
            is_one = name in PACKAGES or os.path.lexists(f"{self._workspace}/{directory}/pyvenv.cfg")
            self._tops[directory] = self._packages(above) or (f"{directory}/" if is_one else "")
        return self._tops[directory]

    def _is_cache(self, change: LayerChange) -> bool:
        """Return True for a file in a known cache, unless the whole cache is deleted."""
        parts = change.path.split("/")
        for at, name in enumerate(parts):
            if name in CACHES:
                above = len(parts) - at - 1
                top = change.source.parents[above - 1] if above else change.source
                return change.kind != "deleted" or kind_of(status_of(top)) == "directory"
        return False

    # --- files that git ignores ---------------------------------------------------------------------------------------

    def _ignored(self, found: Iterable[LayerChange]) -> dict[str, str]:
        """Return the paths that git ignores, each with the ignored directory that it is in; empty if in none."""
        paths = [change.path for change in found if not os.path.isabs(change.path)]
        # Starting git takes longer than all else that follows a command.
        paths = may_be_ignored(str(self._workspace), paths)
        askable = {"": True}
        asked = {f"{directory}/": None for path in paths for directory in self._askable_above(path, askable)}
        asked |= {path: None for path in paths if askable[path.rpartition("/")[0]]}
        stdin = b"".join(os.fsencode(path) + b"\0" for path in asked)
        command, is_trusted = ("check-ignore", "-z", "--stdin"), self._is_trusted
        output = (
            read_git(self._workspace, command, seconds=_GIT_SECONDS, stdin=stdin, is_trusted=is_trusted)
            if stdin
            else None
        )
        ignored = {os.fsdecode(name) for name in (output or b"").split(b"\0") if name}
        tops = {path for path in ignored if path.endswith("/")}
        found_in = {path: _top_in(path, tops) for path in paths}
        return {path: top for path, top in found_in.items() if top or path in ignored}

    def _askable_above(self, path: str, askable: dict[str, bool]) -> list[str]:
        """Return the directories above a path of which git can say something, and remember for each if it can.

        git fails for paths in another repository or behind a link.
        """
        parts = path.split("/")[:-1]
        above = ["/".join(parts[:at]) for at in range(1, len(parts) + 1)]
        for directory in above:
            if directory not in askable:
                place = self._workspace / directory
                is_other = place.is_symlink() or os.path.lexists(place / ".git")
                askable[directory] = askable[directory.rpartition("/")[0]] and not is_other
        return [directory for directory in above if askable[directory]]


def _leads_out(change: LayerChange, places: Sequence[Path]) -> str:
    """Return why a link is refused: it leads out of the covered directories, by its text or by links on the way."""
    to = os.readlink(change.source)
    plain, resolved = os.path.normpath(change.target.parent / to), os.path.realpath(change.target.parent / to)
    is_inside = all(any(Path(one).is_relative_to(place) for place in places) for one in (plain, resolved))
    # After a link that the layer has, too, `..` may lead anywhere.
    is_plain = not _UP_AFTER_NAME.search(to)
    return "" if is_inside and is_plain else f"it is a link to {to}, outside of the workspace"


def _top_in(path: str, tops: set[str]) -> str:
    """Return the uppermost of some directories that a path is in."""
    at = path.find("/") if tops else -1
    while at >= 0:
        if path[: at + 1] in tops:
            return path[: at + 1]
        at = path.find("/", at + 1)
    return ""


_RANK: dict[ChangeSort, int] = {
    "protected": 0,
    "refused": 1,
    "workspace": 2,
    "repository": 3,
    "packages": 4,
    "ignored": 5,
}


def _group(found: Sequence[LayerChange]) -> None:
    """Put the single files beyond the most that a proposal lists below their top directories."""
    single = [change for change in found if not change.tree]
    if len(single) <= MOST_FILES:
        return
    single.sort(key=lambda change: (_RANK[change.sort], change.path))
    owners = {change.tree: change.sort for change in found if change.tree}
    for change in single[MOST_FILES:]:
        top = f"{change.path.split('/')[0]}/" if "/" in change.path else "./"
        # A name stands for one sort, because an answer names trees by it.
        tree = top if owners.get(top, change.sort) == change.sort else f"{top} ({change.sort})/"
        owners[tree] = change.sort
        change.tree = tree
