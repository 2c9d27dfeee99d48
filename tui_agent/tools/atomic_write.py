"""Replaces a file as a whole or not at all: new content beside it, synced, then renamed over it (safety promise 6)."""

import os
import secrets
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.regular_file import sync_directory

from .pinned_directory import ResolvedPath, pinned_directory, refuse_special

_NEW_FILE_MODE = 0o666
"""Mode of a file that did not exist; the process's umask takes bits away."""
_PRIVATE_FILE_MODE = 0o600


def replace_file(place: ResolvedPath, content: bytes, before: os.stat_result | None, shown: str) -> os.stat_result:
    """Gives the file at `place` a new content; mode, owner and extended attributes stay. Blocks.

    Args:
        place: where; missing directories are made.
        content: the whole new content.
        before: what `fstat` said when the old content was looked at; None: there was no file.
        shown: the file's name in error texts.

    Returns:
        What `fstat` says of the new file.

    Raises:
        ToolError: the file is not the one that was looked at, or may not be written; nothing was changed.
        OSError: writing failed; nothing was changed.
    """
    path = place.path
    with pinned_directory(path.parent, create=True, place=place) as directory:
        _refuse_other(_status(path.name, directory), before, shown)
        if before is not None and not os.access(path.name, os.W_OK, dir_fd=directory, effective_ids=True):
            raise ToolError(
                f"{shown} is write-protected (mode {stat.S_IMODE(before.st_mode):04o}); nothing was changed"
            )
        return _replace(
            path.name,
            directory,
            content,
            before,
            new_mode=_NEW_FILE_MODE,
            check=lambda: _refuse_other(_status(path.name, directory), before, shown),
        )


def write_atomically(path: Path, content: bytes) -> None:
    """Replace one of tui-agent's own files; a new one is private (0600), an existing one keeps its mode. Blocks.

    Raises:
        OSError: writing failed; nothing was changed.
    """
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        before = None
        with suppress(FileNotFoundError):
            before = path.stat()
        _replace(path.name, directory, content, before, new_mode=_PRIVATE_FILE_MODE)
    finally:
        os.close(directory)


def _replace(
    name: str,
    directory: int,
    content: bytes,
    before: os.stat_result | None,
    *,
    new_mode: int,
    check: Callable[[], None] = lambda: None,
) -> os.stat_result:
    """Write the new file under a temporary name, call `check`, and rename it."""
    temporary = f".{name[:40]}.{secrets.token_hex(8)}.tmp"
    try:
        status = _write_beside(temporary, directory, content, before, name, new_mode)
        check()
        os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=directory)
        raise
    with suppress(OSError):  # Not every directory can be opened for reading.
        sync_directory(".", dir_fd=directory)
    return status


def _status(name: str, directory: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _refuse_other(now: os.stat_result | None, before: os.stat_result | None, shown: str) -> None:
    """Lets the file pass that was looked at."""
    if now is not None:
        refuse_special(now, shown)
    if _identity(now) != _identity(before):
        what = "appeared" if before is None else "was deleted" if now is None else "changed"
        raise ToolError(
            f"{shown} {what} just now, while it was about to be written; nothing was changed: read it again"
        )


def _identity(status: os.stat_result | None) -> tuple[int, int, int, int] | None:
    return None if status is None else (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def _write_beside(
    temporary: str, directory: int, content: bytes, before: os.stat_result | None, name: str, new_mode: int
) -> os.stat_result:
    """Writes the new file under its temporary name; it is never more open to others than the old one."""
    mode = new_mode if before is None else stat.S_IMODE(before.st_mode) & 0o700
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, mode, dir_fd=directory)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
        if before is not None:
            _keep_owner(descriptor, before)
            _keep_attributes(descriptor, directory, name)
            os.fchmod(descriptor, stat.S_IMODE(before.st_mode))
        os.fsync(descriptor)
        return os.fstat(descriptor)
    finally:
        os.close(descriptor)


def _keep_owner(descriptor: int, before: os.stat_result) -> None:
    """Gives the file its old owner and group, as far as we may."""
    with suppress(PermissionError):
        os.fchown(descriptor, -1, before.st_gid)
        os.fchown(descriptor, before.st_uid, -1)


def _keep_attributes(descriptor: int, directory: int, name: str) -> None:
    """Copies extended attributes, access lists among them, as far as the file systems allow."""
    if sys.platform != "linux":
        return
    with suppress(OSError):
        old = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
        try:
            for attribute in os.listxattr(old):
                with suppress(OSError):
                    os.setxattr(descriptor, attribute, os.getxattr(old, attribute))
        finally:
            os.close(old)
