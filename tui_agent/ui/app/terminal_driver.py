"""Terminal driver: Textual's, with corrections for suspending, pastes, names of keys, and sizes of the window.

Textual restarts on every `SIGCONT`, even if it was never suspended: it would then take its own settings for those that
the terminal had before, and never restore the user's. If a suspended program is resumed only to exit, Textual would
first take the terminal, which belongs to the shell by then, and be stopped again.

Textual's parser also reads escape sequences inside a paste as keys: a pasted ESC CR would send the draft. The driver
cuts pastes out before the parser sees them.
"""

import os
import re
import selectors
import shutil
import time
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from threading import Event
from typing import Any, cast

from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._parser import ParseError
from textual._xterm_parser import XTermParser
from textual.constants import ESCAPE_DELAY
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Key, Paste, Resize
from textual.geometry import Size
from textual.message import Message

from tui_agent.prelude.early_terminal import EarlyTerminal

from .terminal_answers import BACKGROUND_QUESTION, AnswerSplitter, can_be_asked

SAVE_TITLE, RESTORE_TITLE = "\x1b[22;2t", "\x1b[23;2t"
"""The terminal's stack of window titles."""

PASTE_BEGINS = "\x1b[200~"
PASTE_ENDS = "\x1b[201~"

PASTE_TIMEOUT = 2.0
"""Seconds without a character after which a paste without its end is delivered."""

_ONE_KEY = re.compile(r"\x1b?[^\x1b]|\x1b|\x1b\[(?!20[01]~)[\x20-\x3f]*[\x40-\x7e]|\x1bO.", re.DOTALL)
"""Input of exactly one key or mouse event."""

_ALTERNATE_SCREEN = "\x1b[?1049h"
_READ_SIZE = 64 * 1024
_POLL_INTERVAL = 0.1
"""Seconds between two checks for timeouts while there is anything to time out: a lone escape is a key by then."""


class TerminalDriver(LinuxDriver):
    """Uses the terminal only while the program owns it."""

    asleep = False
    """True while the terminal belongs to the shell or an editor."""
    lent = False
    """True while an editor has the terminal and the app continues to draw; nothing of that is written."""
    leaving = False
    """True if the program is about to exit; a terminal that it has released is then left alone."""
    _took_over = False
    """True while the driver starts on a terminal that the prelude has prepared."""

    @cached_property
    def _pastes(self) -> "PasteSplitter":
        """Splitter of the input. It outlives the reading threads: a suspension may happen in the middle of a paste."""
        return PasteSplitter()

    @cached_property
    def _answers(self) -> AnswerSplitter:
        """Splitter of the terminal's answers."""
        return AnswerSplitter()

    @property
    def is_terminal(self) -> bool:
        """True if the program reads from and writes to a terminal."""
        return self.input_tty and self._file is not None and os.isatty(self._file.fileno())

    def ask_background(self) -> None:
        """Ask the terminal for its background; the answer, if any, is a `BackgroundReported`."""
        if self.is_terminal and can_be_asked(os.environ):
            self._answers.asked()
            self.write(BACKGROUND_QUESTION)
            self.flush()

    @property
    def _early(self) -> EarlyTerminal | None:
        """The prelude, if this is the app that gets its input."""
        return getattr(self._app, "early", None)

    def run_input_thread(self) -> None:
        """Process what the prelude has read, then read keys and pastes until the app stops reading.

        Bytes that are not UTF-8 arrive as U+FFFD; they do not end the program.
        """
        parser, decoder = XTermParser(self._debug), getincrementaldecoder("utf-8")("replace")
        with selectors.SelectSelector() as selector:
            keyboard = selector.register(self.fileno, selectors.EVENT_READ)
            exit_sign = cast("_SelectableEvent", self.exit_event)
            selector.register(exit_sign, selectors.EVENT_READ)
            try:
                self._take_early(decoder.decode, parser)
                is_last = False
                while not is_last:
                    if self.exit_event.is_set():
                        is_last = True
                        selector.unregister(exit_sign)
                    # Without a timeout, an idle program never wakes up.
                    waits = is_last or self._has_timeout(parser)
                    if any(key is keyboard for key, _ in selector.select(_POLL_INTERVAL if waits else None)):
                        self._take(decoder.decode(os.read(self.fileno, _READ_SIZE), final=is_last), parser)
                    else:
                        # Only here: on a busy machine this thread may be late while the rest of a sequence is there.
                        self._end_waits(parser)
                for pasted in self._pastes.finish():
                    self.process_message(Paste(pasted.text))
            finally:
                with suppress(EOFError, ParseError):
                    for _ in parser.feed(""):
                        pass

    def send_message(self, message: Message) -> None:
        """Post a message from the reading thread, without the task that Textual creates for each."""
        self._app.post_message(message)

    def _has_timeout(self, parser: XTermParser) -> bool:
        """Return True if input waits for what follows it."""
        private: Any = parser
        return private._timeout_time is not None or self._pastes.is_open or self._answers.holds_back

    def _end_waits(self, parser: XTermParser) -> None:
        """Process input that has waited too long for what follows it."""
        self._parse(self._answers.tick(), parser)
        for message in parser.tick():
            self.process_message(message)
        for pasted in self._pastes.tick():
            self.process_message(Paste(pasted.text))

    def _take_early(self, decode: Callable[[bytes], str], parser: XTermParser) -> None:
        """Process the input of the prelude, read by read: an escape with a pause behind it begins no sequence."""
        for data, silence in self._early.take_input() if self._early is not None else ():
            self._take(decode(data), parser)
            if silence >= ESCAPE_DELAY:
                self._parse(self._answers.release(), parser)
                private: Any = parser
                if private._timeout_time is not None:
                    private._timeout_time = 0.0
                for message in parser.tick():
                    self.process_message(message)

    def _take(self, data: str, parser: XTermParser) -> None:
        """Process the input of one read."""
        for part in self._pastes.feed(data):
            if isinstance(part, PastedText):
                self._parse(self._answers.release(), parser)
                self.process_message(Paste(part.text))
                continue
            keys, answers = self._answers.feed(part)
            self._parse(with_alt_arrows(keys), parser)
            for answer in answers:
                self.process_message(answer)

    def _parse(self, keys: str, parser: XTermParser) -> None:
        # An empty text would end the parser.
        for message in parser.feed(keys) if keys else ():
            # The parser sees the brackets of a paste, and nothing between them.
            if not isinstance(message, Paste):
                self.process_message(message)

    def start_application_mode(self) -> None:
        """Take the terminal, keep its title for later, and ask for its background if the app's theme depends on it."""
        early = self._early
        self._took_over = early is not None and early.take_over()
        self.exit_event = _SelectableEvent()
        super().start_application_mode()
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
                self.write(RESTORE_TITLE)
            super().stop_application_mode()

    def disable_input(self) -> None:
        """Stop reading keys."""
        if not self.asleep:
            super().disable_input()

    def close(self) -> None:
        """Stop writing; the driver may start again."""
        super().close()
        if isinstance(self.exit_event, _SelectableEvent):
            self.exit_event.close()
            self.exit_event = Event()

    def write(self, data: str) -> None:
        """Write to the terminal, unless it was released for good or belongs to an editor."""
        if self._took_over and data == _ALTERNATE_SCREEN:
            return  # It is there already, and to enter it again would clear it.
        if not (self.asleep and (self.leaving or self.lent)):
            super().write(data)


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


@dataclass(frozen=True, slots=True)
class PastedText:
    """Complete text between the brackets of a paste."""

    text: str


class PasteSplitter:
    """Splits the input of a terminal into pastes and the rest, in order.

    Everything between the brackets is text, also an escape sequence or another begin bracket; only the end bracket ends
    it. Terminals remove that bracket from pasted text. If one does not, the last end bracket of the same read counts,
    because no key sends it.

    A paste without its end is delivered after `PASTE_TIMEOUT` seconds of silence. Later input is still text, but the
    first read that is exactly one key is that key, so that the keyboard keeps working.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._pasted: list[str] | None = None
        """Parts of the current paste; None: no paste."""
        self._bracket = ""
        """Start of a bracket at the end of the input so far: of an end bracket in a paste, else of a begin bracket."""
        self._overdue = False
        """True if a part of the paste was delivered before its end arrived."""
        self._last_read = 0.0

    @property
    def is_open(self) -> bool:
        """True if a paste has no end yet."""
        return self._pasted is not None

    def feed(self, data: str) -> Iterator[str | PastedText]:
        """Yield the parts of one read: characters for the key parser, and pastes.

        The characters include both brackets, with nothing between them, so that the parser follows. They are never
        held back: only the parser knows when a lone escape is a key.
        """
        self._last_read = self._clock()
        if self._overdue and not self._pasted and not self._bracket and _ONE_KEY.fullmatch(data):
            self._pasted, self._overdue = None, False
            yield PASTE_ENDS
        while data:
            if self._pasted is None:
                keys, data = self._until_paste(data)
                yield keys
                continue
            whole = self._bracket + data
            end = _end_of_paste(whole)
            if end is None:
                self._bracket = _begun_bracket(whole, PASTE_ENDS)
                self._pasted.append(whole[: len(whole) - len(self._bracket)])
                return
            text, data = "".join((*self._pasted, whole[:end])), whole[end + len(PASTE_ENDS) :]
            self._pasted, self._bracket, self._overdue = None, "", False
            yield PASTE_ENDS
            if text:
                yield PastedText(text)

    def tick(self) -> Iterator[PastedText]:
        """Yield the text of a paste whose end is overdue. Call this regularly."""
        if self._pasted is not None and self._clock() - self._last_read >= PASTE_TIMEOUT:
            text, self._pasted, self._overdue = "".join(self._pasted), [], True
            if text:
                yield PastedText(text)

    def finish(self) -> Iterator[PastedText]:
        """Yield the text of a paste without its end when reading stops; it may start again later."""
        if self._pasted is not None:
            text = "".join((*self._pasted, self._bracket))
            self._pasted, self._bracket, self._overdue = [], "", True
            if text:
                yield PastedText(text)

    def _until_paste(self, data: str) -> tuple[str, str]:
        """Cut behind the bracket that begins a paste; without one, everything is keys."""
        whole = self._bracket + data
        place = whole.find(PASTE_BEGINS)
        if place < 0:
            self._bracket = _begun_bracket(whole, PASTE_BEGINS)
            return data, ""
        cut = place + len(PASTE_BEGINS) - len(self._bracket)
        self._pasted, self._bracket = [], ""
        return data[:cut], data[cut:]


def _end_of_paste(text: str) -> int | None:
    """Return where the end bracket begins; None if it has not come."""
    first = text.find(PASTE_ENDS)
    if first < 0:
        return None
    next_paste = text.find(PASTE_BEGINS, first)
    return text.rfind(PASTE_ENDS, first, len(text) if next_paste < 0 else next_paste)


def _begun_bracket(text: str, bracket: str) -> str:
    """Return the beginning of a bracket with which a text ends."""
    return next((text[-size:] for size in range(len(bracket) - 1, 0, -1) if text.endswith(bracket[:size])), "")


# --- keys and window sizes --------------------------------------------------------------------------------------------

_ALT_ENTER_MARK = "\uf00d"
"""Placeholder for ESC CR between the parser, whose table takes single characters only, and `with_normalised_name`."""

_CONTROL_NAMES = {"\r": "enter", "\t": "tab", "\x1b": "escape", "\x7f": "backspace"}
_WHOLE_NAMES = {_ALT_ENTER_MARK: "alt+enter", "\r": "alt+enter"}
"""A bare control character is a key whose Alt the parser dropped: unmodified keys are never reported that way."""


def register_alt_enter() -> None:
    """Make the parser distinguish ESC CR from CR. Call this once, before the terminal is read.

    Without the kitty protocol Alt+Enter arrives as ESC CR, which Textual reads as a plain Enter: a follow-up would be
    sent as steering (https://github.com/Textualize/textual/issues/6378).
    """
    cast("dict[str, object]", ANSI_SEQUENCES_KEYS)["\x1b\r"] = _ALT_ENTER_MARK


_ESCAPED_ARROW = re.compile(r"\x1b\x1b[\[O]([A-DFH])")


def with_alt_arrows(keys: str) -> str:
    """Return input with the arrows of terminals that send Alt as an escape in front of a key.

    The parser would read an escape, which interrupts, and an arrow.
    """
    return _ESCAPED_ARROW.sub("\x1b[1;3\\1", keys) if "\x1b\x1b" in keys else keys


def with_normalised_name(event: Key) -> Key:
    """Return the key press under the name that bindings use: `shift+\\r` becomes `shift+enter`.

    With xterm's modifyOtherKeys, and in tmux with extended-keys, Alt+Enter arrives as `CSI 27;3;13~`, which Textual
    names by its control character and without the modifier.
    """
    name = _WHOLE_NAMES.get(event.key)
    if name is None:
        modifiers, plus, last = event.key.rpartition("+")
        if last not in _CONTROL_NAMES or not plus:
            return event
        name = f"{modifiers}+{_CONTROL_NAMES[last]}"
    return Key(name, None)


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
