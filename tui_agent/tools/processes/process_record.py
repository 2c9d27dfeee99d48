"""Records of started commands, with which a later tui-agent finds those that outlived a killed one."""

import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

import psutil

from tui_agent.protocol.tool import StartedProcess

from .process_tree import TreeMark, end_tree, tree_members

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_WHOLE_MARK = re.compile("[0-9a-f]{32}")


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
    """End the running processes of recorded commands, TERM first; return name and id of each. Blocks."""
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
