"""Keeps what the process holds in memory, such as the key, from other processes of the same user."""

import ctypes
import sys

_SET_DUMPABLE = 4
"""`PR_SET_DUMPABLE` of prctl(2)."""


def deny_memory_access() -> bool:
    """Makes `/proc/PID/environ`, `mem`, `fd` and their kin of this process unreadable for its user, and so for every
    command that it runs: the environment it was started with holds the key, whatever its children are given.

    Core dumps and debuggers that attach go with it. Children are not affected: a program they start is readable again.
    Who may trace any process (root, as a rule) can read it all the same.

    Returns:
        Whether the system does that; only Linux does.
    """
    if sys.platform != "linux":
        return False
    return ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0) == 0
