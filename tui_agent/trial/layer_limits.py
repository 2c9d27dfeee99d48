"""Limits of a layer, watched while its command runs: the command ends when it exceeds one."""

import json
import os
import select
import signal
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_SECONDS = 0.25
"""Time between two looks at a layer; looks never take more than a tenth of the time."""
_END_SECONDS = 10
"""Most time to wait for processes that the kernel ends."""
_BLOCK = 512
_STATUS_BYTES = 65_536
_ENDED = b'"exit-code"'
"""Key in bubblewrap's status once the command was started and has ended."""
_STARTED = b'"started"'
"""Key in the status of the launcher for Landlock just before it becomes the command."""


@dataclass(frozen=True, slots=True)
class LayerLimits:
    """Most of what a command may store in its layer and in the session's temporary directories, and may start."""

    size: int = 2 << 30
    """Bytes on the disk."""
    files: int = 200_000
    processes: int = 4_096
    pause: float = _SECONDS
    """Seconds between two looks, at least."""


class WatchedCommand:
    """One command behind walls: the files that it needs until its end, and a thread that ends it at a limit."""

    def __init__(self, directories: Iterable[Path], limits: LayerLimits) -> None:
        self._directories = [*directories]
        self._limits = limits
        self._reading, self.status = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self.descriptors = [self.status]
        """The open files that the process inherits; `status` is the one to which the walls report their status."""
        self._text = b""
        self._problem = ""
        self._has_looked = False
        self._reading_text = threading.Lock()
        self._ended = os.eventfd(0, os.EFD_CLOEXEC)
        self._process = -1
        self._mounts = -1
        self._thread = threading.Thread(target=self._watch, name="layer-limits", daemon=True)
        self._thread.start()

    def opened(self, path: str) -> int:
        """Open a file for the command and return its descriptor, which `end` closes.

        Raises:
            OSError: it cannot be opened.
        """
        self.descriptors.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))
        return self.descriptors[-1]

    def file_with(self, content: bytes) -> int:
        """Return a descriptor from which the command reads some bytes; `end` closes it.

        Raises:
            OSError: there is no space for them.
        """
        # In memory it has no name by which another command could open it.
        self.descriptors.append(os.memfd_create("trial", os.MFD_CLOEXEC))
        os.write(self.descriptors[-1], content)
        os.lseek(self.descriptors[-1], 0, os.SEEK_SET)
        return self.descriptors[-1]

    def has_started(self) -> bool:
        """Return True if the command was started; bubblewrap reports this when it has ended."""
        return _ENDED in (text := self._read()) or _STARTED in text

    def end(self) -> str:
        """Wait until all processes of the command have ended, and close its files; safe to call twice. Blocks.

        Returns:
            The limit that it exceeded, or that some of its processes still run; empty otherwise.
        """
        if self.descriptors:
            os.eventfd_write(self._ended, 1)
            self._thread.join()
            if not self._wait_for_all():
                self._problem = "some of its processes still run"
            # A command that was too short for any look has no last one, either.
            elif self._has_looked and not self._problem:
                self._problem = self._full()
            self._read()
            with self._reading_text:
                for descriptor in (*self.descriptors, self._reading, self._ended, self._process):
                    if descriptor >= 0:
                        os.close(descriptor)
                self.descriptors.clear()
        return self._problem

    def release(self) -> None:
        """Let the kernel remove the mounts of the command, once it has ended; safe to call twice.

        Blocks until all files of the file system that has the layer are on the disk, not only those of the layer.
        """
        if self._mounts >= 0:
            os.close(self._mounts)
            self._mounts = -1

    def _watch(self) -> None:
        news = select.poll()
        news.register(self._reading, select.POLLIN)
        news.register(self._ended, select.POLLIN)
        pause = self._limits.pause
        while self._ended not in (found := dict(news.poll(pause * 1000))) and _ENDED not in self._read():
            if found:
                self._hold()
                continue
            began, self._has_looked = time.monotonic(), True
            if (first := self._first_process()) is not None and (problem := self._exceeded(first["pid-namespace"])):
                self._problem = problem
                # With the first process of its namespace, the kernel ends all others.
                with suppress(ProcessLookupError):
                    os.kill(first["child-pid"], signal.SIGKILL)
            # Looks at very many files take long: they get a tenth of the time at most.
            pause = max(self._limits.pause, 10 * (time.monotonic() - began))

    def _hold(self) -> None:
        """Hold the first process of the command's namespaces, and its mounts: then the end need not wait for them."""
        if self._process >= 0 or (first := self._first_process()) is None:
            return
        with suppress(OSError):
            self._process = os.pidfd_open(first["child-pid"])
            self._mounts = os.open(f"/proc/{first['child-pid']}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
            if os.fstat(self._mounts).st_ino != first["mnt-namespace"]:
                self.release()

    def _read(self) -> bytes:
        """Return the status that bubblewrap, or the launcher for Landlock, has reported so far."""
        with self._reading_text, suppress(BlockingIOError):
            if self.descriptors:
                self._text += os.read(self._reading, _STATUS_BYTES)
        return self._text

    def _first_process(self) -> dict[str, int] | None:
        """Return the id of the first process in the command's namespaces, and their numbers; None before it runs."""
        for line in self._read().splitlines():
            with suppress(ValueError):
                status = json.loads(line)
                if "child-pid" in status:
                    return {"pid-namespace": 0, "mnt-namespace": 0, **status}
        return None

    def _wait_for_all(self) -> bool:
        """Wait until the kernel has ended all processes of the command; False if some still live.

        bubblewrap itself ends as soon as the command has.
        """
        if (first := self._first_process()) is None:
            return True
        if self._process < 0:
            try:
                self._process = os.pidfd_open(first["child-pid"])
            except OSError:
                return True
        # It is ready once the first process, and with it all others, have ended.
        ready = select.poll()
        ready.register(self._process, select.POLLIN)
        has_ended = bool(ready.poll(_END_SECONDS * 1000))
        return has_ended or _count([str(first["child-pid"])], first["pid-namespace"]) == 0

    def _full(self) -> str:
        size, files = usage(self._directories, self._limits)
        if size > self._limits.size:
            return f"it exceeded the limit of {self._limits.size >> 20:,} MiB for new and changed files"
        if files > self._limits.files:
            return f"it exceeded the limit of {self._limits.files:,} new and changed files"
        return ""

    def _exceeded(self, namespace: int) -> str:
        if problem := self._full():
            return problem
        # The kernel does not apply its own limit to root.
        processes = [name for name in os.listdir("/proc") if name.isdecimal()]
        if len(processes) > self._limits.processes and _count(processes, namespace) > self._limits.processes:
            return f"it exceeded the limit of {self._limits.processes:,} processes"
        return ""


def usage(directories: Iterable[Path], limits: LayerLimits) -> tuple[int, int]:
    """Return the bytes on the disk and the number of files below directories. Blocks.

    Counting stops once one of them exceeds its limit. What cannot be read counts as nothing.
    """
    pending = [os.fspath(directory) for directory in directories]
    size = files = 0
    while pending and size <= limits.size and files <= limits.files:
        with suppress(OSError), os.scandir(pending.pop()) as entries:
            for entry in entries:
                files += 1
                with suppress(OSError):
                    # What is on the disk counts: a sparse file may be larger than any disk.
                    size += entry.stat(follow_symlinks=False).st_blocks * _BLOCK
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                if files > limits.files:
                    break
    return size, files


def _count(processes: Iterable[str], namespace: int) -> int:
    found = 0
    for name in processes:
        with suppress(OSError):
            found += os.stat(f"/proc/{name}/ns/pid").st_ino == namespace
    return found
