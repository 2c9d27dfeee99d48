"""Ending of a process with everything it started, even after a new session, a double fork, nohup or an ignored TERM.

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

import psutil

from .orphans import locks_limit, unclaimed_orphans

_MARK_NAME = "PROCESS_TREE"
_LIMIT_DIGITS = 15
"""Hexadecimal digits of a token that form its limit: 60 bits, which every system accepts as a limit."""
_LOOK_AGAIN = 0.01
_KILL_TIME = 0.5
_MAX_INITIAL_SCANS = 10
"""Most scans for a first process of the tree."""
_EMPTY_SCANS_NEEDED = 2
"""Empty scans in a row after which the tree counts as ended."""
_EXEC_TIME = 0.2
"""Most seconds to wait for a process in the middle of `exec`."""
_CHANGING = (True, "0")
"""Result of `_memory` for such a process."""


@dataclass(frozen=True, slots=True)
class TreeMark:
    """Mark of a process, which its descendants inherit."""

    token: str
    """Hexadecimal digits."""

    @classmethod
    def new(cls) -> "TreeMark":
        """Return a new, random mark."""
        return cls(secrets.token_hex(16))

    @property
    def limit(self) -> int:
        """Soft limit on file locks that marks a process and all it starts."""
        return int(self.token[:_LIMIT_DIGITS], 16)

    def put_into(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the environment with this mark added to any that it already has."""
        outer = environment.get(_MARK_NAME)
        return dict(environment) | {_MARK_NAME: f"{outer}:{self.token}" if outer else self.token}


def end_tree(
    leader: int | None,
    mark: TreeMark,
    *,
    grace: float,
    spares_leader: bool = False,
    known: Collection[psutil.Process] = (),
) -> tuple[str, ...]:
    """End all processes of a tree: TERM, then after `grace` seconds KILL. Blocks.

    Args:
        leader: id of the first process, which was started in a session of its own; None: unknown.
        spares_leader: send no TERM to the leader, because its end would kill the others at once.
        known: processes of the tree that may have nothing of the above any more.

    Returns:
        Name and id of each process that was ended, except the leader.
    """
    if not any(map(_lives, known)) and not _is_there(leader, mark):
        return ()
    found = _with_orphans(leader, mark, known)
    ended = tuple(process_name(process) for process in found if process.pid != leader)
    signalled: set[psutil.Process] = set()
    deadline = time.monotonic() + grace
    while found:
        for process in found:
            if process not in signalled and (process.pid != leader or not spares_leader):
                _send(process, signal.SIGTERM)
            # A stopped process handles TERM only once it continues.
            _send(process, signal.SIGCONT)
        signalled.update(found)
        if time.monotonic() >= deadline:
            break
        time.sleep(_LOOK_AGAIN)
        found = _with_orphans(leader, mark, known)
    _kill(leader, mark, known)
    return ended


def _is_there(leader: int | None, mark: TreeMark) -> bool:
    """Return True if any process of the tree runs, as far as several scans can tell."""
    for _ in range(_MAX_INITIAL_SCANS):
        tied, is_certain = _look(leader, mark)
        if tied or is_certain:
            return tied
    return False


def _kill(leader: int | None, mark: TreeMark, known: Collection[psutil.Process]) -> None:
    """Kill the remaining processes, each as soon as it is found, until certainly none is left."""
    for process in known:
        _send(process, signal.SIGKILL)
    deadline = time.monotonic() + _KILL_TIME
    in_vain = 0
    while in_vain < _EMPTY_SCANS_NEEDED and time.monotonic() < deadline:
        tied, is_certain = _look(leader, mark, kills=True)
        for process in _with_orphans(leader, mark) if tied else ():
            _send(process, signal.SIGKILL)
        in_vain = in_vain + 1 if is_certain and not tied else 0


def _look(leader: int | None, mark: TreeMark, *, kills: bool = False) -> tuple[bool, bool]:
    """Scan all processes once; return True if one is tied to the tree, and True if the scan cannot have missed any.

    A process that starts a successor and ends, again and again, may be gone by the time it is looked at. So a scan is
    certain only if all listed processes still exist at its end.
    """
    listed = _pids()
    orphans = unclaimed_orphans(mark.limit)
    tied = False
    # The newest first: a process that starts successors without end is met at its latest one.
    for pid in reversed(listed):
        if (pid in orphans or _is_tied(pid, leader, mark)) and not is_zombie(pid):
            tied = True
            if kills:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
    return tied, set(listed) <= {*_pids()}


def _pids() -> list[int]:
    """Return the ids of all processes; none where /proc is missing, so that only process groups can be ended."""
    try:
        return psutil.pids()
    except (OSError, IndexError):  # psutil takes the first of an empty list.
        return []


def left_running(leader: int, mark: TreeMark) -> tuple[psutil.Process, ...]:
    """Return the live processes of a tree whose leader has ended. Blocks."""
    return tuple(_with_orphans(leader, mark)) if _is_there(leader, mark) else ()


def some_of(mark: TreeMark, known: Collection[psutil.Process]) -> tuple[psutil.Process, ...]:
    """Return those of `known` that live, or what they have started meanwhile if none does. Blocks."""
    return tuple(filter(_lives, known)) or tuple(tree_members(None, mark))


def topmost(processes: Collection[psutil.Process]) -> list[psutil.Process]:
    """Return the processes whose parents are not among them."""
    pids = {process.pid for process in processes}
    return [process for process in processes if _parent(process) not in pids]


def _with_orphans(leader: int | None, mark: TreeMark, known: Collection[psutil.Process] = ()) -> list[psutil.Process]:
    return tree_members(leader, mark, unclaimed_orphans(mark.limit), known)


def tree_members(
    leader: int | None, mark: TreeMark, orphans: Collection[int] = (), known: Collection[psutil.Process] = ()
) -> list[psutil.Process]:
    """Return the live processes of a tree and those below `orphans` and `known`, the leader first if it lives.
    Blocks."""
    tied = {pid for pid in _pids() if pid in orphans or _is_tied(pid, leader, mark)}
    tied |= {process.pid for process in known if _lives(process)}
    processes: dict[int, psutil.Process] = {}
    for pid in sorted(tied, key=lambda pid: pid != leader):
        if pid in processes:
            continue
        with suppress(psutil.Error):
            processes[pid] = psutil.Process(pid)
            processes |= {child.pid: child for child in processes[pid].children(recursive=True)}
    return [process for process in processes.values() if _lives(process)]


def _is_tied(pid: int, leader: int | None, mark: TreeMark) -> bool:
    if (session := _session(pid)) == leader or locks_limit(pid) == mark.limit:
        return True
    # Commands begin in a session; a thread of the kernel has none, and no environment.
    return session != 0 and mark.token.encode() in _environment(pid)


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
    """Return the environment a process started with; empty if it is not readable."""
    try:
        if sys.platform == "linux":
            return _environment_in_proc(f"/proc/{pid}")
        return "\0".join(psutil.Process(pid).environ().values()).encode("utf-8", "replace")
    except (OSError, psutil.Error):
        return b""


def _environment_in_proc(process: str) -> bytes:
    """Return the environment of a process from `/proc`."""
    content = _bytes_of(f"{process}/environ")
    # During `exec` the environment is empty for a moment; without a second look the process would lose its mark.
    deadline = time.monotonic() + _EXEC_TIME
    while not content and time.monotonic() < deadline:
        before = _memory(process)
        content = _bytes_of(f"{process}/environ")
        if not content and before == _memory(process) and before != _CHANGING:
            break
    return content


def _bytes_of(path: str) -> bytes:
    """Return the content of a file; a look reads one of each process, so that the price of a `Path` counts."""
    with open(path, "rb", 0) as file:
        return file.read()


def _memory(process: str) -> tuple[bool, str]:
    """Return True if a process has memory (a zombie has none), and the address of its environment, which differs from
    program to program."""
    fields = _bytes_of(f"{process}/stat").decode("utf-8", "replace").rpartition(")")[2].split()
    return fields[20] != "0", fields[48]


def _lives(process: psutil.Process) -> bool:
    """Return True if a process runs and is not a zombie."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _parent(process: psutil.Process) -> int:
    try:
        return process.ppid()
    except psutil.Error:
        return 0


def process_name(process: psutil.Process) -> str:
    """Return name and id of a process."""
    with suppress(psutil.Error):
        return f"{process.name()} (pid {process.pid})"
    return f"pid {process.pid}"


def _send(process: psutil.Process, number: signal.Signals) -> None:
    """Send a signal, unless the process is gone or its id belongs to another now (psutil compares start times)."""
    with suppress(psutil.Error):
        process.send_signal(number)
