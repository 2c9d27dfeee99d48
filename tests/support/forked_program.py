"""The installed program, forked from a process that has its modules loaded already: a real process, started cheaply.

It has its own arguments, environment, directory, streams and terminal. Tests of the start itself run the program's
file.
"""

import atexit
import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Self

import psutil

from . import program_server

PROGRAM = Path(sys.executable).parent / "tui-agent"
"""The program installed beside the running interpreter."""


_servers: list[psutil.Process] = []


def server_seconds() -> float:
    """Return the CPU time of the server and of its programs that have ended, the last one perhaps not yet."""
    return sum(sum(server.cpu_times()[:4]) for server in _servers)


@functools.cache
def _server() -> socket.socket:
    """Start the server of this process of tests; it ends when this process does."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, program_server.LONGEST_REQUEST)
    environment = {"HOME": os.devnull, "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    environment |= {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
    with its:
        command = [sys.executable, program_server.__file__]
        server = subprocess.Popen(command, stdin=its, stdout=subprocess.DEVNULL, env=environment, cwd="/")
    _servers.append(psutil.Process(server.pid))

    def end() -> None:
        ours.close()
        server.wait()

    atexit.register(end)
    return ours


class ForkedProgram:
    """A running program, with the part of `subprocess.Popen` that tests use."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        streams: tuple[int, int, int],
        terminal: bool = False,
    ) -> None:
        """Start it with descriptors as its standard streams; with `terminal`, the first is that of a new session.

        The command is the installed program or, after interpreter and `-m`, a module, and its arguments.
        """
        module = command[2] if command[1:2] == ["-m"] else ""
        assert module or command[0] == str(PROGRAM)
        request = {
            "module": module,
            "arguments": list(command[2:] if module else command),
            "environment": dict(environment),
            "cwd": str(cwd),
            "terminal": terminal,
        }
        self.returncode: int | None = None
        self._answers, answers = socket.socketpair()
        with answers:
            socket.send_fds(_server(), [json.dumps(request).encode()], [*streams, answers.fileno()])
        self.pid = self._answer()

    def _answer(self) -> int:
        line = b""
        while not line.endswith(b"\n"):
            byte = self._answers.recv(1)
            assert byte, "the fork server has died"
            line += byte
        return int(line)

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs."""
        if self.returncode is None and not select.select([self._answers], [], [], 0)[0]:
            return None
        return self.wait()

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end, and return its exit code; raise `TimeoutExpired` after a number of seconds."""
        if self.returncode is None:
            self._answers.settimeout(timeout)
            try:
                self.returncode = self._answer()
            except TimeoutError as error:
                raise subprocess.TimeoutExpired(str(PROGRAM), timeout or 0) from error
            self._answers.close()
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal if it runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it if it runs."""
        self.send_signal(signal.SIGKILL)


class PipedProgram(ForkedProgram):
    """A program with pipes as its standard streams."""

    def __init__(self, command: Sequence[str], *, cwd: Path, environment: Mapping[str, str]) -> None:
        """Start it."""
        (its_input, ours_in), (ours_out, its_output), (ours_errors, its_errors) = os.pipe(), os.pipe(), os.pipe()
        streams = (its_input, its_output, its_errors)
        try:
            super().__init__(command, cwd=cwd, environment=environment, streams=streams)
        finally:
            for stream in streams:
                os.close(stream)
        self.stdin: IO[str] = open(ours_in, "w", encoding="utf-8")  # noqa: SIM115
        self.stdout: IO[str] = open(ours_out, encoding="utf-8")  # noqa: SIM115
        self.stderr: IO[str] = open(ours_errors, encoding="utf-8")  # noqa: SIM115

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the pipes, and wait for the end."""
        for pipe in (self.stdin, self.stdout, self.stderr):
            pipe.close()
        self.wait()


def run_forked(
    command: Sequence[str], *, cwd: Path, environment: Mapping[str, str], stdin: str | None, patience: float
) -> "subprocess.CompletedProcess[str]":
    """Run the program to its end, with this input in a pipe."""
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as output,
        tempfile.TemporaryFile("w+", encoding="utf-8") as errors,
    ):
        if stdin is None:
            source = os.open(os.devnull, os.O_RDONLY)
        else:
            source, target = os.pipe()
            os.write(target, stdin.encode())
            os.close(target)
        with open(source, "rb"):
            streams = (source, output.fileno(), errors.fileno())
            program = ForkedProgram(command, cwd=cwd, environment=environment, streams=streams)
        try:
            code = program.wait(patience)
        finally:
            program.kill()
        output.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(list(command), code, output.read(), errors.read())
