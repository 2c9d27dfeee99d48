"""Orphans: processes that a command started and whose parents have ended.

As the subreaper, this program becomes the parent of every orphan below it, and no process can prevent that. The soft
limit `RLIMIT_LOCKS` shows where an orphan comes from: commands have the mark of their call, this program and its other
helpers share another. An orphan with neither mark has lost it, as under `su`. Such an orphan belongs to a call that
ended or is ending, so it is unclaimed once no other call runs.
"""

import ctypes
import os
import secrets
import sys
from collections.abc import Generator, Iterable
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
_running: set[int] = set()
"""Limits of the calls whose processes are running."""
_kept: set[int] = set()
"""Limits of the commands that the user detached."""


def become_subreaper() -> bool:
    """Make this program the parent of the orphans below it, and mark it and its children; return False if it cannot.

    The state belongs to the whole process, so only programs call this, never the library.
    """
    global _own_limit, _limit_before
    if sys.platform != "linux" or _own_limit is not None:
        return False
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
def call_running(limit: int) -> Generator[None]:
    """Register a call that may own orphans, by its limit. Enter this before the call's first process starts."""
    _running.add(limit)
    try:
        yield
    finally:
        _running.discard(limit)


def unclaimed_orphans(own_call: int) -> frozenset[int]:
    """Return the adopted processes that can only come from an ended call or from the call with the limit `own_call`."""
    if _own_limit is None or _running - {own_call}:
        return frozenset()
    found = [pid for pid in own_children() if locks_limit(pid) not in (None, _own_limit, *_kept)]
    # A call that began meanwhile was registered before it had a process.
    return frozenset() if _running - {own_call} else frozenset(found)


def keep_running(limit: int) -> None:
    """Let the processes with this limit run on: they never count as orphans."""
    _kept.add(limit)


def own_children() -> Iterable[int]:
    """Return the ids of this program's children, zombies included."""
    try:
        lists = [file.read_text("ascii") for file in _TASKS.glob("*/children")]
    except OSError:  # A thread ended just now.
        lists = []
    if not lists:
        return [child.pid for child in psutil.Process().children()]
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
