"""Reading of files of any origin: only regular ones of limited size, because a pipe would block.

The async functions open, read and close a small file in one go in a thread, and read the rest of a larger one through
`aiofiles`.

Also functions for directories (make private ones, sync them) and for repositories: their root, their branch, and links
that lead out of them. A link in a clone may lead to any file of the user, such as a private key.
"""

import asyncio
import os
import re
import stat
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from aiofiles.threadpool.binary import AsyncBufferedReader


T = TypeVar("T")

Opener = Callable[[str, int], int]
"""Function that opens a path and returns the descriptor, as for the built-in `open`; called in a thread."""


AHEAD = 64 * 1024
"""Bytes that are read in the same go in which a file is opened: changing threads takes longer."""


@asynccontextmanager
async def open_for_reading(path: str, opener: Opener) -> AsyncGenerator["FileReader", None]:
    """Open a file with `opener` for reading bytes.

    A cancelled caller does not wait for an operation that is still running.

    Raises:
        Exception: anything that `opener` raises.
    """
    thread = _FileThread()
    try:
        file = await asyncio.wrap_future(thread.submit(_OpenFile, path, opener))
        yield FileReader(file, thread)
    except asyncio.CancelledError:
        # Not awaited: a read from a slow disk may still run, and the thread closes the file after it.
        thread.close_file()
        raise
    except BaseException:
        await _wait_for(thread.close_file())
        raise
    else:
        await _wait_for(thread.close_file())


async def _wait_for(closing: "Future[None] | None") -> None:
    if closing is not None:
        # A cancellation must not take the closing out of the queue.
        await asyncio.shield(asyncio.wrap_future(closing))


class FileReader:
    """A file that is being read. A small one was read, and closed, when it was opened."""

    def __init__(self, file: "_OpenFile", thread: "_FileThread") -> None:
        self._file, self._thread = file, thread
        self._place = 0
        """Bytes of the start that were returned."""
        self._rest: AsyncBufferedReader | None = None

    async def read(self, size: int) -> bytes:
        """Return the next `size` bytes; fewer only at the end of the file."""
        start = self._file.start[self._place : self._place + size]
        self._place += len(start)
        if len(start) == size or self._file.is_closed:
            return start
        if self._rest is None:
            # In a thread: an import waits while another thread imports, and the event loop must not.
            aiofiles = _load() if _load.cache_info().currsize else await asyncio.to_thread(_load)
            opening = aiofiles.open(self._file.descriptor, "rb", closefd=False, executor=self._thread)
            self._rest = cast("AsyncBufferedReader", await opening)
        return start + await self._rest.read(size - len(start))

    async def seek(self, place: int) -> None:
        """Continue reading at byte `place` of the file, from 0, which `read` must have returned."""
        length = len(self._file.start)
        self._place = min(place, length)
        if self._rest is not None:
            await self._rest.seek(max(place, length))


class _OpenFile:
    """An open file and its first bytes, read in a thread. A file that ends within them is closed at once."""

    def __init__(self, path: str, opener: Opener) -> None:
        self.descriptor = opener(path, os.O_RDONLY | os.O_CLOEXEC)
        self.start = b""
        self.is_closed = False
        try:
            # The start of a pipe may never come.
            while stat.S_ISREG(os.fstat(self.descriptor).st_mode) and len(self.start) < AHEAD:
                piece = os.read(self.descriptor, AHEAD - len(self.start))
                if not piece:
                    self.close()
                    break
                self.start += piece
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            os.close(self.descriptor)


@cache
def _load() -> Any:
    """Return the module `aiofiles`. Loading it takes 5 ms that the start of the program does not need."""
    import aiofiles

    return aiofiles


class _FileThread(ThreadPoolExecutor):
    """The thread of one file. It runs one operation at a time, so that no descriptor is closed while it is read."""

    def __init__(self) -> None:
        super().__init__(1, thread_name_prefix="file")
        self._opened: Future[Any] | None = None

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Run an operation; the first one opens the file and returns it."""
        operation = super().submit(fn, *args, **kwargs)
        if self._opened is None:
            self._opened = operation
        return operation

    def close_file(self) -> Future[None] | None:
        """Close the file after the operation that is running, if any, and end the thread. Does not block.

        Returns:
            The closing; None if the file is closed already, or was never opened.
        """
        opened, closing = self._opened, None
        if opened is not None and not (opened.done() and _is_closed(opened)):
            closing = self.submit(_close, opened)
        # If the thread could not be started, its queue still has the call that opens the file.
        self.shutdown(wait=False, cancel_futures=opened is None)
        return closing


def _is_closed(opened: "Future[_OpenFile]") -> bool:
    return opened.cancelled() or opened.exception() is not None or opened.result().is_closed


def _close(opened: "Future[_OpenFile]") -> None:
    """Close a file, also if its caller never received it because of a cancellation."""
    if not _is_closed(opened):
        opened.result().close()


MAX_BYTES = 1024 * 1024
"""Default size limit in bytes."""


def read_regular_file(path: str, limit: int = MAX_BYTES) -> bytes:
    """Return the content of a file; links are followed. Blocks.

    Raises:
        OSError: the file cannot be read, is not a regular file, or has more than `limit` bytes.
    """
    opener = _Opener(path, limit)
    try:
        with open(path, "rb", opener=opener) as file:
            return opener.checked(file.read(opener.most))
    except ValueError as error:
        raise OSError(f"{path!r} is not a path: {error}") from error


async def read_regular_file_async(path: str, limit: int = MAX_BYTES) -> bytes:
    """Return the content of a file as `read_regular_file` does, without blocking the event loop.

    Raises:
        OSError: as for `read_regular_file`.
    """
    opener = _Opener(path, limit)
    try:
        async with open_for_reading(path, opener) as file:
            return opener.checked(await file.read(opener.most))
    except ValueError as error:
        raise OSError(f"{path!r} is not a path: {error}") from error


class _Opener:
    """Opener of one regular file, with its limit."""

    def __init__(self, path: str, limit: int) -> None:
        self._path = path
        self._limit = limit
        self.most = 0
        """Bytes to read, one more than the file may have; known once it is open."""

    def __call__(self, path: str, flags: int) -> int:
        # A pipe would block until something writes to it, and a terminal could become that of the process.
        descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(f"{path} is not a regular file")
        except BaseException:
            os.close(descriptor)
            raise
        # `read` allocates all bytes it is asked for. Files may grow meanwhile, and those of /proc report size 0.
        self.most = min(self._limit, status.st_size + MAX_BYTES) + 1
        return descriptor

    def checked(self, content: bytes) -> bytes:
        """Return the content that was read."""
        if len(content) > self._limit:
            raise OSError(f"{self._path} is larger than {self._limit:,} bytes")
        return content


def sync_directory(path: str | os.PathLike[str], dir_fd: int | None = None) -> None:
    """Make creations and renames in a directory durable. Blocks.

    A relative `path` starts at the directory open as `dir_fd`; None: at the current one.

    Raises:
        OSError: it cannot be opened for reading, or not be synced.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=dir_fd)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


PRIVATE_MODE = 0o700
"""Mode of such a directory."""


def make_private_directories(path: Path) -> None:
    """Create a directory and its missing parents with mode 0700, under any umask; existing ones do not change. Blocks.

    Raises:
        OSError: one cannot be created, or a file has the name.
    """
    # `Path.mkdir(mode, parents=True)` would give the parents another mode.
    missing = [path]
    while not missing[-1].parent.exists():
        missing.append(missing[-1].parent)
    for directory in reversed(missing):
        directory.mkdir(PRIVATE_MODE, exist_ok=True)
        if directory.stat().st_mode & 0o700 != PRIVATE_MODE:
            # A umask that takes the owner's rights, too.
            directory.chmod(PRIVATE_MODE)


def repository_root(folder: Path) -> Path:
    """Return the resolved root of the repository around `folder`; without one, `folder` itself. Blocks."""
    here = Path(os.path.realpath(folder))
    # In a worktree it is a file, and a link may lead nowhere.
    return next((place for place in (here, *here.parents) if os.path.lexists(place / ".git")), here)


def target_outside(path: Path, folder: Path) -> Path | None:
    """Return the target of `path` if it is outside the repository around `folder`, else None. Blocks.

    All links are followed, also those of directories. If the repository root is the user's home or `/`, `folder` counts
    as the root. Git's own directory counts as outside.
    """
    here, target = Path(os.path.realpath(folder)), Path(os.path.realpath(path))
    root = repository_root(here)
    # A home under git would make every file of the user a part of the repository.
    if root in (Path("/"), Path(os.path.realpath(os.path.expanduser("~")))):
        root = here
    # The files of git may contain credentials.
    if not target.is_relative_to(root) or target.relative_to(root).parts[:1] == (".git",):
        return target
    return None


def refusal(path: Path, target: Path) -> str:
    """Return the message for a file that is not used because it leads out of the repository."""
    return f"{path} is a link to {target}, outside this repository: not used"


_LARGEST_POINTER = 65_536
"""Maximum size in bytes of a file in which git names a branch or a directory."""

_HASH = re.compile("[0-9a-f]{7,64}")


def branch_of(directory: Path) -> str:
    """Return the branch of the repository around a directory; for a detached HEAD the first 7 digits of the commit.

    Empty without a repository, or if neither can be read. Blocks.
    """
    for folder in (directory, *directory.parents):
        pointer = folder / ".git"
        try:
            if os.path.isfile(pointer):
                pointer = folder / _small_text(pointer).removeprefix("gitdir:").strip()
            head = _small_text(pointer / "HEAD").strip()
        except (OSError, UnicodeDecodeError):
            continue
        if head.startswith("ref:"):
            return head.removeprefix("ref: refs/heads/")
        # The file may be a link to any other one, such as a key.
        return head[:7] if _HASH.fullmatch(head) else ""
    return ""


def _small_text(path: Path) -> str:
    return read_regular_file(str(path), _LARGEST_POINTER).decode("utf-8")
