"""Settings and links of a repository that make git start a program, read another file, or show a secret.

Nothing can turn off filters, external diffs and text conversions, and a repository unpacked from an archive can bring
them. Programs that the environment of our git turns off (monitor, hooks, pager, signatures, transports) are ignored.
Links and pointers out of the repository are found by kind, not by name: every link below the data directories,
everything that is neither a file nor a directory, and every file that points to objects or to shared data. What they
lead to is looked through as well.
"""

import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice

from tui_agent.protocol.regular_file import read_regular_file

from .git_settings import list_settings
from .repository_layout import (
    OWN_DIRECTORY,
    is_within,
    nested_repositories,
    pointer,
    possible_data,
    possible_repositories,
)

MAX_ENTRIES = 100_000
"""Maximum number of entries of a repository's data to look at."""

_NOT_LISTED = {"": re.compile(r"(?:lfs|annex)\Z"), "/objects": re.compile(r"[0-9a-f]{2}\Z")}
"""Large directories by where they are in a data directory: of other programs, in which git reads nothing, and of loose
objects. A link to an object elsewhere needs its hash as a name, which only those know who have the object."""
_TICK_NS = 50_000_000
"""Nanoseconds in which a directory may change twice with the same times."""


def find_way_out(top: str, is_open: Callable[[str], bool], outermost: str) -> str | None:
    """Return the link or pointer through which git would read outside of a repository, or None. Blocks.

    A repository's data may lie elsewhere if it points back to the directory, as that of a linked work tree and of a
    submodule does: then it certainly belongs to it.

    Args:
        top: directory with a `.git`, or of a bare repository; absolute.
        is_open: True for a path outside that may be read without a question.
        outermost: the outermost repository around it.
    """
    top = os.path.realpath(top)
    found = (_way_out(top, places, is_open, outermost) for places in possible_data(top))
    return next(filter(None, found), None)


def _way_out(top: str, places: list[str], is_open: Callable[[str], bool], outermost: str) -> str | None:
    own, *shared = map(os.path.realpath, places)
    regions = [top]
    if not is_within(own, top) and _points_back(own, top, shared, outermost):
        home = shared[0] if shared else own
        regions.append(os.path.dirname(home) if os.path.basename(home) == OWN_DIRECTORY else home)

    def leads_out(path: str) -> bool:
        return not any(is_within(path, region) for region in regions) and not is_open(path)

    if pointing := next((place for place in (own, *shared) if leads_out(place)), None):
        return f"the repository of {top}, which leads to {pointing}"
    unlisted = {f"{place}{within}": names for place in (own, *shared) for within, names in _NOT_LISTED.items()}
    waiting, seen, left = [own, *shared], set[str](), MAX_ENTRIES
    while waiting:
        directory = waiting.pop()
        if directory in seen:
            continue
        seen.add(directory)
        try:
            count, below, odd = _list_directory(directory)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            return f"{directory}, which cannot be read"
        left -= count
        if left < 0:
            return f"{own}, which has too many files to look for links"
        large = unlisted.get(directory)
        waiting += (f"{directory}/{name}" for name in below if large is None or not large.match(name))
        for name in odd:
            for target in _targets(directory, name):
                if leads_out(target):
                    return f"{directory}/{name}, which leads to {target}"
                waiting.append(target)
    return None


def _points_back(own: str, top: str, shared: list[str], outermost: str) -> bool:
    """True if a data directory elsewhere names the directory as its work tree."""
    if shared and os.path.dirname(os.path.dirname(own)) == shared[0]:
        return os.path.realpath(os.path.join(own, pointer(f"{own}/gitdir"))) == f"{top}/{OWN_DIRECTORY}"
    try:
        settings = list_settings(read_regular_file(f"{own}/config"), outermost) or ()
    except OSError:
        return False
    trees = [value for section, name, key, value in settings if (section, name, key) == ("core", "", "worktree")]
    return bool(trees) and os.path.realpath(os.path.join(own, trees[-1])) == top


def _targets(directory: str, name: str) -> Iterator[str]:
    """Yield where a link or a pointer leads; a pipe or device leads nowhere certain, so it yields itself as `/dev`."""
    path = f"{directory}/{name}"
    if os.path.islink(path):
        yield os.path.realpath(path)
    elif name == "commondir":
        yield os.path.realpath(os.path.join(directory, pointer(path)))
    elif name == "alternates":
        try:
            lines = read_regular_file(path).split(b"\n")
        except OSError:
            lines = [b"/"]
        objects = os.path.dirname(directory)
        # A line in quotes has escapes, which only git needs to understand.
        texts = ("/" if line.startswith(b'"') else os.fsdecode(line) for line in lines if line[:1] not in (b"", b"#"))
        yield from (os.path.realpath(os.path.join(objects, text.partition("\0")[0])) for text in texts)
    elif os.path.lexists(path):
        yield "/dev"


def _list_directory(directory: str) -> tuple[int, tuple[str, ...], tuple[str, ...]]:
    """Return the number of entries of a directory, its directories, and its links, pointers, pipes and devices."""
    status = os.lstat(directory)
    identity = (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns)
    is_settled = max(status.st_mtime_ns, status.st_ctime_ns) < time.time_ns() - _TICK_NS
    return _listed(directory, identity) if is_settled else _listed.__wrapped__(directory, identity)


@lru_cache(maxsize=50_000)
def _listed(directory: str, _: tuple[int, int, int, int]) -> tuple[int, tuple[str, ...], tuple[str, ...]]:
    below: list[str] = []
    odd: list[str] = []
    count = 0
    with os.scandir(directory) as entries:
        for entry in entries:
            count += 1
            if entry.is_dir(follow_symlinks=False):
                below.append(entry.name)
            elif entry.name in ("commondir", "alternates") or entry.is_symlink() or _blocks(entry):
                odd.append(entry.name)
            if count > MAX_ENTRIES:
                break
    return count, tuple(below), tuple(odd)


def _blocks(entry: os.DirEntry[str]) -> bool:
    """True if git would wait for a pipe, or read a device. It cannot read a socket, and has one for its monitor."""
    return not entry.is_file(follow_symlinks=False) and not stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode)


_MAX_LISTED = 1_000
MAX_NESTED = 100
"""Maximum number of nested repositories to check."""

_HARMLESS_DIFF = frozenset(("xfuncname", "funcname", "wordregex", "binary", "algorithm", "cachetextconv"))
_LFS = {"clean": "git-lfs clean -- %f", "smudge": "git-lfs smudge -- %f", "process": "git-lfs filter-process"}
_READING = frozenset(("blame", "core", "diff", "fsck", "log", "mailmap"))
"""Sections with settings that name files which git reads, and may show, while it only reads."""
_NAMES_FILE = re.compile(r"(?:file|skiplist)\Z")
_SECRET = re.compile(rb"://(?:[^\s/@:\"]*:[^\s/@\"]+|[^\s/@:\"]{20,})@")
"""A URL with a password, or with a user name as long as a token."""


def find_program_setting(directory: str, is_open: Callable[[str], bool]) -> str | None:
    """Return why git is not safe in a directory: a setting that makes it start a program, or a way out. Blocks.

    The repository around the directory and the nested ones that git would visit count.

    Args:
        directory: absolute, links followed.
        is_open: True for a path outside the repository that git may read without a question.

    Returns:
        None if nothing does, or outside a repository.
    """
    return next(_problems(directory, is_open), ("", None))[0] or None


def program_settings(directory: str) -> tuple[str, ...]:
    """Return the reasons why git is not safe in a directory, settings with their values; empty if it is. Blocks.

    At most 1,000, in the order in which they are found.
    """
    found = _problems(directory, lambda path: is_within(path, directory))
    return tuple(f"{name} = {value}" if value is not None else name for name, value in islice(found, _MAX_LISTED))


def _problems(directory: str, is_open: Callable[[str], bool]) -> Iterator[tuple[str, str | None]]:
    """Yield names of settings with their values, and other reasons with None."""
    waiting = possible_repositories(directory)
    outermost = waiting[-1] if waiting else directory
    seen: set[str] = set()
    while waiting:
        top = waiting.pop()
        if top in seen:
            continue
        seen.add(top)
        if len(seen) > MAX_NESTED:
            yield "too many nested repositories", None
            return
        if way_out := find_way_out(top, is_open, outermost):
            yield way_out, None
        for places in possible_data(top):
            yield from _in_data(places, top, outermost)
            nested = nested_repositories(places[0])
            if nested is None:
                yield "an index in an unknown format", None
            waiting.extend(
                os.path.join(top, name)
                for name in nested or ()
                if os.path.lexists(os.path.join(top, name, OWN_DIRECTORY))
            )


def _in_data(places: list[str], top: str, outermost: str) -> Iterator[tuple[str, str | None]]:
    """Yield the settings of a repository that are not harmless."""
    for place in places:
        # Settings of one work tree count only in its own directory.
        for file in (f"{place}/config", *([f"{place}/config.worktree"] if place == places[0] else [])):
            try:
                settings = list_settings(read_regular_file(file), outermost)
            except FileNotFoundError:
                continue
            except OSError:
                yield f"{file}, which cannot be read", None
                continue
            if settings is None:
                yield f"{file}, which git cannot read", None
            for section, name, key, value in settings or ():
                is_harmless = _is_harmless(section, name, key, value)
                if (section, key) == ("core", "worktree"):
                    # Submodules name their own work tree; that of shared settings does not count.
                    tree = os.path.realpath(os.path.join(place, value))
                    is_harmless = place != places[0] or tree == os.path.realpath(top)
                if not is_harmless or _reads_outside(section, key, value, top):
                    yield ".".join(part for part in (section, name, key) if part), value


def _is_harmless(section: str, name: str, key: str, value: str) -> bool:
    if section in ("include", "includeif"):
        return False  # The included file may set anything.
    if section == "filter":
        # Git LFS sets its filter in every repository that uses it, so its usual commands are allowed.
        return key == "required" or (name == "lfs" and _LFS.get(key) == value)
    if section == "log":
        # A merge is made again to show its changes, by the drivers of merges, which are harmless otherwise.
        return key != "diffmerges" or not value.startswith("r")
    if section == "lfs":
        return key != "standalonetransferagent" and not name.startswith(("extension.", "customtransfer."))
    if section == "diff":
        return key in _HARMLESS_DIFF if name else key != "external"
    return True


def _reads_outside(section: str, key: str, value: str, top: str) -> bool:
    """True if a setting makes git read, and perhaps show, a file outside of the repository."""
    if section == "extensions":
        return "/" in value  # References may be kept elsewhere.
    if section not in _READING or not _NAMES_FILE.search(key):
        return False
    # git expands some first characters.
    return value[:1] in ("~", "%", ":") or not is_within(
        os.path.realpath(os.path.join(top, value)), os.path.realpath(top)
    )


# --- secrets ----------------------------------------------------------------------------------------------------------


def settings_with_secret(path: str) -> Iterator[str]:
    """Yield those settings files of the repositories around a path that are at or below it and contain a secret URL."""
    yield from filter(_holds_url_secret, (file for file in _settings_files(path) if is_within(file, path)))


def _holds_url_secret(file: str) -> bool:
    """True if a file can be read and contains a URL with a secret."""
    try:
        return bool(_SECRET.search(read_regular_file(file)))
    except OSError:
        return False


def _settings_files(directory: str) -> Iterator[str]:
    for place in (place for top in possible_repositories(directory) for data in possible_data(top) for place in data):
        yield from (os.path.join(place, name) for name in ("config", "config.worktree"))
