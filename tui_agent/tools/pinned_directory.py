"""Opening of files through directories that are held open, so that no directory can be swapped for a link meanwhile.

Paths arrive fully resolved. A symbolic link on the way therefore means that the path changed since, and the call is
refused; so it is if a file or directory is not the one that was shown to the user (safety promise 6).
"""

import os
import stat
import sys
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.regular_file import FileReader, open_for_reading
from tui_agent.protocol.tool import JudgedTarget

from .text_format import printable

_SEARCH_ONLY = getattr(os, "O_PATH", os.O_RDONLY)
"""Flag that opens a directory for looking up names, which needs no permission to list it."""

_HOLD = _SEARCH_ONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISLNK, "a symbolic link that forms a loop, or was created just now"),
)


@dataclass(frozen=True, slots=True)
class ResolvedPath:
    """A fully resolved path, with the identities that a call was judged by."""

    path: Path
    known: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    """Device and inode expected at the path, and at directories on the way to it."""

    @classmethod
    def of(cls, target: JudgedTarget) -> "ResolvedPath":
        """Return the place a call was judged by."""
        return cls(Path(target.path), {path: (device, inode) for path, device, inode in target.identities})

    def refuse_other(self, path: Path, status: os.stat_result) -> None:
        """Refuse a file or directory that is not the one the call was judged by.

        Raises:
            ToolError: `path` was replaced.
        """
        expected = self.known.get(str(path))
        if expected is not None and expected != (status.st_dev, status.st_ino):
            words = "was replaced after this call was allowed; nothing was done: repeat the call"
            raise ToolError(f"{printable(str(path))} {words}")


@contextmanager
def pinned_directory(
    path: Path, *, create: bool = False, place: ResolvedPath | None = None
) -> Generator[int, None, None]:
    """Open a fully resolved directory and yield its descriptor, for use as `dir_fd`; `place` has expected identities.

    Raises:
        ToolError: a directory on the way was replaced since the call was judged.
        OSError: a part is missing, is not a directory, or became a symbolic link (then `NotADirectoryError`).
    """
    held, reached = os.open(path.anchor, _HOLD), Path(path.anchor)
    try:
        for name in path.parts[1:]:
            if create:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=held)
            # Part by part: O_NOFOLLOW concerns only the last name of a path.
            deeper = os.open(name, _HOLD, dir_fd=held)
            os.close(held)
            held = deeper
            reached /= name
            if place is not None:
                place.refuse_other(reached, os.fstat(held))
        yield held
    finally:
        os.close(held)


@contextmanager
def pinned_below(held: int, below: str) -> Generator[int, None, None]:
    """Open a directory below an open one, part by part so that no symbolic link is followed; yield its descriptor.

    The path has `/` between and behind its parts; it is empty for the upper directory itself.

    Raises:
        OSError: as for `pinned_directory`.
    """
    reached = os.open(".", _HOLD, dir_fd=held)
    try:
        for name in below.split("/")[:-1]:
            deeper = os.open(name, _HOLD, dir_fd=reached)
            os.close(reached)
            reached = deeper
        yield reached
    finally:
        os.close(reached)


@contextmanager
def scan_directory(held: int) -> Generator[Iterator["os.DirEntry[str]"], None, None]:
    """List an open directory. Use the entries inside the `with`: some file systems look their kinds up late.

    Raises:
        OSError: it cannot be listed.
    """
    # A descriptor opened with `O_PATH` cannot list its directory.
    listed = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=held)
    try:
        with os.scandir(listed) as entries:
            yield entries
    finally:
        os.close(listed)


@contextmanager
def pinned_cwd(place: ResolvedPath) -> Generator[Path, None, None]:
    """Yield a path by which a program can start in the open directory, even if its own path is replaced meanwhile.

    Raises:
        ToolError, OSError: as for `pinned_directory`.
    """
    with pinned_directory(place.path, place=place) as held:
        yield Path(f"/proc/self/fd/{held}") if sys.platform == "linux" else place.path


def names_in(path: Path, most: int) -> list[str]:
    """Return up to `most` names in a directory, sorted, directories with a slash; none if it cannot be listed."""
    names: list[str] = []
    with suppress(OSError), pinned_directory(path) as held, scan_directory(held) as entries:
        names += (entry.name + ("/" if _is_directory(entry) else "") for entry in islice(entries, most))
    return sorted(names)


@asynccontextmanager
async def open_file(
    path: Path, shown: str, *, place: ResolvedPath | None = None
) -> AsyncGenerator[tuple[FileReader, os.stat_result], None]:
    """Open a file as `open_regular_file` does, without blocking the event loop; yield it and its `fstat`.

    Raises:
        ToolError, OSError: as for `open_regular_file`.
    """
    statuses: list[os.stat_result] = []

    def opener(_path: str, _flags: int) -> int:
        descriptor, status = _open_pinned(path, shown, place)
        statuses.append(status)
        return descriptor

    async with open_for_reading(str(path), opener) as file:
        yield file, statuses[0]


@contextmanager
def open_regular_file(
    path: Path, shown: str, *, place: ResolvedPath | None = None
) -> Generator[tuple[int, os.stat_result], None, None]:
    """Open a fully resolved regular file for reading; yield its descriptor and its `fstat`. Blocks.

    For work that runs in a thread and reads many files; a tool that reads one file calls `open_file`. Other kinds are
    never opened: opening a pipe may wait for ever, opening a device may have an effect.

    Raises:
        ToolError: it is not a regular file, or was replaced since the call was judged.
        OSError: it cannot be opened.
    """
    descriptor, status = _open_pinned(path, shown, place)
    try:
        yield descriptor, status
    finally:
        os.close(descriptor)


@contextmanager
def open_regular_file_at(held: int, name: str, shown: str) -> Generator[tuple[int, os.stat_result], None, None]:
    """Open a regular file in an open directory, as `open_regular_file` does.

    Raises:
        ToolError: it is not a regular file.
        OSError: it cannot be opened.
    """
    descriptor, status = _open_at(held, name, shown)
    try:
        yield descriptor, status
    finally:
        os.close(descriptor)


def _open_pinned(path: Path, shown: str, place: ResolvedPath | None) -> tuple[int, os.stat_result]:
    """Open `path` through held directories; return the descriptor, which the caller closes, and its `fstat`."""
    with pinned_directory(path.parent, place=place) as directory:
        descriptor, status = _open_at(directory, path.name, shown)
    if place is not None:
        try:
            place.refuse_other(path, status)
        except ToolError:
            os.close(descriptor)
            raise
    return descriptor, status


def _open_at(held: int, name: str, shown: str) -> tuple[int, os.stat_result]:
    """Open a regular file in an open directory; return the descriptor, which the caller closes, and its `fstat`."""
    # Before it is opened, as opening a device may have an effect; and again below, as it may be replaced in between.
    refuse_special(os.stat(name or ".", dir_fd=held, follow_symlinks=False), shown)
    # A pipe that takes its place just now must not block, and a terminal must not become ours.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    descriptor = os.open(name, flags, dir_fd=held)
    try:
        status = os.fstat(descriptor)
        refuse_special(status, shown)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, status


def refuse_special(status: os.stat_result, shown: str) -> None:
    """Refuse anything but a regular file.

    Raises:
        ToolError: it is of another kind; the message names it.
    """
    if stat.S_ISREG(status.st_mode):
        return
    kind = next((words for is_kind, words in _KINDS if is_kind(status.st_mode)), "a special file")
    raise ToolError(f"{shown} is {kind}, not a regular file; it was not opened")


def _is_directory(entry: "os.DirEntry[str]") -> bool:
    """Return True for a directory or a symbolic link to one."""
    try:
        return entry.is_dir()
    except OSError:  # A symbolic link that forms a loop.
        return False
