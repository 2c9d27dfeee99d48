"""A real pty with a small terminal emulator: what a person would see of a program, and what they can type.

The emulator knows what a full-screen program needs (cursor moves, erasing, the alternate screen, text of any width)
and drops the rest; it answers no questions, as a plain terminal. What the program writes is taken at once by a thread,
so that it never waits for the test. Waiting is always for something on the screen; the deadline only bounds a failure.
"""

import codecs
import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.cells import get_character_cell_size

PATIENCE = 60.0
"""Seconds until a wait is a failure."""

_TOKEN = re.compile(
    r"\x1b\[(?P<args>[0-?]*)(?P<mid>[ -/]*)(?P<final>[@-~])"
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\)"
    r"|\x1b[ -/]*[0-OQ-WYZ\\`a-~]"
    r"|(?P<control>[\x00-\x1a\x1c-\x1f\x7f])"
    r"|(?P<text>[^\x00-\x1f\x7f]+)",
    re.DOTALL,
)

KEYS = {
    "enter": "\r",
    "escape": "\x1b",
    "tab": "\t",
    "shift+tab": "\x1b[Z",
    "backspace": "\x7f",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "pageup": "\x1b[5~",
    "pagedown": "\x1b[6~",
    "f1": "\x1bOP",
    "alt+enter": "\x1b\r",
    "ctrl+c": "\x03",
    "ctrl+j": "\n",
    "ctrl+p": "\x10",
    "ctrl+q": "\x11",
    "ctrl+s": "\x13",
    "ctrl+t": "\x14",
    "ctrl+x": "\x18",
    "ctrl+y": "\x19",
    "ctrl+z": "\x1a",
}

ALTERNATE_SCREEN = "1049"
SHOWN_CURSOR = "25"
_TO_PUT_BACK = {
    ALTERNATE_SCREEN: "the alternate screen",
    "1000": "mouse clicks",
    "1002": "mouse drags",
    "1003": "mouse moves",
    "1004": "focus reports",
    "1006": "mouse coordinates",
    "1015": "mouse coordinates",
    "2004": "bracketed paste",
    "2026": "synchronised output",
    "2048": "size reports",
}
"""Modes a program must not leave on."""

Cell = tuple[str, str]
"""A character, nothing in the second half of a wide one, and the colours and weight it was drawn with."""
_EMPTY: Cell = (" ", "")


class ScreenBuffer:
    """What is on the screen: rows of cells."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns = columns
        self.rows = rows
        self.modes = {SHOWN_CURSOR}
        """Numbers of the private modes that are on."""
        self.keyboard_protocols = 0
        """How many times more the kitty keyboard protocol was asked for than given back."""
        self._cells = self._blank()
        self._row = 0
        self._column = 0
        self._look = ""
        self._rest = ""
        self._main: tuple[list[list[Cell]], int, int] | None = None

    @property
    def lines(self) -> list[str]:
        """One text a row, without trailing blanks."""
        return ["".join(character for character, _ in row).rstrip() for row in self._cells]

    @property
    def text(self) -> str:
        """The whole screen."""
        return "\n".join(self.lines)

    @property
    def left_behind(self) -> list[str]:
        """What a program that ended should have put back and did not."""
        found = [name for number, name in _TO_PUT_BACK.items() if number in self.modes]
        found += ["the keyboard protocol"] if self.keyboard_protocols > 0 else []
        return found + (["a hidden cursor"] if SHOWN_CURSOR not in self.modes else [])

    def look_of(self, text: str) -> str | None:
        """How the first character of a text is drawn, to be compared only; None where the text is not there."""
        for row in self._cells:
            place = "".join(character or "\0" for character, _ in row).find(text)
            if place >= 0:
                return row[place][1]
        return None

    def resize(self, columns: int, rows: int) -> None:
        """A window of another size, empty until the program draws."""
        self.columns, self.rows = columns, rows
        self._cells = self._blank()
        self._row = self._column = 0

    def feed(self, data: str) -> None:
        """Takes what the program wrote."""
        data = self._rest + data
        place = 0
        while place < len(data):
            match = _TOKEN.match(data, place)
            if match is None:
                if data[place] == "\x1b" and len(data) - place < 4096:
                    break
                place += 1
                continue
            self._act(match)
            place = match.end()
        self._rest = data[place:]

    def _blank(self) -> list[list[Cell]]:
        return [[_EMPTY] * self.columns for _ in range(self.rows)]

    def _act(self, match: re.Match[str]) -> None:
        if match["text"]:
            for character in match["text"]:
                self._put(character)
        elif match["control"]:
            self._control(match["control"])
        elif match["final"] and not match["mid"]:
            self._sequence(match["final"], match["args"])

    def _sequence(self, final: str, arguments: str) -> None:
        if arguments[:1] == "?" and final in "hl":
            for number in arguments[1:].split(";"):
                self._set_mode(number, on=final == "h")
        elif final == "u" and arguments[:1] in (">", "<"):
            self.keyboard_protocols += 1 if arguments[0] == ">" else -1
        elif arguments[:1] in ("?", ">", "=", "<"):
            return
        elif final == "m":
            self._look = "" if arguments in ("", "0") else f"{self._look};{arguments}"
        else:
            self._command(final, [int(part) for part in re.split("[;:]", arguments) if part.isdigit()])

    def _set_mode(self, number: str, *, on: bool) -> None:
        if number == ALTERNATE_SCREEN and on and self._main is None:
            self._main = self._cells, self._row, self._column
            self._cells = self._blank()
        elif number == ALTERNATE_SCREEN and not on and self._main is not None:
            (self._cells, self._row, self._column), self._main = self._main, None
            self._fit()
        (self.modes.add if on else self.modes.discard)(number)

    def _fit(self) -> None:
        """The main screen may have had another size when it was left."""
        rows = [[*row, *[_EMPTY] * self.columns][: self.columns] for row in self._cells]
        self._cells = [*rows, *self._blank()][: self.rows]
        self._row, self._column = min(self._row, self.rows - 1), min(self._column, self.columns - 1)

    def _put(self, character: str) -> None:
        width = get_character_cell_size(character)
        if width == 0 or width > self.columns:
            return
        if self._column + width > self.columns:
            self._column = 0
            self._next_line()
        self._cells[self._row][self._column] = (character, self._look)
        if width == 2:
            self._cells[self._row][self._column + 1] = ("", self._look)
        self._column += width

    def _control(self, control: str) -> None:
        if control == "\r":
            self._column = 0
        elif control == "\n":
            self._next_line()
        elif control == "\b":
            self._column = max(self._column - 1, 0)

    def _next_line(self) -> None:
        if self._row < self.rows - 1:
            self._row += 1
        else:
            self._cells = [*self._cells[1:], [_EMPTY] * self.columns]

    def _command(self, final: str, numbers: list[int]) -> None:
        first = numbers[0] if numbers else 0
        count = max(first, 1)
        if final in "Hf":
            self._row = min(count, self.rows) - 1
            self._column = min(max(numbers[1] if len(numbers) > 1 else 1, 1), self.columns) - 1
        elif final == "A":
            self._row = max(self._row - count, 0)
        elif final == "B":
            self._row = min(self._row + count, self.rows - 1)
        elif final == "C":
            self._column = min(self._column + count, self.columns - 1)
        elif final == "D":
            self._column = max(self._column - count, 0)
        elif final == "G":
            self._column = min(count, self.columns) - 1
        elif final == "d":
            self._row = min(count, self.rows) - 1
        elif final == "K":
            self._erase_in_line(first)
        elif final == "J":
            self._erase_rows(first)

    def _erase_in_line(self, part: int) -> None:
        row = self._cells[self._row]
        start = self._column if part == 0 else 0
        end = self._column + 1 if part == 1 else self.columns
        row[start:end] = [_EMPTY] * (min(end, self.columns) - start)

    def _erase_rows(self, part: int) -> None:
        if part != 2 and part != 3:
            self._erase_in_line(part)
        rows = {0: range(self._row + 1, self.rows), 1: range(self._row), 2: range(self.rows)}.get(part, range(0))
        for row in rows:
            self._cells[row] = [_EMPTY] * self.columns


class Terminal:
    """A program in a pty. A context manager: leaving it kills what is left."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        columns: int = 120,
        rows: int = 40,
    ) -> None:
        self.screen = ScreenBuffer(columns, rows)
        self.raw = bytearray()
        """Everything the program wrote."""
        self._master, self._slave = os.openpty()
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.modes_before = termios.tcgetattr(self._slave)
        self._changed = threading.Condition()
        self._enough, self._enough_sign = os.pipe()
        self._reader = threading.Thread(target=self._take, daemon=True)
        variables = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8", **environment}
        self.started = time.perf_counter()
        """When the program was started."""
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            env=variables,
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self._finish_reading()
        for descriptor in (self._master, self._slave, self._enough, self._enough_sign):
            os.close(descriptor)

    @property
    def modes_after(self) -> list[object]:
        """The terminal's settings now; equal to `modes_before` once the program restored them."""
        return termios.tcgetattr(self._slave)

    @property
    def left_behind(self) -> list[str]:
        """What the program did not put back as it was; empty: all of it."""
        settings = [] if self.modes_after == self.modes_before else ["the terminal's settings"]
        return settings + self.screen.left_behind

    # --- typing -------------------------------------------------------------------------------------------------------

    def type(self, text: str) -> None:
        """Types text, key by key as a person does."""
        for character in text:
            self.write(character)

    def press(self, *keys: str) -> None:
        """Presses named keys (see `KEYS`) or single characters."""
        for key in keys:
            self.write(KEYS.get(key, key))

    def paste(self, text: str) -> None:
        """Pastes, as a terminal with bracketed paste tells it."""
        self.write(f"\x1b[200~{text}\x1b[201~")

    def write(self, text: str) -> None:
        """Everything at once, in one piece."""
        os.write(self._master, text.encode())

    def resize(self, columns: int, rows: int) -> None:
        """Changes the window's size; the kernel tells the program."""
        with self._changed:
            self.screen.resize(columns, rows)
            fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    # --- waiting ------------------------------------------------------------------------------------------------------

    def wait_for(self, wanted: str | Callable[[ScreenBuffer], bool], patience: float = PATIENCE) -> str:
        """Waits until the text stands on the screen, or the condition holds; returns the screen.

        Raises:
            AssertionError: it did not come; with the screen as it is.
        """
        holds = (lambda screen: wanted in screen.text) if isinstance(wanted, str) else wanted
        deadline = time.monotonic() + patience
        while True:
            ended = self.process.poll() is not None
            if ended:
                self._finish_reading()
            with self._changed:
                if holds(self.screen):
                    return self.screen.text
                assert not ended, f"{wanted!r} never came, the program ended; the screen is\n{self.screen.text}"
                rest = deadline - time.monotonic()
                assert rest > 0, f"{wanted!r} never came; the screen is\n{self.screen.text}"
                self._changed.wait(min(rest, 0.1))

    def wait_for_end(self, patience: float = PATIENCE) -> int:
        """Waits until the program ends and all it wrote is on the screen; returns its exit code."""
        try:
            self.process.wait(patience)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"the program did not end; the screen is\n{self.screen.text}") from error
        self._finish_reading()
        return self.process.returncode

    def read(self, seconds: float) -> bool:
        """Waits until the program writes something, at most some seconds; whether it did."""
        with self._changed:
            before = len(self.raw)
            return self._changed.wait_for(lambda: len(self.raw) > before, seconds)

    # --- the thread that reads ----------------------------------------------------------------------------------------

    def _take(self) -> None:
        """Reads until it is told that it is enough, and then what is left."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        patience: float | None = None
        while True:
            ready, _, _ = select.select([self._master, *([self._enough] if patience is None else [])], [], [], patience)
            if self._enough in ready:
                # What the program wrote last may still be on its way through the kernel.
                patience = 0.05
            if self._master in ready:
                self._show(os.read(self._master, 65536), decoder)
            elif patience is not None and not ready:
                return

    def _show(self, data: bytes, decoder: codecs.IncrementalDecoder) -> None:
        with self._changed:
            self.raw += data
            self.screen.feed(decoder.decode(data))
            self._changed.notify_all()

    def _finish_reading(self) -> None:
        if self._reader.is_alive():
            os.write(self._enough_sign, b"x")
            self._reader.join()
