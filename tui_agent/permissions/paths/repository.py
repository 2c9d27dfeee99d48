"""Repositories of git: their data, settings that make git start a program or show a secret, names in the index.

No other setting can turn off filters, external diffs and text conversions, and a repository unpacked from an archive
can bring them. Programs that the command's environment turns off (monitor, hooks, pager, signatures, transports) are
ignored here.
"""

import os
import re
import struct
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

from tui_agent.protocol.regular_file import read_regular_file

from .path_resolution import is_within, resolve

OWN_DIRECTORY = ".git"
"""Usual name of a repository's own directory."""
REPOSITORY_NAMES = (OWN_DIRECTORY, "git~1")
"""Names of it, also on file systems with short names."""
DATA_VARIABLES = ("GIT_DIR", "GIT_COMMON_DIR")
"""Variables that tell git where it is."""
MAX_NESTED = 100
"""Maximum number of nested repositories to check."""
MAX_INDEX_BYTES = 50_000_000
"""Maximum size of an index that is searched for nested repositories."""
MAX_LISTED_BYTES = 5_000_000
"""Maximum size of an index whose names are listed."""

_POINTER_BYTES = 4_096
_MAX_DEPTH = 40
_GIT_DIRECTORY_SIGNS = (("HEAD", "objects", "refs"), ("HEAD", "commondir"))
_GIT_FILES = ("config", "config.worktree", "commondir", "info/attributes")
"""Files of a repository that can make git start a program, beside its hooks."""
_GIT_DIRECTORIES = ("hooks", "info", "modules", "worktrees")
"""Directories of a repository that contain such files. A link in place of one leads to others."""
_HEADER = re.compile(r'\s*\[\s*([\w.-]+)(?:\s+"((?:\\.|[^"\\])*)")?\s*\](.*)\Z', re.DOTALL)
_KEY = re.compile(r"\s*([A-Za-z][\w-]*)\s*(?:=(.*))?\Z", re.DOTALL)
_SETTING_FREE = re.compile(r"\s*(?:[#;].*)?\Z")
_PLAIN_NAME = re.compile(r"[\w./-]+\Z")
_READING_HOOK = "post-index-change"
"""The only hook that read-only commands trigger."""
_HARMLESS_DIFF = frozenset(("xfuncname", "funcname", "wordregex", "binary", "algorithm", "cachetextconv"))
_LFS = {"clean": "git-lfs clean -- %f", "smudge": "git-lfs smudge -- %f", "process": "git-lfs filter-process"}
_SECRET = re.compile(rb"://(?:[^\s/@:\"]*:[^\s/@\"]+|[^\s/@:\"]{20,})@")
"""A URL with a password, or with a user name as long as a token."""
_OTHER_HASH = re.compile(b"sha256", re.IGNORECASE)
_INDEX_HEADER = struct.Struct(">4sLL")
_FIXED = 62
"""Bytes of an index entry before its name: times, numbers, size, hash, flags."""
_DIRECTORY, _NESTED = 0o040000, 0o160000
"""Types of the entries for a whole directory, in a sparse index, and for a nested repository."""


# --- data of repositories ---------------------------------------------------------------------------------------------


def protected_repository(path: str, workspace: str) -> str | None:
    """Return why a resolved path is protected by a repository around it or by a `.git` file that points to it.

    Checks the directories from the path up to the workspace (up to the root for a path outside), and the repository of
    the workspace itself.
    """
    around = list(islice(_upwards(path, workspace if is_within(path, workspace) else "/"), _MAX_DEPTH))
    for directory in around:
        if holds_repository(directory):
            return f"{directory} is a repository's data"
    for directory in dict.fromkeys((*around, *_upwards(workspace))):
        for target in data_directories(directory):
            if is_within(path, target):
                return f"{target} is where {directory}/.git points"
    return None


def data_directories(directory: str) -> list[str]:
    """Return the data directory of a directory's repository, and the directory it shares with other work trees."""
    own = os.path.join(directory, OWN_DIRECTORY)
    if not os.path.isdir(own):
        target = _first_line(own).removeprefix("gitdir:").strip()
        if not target:
            return []
        own = resolve(target, directory).path
    common = _first_line(f"{own}/commondir")
    return [own, resolve(common, own).path] if common else [own]


def holds_repository(directory: str) -> bool:
    """True if a directory holds a repository's data, whatever its name."""
    if not os.path.lexists(f"{directory}/HEAD"):
        return False
    return any(all(os.path.lexists(f"{directory}/{name}") for name in signs) for signs in _GIT_DIRECTORY_SIGNS)


def repository_roots(directory: str) -> list[str]:
    """Return every directory from here upwards that has a `.git`. git skips one that it finds invalid."""
    return [place for place in _upwards(directory) if os.path.lexists(f"{place}/{OWN_DIRECTORY}")]


def _upwards(path: str, top: str = "/") -> Iterator[str]:
    """Yield a path and the directories above it up to `top`."""
    yield path
    while path not in (top, "/"):
        path = path.rpartition("/")[0] or "/"
        yield path


def _first_line(path: str) -> str:
    try:
        first, _, _ = read_regular_file(path).partition(b"\n")
        return first[:_POINTER_BYTES].decode("utf-8", "surrogateescape").strip()
    except OSError:
        return ""


def files_of_repository(place: str) -> Iterator[tuple[str, str] | None]:
    """Yield the settings and hooks of a repository, its submodules and its other work trees, each with an empty text.

    Yields None for each directory that was searched, so that the caller can limit the work.
    """
    waiting = [place]
    while waiting:
        directory = waiting.pop()
        yield None
        if os.path.islink(directory):
            yield directory, ""
            continue
        files = (f"{directory}/{name}" for name in _GIT_FILES)
        yield from ((path, "") for path in files if os.path.lexists(path))
        links = (f"{directory}/{name}" for name in _GIT_DIRECTORIES)
        yield from ((path, "") for path in links if os.path.islink(path))
        # Of hooks behind a link, the files are watched where they are.
        hooks = os.path.realpath(f"{directory}/hooks")
        yield from ((f"{hooks}/{hook}", "") for hook in names_in(hooks) if not hook.endswith(".sample"))
        waiting += [f"{directory}/worktrees/{name}" for name in names_in(f"{directory}/worktrees")]
        # The name of a submodule may contain slashes.
        searched = [f"{directory}/modules"]
        for parent in searched:
            yield None
            for path in (f"{parent}/{name}" for name in names_in(parent)):
                is_repository = os.path.islink(path) or os.path.lexists(f"{path}/HEAD")
                (waiting if is_repository else searched).append(path)


def names_in(directory: str) -> list[str]:
    """Return the names in a directory; none if it cannot be read."""
    try:
        return os.listdir(directory)
    except OSError:
        return []


# --- settings ---------------------------------------------------------------------------------------------------------


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
        places, is_linked = data_directories(top), os.path.isfile(f"{top}/.git")
        for place in places:
            for name in ("config", "config.worktree"):
                if setting := _in_file(f"{place}/{name}", top, is_linked=is_linked, is_protected=is_protected):
                    return setting
            if not is_protected and os.path.lexists(hook := f"{place}/hooks/{_READING_HOOK}"):
                return hook
        if places:
            nested = _index_entries(places[0], only_nested=True)
            if nested is None:
                return "an index in an unknown format"
            waiting.extend(
                os.path.join(top, name) for name in nested if os.path.lexists(os.path.join(top, name, ".git"))
            )
    return None


def places_repository(variable: str) -> bool:
    """True if a variable may tell git where its repository is."""
    return variable.startswith("GIT_")


def names_own_directory(variable: str, value: str) -> bool:
    """True if a variable names a repository's own directory, which git may change."""
    return variable in DATA_VARIABLES and value.rstrip("/").rpartition("/")[2] == OWN_DIRECTORY


def _in_file(path: str, top: str, *, is_linked: bool, is_protected: bool) -> str | None:
    try:
        setting, shown = _in_version(path, _version(path), is_linked, is_protected)
    except FileNotFoundError:
        return None
    except OSError:
        return f"{path}, which cannot be read"
    # git shows a line of this file in an error.
    is_outside = any(not is_within(os.path.realpath(os.path.join(top, name)), top) for name in shown)
    return setting or ("blame.ignorerevsfile" if is_outside else None)


def _version(path: str) -> tuple[int, int, int]:
    """Return what tells one state of a file from others, as a key for a cache."""
    status = os.stat(path)
    return status.st_mtime_ns, status.st_size, status.st_ino


@lru_cache(maxsize=256)
def _in_version(path: str, version: tuple[int, int, int], is_linked: bool, is_protected: bool) -> tuple[str, list[str]]:
    """Return the first setting of a file that starts a program, or an empty text, and the files that git may show."""
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
            return f"an unknown line: {line.strip()[:80]}", []
        key, value = setting.group(1).lower(), (setting.group(2) or "").strip()
        is_harmless = _is_harmless(section, name, key, value, is_linked)
        if not is_harmless or not (is_protected or _starts_none(section, key, value)):
            return ".".join(part for part in (section, name, key) if part), []
        if (section, key) == ("blame", "ignorerevsfile"):
            # Quotes, comments and `~` make the name uncertain.
            shown_files.append(value if _PLAIN_NAME.match(value) else "/")
    return "", shown_files


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


def find_remote_url_secret(directory: str) -> str | None:
    """Return the settings file with a secret in a URL, which `git remote -v` would show, or None."""
    places = [place for top in repository_roots(directory) for place in data_directories(top)]
    files = [os.path.join(place, name) for place in places for name in ("config", "config.worktree")]
    # `insteadOf` in the user's or the system's settings may put a secret into the repository's URLs.
    user = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    files += [os.path.expanduser("~/.gitconfig"), os.path.join(user, "git", "config"), "/etc/gitconfig"]
    return next((file for file in files if _holds(file, _SECRET)), None)


# --- index ------------------------------------------------------------------------------------------------------------


def index_names(directory: str) -> tuple[str, ...] | None:
    """Return the names of tracked files in and below a directory, relative to it, or None if they are not certain."""
    place = os.path.realpath(directory)
    tops = repository_roots(place)
    if len(tops) != 1:
        return None  # Which of several repositories git uses depends on their validity.
    places = data_directories(tops[0])
    if not places or not holds_repository(places[0]) or not os.path.exists(os.path.join(places[0], "index")):
        return None
    found = _index_entries(places[0])
    prefix = "" if place == tops[0] else os.path.relpath(place, tops[0]) + "/"
    return None if found is None else tuple(name[len(prefix) :] for name in found if name.startswith(prefix))


def _index_entries(place: str, *, only_nested: bool = False) -> tuple[str, ...] | None:
    """Return the names in the index of a git directory, or only nested repositories; None if they are not certain."""
    index = f"{place}/index"
    try:
        # A split index stores some entries in another file.
        is_split = any(name.startswith("sharedindex.") for name in os.listdir(place))
        version = _version(index)
        if is_split or version[1] > (MAX_INDEX_BYTES if only_nested else MAX_LISTED_BYTES):
            return None
        return _read_index(place, version, only_nested)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError:
        return None


@lru_cache(maxsize=64)
def _read_index(place: str, version: tuple[int, int, int], only_nested: bool) -> tuple[str, ...] | None:
    """Return the names in an index, or None for an unsupported format."""
    data = read_regular_file(f"{place}/index", MAX_INDEX_BYTES)
    if only_nested and _NESTED.to_bytes(4) not in data:
        return ()
    # SHA-256 changes the size of entries.
    if _holds(f"{place}/config", _OTHER_HASH) or len(data) < _INDEX_HEADER.size:
        return None
    sign, version_number, count = _INDEX_HEADER.unpack_from(data)
    if sign != b"DIRC" or version_number not in (2, 3):
        return None
    found: list[str] = []
    at = _INDEX_HEADER.size
    for _ in range(count):
        if len(data) < at + _FIXED:
            return None
        mode, flags = int.from_bytes(data[at + 24 : at + 28]), int.from_bytes(data[at + 60 : at + 62])
        start = at + _FIXED + (2 if flags & 0x4000 else 0)
        end = data.find(b"\0", start)
        if end < 0 or (mode & 0o170000 == _DIRECTORY and not only_nested):
            return None
        if mode == _NESTED or not only_nested:
            found.append(data[start:end].decode("utf-8", "surrogateescape"))
        at += (end - at) // 8 * 8 + 8
    return tuple(found)


def _holds(file: str, pattern: re.Pattern[bytes]) -> bool:
    """True if a file can be read and contains a match."""
    try:
        return bool(pattern.search(read_regular_file(file)))
    except OSError:
        return False
