"""Names in a repository's index, which `git ls-files` prints even if no such file exists."""

import os
import struct
from functools import lru_cache

from tui_agent.permissions.paths.protected_paths import git_directories, is_git_directory
from tui_agent.protocol.regular_file import read_regular_file

from .repository_settings import repository_roots

MAX_BYTES = 5_000_000
"""Maximum size of an index."""

_HEADER = struct.Struct(">4sLL")
_FIXED = 62
"""Bytes of an entry before its name: times, numbers, size, hash, flags."""
_DIRECTORY = 0o040000


def index_names(directory: str) -> tuple[str, ...] | None:
    """Return the names of tracked files in and below a directory, relative to it, or None if they are not certain.

    Args:
        directory: absolute, in a repository or not.
    """
    place = os.path.realpath(directory)
    tops = repository_roots(place)
    if len(tops) != 1:
        return None  # Which of several repositories git uses depends on their validity.
    places = git_directories(tops[0])
    if not places or not is_git_directory(places[0]):
        return None
    index = os.path.join(places[0], "index")
    try:
        # A split index stores some entries in another file; SHA-256 changes the size of entries.
        if any(name.startswith("sharedindex.") for name in os.listdir(places[0])):
            return None
        if b"sha256" in read_regular_file(os.path.join(places[0], "config")).lower():
            return None
        status = os.stat(index)
        found = _names(index, status.st_mtime_ns, status.st_size, status.st_ino)
    except OSError:
        return None
    prefix = "" if place == tops[0] else os.path.relpath(place, tops[0]) + "/"
    return None if found is None else tuple(name[len(prefix) :] for name in found if name.startswith(prefix))


@lru_cache(maxsize=16)
def _names(index: str, changed: int, size: int, inode: int) -> tuple[str, ...] | None:
    """Return the names in an index, or None for an unsupported format.

    The status arguments are the cache key for one state of the file.
    """
    if size > MAX_BYTES:
        return None
    data = read_regular_file(index, MAX_BYTES)
    if len(data) < _HEADER.size:
        return None
    sign, version, count = _HEADER.unpack_from(data)
    if sign != b"DIRC" or version not in (2, 3):
        return None
    found: list[str] = []
    at = _HEADER.size
    for _ in range(count):
        if len(data) < at + _FIXED:
            return None
        mode, flags = int.from_bytes(data[at + 24 : at + 28]), int.from_bytes(data[at + 60 : at + 62])
        start = at + _FIXED + (2 if flags & 0x4000 else 0)
        end = data.find(b"\0", start)
        # A sparse index has entries for whole directories.
        if end < 0 or mode & 0o170000 == _DIRECTORY:
            return None
        found.append(data[start:end].decode("utf-8", "surrogateescape"))
        at += (end - at) // 8 * 8 + 8
    # Extensions with a lower-case signature change the meaning of the entries; the last 20 bytes are a hash.
    while at + 28 <= len(data):
        if not data[at : at + 1].isupper():
            return None
        at += 8 + int.from_bytes(data[at + 4 : at + 8])
    return tuple(found)
