"""Shell commands that run as hooks: their question on stdin, bounded output, and an end with all their processes."""

import asyncio
import os
import signal
from asyncio import AbstractEventLoop
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from tempfile import TemporaryFile
from threading import Thread
from typing import IO, TypeAlias

from tui_agent.protocol.pipes import signal_group
from tui_agent.protocol.shell_script import open_script, script_argv

MAX_OUTPUT_BYTES = 1024 * 1024
"""Most bytes that are kept of each stream of a command; it may print more."""
_CHUNK = 64 * 1024

TreeMarker: TypeAlias = Callable[[Mapping[str, str]], tuple[Mapping[str, str], Callable[[int], object]]]
"""Returns an environment that marks a process with everything it starts, and a function that ends all of it, given the
id of the process. The function blocks."""


@dataclass(frozen=True, slots=True)
class HookOutput:
    """The end of a command."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class HookProcess:
    """A program in a process group of its own."""

    command: str | tuple[str, ...]
    """Text for `bash --noprofile --norc`, or a program and its arguments."""
    working_dir: Path
    environment: Mapping[str, str]
    """Its whole environment; the caller leaves out secrets."""
    mark_tree: TreeMarker | None = None
    """Finds processes that left the group of a command that is killed; None: these stay."""

    async def run(self, question: bytes) -> HookOutput:
        """Run the command and return the beginning of its output; its process group is killed in any case.

        A command that never reads its question, or leaves a process behind that keeps its output open, blocks nothing.

        Raises:
            OSError: it cannot be started.
            CancelledError: the calling task was cancelled; the command and everything it started were killed.
        """
        environment, end_tree = self.environment, None
        if self.mark_tree is not None:
            environment, end_tree = self.mark_tree(environment)
        out, err = _Capture(), _Capture()
        try:
            with TemporaryFile() as stdin:
                await asyncio.to_thread(_write, stdin, question)
                process = self._start(environment, stdin, out.write_end, err.write_end)
            code = await _end_of(process, (out, err), end_tree)
            return HookOutput(code, out.text(), err.text())
        finally:
            out.close()
            err.close()

    def _start(self, environment: Mapping[str, str], stdin: IO[bytes], out: int, err: int) -> "Popen[bytes]":
        # Not asyncio's, which if cancelled during the start kills the process without its group.
        if not isinstance(self.command, str):
            return self._popen(self.command, environment, stdin, out, err)
        script = open_script(self.command)
        try:
            argv = (*script_argv("bash"), str(script))
            return self._popen(argv, environment, stdin, out, err, script)
        finally:
            os.close(script)

    def _popen(
        self, argv: Sequence[str], environment: Mapping[str, str], stdin: IO[bytes], out: int, err: int, *passed: int
    ) -> "Popen[bytes]":
        return Popen(
            argv,
            stdin=stdin,
            stdout=out,
            stderr=err,
            cwd=self.working_dir,
            env=dict(environment),
            start_new_session=True,
            pass_fds=passed,
        )


class _Capture:
    """A pipe whose beginning is kept."""

    def __init__(self) -> None:
        self._read_end, self.write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        self._kept = bytearray()
        self._loop: AbstractEventLoop | None = None

    def start(self, loop: AbstractEventLoop) -> None:
        """Read what arrives, so that the command never waits for a reader."""
        self._close_write_end()

        def read() -> None:
            if not self._read():
                self._stop()

        self._loop = loop
        loop.add_reader(self._read_end, read)

    def text(self) -> str:
        """Return everything that was printed so far, also by processes that still have the pipe."""
        self._stop()
        # Bounded, because a process that still has the pipe may fill it forever.
        while len(self._kept) < MAX_OUTPUT_BYTES and self._read():
            pass
        return self._kept.decode("utf-8", "replace")

    def close(self) -> None:
        """Close the pipe."""
        self._stop()
        self._close_write_end()
        if self._read_end >= 0:
            os.close(self._read_end)
            self._read_end = -1

    def _read(self) -> bool:
        """Read a chunk; False if there is none."""
        try:
            chunk = os.read(self._read_end, _CHUNK)
        except BlockingIOError:
            return False
        self._kept += chunk[: MAX_OUTPUT_BYTES - len(self._kept)]
        return bool(chunk)

    def _stop(self) -> None:
        if self._loop is not None:
            self._loop.remove_reader(self._read_end)
            self._loop = None

    def _close_write_end(self) -> None:
        if self.write_end >= 0:
            os.close(self.write_end)
            self.write_end = -1


def _write(file: IO[bytes], question: bytes) -> None:
    file.write(question)
    file.seek(0)


async def _end_of(
    process: "Popen[bytes]", captures: tuple[_Capture, _Capture], end_tree: Callable[[int], object] | None
) -> int:
    """Return the exit code of a command once it is over; its process group is killed in any case."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()

    def watch() -> None:
        process.wait()
        with suppress(RuntimeError):
            # The event loop may be closed by now.
            loop.call_soon_threadsafe(over.set)

    is_over = False
    try:
        for capture in captures:
            capture.start(loop)
        # A separate thread, because the work that the command waits for may need those of the pool.
        Thread(target=watch, name="hook", daemon=True).start()
        await over.wait()
        is_over = True
    finally:
        if not is_over and end_tree is not None:
            # Before its leader is gone: its children are then still found below it.
            Thread(target=_end, args=(end_tree, process.pid), name="hook end", daemon=True).start()
        else:
            signal_group(process.pid, signal.SIGKILL)
    return process.wait()


def _end(end_tree: Callable[[int], object], pid: int) -> None:
    try:
        end_tree(pid)
    finally:
        signal_group(pid, signal.SIGKILL)
