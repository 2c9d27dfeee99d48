"""Standard streams: substitutes for closed ones, as after `>&-`, and uncaught errors kept off the terminal."""

import logging
import os
import sys
import threading
from contextlib import suppress


def open_missing_streams() -> None:
    """Open a substitute for each standard stream that is closed.

    Otherwise the next file that is opened, such as a session's journal, would get its number, and text for standard
    output would end up in that file. The substitute for input is empty, the one for errors takes everything, and
    writing to the one for output fails as on a full disk.
    """
    for number, flags in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            # `open` takes the lowest free number, which is this one: those below are open.
            os.set_inheritable(os.open(os.devnull, flags), True)
            _put(number)


def _put(number: int) -> None:
    if number == 0:
        sys.stdin = os.fdopen(number, encoding="utf-8", errors="replace", closefd=False)
    elif number == 1:
        sys.stdout = os.fdopen(number, "w", encoding="utf-8", errors="replace", closefd=False)
    else:
        sys.stderr = os.fdopen(number, "w", encoding="utf-8", errors="replace", closefd=False)


def log_uncaught_errors() -> None:
    """Write errors that no code can catch, in threads and finalizers, to the log and not to the terminal."""
    sys.unraisablehook = lambda fault: _note(str(fault.err_msg or "ignored in a finalizer"), fault.exc_value)
    threading.excepthook = lambda fault: _note("a thread failed", fault.exc_value)


def _note(words: str, error: BaseException | None) -> None:
    root = logging.getLogger()
    with suppress(MemoryError):
        if root.handlers:  # Without handlers the record would go to the terminal.
            root.error(words, exc_info=error)
