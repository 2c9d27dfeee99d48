"""The terminal before the app takes it over: in raw mode, with the start page, and a thread that reads every byte.

The thread also handles signals, because the main thread may hang in an import from a slow disk.
"""

import _thread
import os
import select
import termios

from .kept_frame import FrameNames, StartFrame, read_frame, write_file, write_frame
from .typed_input import BREAKS_TO_QUIT, LARGEST_INPUT, TypedInput

TYPE_CHECKING = False

if TYPE_CHECKING:
    import signal
    from types import FrameType
else:
    # The public module would first create its enumerations.
    import _signal as signal

_INPUT, _OUTPUT = 0, 2
"""Textual reads from standard input, and draws on standard error."""
_BEGIN = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[?2004h"
"""Alternate screen, no cursor, no line wrap, brackets around pastes."""
_END = "\x1b[0m\x1b[?2004l\x1b[?7h\x1b[?1049l\x1b[?25h"
_READ_SIZE = 64 * 1024
_STEP = 0.05
"""Seconds in which silence is counted."""
_STOP = 0
"""Byte that ends the thread; the others are numbers of signals."""
_LETHAL = (
    signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGABRT,
    signal.SIGALRM, signal.SIGXCPU,
)  # fmt: skip
_HANDLED = (*_LETHAL, signal.SIGTSTP, signal.SIGCONT, signal.SIGWINCH)


def _ignore(number: int, frame: "FrameType | None") -> None:
    """Do nothing: the thread receives the signal's number from the interpreter, also while this thread hangs."""


class EarlyTerminal:
    """The terminal from the start of the process until the app takes it. Create it in the main thread."""

    def __init__(self) -> None:
        """Take the terminal and begin to read.

        Raises:
            OSError, termios.error, RuntimeError: this is not possible; the terminal is as before.
        """
        self.attributes = termios.tcgetattr(_INPUT)
        """The terminal's settings before."""
        self.is_open = True
        """True while the terminal is this object's."""
        self._asleep = False
        """True from a stop by `SIGTSTP` until the process continues."""
        self._typed = TypedInput()
        self._echoed = ""
        """Text that the composer shows."""
        self._names: FrameNames | None = None
        self._frame: StartFrame | None = None
        self._shown = b""
        """Content of the page that was shown."""
        self._painting, self._running = _thread.allocate_lock(), _thread.allocate_lock()
        self._wake_end, self._sign_end = os.pipe()
        os.set_blocking(self._sign_end, False)
        self._handlers = {number: signal.getsignal(number) for number in _HANDLED}
        for number, handler in self._handlers.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, _ignore)
        self._earlier_wake = signal.set_wakeup_fd(self._sign_end, warn_on_full_buffer=False)
        try:
            self._enter()
            self._running.acquire()
            _thread.start_new_thread(self._serve, ())
        except BaseException:
            self._leave()
            self._stop_signals()
            raise

    # --- the main thread ----------------------------------------------------------------------------------------------

    def show_page(self, names: FrameNames) -> None:
        """Paint the page with these names. Blocks."""
        frame = self._stored_frame(names)
        with self._painting:
            self._names = names
            self._frame = frame
            self._paint()

    def take_over(self) -> bool:
        """Stop reading, and leave the terminal as it is to the caller; return False if it was released before."""
        if not self.is_open:
            return False
        os.write(self._sign_end, bytes((_STOP,)))
        self._running.acquire()
        if self._asleep:
            self._wake()
        self.is_open = False
        self._stop_signals()
        return True

    def release(self) -> None:
        """Restore the terminal; what was typed is kept."""
        if self.take_over():
            self._leave()
            # Questions before the app change what it shows.
            self._names = None

    def take_input(self) -> list[tuple[bytes, float]]:
        """Return what was typed, once: the bytes of each read, and the seconds of silence behind them."""
        typed, self._typed = self._typed, TypedInput()
        return typed.reads

    def say_unsent(self) -> None:
        """Name the text that nothing has received, if there is any. The terminal is the shell's."""
        words, self._typed = self._typed.words, TypedInput()
        if words:
            try:
                _write(f"tui-agent: this was not sent: {words}\n")
            except OSError:
                return  # The terminal is gone.

    @property
    def wants_page(self) -> bool:
        """True if a page that the app paints is of use to the next start."""
        return self._names is not None

    def keep_page(self, frame: StartFrame) -> None:
        """Store the page for the next start, unless it is the one that was shown. Blocks.

        Raises:
            OSError: it cannot be written.
        """
        if self._names is not None and frame.encoded() != self._shown:
            size = frame.columns, len(frame.rows)
            write_frame(self._names.page(*size), frame)
            write_frame(self._names.look(*size), frame.without_text())

    @property
    def is_light(self) -> bool:
        """True if the terminal had a light background at the last start."""
        return self._names is not None and self._names.light

    def keep_background(self, light: bool) -> None:
        """Store for the next start that the terminal has a light background, or that it has none. Blocks.

        Raises:
            OSError: it cannot be stored.
        """
        if self._names is not None and light != self._names.light:
            if light:
                write_file(self._names.light_mark, b"")
            else:
                os.unlink(self._names.light_mark)
            self._names.light = light

    def _stop_signals(self) -> None:
        signal.set_wakeup_fd(self._earlier_wake)
        for number, handler in self._handlers.items():
            # The app may have handlers of its own by now.
            if signal.getsignal(number) is _ignore:
                signal.signal(number, handler)
        os.close(self._wake_end)
        os.close(self._sign_end)

    # --- both threads -------------------------------------------------------------------------------------------------

    def _stored_frame(self, names: FrameNames) -> StartFrame:
        columns, lines = os.get_terminal_size(_OUTPUT)
        page = read_frame(names.page(columns, lines), columns, lines)
        self._shown = page.encoded() if page is not None else b""
        return page or read_frame(names.look(columns, lines), columns, lines) or StartFrame.empty(columns, lines)

    def _enter(self) -> None:
        self._set_raw()
        _write(_BEGIN)

    def _set_raw(self) -> None:
        raw = termios.tcgetattr(_INPUT)
        # The settings that Textual makes.
        raw[0] &= ~(termios.IXON | termios.IXOFF | termios.ICRNL | termios.INLCR | termios.IGNCR)
        raw[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG)
        raw[6][termios.VMIN] = 1
        termios.tcsetattr(_INPUT, termios.TCSANOW, raw)

    def _leave(self) -> None:
        try:
            termios.tcsetattr(_INPUT, termios.TCSANOW, self.attributes)
            _write(_END)
        except (OSError, termios.error):
            return  # The terminal is gone.

    def _paint(self) -> None:
        """Paint everything; the caller holds the lock."""
        if self._frame is not None:
            _write(self._frame.painted(self._typed.shown_in(self._frame.width)))

    # --- the thread ---------------------------------------------------------------------------------------------------

    def _serve(self) -> None:
        """Read until the main thread wants the terminal, or a signal or key ends the program."""
        sources = [self._wake_end, _INPUT]
        try:
            while True:
                ready = select.select(sources, [], [], _STEP)[0]
                if not ready:
                    # The time between two reads is longer on a busy machine, although the bytes follow one another.
                    with self._painting:
                        self._typed.note_silence(_STEP)
                        self._echo()
                signs = os.read(self._wake_end, 64) if self._wake_end in ready else b""
                if _INPUT in ready and not self._read():
                    sources.remove(_INPUT)
                for number in signs:
                    if number == _STOP:
                        return
                    self._take_signal(number)
        finally:
            self._running.release()

    def _read(self) -> bool:
        """Take what was typed; return False if there is nothing more to read for now."""
        try:
            data = os.read(_INPUT, _READ_SIZE)
        except BlockingIOError:
            return True
        except OSError:
            return False  # The terminal is gone, and its signal is on the way.
        with self._painting:
            self._typed.feed(data)
            self._echo()
        if self._typed.breaks >= BREAKS_TO_QUIT:
            self._quit(signal.SIGINT)
        return bool(data) and self._typed.size < LARGEST_INPUT

    def _echo(self) -> None:
        """Paint the composer if what it shows has changed; the caller holds the lock."""
        if self._frame is None or self._typed.shown == self._echoed:
            return
        self._echoed = self._typed.shown
        try:
            _write(self._frame.echoed(self._typed.shown_in(self._frame.width)))
        except OSError:
            return  # The terminal is gone, and its signal is on the way.

    def _take_signal(self, number: int) -> None:
        if number in _LETHAL:
            self._quit(number)
        try:
            if number == signal.SIGTSTP:
                self._leave()
                self._asleep = True
                # The whole process stops, but this thread may run on for a moment.
                os.kill(os.getpid(), signal.SIGSTOP)
                return
            if number == signal.SIGCONT:
                self._wake()
            if self._names is not None:
                frame = self._stored_frame(self._names)
                with self._painting:
                    self._frame = frame
                    self._paint()
        except (OSError, termios.error):
            return  # The terminal is gone, and its signal is on the way.

    def _wake(self) -> None:
        """Take the terminal again after a stop; after one by `SIGSTOP` it may still be as it was."""
        if self._asleep:
            self._asleep = False
            self._enter()
        else:
            self._set_raw()

    def _quit(self, number: int) -> None:
        """End the process as a signal does, whatever the main thread does."""
        self._leave()
        self.say_unsent()
        os._exit(128 + number)


def _write(text: str) -> None:
    data = text.encode("utf-8", "replace")
    while data:
        data = data[os.write(_OUTPUT, data) :]
