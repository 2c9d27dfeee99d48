"""Programs in a repository's settings that git would start while it only reads.

No other setting can turn off filters, external diffs and text conversions, and a repository unpacked from an archive
can bring them. Programs that the command's environment turns off (monitor, hooks, pager, signatures, transports) are
ignored here.
"""

import os
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePath

from tui_agent.permissions.paths.path_resolution import is_within
from tui_agent.permissions.paths.protected_paths import git_directories
from tui_agent.protocol.regular_file import read_regular_file

MAX_NESTED = 100
"""Maximum number of nested repositories to check."""
MAX_INDEX_BYTES = 50_000_000
"""Maximum size of an index that is searched for nested repositories."""

_HEADER = re.compile(r'\s*\[\s*([\w.-]+)(?:\s+"((?:\\.|[^"\\])*)")?\s*\](.*)\Z', re.DOTALL)
_KEY = re.compile(r"\s*([A-Za-z][\w-]*)\s*(?:=(.*))?\Z", re.DOTALL)
_SETTING_FREE = re.compile(r"\s*(?:[#;].*)?\Z")
_PLAIN_NAME = re.compile(r"[\w./-]+\Z")
_READING_HOOK = "post-index-change"
"""The only hook that read-only commands trigger."""
_HARMLESS_DIFF = frozenset(("xfuncname", "funcname", "wordregex", "binary", "algorithm", "cachetextconv"))
_LFS = {"clean": "git-lfs clean -- %f", "smudge": "git-lfs smudge -- %f", "process": "git-lfs filter-process"}
_NESTED_MODE = b"\x00\x00\xe0\x00"
"""Mode of a nested repository in an index."""


def find_program_setting(directory: str, *, is_protected: bool = True) -> str | None:
    """Return the setting of the repository around a directory, or of a nested one, that makes git start a program.

    Args:
        directory: absolute, links followed.
        is_protected: the command's environment turns off all programs that it can.

    Returns:
        None if no setting starts a program, or outside a repository.
    """
    waiting = repository_roots(directory)
    seen: set[str] = set()
    while waiting:
        top = waiting.pop()
        if top in seen:
            continue
        seen.add(top)
        if len(seen) > MAX_NESTED:
            return "too many nested repositories"
        places = git_directories(top)
        for place in places:
            for name in ("config", "config.worktree"):
                path, is_linked = os.path.join(place, name), os.path.isfile(os.path.join(top, ".git"))
                if setting := _in_file(path, top, is_linked=is_linked, is_protected=is_protected):
                    return setting
            if not is_protected and os.path.lexists(hook := os.path.join(place, "hooks", _READING_HOOK)):
                return hook
        if places:
            nested = _nested(places[0])
            if nested is None:
                return "an index in an unknown format"
            waiting.extend(
                os.path.join(top, name) for name in nested if os.path.lexists(os.path.join(top, name, ".git"))
            )
    return None


def repository_roots(directory: str) -> list[str]:
    """Return every directory from here upwards that has a `.git`. git skips one that it finds invalid."""
    upwards = (directory, *map(str, PurePath(directory).parents))
    return [place for place in upwards if os.path.lexists(os.path.join(place, ".git"))]


def _in_file(path: str, top: str, *, is_linked: bool, is_protected: bool) -> str | None:
    try:
        status = os.stat(path)
        found = _in_version(path, status.st_mtime_ns, status.st_size, status.st_ino, is_linked, is_protected)
    except FileNotFoundError:
        return None
    except OSError:
        return f"{path}, which cannot be read"
    # git shows a line of this file in an error.
    is_outside = any(not is_within(os.path.realpath(os.path.join(top, name)), top) for name in found.shown_files)
    return found.setting or ("blame.ignorerevsfile" if is_outside else None)


@dataclass(frozen=True, slots=True)
class _Found:
    """Settings of one file."""

    setting: str | None
    """The first setting that starts a program."""
    shown_files: tuple[str, ...]
    """Files whose lines git may show."""


@lru_cache(maxsize=256)
def _in_version(path: str, changed: int, size: int, inode: int, is_linked: bool, is_protected: bool) -> _Found:
    """Return the settings of a file that start a program or show files.

    The status arguments are the cache key for one state of the file.
    """
    text = read_regular_file(path).decode("utf-8", "surrogateescape").replace("\r\n", "\n").replace("\r", "\n")
    section, name = "", ""
    shown_files: list[str] = []
    # A backslash at the end of a line continues it.
    for line in text.replace("\\\n", "").split("\n"):
        rest = line
        if header := _HEADER.match(line):
            section, name, rest = header.group(1).lower(), header.group(2) or "", header.group(3)
        if _SETTING_FREE.match(rest):
            continue
        setting = _KEY.match(rest)
        if setting is None:
            return _Found(f"an unknown line: {line.strip()[:80]}", ())
        key, value = setting.group(1).lower(), (setting.group(2) or "").strip()
        is_harmless = _is_harmless(section, name, key, value, is_linked)
        if not is_harmless or not (is_protected or _starts_none(section, key, value)):
            return _Found(".".join(part for part in (section, name, key) if part), ())
        if (section, key) == ("blame", "ignorerevsfile"):
            # Quotes, comments and `~` make the name uncertain.
            shown_files.append(value if _PLAIN_NAME.match(value) else "/")
    return _Found(None, tuple(shown_files))


def _is_harmless(section: str, name: str, key: str, value: str, is_linked: bool) -> bool:
    head, _, old_name = section.partition(".")
    if head in ("include", "includeif"):
        return False  # The included file may set anything.
    if head == "filter":
        # Git LFS sets its filter in every repository that uses it, so its usual commands are allowed.
        return key == "required" or (name == "lfs" and _LFS.get(key) == value.strip('"'))
    if head == "merge":
        return key != "driver"
    if head == "lfs":
        return key != "standalonetransferagent" and not (name or old_name).startswith(("extension.", "customtransfer."))
    if head == "diff":
        return key in _HARMLESS_DIFF if name or old_name else key != "external"
    # A work tree elsewhere makes outside files look like the repository's. A linked work tree names its own.
    return (head, key) != ("core", "worktree") or is_linked


def _starts_none(section: str, key: str, value: str) -> bool:
    """True if a setting starts no program in an environment that turns nothing off."""
    if (section, key) == ("core", "fsmonitor"):
        return value.lower() in ("", "true", "false", "yes", "no", "on", "off", "0", "1")
    is_program = section == "gpg" and key.endswith("program")
    return not is_program and (section, key) != ("core", "hookspath") and key not in ("uploadpack", "partialclone")


def _nested(place: str) -> tuple[str, ...] | None:
    """Return the paths where a repository may contain others, or None if they are not certain."""
    index = os.path.join(place, "index")
    try:
        status = os.stat(index)
        if any(name.startswith("sharedindex.") for name in os.listdir(place)):
            return None
        return _nested_in_version(index, status.st_mtime_ns, status.st_size, status.st_ino)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError:
        return None


@lru_cache(maxsize=64)
def _nested_in_version(index: str, changed: int, size: int, inode: int) -> tuple[str, ...] | None:
    if size > MAX_INDEX_BYTES:
        return None
    data = read_regular_file(index, MAX_INDEX_BYTES)
    places = [match.start() for match in re.finditer(re.escape(_NESTED_MODE), data)]
    if not places:
        return ()
    if data[4:8] not in (b"\x00\x00\x00\x02", b"\x00\x00\x00\x03"):
        return None
    found: list[str] = []
    for place in places:
        for hash_size in (20, 32):
            # After the mode: user, group, size, hash, flags, and two more bytes if the flags say so.
            flags = place + 16 + hash_size
            start = flags + (4 if data[flags : flags + 1] and data[flags] & 0x40 else 2)
            path = data[start : data.find(b"\x00", start)]
            found.append(os.fsdecode(path))
    return tuple(path for path in found if path and not path.startswith("/"))
