"""Atomic replacement of a file: write the new content beside it, sync it, rename it over the old (safety promise 6)."""

import os
import secrets
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from grp import getgrgid
from pathlib import Path
from pwd import getpwuid

from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.regular_file import sync_directory

from .pinned_directory import ResolvedPath, pinned_directory, refuse_special

_NEW_FILE_MODE = 0o666
"""Mode of a new file, before the process's umask applies."""
_PRIVATE_FILE_MODE = 0o600
_TEMPORARY_END = ".tmp"


def replace_file(
    place: ResolvedPath, content: bytes, before: os.stat_result | None, shown: str, mark: str = ""
) -> os.stat_result:
    """Replace the content of the file at `place`; mode, owner and extended attributes stay. Blocks.

    Missing directories are created. If the process may not keep the group, the new one gets no more rights than
    everyone has. `before` is the `fstat` of the file when its old content was read, and the result that of the new
    file; `mark` is a part of the name of the temporary file.

    Raises:
        ToolError: the file is not the one that was read, or is write-protected; nothing was changed.
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
            mark=mark,
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


def is_temporary_of(path: Path, target: Path) -> bool:
    """Return True if `path` has a name under which the new content of `target` is written before it gets its place."""
    is_one = path.name.startswith(_temporary_start(target.name)) and path.name.endswith(_TEMPORARY_END)
    return is_one and path.parent == target.parent


def temporary_name(name: str, mark: str = "") -> str:
    """Return the name under which new content of a file is written first; without a mark, a new one."""
    return f"{_temporary_start(name)}{mark or secrets.token_hex(8)}{_TEMPORARY_END}"


def lost_ownership(before: os.stat_result, now: os.stat_result) -> str:
    """Return a note on the owner and the group that a replaced file could not keep; empty if it kept both."""
    lost: list[str] = []
    if before.st_uid != now.st_uid:
        lost.append(f"owner changed from {_user_name(before.st_uid)} to {_user_name(now.st_uid)}")
    if before.st_gid != now.st_gid:
        lost.append(f"group changed from {_group_name(before.st_gid)} to {_group_name(now.st_gid)}")
    return f"its {' and its '.join(lost)}, because this process may not keep it" if lost else ""


def _user_name(number: int) -> str:
    try:
        return getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _group_name(number: int) -> str:
    try:
        return getgrgid(number).gr_name
    except KeyError:
        return str(number)


def _temporary_start(name: str) -> str:
    # Cut, so that the temporary name also fits if the name has all 255 bytes.
    return f".{name[:40]}."


def _replace(
    name: str,
    directory: int,
    content: bytes,
    before: os.stat_result | None,
    *,
    new_mode: int,
    check: Callable[[], None] = lambda: None,
    mark: str = "",
) -> os.stat_result:
    """Write the new file under a temporary name, call `check`, and rename it."""
    temporary = temporary_name(name, mark)
    try:
        status = _write_beside(temporary, directory, content, before, name, new_mode)
        # As late as possible: only the rename itself can still meet a change.
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
    """Raise `ToolError` unless the file is still the one that was read."""
    if now is not None:
        refuse_special(now, shown)
    if _identity(now) != _identity(before):
        what = "appeared" if before is None else "was deleted" if now is None else "changed"
        raise ToolError(f"{shown} {what} just before it was written; nothing was written: read it again, then repeat")


def _identity(status: os.stat_result | None) -> tuple[int, int, int, int] | None:
    return None if status is None else (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def _write_beside(
    temporary: str, directory: int, content: bytes, before: os.stat_result | None, name: str, new_mode: int
) -> os.stat_result:
    """Write the new file under its temporary name and return its `fstat`."""
    # Others may read the new content only once the file has its old owner and mode again.
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
            # After the owner, whose change clears the special bits.
            os.fchmod(descriptor, _kept_mode(before, os.fstat(descriptor)))
        # Otherwise a loss of power could leave an empty file under the name.
        os.fsync(descriptor)
        return os.fstat(descriptor)
    finally:
        os.close(descriptor)


def _keep_owner(descriptor: int, before: os.stat_result) -> None:
    """Restore the old owner and group, as far as the process is allowed to."""
    # One by one, so that the group is kept where only the owner may not be.
    for owner, group in ((-1, before.st_gid), (before.st_uid, -1)):
        with suppress(PermissionError):
            os.fchown(descriptor, owner, group)


def _kept_mode(before: os.stat_result, now: os.stat_result) -> int:
    """Return the mode for the new file; another owner or group does not get the special rights of the old one."""
    mode = stat.S_IMODE(before.st_mode)
    if now.st_uid != before.st_uid:
        mode &= ~stat.S_ISUID
    if now.st_gid != before.st_gid:
        mode &= ~(stat.S_ISGID | stat.S_IRWXG) | (mode & stat.S_IRWXO) << 3
    return mode


def _keep_attributes(descriptor: int, directory: int, name: str) -> None:
    """Copy extended attributes, including access control lists, as far as the file system allows."""
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
