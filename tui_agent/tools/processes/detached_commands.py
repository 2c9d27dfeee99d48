"""The guard process that kills commands if tui-agent dies, and the records of commands that the user lets outlive it.

The guard reads a pipe that this program holds open, and kills the commands' process groups when the pipe ends. The
signal that a command's shell gets at that time as well (`command_launcher.py`) cannot be withdrawn, so a command that
the user may detach starts without it. To detach one, this program lets the guard forget it and leaves its output to a
process that appends it to a file. With the record of a command, a later tui-agent finds what outlived a killed one.
"""

import asyncio
import os
import re
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path

import psutil

from tui_agent.protocol.programs import find_program
from tui_agent.protocol.tool import StartedProcess

from .orphans import keep_running
from .output_pump import OutputPump
from .process_tree import TreeMark, end_tree, left_running, tree_members

_GUARD = """while read -r change group; do
    case $change in begun) groups[group]=$group;; *) unset "groups[$group]";; esac
done
for group in "${groups[@]}"; do kill -KILL -- "-$group"; done"""
"""Script that kills the process groups that run when its input ends."""
_KEEPER = 'read -r _ <&"$2"; (ulimit -f "$1"; exec cat) >> "$0"; exec cat > /dev/null'
"""Script that waits for the end of a pipe, and appends its input to a file, to a size in KiB. It reads the rest, too,
so that the command never waits."""
_SHELL = ("--noprofile", "--norc", "-c")

_detached: list[asyncio.subprocess.Process] = []
"""Detached commands: asyncio would kill one whose object is collected."""

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_WHOLE_MARK = re.compile("[0-9a-f]{32}")


class Guard:
    """Kills the commands that run when this program dies: one process for all of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups: set[int] = set()
        self._input: int | None = None

    @property
    def is_there(self) -> bool:
        """True if the process runs, as far as is known."""
        return self._input is not None

    def prepare(self, workspace: Path) -> None:
        """Start the process, unless it runs. Blocks for a moment.

        Raises:
            OSError: it could not be started.
        """
        with self._lock:
            if self._input is not None:
                return
            reading, writing = os.pipe()
            try:
                process = subprocess.Popen(
                    _bash(workspace, _GUARD),
                    stdin=reading,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    cwd="/",
                    env={"PATH": os.defpath},
                    start_new_session=True,
                )
            except OSError:
                os.close(writing)
                raise
            finally:
                os.close(reading)
            # The object would warn when the program ends before its process.
            process.returncode = 0
            # A command may stop the guard, which then reads nothing: writing must not wait for it.
            os.set_blocking(writing, False)
            self._input = writing
            self._tell("".join(f"begun {group}\n" for group in self._groups))

    def watch(self, group: int) -> None:
        """Kill this process group if this program dies from now on."""
        with self._lock:
            self._groups.add(group)
            self._tell(f"begun {group}\n")

    def forget(self, group: int) -> None:
        """Leave this process group alone from now on."""
        with self._lock:
            self._groups.discard(group)
            self._tell(f"over {group}\n")

    def _tell(self, lines: str) -> None:
        if self._input is None or not lines:
            return
        try:
            os.write(self._input, lines.encode())
        except OSError:  # A command may have killed it: the next one starts another.
            os.close(self._input)
            self._input = None


GUARD = Guard()
"""The one of this program."""


class Keeper:
    """Process that appends the rest of a command's output to a file."""

    def __init__(self, file: Path, limit: int, pump: OutputPump) -> None:
        """Start it; it reads nothing until `begin`. Blocks for a moment.

        Args:
            file: file that gets the rest of the output.
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


def detach(process: asyncio.subprocess.Process, mark: TreeMark) -> None:
    """Let a command run on when this program ends, with everything that it has started. Blocks for a moment."""
    # Some may have lost the mark, so that the processes themselves are remembered as well.
    keep_running(mark.limit, left_running(process.pid, mark))
    _detached.append(process)
    # The object would kill when the program ends before its process.
    vars(process)["_transport"].get_extra_info("subprocess").returncode = 0


def is_detached(process: asyncio.subprocess.Process) -> bool:
    """Return True for a command that the user detached."""
    return process in _detached


def _bash(workspace: Path, script: str) -> tuple[str, ...]:
    return (str(find_program("bash", workspace) or "bash"), *_SHELL, script)


def record_of(pid: int, mark: TreeMark) -> StartedProcess | None:
    """Return the record of a process that this program just started; None if it is gone."""
    started = _start_time(pid)
    return None if started is None else StartedProcess(pid=pid, started=started, boot=_boot_id(), mark=mark.token)


def running_of(record: StartedProcess) -> tuple[psutil.Process, ...]:
    """Return the running processes of a recorded command, its first process first. Blocks."""
    if not _may_run(record):
        return ()
    return tuple(tree_members(_leader(record), TreeMark(record.mark)))


def end_recorded(records: Sequence[StartedProcess], *, grace: float) -> tuple[str, ...]:
    """End the running processes of recorded commands: TERM, then after `grace` seconds KILL. Blocks.

    Returns:
        Name and id of each, as text.
    """
    ended: list[str] = []
    for record in records:
        ended += [f"{_name(process)} (pid {process.pid})" for process in running_of(record)]
        if _may_run(record):
            end_tree(_leader(record), TreeMark(record.mark), grace=grace)
    return tuple(ended)


def _may_run(record: StartedProcess) -> bool:
    """Return False for a command from before the last boot, or with a damaged mark."""
    # A short piece of a mark could occur in the environment of any process.
    return record.boot in ("", _boot_id()) and _WHOLE_MARK.fullmatch(record.mark) is not None


def _name(process: psutil.Process) -> str:
    with suppress(psutil.Error):
        return process.name()
    return "a process"


def _leader(record: StartedProcess) -> int | None:
    """Return the first process's id, unless another process has it by now."""
    return record.pid if record.pid and _start_time(record.pid) == record.started else None


def _start_time(pid: int) -> int | None:
    if sys.platform != "linux":
        with suppress(psutil.Error):
            return round(psutil.Process(pid).create_time() * 100)
        return None
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[19])
    return None


@cache
def _boot_id() -> str:
    """Return the id of the system's boot; empty if it has none."""
    with suppress(OSError):
        return _BOOT_ID.read_text("ascii").strip()
    return ""
