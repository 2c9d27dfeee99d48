"""Terminal driver: Textual's, with corrections for suspending, input, and sizes of the window.

Textual restarts on every `SIGCONT`, even if it was never suspended: it would then take its own settings for those that
the terminal had before, and never restore the user's. If a suspended program is resumed only to exit, Textual would
first take the terminal, which belongs to the shell by then, and be stopped again.

A terminal takes a copy to its clipboard as OSC 52. tmux ignores that from programs unless `set-clipboard` is `on`, but
sends what its own command gets. screen passes sequences on only in short device control strings.

Textual hands each frame to a thread, which gets its turn only when the event loop waits: a typed letter was painted
after all that the key caused, and each frame cost a change of threads. `TerminalWriter` writes at once; its thread is
needed only for what a slow terminal does not take.
"""

import base64
import os
import select
import selectors
import shutil
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from queue import Queue
from threading import Event
from typing import TextIO, cast

from textual.constants import DISABLE_KITTY_KEY
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Resize
from textual.geometry import Size
from textual.message import Message

from tui_agent.prelude.early_terminal import EarlyTerminal
from tui_agent.ui.base.error_boundary import call_or_fallback

from .terminal_input import BACKGROUND_QUESTION, TerminalInput, can_be_asked

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


SAVE_TITLE, RESTORE_TITLE = "\x1b[22;2t", "\x1b[23;2t"
"""The terminal's stack of window titles."""

_QUESTIONS = frozenset((BACKGROUND_QUESTION, "\x1b[?2026$p", "\x1b[?2048$p"))
_ANSWER_SECONDS = 0.7
"""Seconds after a question for which a program that leaves waits for the answer."""
_REPORT_LAYOUTS = "\x1b[=4;2u"
"""Asks a terminal with the kitty protocol for the keys of other layouts, too."""

_ALTERNATE_SCREEN = "\x1b[?1049h"
_READ_SIZE = 64 * 1024
_LAST_WAIT = 0.1
"""Seconds for which input is awaited when reading stops."""


class TerminalDriver(LinuxDriver):
    """Uses the terminal only while the program owns it."""

    asleep = False
    """True while the terminal belongs to the shell or an editor."""
    lent = False
    """True while an editor has the terminal and the app continues to draw; nothing of that is written."""
    takes_mouse = True
    """False if the user leaves the mouse of every app to the terminal."""
    leaving = False
    """True if the program is about to exit; a terminal that it has released is then left alone."""
    _questions = 0
    """Number of questions to the terminal."""
    _asked_at = 0.0
    _is_reading = False
    _writer: TerminalWriter | None = None
    """Replaces Textual's thread once the driver has the terminal."""
    _took_over = False
    """True while the driver starts on a terminal that the prelude has prepared."""

    @cached_property
    def _input(self) -> TerminalInput:
        """The input. It outlives the reading threads: a suspension may happen in the middle of a paste."""
        return TerminalInput()

    @property
    def is_terminal(self) -> bool:
        """True if the program reads from and writes to a terminal."""
        return self.input_tty and self._file is not None and os.isatty(self._file.fileno())

    @property
    def input_waits(self) -> bool:
        """True if there is input that the app has not received: on a busy machine the thread that reads is late."""
        return self._is_reading or bool(select.select((self.fileno,), (), (), 0)[0])

    def ask_background(self) -> None:
        """Ask the terminal for its background; the answer, if any, is a `BackgroundReported`."""
        if self.is_terminal and can_be_asked(os.environ):
            self.write(BACKGROUND_QUESTION)
            self.flush()

    @property
    def _early(self) -> EarlyTerminal | None:
        """The prelude, if this is the app that gets its input."""
        return getattr(self._app, "early", None)

    def run_input_thread(self) -> None:
        """Read input until the app stops reading; if that fails, end the app as any other error does."""
        call_or_fallback(self._read_input, lambda error: self._app.call_later(_fail, error))

    def _read_input(self) -> None:
        """Process what the prelude has read, then read keys and pastes."""
        with selectors.SelectSelector() as selector:
            keyboard = selector.register(self.fileno, selectors.EVENT_READ)
            exit_sign = cast("_SelectableEvent", self.exit_event)
            selector.register(exit_sign, selectors.EVENT_READ)
            for data, silence in self._early.take_input() if self._early is not None else ():
                self._process(self._input.feed(data))
                self._process(self._input.rest(silence))
            is_last = False
            while not is_last:
                if self.exit_event.is_set():
                    is_last = True
                    selector.unregister(exit_sign)
                # Without a timeout, an idle program never wakes up.
                patience = _LAST_WAIT if is_last else self._input.patience
                ready = selector.select(patience)
                if any(key is keyboard for key, _ in ready):
                    self._is_reading = True
                    self._process(self._input.feed(os.read(self.fileno, _READ_SIZE)))
                    self._is_reading = False
                elif not ready and patience is not None:
                    # Only here: on a busy machine this thread may be late while the rest of a sequence is there.
                    self._process(self._input.rest(patience))
            self._process(self._input.finish())

    def _process(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self.process_message(message)

    def send_message(self, message: Message) -> None:
        """Post a message from the reading thread, without the task that Textual creates for each."""
        self._app.post_message(message)

    def start_application_mode(self) -> None:
        """Take the terminal, keep its title for later, and ask for its background if the app's theme depends on it."""
        early = self._early
        self._took_over = early is not None and early.take_over()
        self.exit_event = _SelectableEvent()
        self._mouse = self._mouse and self.takes_mouse
        self._writer = None
        super().start_application_mode()
        if self._writer_thread is not None and self._file is not None and self.is_terminal:
            # Textual has just started it, and has no way to run without it.
            self._writer_thread.stop()
            self._writer_thread, self._writer = None, TerminalWriter(self._file)
        if self.is_terminal and not DISABLE_KITTY_KEY:
            self.write(_REPORT_LAYOUTS)
        if early is not None and self._took_over:
            # Those of the shell; Textual has found those of the prelude.
            self.attrs_before = early.attributes
            self._took_over = False
        if self.is_terminal:
            self.write(SAVE_TITLE)
        if getattr(self._app, "follows_terminal", False):
            self.ask_background()

    def suspend_application_mode(self) -> None:
        """Release the terminal."""
        if not self.asleep:
            super().suspend_application_mode()
            self.asleep = True

    def resume_application_mode(self) -> None:
        """Take the terminal again, unless the program is about to exit."""
        if self.asleep and not self.leaving:
            # In the background this call stops the process, and continues once the shell resumes it.
            super().resume_application_mode()
            self.asleep = False

    def stop_application_mode(self) -> None:
        """Restore the terminal's earlier state."""
        if not self.asleep:
            if self.is_terminal:
                self._await_answers()
                self.write(RESTORE_TITLE)
            super().stop_application_mode()

    def _await_answers(self) -> None:
        """Wait a moment for answers of the terminal: the shell would read a later one as typed text."""
        # Blocking, because the event loop has ended by then; the reading thread still counts answers.
        while self._input.answers < self._questions and time.monotonic() < self._asked_at + _ANSWER_SECONDS:
            time.sleep(_ANSWER_SECONDS / 50)

    @property
    def uses_mouse(self) -> bool:
        """True if the terminal reports the mouse."""
        return self._mouse

    def use_mouse(self, wanted: bool) -> None:
        """Let the terminal report the mouse, or not."""
        if wanted != self._mouse:
            if not wanted:
                # Before `_mouse` is false, because Textual then writes nothing.
                self._disable_mouse_support()
            self._mouse = self.takes_mouse = wanted
            self._enable_mouse_support()

    def disable_input(self) -> None:
        """Stop reading keys."""
        if not self.asleep:
            super().disable_input()

    def close(self) -> None:
        """Stop writing; the driver may start again."""
        super().close()
        if self._writer is not None:
            self._writer.stop()
        if isinstance(self.exit_event, _SelectableEvent):
            self.exit_event.close()
            self.exit_event = Event()

    def write(self, data: str) -> None:
        """Write to the terminal, unless it was released for good or belongs to an editor."""
        if self._took_over and data == _ALTERNATE_SCREEN:
            return  # It is there already, and to enter it again would clear it.
        if data in _QUESTIONS:
            self._questions += 1
            self._asked_at = time.monotonic()
        if not (self.asleep and (self.leaving or self.lent)):
            (super() if self._writer is None else self._writer).write(data)


def _fail(error: Exception) -> None:
    raise error


class _SelectableEvent(Event):
    """Event for which a thread can wait together with a descriptor."""

    def __init__(self) -> None:
        super().__init__()
        self._ends = os.pipe()

    def fileno(self) -> int:
        """Descriptor that is readable while the event is set."""
        return self._ends[0]

    def set(self) -> None:
        """Set the event."""
        if not self.is_set():
            super().set()
            os.write(self._ends[1], b"x")

    def clear(self) -> None:
        """Reset the event."""
        if self.is_set():
            os.read(self._ends[0], 1)
            super().clear()

    def close(self) -> None:
        """Close the descriptors."""
        for end in self._ends:
            os.close(end)


def with_current_size(event: Resize) -> Resize:
    """Return the event with the current size, unless the terminal itself sent it, which it does in order.

    Textual reads the size inside a signal handler. When it changes several times in quick succession, the handlers
    interrupt each other, the innermost reports the newest size first, and the app would keep the oldest.
    """
    if event.pixel_size is not None:
        return event
    # As in Textual, a fixed size in the environment takes precedence.
    size = Size(*shutil.get_terminal_size((event.size.width, event.size.height)))
    return Resize(size, size)


_SHORT = 240
"""Characters in one string for screen, which drops strings longer than 256 in its oldest versions."""
_TMUX_SECONDS = 5.0
_FOR_TMUX = ("PATH", "HOME", "LANG", "TERM", "TMUX", "TMUX_TMPDIR")
"""Variables that tmux needs; it gets no others, because they may hold secrets."""


def copy_sequence(text: str, environment: Mapping[str, str]) -> str:
    """Return the characters that make a terminal copy a text; lone surrogates become question marks."""
    sequence = f"\x1b]52;c;{base64.b64encode(text.encode('utf-8', 'replace')).decode()}\x07"
    if "STY" not in environment or "TMUX" in environment:
        return sequence
    parts = (sequence[start : start + _SHORT] for start in range(0, len(sequence), _SHORT))
    return "".join(f"\x1bP{part}\x1b\\" for part in parts)


def hand_to_tmux(text: str) -> None:
    """Let tmux copy a text, to its own buffer and to the terminal; without tmux 3.2 nothing happens. Blocks."""
    with suppress(OSError, subprocess.SubprocessError):
        subprocess.run(
            ("tmux", "load-buffer", "-w", "-"),
            input=text.encode("utf-8", "replace"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={name: os.environ[name] for name in _FOR_TMUX if name in os.environ},
            timeout=_TMUX_SECONDS,
            check=False,
        )
