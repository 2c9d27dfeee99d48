"""Whether a repository's own settings name programs that git would start while it only looks.

Filters, external diffs and text conversions cannot be switched off by settings that weigh more; a repository that came
as an archive can bring them. What the command's environment does switch off (monitor, hooks, pager, signatures,
transports) is not looked for here.
"""

import os
import re
from functools import lru_cache
from pathlib import PurePath

from tui_agent.protocol.regular_file import read_regular_file

from .protected_paths import git_directories

MAX_NESTED = 100
"""Most repositories inside one another that are looked at."""
MAX_INDEX_BYTES = 50_000_000
"""Longest index that is searched for repositories inside."""

_HEADER = re.compile(r'\s*\[\s*([\w.-]+)(?:\s+"((?:\\.|[^"\\])*)")?\s*\](.*)\Z', re.DOTALL)
_KEY = re.compile(r"\s*([A-Za-z][\w-]*)\s*(?:=(.*))?\Z", re.DOTALL)
_SETTING_FREE = re.compile(r"\s*(?:[#;].*)?\Z")
_READING_HOOK = "post-index-change"
"""The one hook that commands set off which only read."""
_HARMLESS_DIFF = frozenset(("xfuncname", "funcname", "wordregex", "binary", "algorithm", "cachetextconv"))
_LFS = {"clean": "git-lfs clean -- %f", "smudge": "git-lfs smudge -- %f", "process": "git-lfs filter-process"}
_NESTED_MODE = b"\x00\x00\xe0\x00"
"""How an index marks a repository inside the repository."""


def find_program_setting(directory: str, *, is_protected: bool = True) -> str | None:
    """The setting of the repository around a directory (or of one inside it) for which git would start a program.

    Args:
        directory: absolute, links followed.
        is_protected: the command's environment switches off what can be switched off.

    Returns:
        None: there is none, or no repository.
    """
    waiting = repository_roots(directory)
    seen: set[str] = set()
    while waiting:
        top = waiting.pop()
        if top in seen:
            continue
        seen.add(top)
        if len(seen) > MAX_NESTED:
            return "more repositories inside than can be looked at"
        places = git_directories(top)
        for place in places:
            for name in ("config", "config.worktree"):
                path, is_linked = os.path.join(place, name), os.path.isfile(os.path.join(top, ".git"))
                if setting := _in_file(path, is_linked=is_linked, is_protected=is_protected):
                    return setting
            if not is_protected and os.path.lexists(hook := os.path.join(place, "hooks", _READING_HOOK)):
                return hook
        if places:
            nested = _nested(places[0])
            if nested is None:
                return "an index of a form that is not known"
            waiting.extend(
                os.path.join(top, name) for name in nested if os.path.lexists(os.path.join(top, name, ".git"))
            )
    return None


def repository_roots(directory: str) -> list[str]:
    """Every directory from here upwards with a `.git`: git passes one by that it finds not to be valid."""
    upwards = (directory, *map(str, PurePath(directory).parents))
    return [place for place in upwards if os.path.lexists(os.path.join(place, ".git"))]


def _in_file(path: str, *, is_linked: bool, is_protected: bool) -> str | None:
    try:
        status = os.stat(path)
        return _in_version(path, status.st_mtime_ns, status.st_size, status.st_ino, is_linked, is_protected)
    except FileNotFoundError:
        return None
    except OSError:
        return f"{path}, which cannot be read"


@lru_cache(maxsize=256)
def _in_version(path: str, changed: int, size: int, inode: int, is_linked: bool, is_protected: bool) -> str | None:
    """The first setting of a file that starts a program; the file as it was at one time."""
    text = read_regular_file(path).decode("utf-8", "surrogateescape").replace("\r\n", "\n").replace("\r", "\n")
    section, name = "", ""
    for line in text.replace("\\\n", "").split("\n"):
        rest = line
        if header := _HEADER.match(line):
            section, name, rest = header.group(1).lower(), header.group(2) or "", header.group(3)
        if _SETTING_FREE.match(rest):
            continue
        setting = _KEY.match(rest)
        if setting is None:
            return f"a line that is not known: {line.strip()[:80]}"
        key, value = setting.group(1).lower(), (setting.group(2) or "").strip()
        is_harmless = _is_harmless(section, name, key, value, is_linked)
        if not is_harmless or not (is_protected or _starts_none(section, key, value)):
            return ".".join(part for part in (section, name, key) if part)
    return None


def _is_harmless(section: str, name: str, key: str, value: str, is_linked: bool) -> bool:
    head, _, old_name = section.partition(".")
    if head in ("include", "includeif"):
        return False
    if head == "filter":
        return key == "required" or (name == "lfs" and _LFS.get(key) == value.strip('"'))
    if head == "merge":
        return key != "driver"
    if head == "lfs":
        return key != "standalonetransferagent" and not (name or old_name).startswith(("extension.", "customtransfer."))
    if head == "diff":
        return key in _HARMLESS_DIFF if name or old_name else key != "external"
    # A work tree elsewhere would make files outside look like the repository's; a linked one names its own.
    return (head, key) != ("core", "worktree") or is_linked


def _starts_none(section: str, key: str, value: str) -> bool:
    """Whether a setting starts nothing where the environment switches nothing off."""
    if (section, key) == ("core", "fsmonitor"):
        return value.lower() in ("", "true", "false", "yes", "no", "on", "off", "0", "1")
    is_program = section == "gpg" and key.endswith("program")
    return not is_program and (section, key) != ("core", "hookspath") and key not in ("uploadpack", "partialclone")


def _nested(place: str) -> tuple[str, ...] | None:
    """The paths at which a repository may have others; None if that cannot be told."""
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
            # Behind the mode: user, group, size, hash, flags, and two bytes more where the flags say so.
            flags = place + 16 + hash_size
            start = flags + (4 if data[flags : flags + 1] and data[flags] & 0x40 else 2)
            path = data[start : data.find(b"\x00", start)]
            found.append(os.fsdecode(path))
    return tuple(path for path in found if path and not path.startswith("/"))
