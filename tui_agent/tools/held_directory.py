"""Opens files below a directory that is held open, so that nobody can swap a directory for a link in between.

Paths come here fully resolved; a symbolic link met on the way therefore means that the path changed since, and the
call is refused (safety promise 6).
"""

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from tui_agent.protocol.errors import ToolError

_SEARCH_ONLY = getattr(os, "O_PATH", os.O_RDONLY)
"""Holding a directory to look names up in it needs no permission to list it."""

_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISLNK, "a symbolic link that was put there just now"),
)


@contextmanager
def held_directory(path: Path, *, create: bool = False) -> Generator[int, None, None]:
    """A descriptor of the directory `path`, for use as `dir_fd`.

    Args:
        path: absolute and fully resolved.
        create: make what is missing of it.

    Raises:
        OSError: a part is missing, is no directory, or became a symbolic link (then `NotADirectoryError`).
    """
    flags = _SEARCH_ONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    held = os.open(path.anchor, flags)
    try:
        for name in path.parts[1:]:
            if create:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=held)
            deeper = os.open(name, flags, dir_fd=held)
            os.close(held)
            held = deeper
        yield held
    finally:
        os.close(held)


@contextmanager
def opened_file(path: Path, shown: str) -> Generator[tuple[int, os.stat_result], None, None]:
    """A descriptor of the regular file `path`, for reading, and what `fstat` says of it.

    Nothing but a regular file is ever opened: opening a pipe may wait for ever, opening a device may do things.

    Args:
        path: absolute and fully resolved.
        shown: its name in error texts.

    Raises:
        ToolError: it is no regular file.
        OSError: it cannot be opened.
    """
    with held_directory(path.parent) as directory:
        refuse_special(os.stat(path.name or ".", dir_fd=directory, follow_symlinks=False), shown)
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        descriptor = os.open(path.name, flags, dir_fd=directory)
    try:
        status = os.fstat(descriptor)
        refuse_special(status, shown)
        yield descriptor, status
    finally:
        os.close(descriptor)


def refuse_special(status: os.stat_result, shown: str) -> None:
    """Lets regular files pass.

    Raises:
        ToolError: it is something else; the text says what.
    """
    if stat.S_ISREG(status.st_mode):
        return
    kind = next((words for is_kind, words in _KINDS if is_kind(status.st_mode)), "a special file")
    raise ToolError(f"{shown} is {kind}, not a regular file; it was not opened")
