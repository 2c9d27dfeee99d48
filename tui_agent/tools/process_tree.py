"""Ends a process with everything it started, also what moved away: new session, double fork, nohup, ignored TERM (P36).

A process belongs to a tree if it is in the leader's session, descends from the leader, or carries the leader's mark: in
its environment, or as the soft limit `RLIMIT_LOCKS`. A daemon that emptied its environment, overwrote its arguments and
left session and parents behind still has that limit. `orphans` finds processes that lost the limit as well.
"""

import os
import secrets
import signal
import sys
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from .orphans import locks_limit, unclaimed_orphans

_MARK_NAME = "PROCESS_TREE"
_LIMIT_DIGITS = 15
"""Hexadecimal digits of a token that make its limit: 60 bits, which every system accepts as a limit."""
_LOOK_AGAIN = 0.01
_KILL_TIME = 0.5
_MAX_INITIAL_SCANS = 10
"""Most looks before anything was found."""
_EMPTY_SCANS_NEEDED = 2
"""Looks that find nothing before nothing counts as left."""
_EXEC_TIME = 0.2
"""Most seconds to wait for a process that is just changing its program."""
_CHANGING = (True, "0")
"""What `_memory` says of such a process."""


@dataclass(frozen=True, slots=True)
class TreeMark:
    """Marks one process so that its descendants can be found."""

    token: str
    """Hexadecimal digits."""

    @classmethod
    def new(cls) -> "TreeMark":
        """A mark nobody can guess."""
        return cls(secrets.token_hex(16))

    @property
    def limit(self) -> int:
        """Soft limit on file locks that marks a process and all it starts."""
        return int(self.token[:_LIMIT_DIGITS], 16)

    def put_into(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The environment with this mark added to those it may already hold."""
        outer = environment.get(_MARK_NAME)
        return dict(environment) | {_MARK_NAME: f"{outer}:{self.token}" if outer else self.token}


def end_tree(leader: int | None, mark: TreeMark, *, grace: float, spares_leader: bool = False) -> tuple[str, ...]:
    """Ends everything that belongs to a tree: TERM, then after `grace` seconds KILL. Blocks; for a thread.

    Args:
        leader: the first process, which was started in a session of its own; None: not known.
        mark: what its environment was marked with.
        grace: seconds to end by themselves after TERM.
        spares_leader: the leader gets no TERM, because the others would not outlive it.

    Returns:
        Name and id of each process that was ended, the leader left out.
    """
    if not _is_there(leader, mark):
        return ()
    found = _with_orphans(leader, mark)
    ended = tuple(_name(process) for process in found if process.pid != leader)
    told: set[psutil.Process] = set()
    deadline = time.monotonic() + grace
    while found:
        for process in found:
            if process not in told and (process.pid != leader or not spares_leader):
                _send(process, signal.SIGTERM)
            _send(process, signal.SIGCONT)
        told.update(found)
        if time.monotonic() >= deadline:
            break
        time.sleep(_LOOK_AGAIN)
        found = _with_orphans(leader, mark)
    _kill(leader, mark)
    return ended


def _is_there(leader: int | None, mark: TreeMark) -> bool:
    """Whether anything of the tree runs, as far as several looks can tell."""
    for _ in range(_MAX_INITIAL_SCANS):
        tied, is_certain = _look(leader, mark)
        if tied or is_certain:
            return tied
    return False


def _kill(leader: int | None, mark: TreeMark) -> None:
    """Kills what is left, each the moment it is seen, until it is certain that nothing is left."""
    deadline = time.monotonic() + _KILL_TIME
    in_vain = 0
    while in_vain < _EMPTY_SCANS_NEEDED and time.monotonic() < deadline:
        tied, is_certain = _look(leader, mark, kills=True)
        for process in _with_orphans(leader, mark) if tied else ():
            _send(process, signal.SIGKILL)
        in_vain = in_vain + 1 if is_certain and not tied else 0


def _look(leader: int | None, mark: TreeMark, *, kills: bool = False) -> tuple[bool, bool]:
    """Whether anything tied to the tree was seen, and whether nothing can have slipped through: a process that starts
    its successor and ends, again and again, is gone by the time one looks at it."""
    listed = psutil.pids()
    orphans = unclaimed_orphans(mark.limit)
    tied = False
    for pid in reversed(listed):
        if (pid in orphans or _is_tied(pid, leader, mark)) and not is_zombie(pid):
            tied = True
            if kills:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
    return tied, all(psutil.pid_exists(pid) for pid in listed)


def _with_orphans(leader: int | None, mark: TreeMark) -> list[psutil.Process]:
    return tree_members(leader, mark, unclaimed_orphans(mark.limit))


def tree_members(leader: int | None, mark: TreeMark, orphans: Collection[int] = ()) -> list[psutil.Process]:
    """Return the live processes of a tree and those below `orphans`, the leader first if it lives. Blocks."""
    tied = {pid for pid in psutil.pids() if pid in orphans or _is_tied(pid, leader, mark)}
    processes: dict[int, psutil.Process] = {}
    for pid in sorted(tied, key=lambda pid: pid != leader):
        if pid in processes:
            continue
        with suppress(psutil.Error):
            processes[pid] = psutil.Process(pid)
            processes |= {child.pid: child for child in processes[pid].children(recursive=True)}
    return [process for process in processes.values() if _lives(process)]


def _is_tied(pid: int, leader: int | None, mark: TreeMark) -> bool:
    return _session(pid) == leader or locks_limit(pid) == mark.limit or mark.token.encode() in _environment(pid)


def is_zombie(pid: int) -> bool:
    """Return True if the process has ended, and its parent has not collected its exit status yet."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return 0


def _environment(pid: int) -> bytes:
    """The environment a process began with; empty where we may not look."""
    try:
        if sys.platform == "linux":
            return _environment_in_proc(Path(f"/proc/{pid}"))
        return "\0".join(psutil.Process(pid).environ().values()).encode("utf-8", "replace")
    except (OSError, psutil.Error):
        return b""


def _environment_in_proc(process: Path) -> bytes:
    """While a process changes its program it has no environment for a moment, and would pass for a stranger."""
    content = (process / "environ").read_bytes()
    deadline = time.monotonic() + _EXEC_TIME
    while not content and time.monotonic() < deadline:
        before = _memory(process)
        content = (process / "environ").read_bytes()
        if not content and before == _memory(process) and before != _CHANGING:
            break
    return content


def _memory(process: Path) -> tuple[bool, str]:
    """Whether a process has memory (a zombie has none), and where its environment lies in it: each program puts it
    somewhere else."""
    fields = (process / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    return fields[20] != "0", fields[48]


def _lives(process: psutil.Process) -> bool:
    """Whether it runs; one that ended and waits to be collected by its parent does not."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _name(process: psutil.Process) -> str:
    with suppress(psutil.Error):
        return f"{process.name()} (pid {process.pid})"
    return f"pid {process.pid}"


def _send(process: psutil.Process, number: signal.Signals) -> None:
    """Signals a process, unless it is gone or another has its number now (psutil compares start times)."""
    with suppress(psutil.Error):
        process.send_signal(number)
