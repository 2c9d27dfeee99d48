"""Placeholder directories at protected paths that do not exist, so that the sandbox can bind them read-only.

Several programs may need the same placeholder at the same time: each holds a lock on it, and the last one removes it.
The sticky bit identifies a placeholder, so that one left behind by a killed program is removed by the next user.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

PLACEHOLDER_MODE = 0o1755
"""Mode of a placeholder; a real directory of such a name never has the sticky bit. Programs outside the sandbox may
put files into it; then it stays."""

_TRIES = 100


@contextmanager
def placeholders(paths: Iterable[Path]) -> Generator[frozenset[Path]]:
    """Create placeholders for the paths that do not exist, while the context is open. Blocks.

    If the parent of a path is missing, too, the placeholder is its topmost missing parent. Yields the paths that need
    none because the command could not create them either: they are on a read-only file system, or in a directory of
    another user.

    Raises:
        OSError: a placeholder cannot be created.
    """
    with ExitStack() as held:
        impossible: set[Path] = set()
        for path in paths:
            missing = placeholder_path(path)
            try:
                _hold(missing, held)
            except OSError as error:
                if not _is_out_of_reach(error, missing.parent):
                    raise
                impossible.add(path)
        yield frozenset(impossible)


def placeholder_path(path: Path) -> Path:
    """Return `path` if it or its parent exists, else its topmost missing parent."""
    while not os.path.lexists(path.parent):
        path = path.parent
    return path


def _hold(path: Path, held: ExitStack) -> None:
    """Create a placeholder unless the path exists, and lock it until the context ends."""
    for _ in range(_TRIES):
        with suppress(FileExistsError):
            os.mkdir(path, PLACEHOLDER_MODE)
        if not _is_placeholder(path):
            return
        with suppress(FileNotFoundError):
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            if _is_still(descriptor, path):
                held.callback(_release, descriptor, path)
                return
            os.close(descriptor)
    raise OSError(errno.EAGAIN, "other programs create and remove it all the time", str(path))


def _release(descriptor: int, path: Path) -> None:
    """Remove the placeholder if no other program holds it and it is empty."""
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_still(descriptor, path):
                os.rmdir(path)
    finally:
        os.close(descriptor)


def _is_placeholder(path: Path) -> bool:
    with suppress(OSError):
        mode = path.lstat().st_mode
        return stat.S_ISDIR(mode) and bool(mode & stat.S_ISVTX)
    return True  # It is gone again: one more try.


def _is_still(descriptor: int, path: Path) -> bool:
    """Return True if the open directory is still the one at this path."""
    with suppress(OSError):
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    return False


def _is_out_of_reach(error: OSError, parent: Path) -> bool:
    """Return True if a command with the user's rights cannot create the directory either."""
    if error.errno == errno.EROFS:
        return True
    return error.errno in (errno.EACCES, errno.EPERM) and parent.stat().st_uid != os.geteuid()
