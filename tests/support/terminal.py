"""A real pty with a small terminal emulator: what a person would see of a program, and what they can type.

The emulator knows what a full-screen program needs (cursor moves, erasing, text of any width) and drops the rest.
Waiting is always for something on the screen; the deadline only bounds a failure.
"""

import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rich.cells import get_character_cell_size

PATIENCE = 60.0
"""Seconds until a wait is a failure."""

_TOKEN = re.compile(
    r"\x1b\[(?P<args>[0-?]*)(?P<mid>[ -/]*)(?P<final>[@-~])"
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\)"
    r"|\x1b[ -/]*[0-~]"
    r"|(?P<control>[\x00-\x1a\x1c-\x1f\x7f])"
    r"|(?P<text>[^\x00-\x1f\x7f]+)",
    re.DOTALL,
)

KEYS = {
    "enter": "\r",
    "escape": "\x1b",
    "tab": "\t",
    "shift+tab": "\x1b[Z",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "alt+enter": "\x1b\r",
    "ctrl+c": "\x03",
    "ctrl+q": "\x11",
    "ctrl+p": "\x10",
    "ctrl+y": "\x19",
    "ctrl+j": "\n",
}


class ScreenBuffer:
    """What is on the screen: rows of cells."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns = columns
        self.rows = rows
        self._cells = [[" "] * columns for _ in range(rows)]
        self._row = 0
        self._column = 0
        self._rest = ""

    @property
    def lines(self) -> list[str]:
        """One text a row, without trailing blanks."""
        return ["".join(row).rstrip() for row in self._cells]

    @property
    def text(self) -> str:
        """The whole screen."""
        return "\n".join(self.lines)

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

    def _act(self, match: re.Match[str]) -> None:
        if match["text"]:
            for character in match["text"]:
                self._put(character)
        elif match["control"]:
            self._control(match["control"])
        elif match["final"] and not match["mid"] and match["args"][:1] not in ("?", ">", "=", "<"):
            self._command(
                match["final"], [int(part or 0) for part in re.split("[;:]", match["args"]) if part.isdigit()]
            )

    def _put(self, character: str) -> None:
        width = get_character_cell_size(character)
        if width == 0:
            return
        if self._column + width > self.columns:
            self._column = 0
            self._row = min(self._row + 1, self.rows - 1)
        self._cells[self._row][self._column] = character
        if width == 2:
            self._cells[self._row][self._column + 1] = ""
        self._column += width

    def _control(self, control: str) -> None:
        if control == "\r":
            self._column = 0
        elif control == "\n":
            self._row = min(self._row + 1, self.rows - 1)
        elif control == "\b":
            self._column = max(self._column - 1, 0)

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
        elif final == "K":
            self._cells[self._row][self._column :] = [" "] * (self.columns - self._column)
        elif final == "J" and first == 2:
            self._cells = [[" "] * self.columns for _ in range(self.rows)]


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
        master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.modes_before = termios.tcgetattr(slave)
        self._master = master
        self._slave = slave
        variables = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8", **environment}
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            env=variables,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self._master)
        os.close(self._slave)

    @property
    def modes_after(self) -> list[object]:
        """The terminal's modes now; equal to `modes_before` once the program restored them."""
        return termios.tcgetattr(self._slave)

    def type(self, text: str) -> None:
        """Types text, key by key as a person does."""
        for character in text:
            self._write(character)

    def press(self, *keys: str) -> None:
        """Presses named keys (see `KEYS`) or single characters."""
        for key in keys:
            self._write(KEYS.get(key, key))

    def wait_for(self, wanted: str | Callable[[ScreenBuffer], bool], patience: float = PATIENCE) -> str:
        """Reads until the text stands on the screen, or the condition holds; returns the screen.

        Raises:
            AssertionError: it did not come; with the screen as it is.
        """
        holds = (lambda screen: wanted in screen.text) if isinstance(wanted, str) else wanted
        deadline = time.monotonic() + patience
        while not holds(self.screen):
            assert time.monotonic() < deadline, f"{wanted!r} never came; the screen is\n{self.screen.text}"
            if not self.read(0.1) and self.process.poll() is not None and not self.read(0.1) and not holds(self.screen):
                raise AssertionError(f"{wanted!r} never came, the program ended; the screen is\n{self.screen.text}")
        return self.screen.text

    def wait_for_end(self, patience: float = PATIENCE) -> int:
        """Reads until the program ends; returns its exit code."""
        deadline = time.monotonic() + patience
        while self.process.poll() is None:
            assert time.monotonic() < deadline, f"the program did not end; the screen is\n{self.screen.text}"
            self.read(0.1)
        while self.read(0.05):
            pass
        return self.process.returncode

    def resize(self, columns: int, rows: int) -> None:
        """Changes the window's size."""
        self.screen = ScreenBuffer(columns, rows)
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.killpg(self.process.pid, signal.SIGWINCH)

    def _write(self, text: str) -> None:
        os.write(self._master, text.encode())
        self.read(0.0)

    def read(self, seconds: float) -> bool:
        """Takes what the program wrote within some seconds; whether there was anything."""
        ready, _, _ = select.select([self._master], [], [], seconds)
        if not ready:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:
            return False
        self.raw += data
        self.screen.feed(data.decode("utf-8", "replace"))
        return bool(data)
