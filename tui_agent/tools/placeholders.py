"""Empty directories that stand in for protected ones that do not exist, so that a sandbox has something to bind.

Commands of several programs may need the same one at the same time: each holds a lock on it, the last one removes it. A
stand-in is known by its sticky bit, so that one a killed program left behind is removed by the next that needs it.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

PLACEHOLDER_MODE = 0o1755
"""Mode of a stand-in; no directory of that name has the sticky bit by itself. Its owner may fill it from outside of the
sandbox; then it stays."""

_TRIES = 100


@contextmanager
def placeholders(paths: Iterable[Path]) -> Generator[frozenset[Path]]:
    """Makes those directories that do not exist, for as long as the context is open. Blocks.

    Gives those that nobody can make, because the file system is read-only or the directory around them is somebody
    else's: they need no stand-in. Where a parent is missing, too, the topmost missing one is made.

    Raises:
        OSError: one cannot be made.
    """
    with ExitStack() as held:
        impossible: set[Path] = set()
        for path in paths:
            missing = placeholder_for(path)
            try:
                _hold(missing, held)
            except OSError as error:
                if not _cannot_be_made_by_anybody(error, missing.parent):
                    raise
                impossible.add(path)
        yield frozenset(impossible)


def placeholder_for(path: Path) -> Path:
    """What stands for `path`: itself where it or its parent exists, else the topmost missing one above it."""
    while not os.path.lexists(path.parent):
        path = path.parent
    return path


def _hold(path: Path, held: ExitStack) -> None:
    """Makes a directory unless something is there, and keeps a stand-in there until the context ends."""
    for _ in range(_TRIES):
        with suppress(FileExistsError):
            os.mkdir(path, PLACEHOLDER_MODE)
        if not _is_placeholder(path):
            return
        with suppress(FileNotFoundError):
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            if _is_still(descriptor, path):
                held.callback(_release_placeholder, descriptor, path)
                return
            os.close(descriptor)
    raise OSError(errno.EAGAIN, "others make and remove it all the time", str(path))


def _release_placeholder(descriptor: int, path: Path) -> None:
    """Removes the stand-in if nobody else holds it and nothing was put into it."""
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
    """Whether the directory that is held is the one at this path."""
    with suppress(OSError):
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    return False


def _cannot_be_made_by_anybody(error: OSError, parent: Path) -> bool:
    if error.errno == errno.EROFS:
        return True
    return error.errno in (errno.EACCES, errno.EPERM) and parent.stat().st_uid != os.geteuid()
