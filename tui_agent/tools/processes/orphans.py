"""Orphans: processes that a command started and whose parents have ended.

As the subreaper, this program becomes the parent of every orphan below it, and no process can prevent that. The soft
limit `RLIMIT_LOCKS` shows where an orphan comes from: commands have the mark of their call, this program and its other
helpers share another. An orphan with neither mark has lost it, as under `su`. Such an orphan belongs to a call that
ended or is ending, so it is unclaimed once no other call runs. A background command may run for days: beside it, an
orphan is unclaimed if it was not there, below any parent, when the calls that wait for their commands began.
"""

import ctypes
import os
import secrets
import sys
from collections.abc import Collection, Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

if sys.platform == "linux":
    import resource

_LOCKS = 10
"""`RLIMIT_LOCKS`, for which the module `resource` has no name. Linux has not used it since 2.4."""
_SET_CHILD_SUBREAPER = 36
"""`PR_SET_CHILD_SUBREAPER` of prctl(2)."""
_OWN_BITS = 59
_TASKS = Path("/proc/self/task")

_own_limit: int | None = None
"""Limit of this program and its helpers; None while it is not the subreaper."""
_limit_before = 0
_running: dict[int, int] = {}
"""Leaders of the commands that run, by their limits; 0 before there is one."""
_background: set[int] = set()
"""Limits of those that run without their calls."""
_group: set[int] = set()
"""Limits of the other commands that run, and of those that ran beside them."""
_leaving: set[int] = set()
"""Limits of those of `_group` that may leave orphans."""
_earlier: set[psutil.Process] = set()
"""Processes that do not belong to `_group`."""
_kept: set[int] = set()
"""Limits of the commands that the user detached."""
_kept_processes: set[psutil.Process] = set()
"""Processes of those, which may have lost the mark."""


def become_subreaper() -> bool:
    """Make this program the parent of the orphans below it, and mark it and its children; return False if it cannot.

    The state belongs to the whole process, so only programs call this, never the library.
    """
    global _own_limit, _limit_before
    if sys.platform != "linux" or _own_limit is not None or not os.path.exists(f"/proc/{os.getpid()}"):
        return False  # Without /proc no process can be listed.
    before, own = locks_limit(os.getpid()), secrets.randbits(_OWN_BITS)
    set_locks_limit(os.getpid(), own)
    if before is None or locks_limit(os.getpid()) != own:
        return False  # Without this program's mark, a helper would count as an orphan.
    if ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        set_locks_limit(os.getpid(), before)
        return False
    _limit_before, _own_limit = before, own
    # A shell that became this program by `exec` may have left it children.
    for child in psutil.Process().children(recursive=True):
        set_locks_limit(child.pid, own)
    return True


def resign_as_subreaper() -> None:
    """Undo `become_subreaper`."""
    global _own_limit
    if sys.platform == "linux" and _own_limit is not None:
        _own_limit = None
        set_locks_limit(os.getpid(), _limit_before)
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def is_subreaper() -> bool:
    """Return True while this program adopts orphans."""
    return _own_limit is not None


@contextmanager
def call_running(limit: int, *, leaves_orphans: bool = True) -> Generator[None]:
    """Register a call by its limit. Enter this before the call's first process starts.

    Without `leaves_orphans`, walls end everything that it started.
    """
    if not _foreground():
        _group.clear()
        _leaving.clear()
        _earlier.clear()
        _note_earlier()
    _running[limit] = 0
    _group.add(limit)
    if leaves_orphans:
        _leaving.add(limit)
    try:
        yield
    finally:
        del _running[limit]
        _background.discard(limit)


def led_by(limit: int, leader: int) -> None:
    """Name the first process of a registered call; it leads a session."""
    _running[limit] = leader


def enter_background(limit: int) -> None:
    """Let the command of a registered call run without it."""
    if limit in _running:
        _background.add(limit)
        _group.discard(limit)
        _note_earlier()


def unclaimed_orphans(own_call: int) -> frozenset[int]:
    """Return the adopted processes that can only come from an ended call or from the call with the limit `own_call`.

    Beside background commands, they come almost certainly from that call or one that ran beside it.
    """
    if _own_limit is None or _others_may_own(own_call) or (own_call in _group and not _leaving):
        return frozenset()
    beside = _background - {own_call}
    marks, leaders = {None, _own_limit, *_kept, *beside}, {_running[limit] for limit in beside}
    others = _kept_processes | _earlier if beside else _kept_processes
    found = [pid for pid in own_children() if locks_limit(pid) not in marks and not _is_of(pid, leaders, others)]
    # A call that began meanwhile was registered before it had a process.
    return frozenset() if _others_may_own(own_call) else frozenset(found)


def keep_running(limit: int, processes: Iterable[psutil.Process] = ()) -> None:
    """Let these processes and those with this limit run on: they never count as orphans."""
    _kept.add(limit)
    _kept_processes.update(processes)


def is_kept(limit: int) -> bool:
    """Return True if the processes with this limit run on."""
    return limit in _kept


def _foreground() -> set[int]:
    return _running.keys() - _background


def _others_may_own(own_call: int) -> bool:
    """Return True while the origin of an orphan is open: another call waits for its command, or the call `own_call`
    never did, or not lately, and a background command runs."""
    return bool(_foreground() - {own_call} or (_background - {own_call} and own_call not in _group))


def _note_earlier() -> None:
    """Record the processes that cannot belong to a call that waits for its command."""
    if _own_limit is not None and _background:
        marks = _foreground()
        below = psutil.Process().children(recursive=True)
        _earlier.update(process for process in below if locks_limit(process.pid) not in marks)


def _is_of(pid: int, leaders: Collection[int], processes: Collection[psutil.Process]) -> bool:
    """Return True if a process is one of these, or in the session of one of the leaders."""
    try:
        return os.getsid(pid) in leaders or psutil.Process(pid) in processes
    except (OSError, psutil.Error):
        return False


def own_children() -> Iterable[int]:
    """Return the ids of this program's children, zombies included."""
    try:
        # Each thread has its own list: a child belongs to the one that started it.
        lists = [file.read_text("ascii") for file in _TASKS.glob("*/children")]
    except OSError:  # A thread ended just now.
        lists = []
    if not lists:
        try:
            return [child.pid for child in psutil.Process().children()]
        except (OSError, psutil.Error):  # /proc is missing.
            return []
    return [int(pid) for children in lists for pid in children.split()]


def locks_limit(pid: int) -> int | None:
    """Return the soft limit of a process, also of a zombie; None if it cannot be read."""
    if sys.platform == "linux":
        with suppress(OSError):
            return resource.prlimit(pid, _LOCKS)[0]
    return None


def set_locks_limit(pid: int, limit: int) -> None:
    """Set the soft limit of a process, unless it is gone or belongs to someone else."""
    if sys.platform == "linux":
        with suppress(OSError, ValueError):
            resource.prlimit(pid, _LOCKS, (limit, resource.prlimit(pid, _LOCKS)[1]))
