"""Commands that may outlive this program: until the user detaches one, a guard kills it when this program dies.

The kernel cannot withdraw the signal that other commands get at that time (`command_launcher.py`), so such a command
starts without it. Its guard reads a pipe that this program holds open, and kills the command's process group when the
pipe ends. To detach a command, this program dismisses the guard and leaves the command's output to a process that
appends it to a file.
"""

import asyncio
import os
import subprocess
from contextlib import ExitStack, suppress
from pathlib import Path

from .orphans import keep_running
from .output_pump import OutputPump
from .process_tree import TreeMark, left_running
from .programs import find_program

_GUARD = 'read -r pid || exit; read -r _ || kill -KILL -- "-$pid"'
"""Script with the process group on its first line of input, and a second line once it is not needed any more."""
_KEEPER = 'read -r _ <&"$2"; (ulimit -f "$1"; exec cat) >> "$0"; exec cat > /dev/null'
"""Script that waits for the end of a pipe, and appends its input to a file, to a size in KiB. It reads the rest, too,
so that the command never waits."""
_SHELL = ("--noprofile", "--norc", "-c")

_let_go: list[asyncio.subprocess.Process] = []
"""Detached commands: asyncio would kill one whose object is collected."""


class Guard:
    """Kills one command when this program dies."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, workspace: Path) -> "Guard":
        """Start a guard that has no command yet.

        Raises:
            OSError: it could not be started.
        """
        process = await asyncio.create_subprocess_exec(
            *_bash(workspace, _GUARD),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={"PATH": os.defpath},
            start_new_session=True,
        )
        return cls(process)

    def watch(self, group: int) -> None:
        """Give it the process group of the command."""
        self._write(f"{group}\n")

    async def dismiss(self) -> None:
        """End the guard without effect."""
        self._write("done\n")
        if self._process.stdin is not None:
            self._process.stdin.close()
        await self._process.wait()

    def _write(self, line: str) -> None:
        with suppress(OSError, RuntimeError):
            if self._process.stdin is not None:
                self._process.stdin.write(line.encode())


class Keeper:
    """Process that appends the rest of a command's output to a file."""

    def __init__(self, file: Path, limit: int, pump: OutputPump) -> None:
        """Start it; it reads nothing until `begin`. Blocks for a moment.

        Args:
            file: file that gets the rest of the output.
            limit: most bytes in this file.
            pump: reads the output until then.

        Raises:
            OSError: it could not be started.
        """
        with ExitStack() as opened:
            output = pump.duplicate()
            opened.callback(os.close, output)
            gate, self._gate = os.pipe()
            opened.callback(os.close, gate)
            with ExitStack() as on_failure:
                on_failure.callback(os.close, self._gate)
                keeper = subprocess.Popen(
                    [*_bash(file.parent, _KEEPER), str(file), str(limit // 1024), str(gate)],
                    stdin=output,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    cwd="/",
                    env={"PATH": os.defpath},
                    start_new_session=True,
                    pass_fds=(gate,),
                )
                on_failure.pop_all()
        # The object would warn when the program ends before its process.
        keeper.returncode = 0

    def begin(self) -> None:
        """Let it read."""
        os.close(self._gate)


def let_go(process: asyncio.subprocess.Process, mark: TreeMark) -> None:
    """Let a command run on when this program ends, with everything that it has started. Blocks for a moment."""
    keep_running(mark.limit, left_running(process.pid, mark))
    _let_go.append(process)
    # The object would kill when the program ends before its process.
    vars(process)["_transport"].get_extra_info("subprocess").returncode = 0


def is_let_go(process: asyncio.subprocess.Process) -> bool:
    """Return True for a command that the user detached."""
    return process in _let_go


def _bash(workspace: Path, script: str) -> tuple[str, ...]:
    return (str(find_program("bash", workspace) or "bash"), *_SHELL, script)
