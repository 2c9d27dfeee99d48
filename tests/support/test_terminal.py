"""The emulator shows the screen of a terminal, and the pty carries typed input."""

from .screen_buffer import ScreenBuffer
from .terminal import FRAME_BEGINS, FRAME_ENDS, whole_frames


def shown(*pieces: str, columns: int = 10, rows: int = 3) -> list[str]:
    """Return the lines of the screen after a program wrote these pieces."""
    screen = ScreenBuffer(columns, rows)
    for piece in pieces:
        screen.feed(piece)
    return screen.lines


def test_a_part_of_the_screen_scrolls_in_both_directions() -> None:
    rows = "a\r\nb\r\nc\r\nd"

    assert shown(rows, "\x1b[2;3r\x1b[3;1H\n\x1b[rX", rows=4) == ["X", "c", "", "d"]
    assert shown(rows, "\x1b[2;3r\x1b[2;1H\x1bM\x1b[r", rows=4) == ["a", "", "b", "d"]


def test_the_alternate_screen_leaves_the_main_one_as_it_was() -> None:
    screen = ScreenBuffer(10, 3)
    screen.feed("$ run\r\n\x1b[?1049h\x1b[?25l\x1b[>1u\x1b[1;1Hfull screen")
    assert screen.lines[0] == "full scree"
    assert screen.left_behind == ["the alternate screen", "the keyboard protocol", "a hidden cursor"]

    screen.feed("\x1b[<u\x1b[?1049l\x1b[?25hdone")
    assert screen.lines == ["$ run", "done", ""]
    assert screen.left_behind == []


def test_an_incomplete_frame_is_not_shown() -> None:
    begins, ends = FRAME_BEGINS, FRAME_ENDS

    assert whole_frames("plain \x1b[0m") == ("plain \x1b[0m", "")
    assert whole_frames(f"a{begins}b{ends}c") == (f"a{begins}b{ends}c", "")
    assert whole_frames(f"a{begins}b{ends}{begins}c") == (f"a{begins}b{ends}", f"{begins}c")
    for cut in range(1, len(begins)):
        assert whole_frames(f"a{begins[:cut]}") == ("a", begins[:cut])
