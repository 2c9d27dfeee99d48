"""Writes to the terminal at once, from the event loop.

Textual hands each frame to a thread, which gets its turn only when the event loop waits: a typed letter was painted
after all that the key caused, and each frame cost a change of threads. The thread is needed only for what a slow
terminal does not take.
"""

import os
import threading
from contextlib import suppress
from queue import Queue
from typing import TextIO

FRAME_BEGINS, FRAME_ENDS = "\x1b[?2026h", "\x1b[?2026l"
"""Around a frame, if the terminal supports it."""

MOST_LATE = 10
"""Most texts that wait for a slow terminal; the next one is waited for."""


class TerminalWriter:
    """A writer to a terminal, whose thread starts with the first text that the terminal does not take at once."""

    def __init__(self, file: TextIO) -> None:
        self._shared = file.fileno()
        self._direct = _opened_again(self._shared)
        self._owner = threading.get_ident()
        self._encoding, self._errors = file.encoding, file.errors or "replace"
        self._frame = ""
        self._has_ended = False
        self._thread: threading.Thread | None = None
        self._late: Queue[bytes | None] = Queue(MOST_LATE)

    def write(self, text: str) -> None:
        """Write a text; a frame is written as a whole, when it ends."""
        if threading.get_ident() == self._owner:
            text = self._frame = self._frame + text
            if text.startswith(FRAME_BEGINS) and not text.endswith(FRAME_ENDS):
                return
            self._frame = ""
        data = text.encode(self._encoding, self._errors)
        # What waits in the thread comes first.
        if threading.get_ident() == self._owner and not self._late.unfinished_tasks:
            data = data[self._taken(data) :]
        if data and not self._has_ended:
            if self._thread is None:
                # A daemon, because a terminal that takes nothing must not keep the process alive.
                self._thread = threading.Thread(target=self._write_late, name="terminal-output", daemon=True)
                self._thread.start()
            self._late.put(data)

    def stop(self) -> None:
        """Write the rest, and end; later texts are dropped."""
        self._has_ended = True
        if self._thread is not None:
            self._late.put(None)
            self._thread.join()
        if self._direct is not None:
            os.close(self._direct)
            self._direct = None

    def _write_late(self) -> None:
        while (data := self._late.get()) is not None:
            with suppress(OSError):  # The terminal is gone, and its signal is on the way.
                while data:
                    data = data[os.write(self._shared, data) :]
            self._late.task_done()

    def _taken(self, data: bytes) -> int:
        """Return how many bytes the terminal takes without a wait."""
        if self._direct is None:
            return 0
        try:
            return os.write(self._direct, data)
        except BlockingIOError:
            return 0
        except OSError:
            return len(data)  # The terminal is gone, and its signal is on the way.


def _opened_again(descriptor: int) -> int | None:
    """Return a descriptor of the same terminal that never blocks; None if the terminal may not be opened.

    The given one is shared with the shell, which would not block either.
    """
    try:
        return os.open(os.ttyname(descriptor), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return None
