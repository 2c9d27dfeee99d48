"""Watch of a few files: settings and themes that the user edits while the program runs.

The files are checked once a second, and at once when the system reports a change in their directory. These reports only
save time, and checks continue without them: they do not cover missing directories or those with other content, such as
the workspace; the system limits their number; and the library that reads them fails on a name that is not UTF-8.
"""

import asyncio
import importlib
import os
import stat
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any, TypeAlias

from .background import run_service

POLL_SECONDS = 1.0
"""Seconds between two checks."""

QUIET_MS = 200
"""Milliseconds without another change before a report counts; editors write in several steps."""

_UNSETTLED_NS = 2_000_000_000
"""Nanoseconds after a change in which a file may change again without a difference in its times."""

Mark: TypeAlias = tuple[str, int, int, int, int, int, int]
"""State of a file: path, device, inode, size, both times in nanoseconds, and the second of the check if the file is so
new that its times may not show the next change."""


class WatchedFiles:
    """The files to watch: single files, and all files with one ending in some directories. Its methods block."""

    def __init__(self, files: Iterable[Path] = (), directories: Iterable[Path] = (), ending: str = ".toml") -> None:
        """Store the paths; read nothing.

        The files need not exist yet. Of the directories, the files with the ending are watched, without subdirectories.
        """
        self._files = tuple(files)
        self._directories = tuple(directories)
        self._ending = ending

    def look(self) -> frozenset[Mark]:
        """Return a value that changes with the files, and each second while one is younger than two seconds.

        Links are followed; files that cannot be read count as absent.
        """
        return frozenset(mark for path in self._paths() if (mark := _mark(path)) is not None)

    def watchable_directories(self) -> frozenset[tuple[str, int, int]]:
        """Return path, device and inode of each existing directory of these files."""
        own = {file.parent for file in self._files} | {*self._directories}
        return frozenset(holder for path in own if (holder := _holder(path)) is not None)

    def _paths(self) -> Iterator[str]:
        yield from (str(file) for file in self._files)
        for directory in self._directories:
            try:
                names = os.listdir(directory)
            except (OSError, ValueError):
                continue
            yield from (os.path.join(directory, name) for name in names if name.endswith(self._ending))


async def watch_files(
    files: WatchedFiles, changed: Callable[[], Awaitable[object]], slower: Callable[[str], object]
) -> None:
    """Call `changed` once at the start and after each change, one call at a time, until cancelled.

    `slower` gets the reason, in one line, when the system's reports can no longer be used.

    Raises:
        Exception: anything that `changed` raises.
    """
    reports = _Reports()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(run_service("reports of changed files", reports.follow(), slower))
        known: frozenset[Mark] | None = None
        while True:
            # One call in a thread for both: an idle program wakes up for nothing else.
            found, directories = await asyncio.to_thread(lambda: (files.look(), files.watchable_directories()))
            reports.watch(directories)
            if found != known:
                known = found
                await changed()
            await reports.wait(POLL_SECONDS)


class _Reports:
    """The system's reports of changes in some directories."""

    def __init__(self) -> None:
        self._directories: frozenset[tuple[str, int, int]] = frozenset()
        self._replaced = asyncio.Event()
        """Set when other directories are to be watched."""
        self._hint = asyncio.Event()
        """Set when the system has reported a change."""

    def watch(self, directories: frozenset[tuple[str, int, int]]) -> None:
        """Watch these directories from now on."""
        if directories != self._directories:
            self._directories = directories
            self._replaced.set()

    async def wait(self, seconds: float) -> None:
        """Wait for a report, at most until the next multiple of a number of seconds: all watches wake up at once."""
        loop = asyncio.get_running_loop()
        timer = loop.call_at((loop.time() // seconds + 1) * seconds, self._hint.set)
        await self._hint.wait()
        timer.cancel()
        self._hint.clear()

    async def follow(self) -> None:
        """Receive reports until cancelled."""
        await self._replaced.wait()
        # The imports take 60 ms; in a thread they delay nothing.
        watchfiles: Any = await asyncio.to_thread(_load_watchfiles)
        while True:
            await self._replaced.wait()
            replaced = self._replaced = asyncio.Event()
            settings = {"step": QUIET_MS, "rust_timeout": 0, "stop_event": replaced, "recursive": False}
            paths = sorted(path for path, *_ in self._directories)
            if not paths:
                continue
            try:
                async with aclosing(watchfiles.awatch(*paths, **settings)) as reports:
                    async for _ in reports:
                        self._hint.set()
            except FileNotFoundError:
                # A directory was removed since the check; the next one finds what there is.
                self._directories = frozenset()


def _load_watchfiles() -> Any:
    """Import watchfiles, and the parts of anyio that a watch would otherwise import on the event loop."""
    anyio: Any = importlib.import_module("anyio")
    for name in ("Event", "create_task_group", "get_cancelled_exc_class", "to_thread"):
        getattr(anyio, name)
    importlib.import_module("anyio._backends._asyncio")
    return importlib.import_module("watchfiles")


def _mark(path: str) -> Mark | None:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    age = time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns)
    unsettled = int(time.monotonic()) if 0 <= age < _UNSETTLED_NS else 0
    return path, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, unsettled


def _holder(path: Path) -> tuple[str, int, int] | None:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return (str(path), status.st_dev, status.st_ino) if stat.S_ISDIR(status.st_mode) else None
