"""A real pty with a small terminal emulator: the screen of a program, and typed input.

A thread reads the program's output at once, so the program never waits for the test. A test waits for a state of the
screen; the deadline only bounds a failure.
"""

import codecs
import fcntl
import os
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

from .forked_program import ForkedProgram
from .screen_buffer import ScreenBuffer

PATIENCE = 60.0
"""Seconds after which a wait is a failure."""

FRAME_BEGINS, FRAME_ENDS = "\x1b[?2026h", "\x1b[?2026l"
FRAMES_QUESTION, FRAMES_ANSWER = b"\x1b[?2026$p", b"\x1b[?2026;2$y"
"""The terminal's query for synchronised output and the answer that supports it: tests never see half a frame."""

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
    "ctrl+b": "\x02",
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


class Terminal:
    """Program in a pty; a context manager that kills the program on exit."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        columns: int = 120,
        rows: int = 40,
        forked: bool = False,
    ) -> None:
        """Start the command; with `forked`, from a process that has its modules loaded already."""
        self.forked = forked
        self.screen = ScreenBuffer(columns, rows)
        self.raw = bytearray()
        """All output of the program."""
        self._unseen = ""
        self._answers = {FRAMES_QUESTION: FRAMES_ANSWER}
        self._master, self._slave = os.openpty()
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.modes_before = termios.tcgetattr(self._slave)
        self._changed, self._between_keys = threading.Condition(), threading.Lock()
        self._enough, self._enough_sign = os.pipe()
        self._reader = threading.Thread(target=self._take, daemon=True)
        variables = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8", **environment}
        self.started = time.perf_counter()
        """Time when the program started."""
        self.process = self._start(command, cwd, variables)
        self._reader.start()

    def _start(
        self, command: Sequence[str], cwd: Path, variables: Mapping[str, str]
    ) -> "subprocess.Popen[bytes] | ForkedProgram":
        slave = self._slave
        if self.forked:
            streams = (slave, slave, slave)
            return ForkedProgram(command, cwd=cwd, environment=variables, streams=streams, terminal=True)
        return subprocess.Popen(
            command,
            cwd=cwd,
            env=variables,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self._finish_reading()
        if error is not None:
            error.add_note(f"at the end the screen was\n{self.screen.text}")
        for descriptor in (self._master, self._slave, self._enough, self._enough_sign):
            os.close(descriptor)

    @property
    def modes_after(self) -> list[object]:
        """Current settings of the terminal; equal to `modes_before` once the program has restored them."""
        return termios.tcgetattr(self._slave)

    @property
    def left_behind(self) -> list[str]:
        """Return everything that the program did not restore."""
        settings = [] if self.modes_after == self.modes_before else ["the terminal's settings"]
        return settings + self.screen.left_behind

    # --- typing -------------------------------------------------------------------------------------------------------

    def type(self, text: str) -> None:
        """Type text, key by key."""
        for character in text:
            self.write(character)

    def press(self, *keys: str) -> None:
        """Press named keys (see `KEYS`) or single characters."""
        for key in keys:
            self.write(KEYS.get(key, key))

    def paste(self, text: str) -> None:
        """Paste text, as a terminal with bracketed paste does."""
        self.write(f"\x1b[200~{text}\x1b[201~")

    def write(self, text: str) -> None:
        """Send the bytes in one write."""
        os.write(self._master, text.encode())

    def write_slowly(self, key: str, pause: float) -> None:
        """Send the bytes of a key one by one, with a pause behind each; a terminal sends no answer between them."""
        with self._between_keys:
            for byte in key.encode():
                os.write(self._master, bytes((byte,)))
                self.read(pause)

    def answer_when(self, question: str, answer: str) -> None:
        """Answer a question of the program to its terminal, once. Call this before the program asks."""
        self._answers[question.encode()] = answer.encode()

    def resize(self, columns: int, rows: int) -> None:
        """Change the window's size; the kernel notifies the program."""
        with self._changed:
            self.screen.resize(columns, rows)
            fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    # --- waiting ------------------------------------------------------------------------------------------------------

    def wait_for(self, wanted: str | Callable[[ScreenBuffer], bool], patience: float = PATIENCE) -> str:
        """Wait until the screen contains the text or the condition is true; return the screen.

        Raises:
            AssertionError: the deadline passed; the message contains the screen.
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

    def comes(self, wanted: str | Callable[[ScreenBuffer], bool], patience: float) -> bool:
        """Return True if the screen contains the text within a number of seconds."""
        try:
            self.wait_for(wanted, patience)
        except AssertionError:
            return False
        return True

    def wait_for_end(self, patience: float = PATIENCE) -> int:
        """Wait until the program ends and all its output is on the screen; return its exit code."""
        try:
            self.process.wait(patience)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"the program did not end; the screen is\n{self.screen.text}") from error
        self._finish_reading()
        return self.process.returncode

    def read(self, seconds: float) -> bool:
        """Wait for output of the program, at most a number of seconds; return True if there was any."""
        with self._changed:
            before = len(self.raw)
            return self._changed.wait_for(lambda: len(self.raw) > before, seconds)

    # --- the thread that reads ----------------------------------------------------------------------------------------

    def _take(self) -> None:
        """Read until told to finish, then read the rest."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        patience: float | None = None
        poll = select.poll()
        poll.register(self._master, select.POLLIN)
        poll.register(self._enough, select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _ in poll.poll(patience)}
            if self._enough in ready:
                # The last output may still be on its way through the kernel.
                patience = 50.0
                poll.unregister(self._enough)
            if self._master in ready:
                self._show(os.read(self._master, 65536), decoder)
            elif patience is not None and not ready:
                return

    def _show(self, data: bytes, decoder: codecs.IncrementalDecoder) -> None:
        with self._changed:
            self.raw += data
            shown, self._unseen = whole_frames(self._unseen + decoder.decode(data))
            self.screen.feed(shown)
            self._changed.notify_all()
        for question in [question for question in self._answers if question in self.raw]:
            with self._between_keys:
                os.write(self._master, self._answers.pop(question))

    def _finish_reading(self) -> None:
        if self._reader.is_alive():
            os.write(self._enough_sign, b"x")
            self._reader.join()
            self.screen.feed(self._unseen)
            self._unseen = ""


def whole_frames(data: str) -> tuple[str, str]:
    """Return the part of the output that can be shown, and the start of an incomplete frame."""
    begun = data.rfind(FRAME_BEGINS)
    if begun <= data.rfind(FRAME_ENDS):
        begun = data.rfind("\x1b")
        if begun < 0 or not FRAME_BEGINS.startswith(data[begun:]):
            begun = len(data)
    return data[:begun], data[begun:]
