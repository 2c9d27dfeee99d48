"""File permissions that apply to root too."""

import ctypes
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager

import pytest

_VERSION = 0x20080522
_OVERRIDES = 1 << 1 | 1 << 2
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH."""
_GET_SECUREBITS, _SET_SECUREBITS, _NOROOT = 27, 28, 1
"""Flag that keeps a program started by root from regaining the capabilities."""


class _Header(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class _Sets(ctypes.Structure):
    _fields_ = [("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32)]


@contextmanager
def enforce_file_modes() -> Generator[None, None, None]:
    """Make file modes apply to this thread and its child processes as they apply to an ordinary user."""
    if os.geteuid() != 0:
        yield
        return
    if sys.platform != "linux":
        pytest.skip("root may open everything here")
    libc = ctypes.CDLL(None, use_errno=True)
    header, sets = _Header(_VERSION, 0), (_Sets * 2)()
    _checked(libc.capget(ctypes.byref(header), sets))
    before, bits = sets[0].effective, libc.prctl(_GET_SECUREBITS)
    _checked(libc.prctl(_SET_SECUREBITS, bits | _NOROOT))
    sets[0].effective = before & ~_OVERRIDES
    try:
        _checked(libc.capset(ctypes.byref(header), sets))
        yield
    finally:
        sets[0].effective = before
        _checked(libc.capset(ctypes.byref(header), sets))
        _checked(libc.prctl(_SET_SECUREBITS, bits))


def _checked(result: int) -> None:
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
