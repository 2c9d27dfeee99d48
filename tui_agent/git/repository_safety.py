"""Settings of a repository that make git start a program, read another file, or show a secret.

Nothing can turn off filters, external diffs and text conversions, and a repository unpacked from an archive can bring
them. Programs that the environment of our git turns off (monitor, hooks, pager, signatures, transports) are ignored.
"""

import os
import re
from collections.abc import Callable, Iterator
from itertools import islice

from tui_agent.protocol.regular_file import read_regular_file

from .git_settings import list_settings
from .repository_layout import (
    OWN_DIRECTORY,
    is_within,
    nested_repositories,
    possible_data,
    possible_repositories,
)
from .repository_links import find_way_out

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
    """Return why git is not safe in a directory: a setting that makes it start a program, or a way out.

    The repository around the directory and the nested ones that git would visit count.

    Args:
        directory: absolute, links followed.
        is_open: True for a path outside the repository that git may read without a question.

    Returns:
        None if nothing does, or outside a repository.
    """
    return next(_problems(directory, is_open), ("", None))[0] or None


def program_settings(directory: str) -> tuple[str, ...]:
    """Return every reason why git is not safe in a directory, settings with their values, for a question of trust."""
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
    """Yield the settings files at or below a path that contain a URL with a secret: of the repository around it."""
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
