"""Files of a layer: kinds, identities, comparison, and the attributes of overlayfs. Functions with a path block."""

import errno
import os
import stat
from pathlib import Path

from tui_agent.protocol.trial import FileKind

_PREFIXES = ("user.overlay.", "trusted.overlay.")
_KINDS: dict[int, FileKind] = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link"}


def status_of(path: str | Path) -> os.stat_result | None:
    """Return the `lstat` of a path; None if nothing is there.

    Raises:
        OSError: it cannot be looked up.
    """
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def kind_of(status: os.stat_result | None) -> FileKind:
    """Return the kind of a file with this status; `absent` for None."""
    return "absent" if status is None else _KINDS.get(stat.S_IFMT(status.st_mode), "special")


def identity_of(status: os.stat_result | None) -> tuple[int, ...]:
    """Return the facts by which a later look tells whether a file is still the same; empty if nothing is there."""
    if status is None:
        return ()
    return (status.st_dev, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def marks_of(path: str | Path) -> dict[str, bytes]:
    """Return the attributes of overlayfs at a file, by their names without prefix, such as `opaque` and `origin`.

    Raises:
        OSError: the attributes cannot be read.
    """
    names = os.listxattr(path, follow_symlinks=False)
    return {
        name.removeprefix(prefix): os.getxattr(path, name, follow_symlinks=False)
        for name in names
        for prefix in _PREFIXES
        if name.startswith(prefix)
    }


def remove_marks(path: str | Path) -> None:
    """Remove the attributes of overlayfs from a file.

    Raises:
        OSError: the attributes cannot be changed.
    """
    for name in os.listxattr(path, follow_symlinks=False):
        if name.startswith(_PREFIXES):
            os.removexattr(path, name, follow_symlinks=False)


def is_whiteout(path: str | Path, status: os.stat_result) -> bool:
    """Return True if a file of an upper directory marks its name as deleted: a device 0/0 or a marked empty file.

    Blocks: it may read the file's attributes.

    Args:
        status: the `lstat` of `path`.

    Raises:
        OSError: the attributes cannot be read.
    """
    if stat.S_ISCHR(status.st_mode):
        return status.st_rdev == 0
    return stat.S_ISREG(status.st_mode) and status.st_size == 0 and "whiteout" in marks_of(path)


_BLOCK = 1024 * 1024
_COMPARED = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def is_same_file(
    one: str | Path, status: os.stat_result | None, other: str | Path, other_status: os.stat_result | None
) -> bool:
    """Return True if there are two files of one kind, and of equal content if it is a regular file or a link. Blocks.

    Raises:
        OSError: a link cannot be read.
    """
    if status is None or other_status is None or stat.S_IFMT(status.st_mode) != stat.S_IFMT(other_status.st_mode):
        return False
    if stat.S_ISLNK(status.st_mode):
        return os.readlink(one) == os.readlink(other)
    if not stat.S_ISREG(status.st_mode):
        return status.st_rdev == other_status.st_rdev
    if status.st_size != other_status.st_size:
        return False
    try:
        with open(os.open(one, _COMPARED), "rb", 0) as first, open(os.open(other, _COMPARED), "rb", 0) as second:
            return _is_same(first.fileno(), second.fileno(), os.fstat(first.fileno()).st_size)
    except OSError:  # Without permission to read it, its times must do.
        return status.st_mtime_ns == other_status.st_mtime_ns


def _is_same(first: int, second: int, size: int) -> bool:
    at = 0
    while at < size:
        if size > _BLOCK:
            at = min(next_data(first, at, size), next_data(second, at, size))
        block = os.pread(first, _BLOCK, at)
        if block != os.pread(second, _BLOCK, at):
            return False
        at += len(block) or size
    return True


def next_data(descriptor: int, at: int, size: int) -> int:
    """Return the offset of the next byte of a file from `at` on that is not in a hole; its size if there is none.

    `at` if the file system does not know its holes.
    """
    try:
        return os.lseek(descriptor, at, os.SEEK_DATA)
    except OSError as error:
        return size if error.errno == errno.ENXIO else at
