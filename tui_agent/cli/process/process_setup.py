"""Set-up of the process: private memory, rare garbage collections, functions of dataclasses that are compiled late,
substitutes for closed standard streams, a log for uncaught errors.
"""

import ctypes
import dataclasses
import gc
import logging
import os
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import ModuleType
from typing import Any

_SET_DUMPABLE = 4
"""`PR_SET_DUMPABLE` of prctl(2)."""

_MOST_ARENAS = -8
"""`M_ARENA_MAX` of mallopt(3). Each thread would keep freed memory of its own, although one runs at a time."""

_NEW_OBJECTS = 5_000
"""New containers after which garbage is collected among them, which takes about 5 ms; Python's default of 700 is
reached several times in each frame."""

_YOUNG_COLLECTIONS = 4
"""Such collections after which those that they left are searched, too: few enough that no frame waits for them."""

_OLD_COLLECTIONS = 20
"""Searches of that kind after which all objects are searched, which stops the program for 0.2 s; the screen does it
earlier, while nothing happens."""


_FIRST_OBJECTS = 1_000_000
"""New containers after which a start that has not ended yet collects garbage."""


_SWITCH_SECONDS = 0.0005
"""Longest time for which an import in one thread delays a key in another; Python's default is ten times as long."""


_USUAL_SWITCH_SECONDS = 0.005

_PLUGIN_LOADER = "pydantic.plugin._loader"


def begin_start() -> None:
    """Set up the interpreter for many imports in two threads; `end_start` restores what is right for work.

    No garbage is collected: imports leave none, and each search through them stops the program for up to 0.2 s.
    """
    with suppress(AttributeError):  # Only glibc has it.
        ctypes.CDLL(None).mallopt(_MOST_ARENAS, 1)
    gc.set_threshold(_FIRST_OBJECTS, 10, 10)
    sys.setswitchinterval(_SWITCH_SECONDS)
    compile_late()
    # pydantic would read the metadata of every installed package, in search of plugins that we do not want.
    without_plugins = ModuleType(_PLUGIN_LOADER)
    vars(without_plugins)["get_plugins"] = tuple
    sys.modules[_PLUGIN_LOADER] = without_plugins


def end_start() -> None:
    """Collect garbage after more new objects than by default, and never in what is loaded: it stays."""
    compile_at_once()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, _YOUNG_COLLECTIONS, _OLD_COLLECTIONS)
    sys.setswitchinterval(_USUAL_SWITCH_SECONDS)


def collect_at_rest() -> None:
    """Search all objects for garbage if many are new; call this while nothing happens."""
    if gc.get_count()[2]:
        gc.collect()


def deny_memory_access() -> bool:
    """Make `/proc/PID/environ`, `mem`, `fd` and the like of this process unreadable for other processes of its user.

    The commands that tui-agent runs are such processes, and the environment of this process holds the key. The process
    can then neither dump core nor be debugged. Children are not affected, and a process that may trace any other, such
    as one of root, can still read everything.

    Returns:
        True if the system supports this; only Linux does.
    """
    if sys.platform != "linux":
        return False
    return ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0) == 0


def open_missing_streams() -> None:
    """Open a substitute for each standard stream that is closed, as after `>&-`.

    Otherwise the next file that is opened, such as a session's journal, would get its number, and text for standard
    output would end up in that file. The substitute for input is empty, the one for errors discards everything, and
    writing to the one for output fails as on a full disk.
    """
    for number, flags in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            # `open` takes the lowest free number, which is this one: those below are open.
            os.set_inheritable(os.open(os.devnull, flags), True)
            _replace_stream(number)


def _replace_stream(number: int) -> None:
    if number == 0:
        sys.stdin = os.fdopen(number, encoding="utf-8", errors="replace", closefd=False)
    elif number == 1:
        sys.stdout = os.fdopen(number, "w", encoding="utf-8", errors="replace", closefd=False)
    else:
        sys.stderr = os.fdopen(number, "w", encoding="utf-8", errors="replace", closefd=False)


def log_uncaught_errors() -> None:
    """Write errors that no code can catch, in threads and finalizers, to the log and not to the terminal."""
    sys.unraisablehook = lambda fault: _log(str(fault.err_msg or "ignored in a finalizer"), fault.exc_value)
    threading.excepthook = lambda fault: _log("a thread failed", fault.exc_value)


def _log(message: str, error: BaseException | None) -> None:
    root = logging.getLogger()
    with suppress(MemoryError):
        if root.handlers:  # Without handlers the record would go to the terminal.
            root.error(message, exc_info=error)


_CREATE = "_create_fn"
_STANDARD: Callable[..., Any] | None = vars(dataclasses).get(_CREATE)
"""The standard library's function that compiles; None in versions that compile all functions of a class at once."""
_LATE = frozenset(("__init__", "__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__"))
"""Functions that are compiled late. Until its first object exists, the signature of a class is `(*others, **named)`."""


def compile_late() -> None:
    """Let dataclasses that are defined from now on compile their functions at the first call."""
    # Up to Python 3.12 each function is compiled by itself: for 600 classes, a quarter of the CPU of a start.
    if _STANDARD is not None:
        setattr(dataclasses, _CREATE, _create_late)


def compile_at_once() -> None:
    """Let dataclasses that are defined from now on compile their functions at once."""
    if _STANDARD is not None:
        setattr(dataclasses, _CREATE, _STANDARD)


def _create_late(name: str, arguments: Sequence[str], body: Sequence[str], **options: Any) -> object:
    assert _STANDARD is not None
    create = _STANDARD
    if name not in _LATE:
        return create(name, arguments, body, **options)

    def late(self: object, /, *others: object, **named: object) -> object:
        function = create(name, arguments, body, **options)
        function.__qualname__ = late.__qualname__
        for owner in type(self).__mro__:
            if vars(owner).get(name) is late:
                setattr(owner, name, function)
        return function(self, *others, **named)

    late.__name__ = name
    return late
