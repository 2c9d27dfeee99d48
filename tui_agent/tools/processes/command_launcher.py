"""Command lines that make the kernel kill a command's shell with this program and mark everything it starts.

Both must be in force before the command's first instruction. Python can set neither between fork and exec without
running Python code in the child of a threaded process. So `setpriv` of util-linux requests the signal, bash sets the
limit, and each then becomes the next program by `exec`. Together they take about 2 ms.
Programs that run beside the calls, such as tool servers, start in the same way.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from functools import cache
from pathlib import Path

from tui_agent.protocol.programs import find_program

from .orphans import call_running, enter_background, led_by
from .process_tree import TreeMark, end_tree

_MARKED = 'ulimit -S -x "$0" 2>/dev/null; exec -- "$@"'
"""Script that sets the mark if the system accepts it, and runs the command either way."""
_PROBE_SECONDS = 10


def wrap_argv(argv: tuple[str, ...], mark: TreeMark, workspace: Path, *, dies_with_us: bool = True) -> tuple[str, ...]:
    """Return the command line that starts `argv` with mark and signal. Blocks.

    Without a setpriv that works, or without `dies_with_us`, it has no signal. Without bash, and outside Linux, it is
    `argv`.
    """
    bash = find_program("bash", workspace)
    if sys.platform != "linux" or bash is None:
        return argv
    marked = (str(bash), "--noprofile", "--norc", "-c", _MARKED, str(mark.limit), *argv)
    setpriv = find_program("setpriv", workspace) if dies_with_us else None
    return marked if setpriv is None or not _works(setpriv) else (*_dying_with_us(setpriv), *marked)


def launcher_problem(workspace: Path) -> str | None:
    """Return the reason why a command's shell would survive if this program is killed; None if it would not. Blocks."""
    setpriv = find_program("setpriv", workspace)
    if setpriv is None:
        return "setpriv of util-linux is not installed"
    return None if _works(setpriv) else "setpriv on PATH is not the one of util-linux, or fails"


def _dying_with_us(setpriv: Path) -> tuple[str, ...]:
    return (str(setpriv), "--pdeathsig", "KILL", "--")


@cache
def _works(setpriv: Path) -> bool:
    """Return True if setpriv works here: other programs of this name have fewer options."""
    argv = (*_dying_with_us(setpriv), str(setpriv), "--version")
    try:
        subprocess.run(argv, capture_output=True, check=True, timeout=_PROBE_SECONDS, env={"PATH": os.defpath})
    except (OSError, subprocess.SubprocessError):
        return False
    return True


GRACE = 0.5
"""Seconds between TERM and KILL for what the program left running."""


class HelperTree:
    """One program and everything it starts, also in other sessions."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self._mark = TreeMark.new()
        self._registered = ExitStack()

    def prepare(self, argv: tuple[str, ...], environment: Mapping[str, str]) -> tuple[tuple[str, ...], dict[str, str]]:
        """Return the command line and the environment that mark the program; it dies with this one. Blocks."""
        self._registered.enter_context(call_running(self._mark.limit))
        enter_background(self._mark.limit)
        return wrap_argv(argv, self._mark, self._workspace), self._mark.put_into(environment)

    def started(self, pid: int) -> None:
        """Name the first process, which leads a session."""
        led_by(self._mark.limit, pid)

    def end(self, pid: int | None) -> tuple[str, ...]:
        """End everything that still runs; return names and ids. Blocks.

        Args:
            pid: the first process; None: it could not be started.
        """
        with self._registered:
            return end_tree(pid, self._mark, grace=GRACE) if pid is not None else ()
