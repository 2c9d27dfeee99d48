"""Output for the model: what a terminal shows in the end, whatever pieces it arrives in, in bounded memory."""

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from tests.support.screen_buffer import ScreenBuffer
from tests.support.table import table
from tui_agent.tools.processes.terminal_lines import REACH, TerminalLines

BITS = st.sampled_from(
    [
        "\r",
        "\n",
        "\b",
        "\r\n",
        "\x1b[K",
        "\x1b[1K",
        "\x1b[2K",
        "\x1b[J",
        "\x1b[A",
        "\x1b[2A",
        "\x1b[3C",
        "\x1b[2D",
        "\x1b[5G",
        *("a", "word ", "100%", "\xe9\xe8", "\x1b[31m", "\x1b[0m", "\x1b[?25l", "\x1b]0;title\x07"),
    ]
)

MORE = st.sampled_from(["\n" * (REACH + 5), "\x1b7", "\x1b8", "\x1b[2X", "\x1b[2P", "\x1b[2@", "\x1b[3`"])
"""Sequences that the screen of the tests does not know."""


def settled(pieces: list[bytes]) -> bytes:
    lines = TerminalLines()
    return b"".join(map(lines.feed, pieces)) + lines.close()


def plain(data: bytes) -> list[str]:
    screen = ScreenBuffer(300, REACH)
    screen.feed(data.decode().replace("\n", "\r\n"))
    return screen.text.rstrip("\n").split("\n")


@given(st.lists(BITS | st.text("xyz ", max_size=6), max_size=40))
def test_the_last_state_is_that_of_a_terminal(bits: list[str]) -> None:
    data = "".join(bits).encode()

    assert plain(settled([data])) == plain(data)


@given(st.lists(BITS | MORE, max_size=25).map("".join), st.integers(1, 7))
def test_the_pieces_of_an_output_make_no_difference(text: str, size: int) -> None:
    data = text.encode()

    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    assert plain(settled(pieces)) == plain(settled([data]))


OUTPUTS = {
    " 10%\r 50%\r100%\ndone\n": "100%\ndone\n",
    "a\r\nb\r\r\nc\r": "a\nb\nc",
    "longer\rab\n": "abnger\n",
    "abc\b\b\bx\n": "xbc\n",
    "\r   \rdone  \n": "done\n",
    "\ttabs stay\n  so do blanks  \n": "\ttabs stay\n  so do blanks  \n",
    "one\ntwo\n\x1b[2A\r\x1b[2Kfirst\n\x1b[2Ksecond\n": "first\nsecond\n",
    "- a\n- b\n\x1b[2A\x1b[Jdone": "done",
    "f/a\0f/b\0": "f/a\nf/b\n",
    '\x1b[24;1H"a.txt" [New]\x1b[2;1H~\x1b[3;1H~': '"a.txt" [New]\n~\n~',
    "error\n\x1b[2J\x1b[Hagain\n": "error\nagain\n",
    "\u6f22\u5b57\rab\n": "ab\u5b57\n",
    "\x1b[31mred\x1b[0m\n": "\x1b[31mred\x1b[0m\n",
    "one\ntwo\x1bMx\n": "onex\ntwo",
    "\x1b7 10%\x1b8\x1b7 50%\x1b8\x1b7100%\x1b8\ndone\n": "100%\ndone\n",
    "\x1b[s 10%\x1b[u100%\ndone\n": "100%\ndone\n",
    "abcdef\r\x1b[2Xx\n": "x cdef\n",
    "abcdef\r\x1b[2Px\n": "xdef\n",
    "abc\r\x1b[2@x\x1b[1`y\n": "y abc\n",
    " 10%\r\x1b[32m 50%\r100%\x1b[0m\n": "\x1b[32m100%\n\x1b[0m",
}


def test_frames_become_their_last_state() -> None:
    found = {text: settled([text.encode()]).decode() for text in OUTPUTS}

    assert found == OUTPUTS


@table(
    "piece",
    [
        b"x",
        b"\rframe 12%",
        b"\r\x1b[K\xe2\x96\x88",
        b"\b",
        b"\x1b[1C",
        b"\x1b[31m",
        b"\x1b]0;",
        b"\x1b[999@",
        b"\x1b7\n",
    ],
)
def test_an_endless_row_takes_little_memory(piece: bytes) -> None:
    lines = TerminalLines()
    tracemalloc.start()
    for _ in range(20):
        lines.feed(piece * 4_000)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert most < 20_000_000
    assert len(lines.pending()) < 2_000_000
