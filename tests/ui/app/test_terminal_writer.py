"""The writer of the terminal, on a real pty."""

import os
import threading
import tty
from collections.abc import Generator
from contextlib import contextmanager, suppress

from tui_agent.ui.app.terminal_driver import FRAME_BEGINS, FRAME_ENDS, TerminalWriter


@contextmanager
def terminal() -> Generator[tuple[int, TerminalWriter]]:
    """Yield the end that a terminal emulator reads, and a writer to the other one."""
    master, slave = os.openpty()
    tty.setraw(slave)
    with os.fdopen(slave, "w", encoding="utf-8") as file:
        yield master, TerminalWriter(file)
    os.close(master)


def read(master: int, size: int) -> str:
    data = b""
    while len(data) < size:
        data += os.read(master, 65536)
    return data.decode()


def test_a_frame_is_written_at_once_and_whole() -> None:
    with terminal() as (master, writer):
        threads = threading.active_count()
        for text in (FRAME_BEGINS, "one ", "two", FRAME_ENDS):
            writer.write(text)
        assert os.read(master, 100).decode() == f"{FRAME_BEGINS}one two{FRAME_ENDS}"
        assert threading.active_count() == threads
        writer.stop()


def test_a_terminal_that_does_not_read_gets_everything_later_in_order() -> None:
    # More than the kernel keeps for a terminal.
    texts = [f"{number}: {'é' * 50_000}\n" for number in range(8)]
    with terminal() as (master, writer):
        for text in texts:
            writer.write(text)
        other = threading.Thread(target=writer.write, args=("from the reading thread",))
        other.start()
        other.join()
        everything = "".join((*texts, "from the reading thread"))
        assert read(master, len(everything.encode())) == everything
        writer.write("and at once again")
        assert read(master, 17) == "and at once again"
        writer.stop()
        writer.write("too late")
        os.set_blocking(master, False)
        with suppress(BlockingIOError):
            assert not os.read(master, 100)


def test_a_terminal_that_is_gone_ends_nothing() -> None:
    with terminal() as (master, writer):
        os.dup2(os.open(os.devnull, os.O_RDWR), master)
        for _ in range(50):
            writer.write("x" * 10_000)
        writer.stop()
