"""Standard streams that are closed when the program starts, as after `>&-`."""

import logging
import os
import sys
import threading
from contextlib import suppress


def hold_standard_streams() -> None:
    """Open something in the place of each standard stream that is closed.

    Otherwise the next file that is opened, such as a session's journal, would take the number, and what is written to
    standard output would go there. A closed input is empty, a closed error output takes everything, and writing to a
    closed output fails as it does on a full disk.
    """
    for number, flags in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number is this one: those below are open.
            os.set_inheritable(os.open(os.devnull, flags), True)
            _put(number)


def _put(number: int) -> None:
    if number == 0:
        sys.stdin = os.fdopen(number, encoding="utf-8", errors="replace", closefd=False)
    elif number == 1:
        sys.stdout = os.fdopen(number, "w", encoding="utf-8", errors="replace", closefd=False)
    else:
        sys.stderr = os.fdopen(number, "w", encoding="utf-8", errors="replace", closefd=False)


def keep_faults_off_terminal() -> None:
    """Write errors that no code can catch, in threads and finalizers, to the log and not to the terminal."""
    sys.unraisablehook = lambda fault: _note(str(fault.err_msg or "ignored in a finalizer"), fault.exc_value)
    threading.excepthook = lambda fault: _note("a thread failed", fault.exc_value)


def _note(words: str, error: BaseException | None) -> None:
    root = logging.getLogger()
    with suppress(MemoryError):
        if root.handlers:  # Else the record would go to the terminal after all.
            root.error(words, exc_info=error)
