"""Frames: the terminal shows the same as with Textual's own output, for fewer bytes."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.geometry import Region
from textual.strip import Strip

from tests.support.screen_buffer import ScreenBuffer, visible
from tui_agent.ui.app.frame_painter import FramePainter

WIDTH, HEIGHT = 12, 8
CONSOLE = Console(color_system="truecolor", force_terminal=True)
STYLES = (None, Style.parse("red"), Style.parse("bold #112233 on #445566"))
LETTERS = ("a", "b", " ", "•", "漢", "│")

Screen = list[list[tuple[int, Strip]]]


def strip(text: str, style: Style | None = None) -> Strip:
    return Strip([Segment(text, style)])


def pieces(draw: st.DrawFn, width: int) -> Strip:
    segments: list[Segment] = []
    left = width
    while left:
        letter = draw(st.sampled_from(LETTERS))
        count = min(draw(st.integers(1, 4)), left)
        text = "漢" * (count // 2) or " " if letter == "漢" else letter * count
        segments.append(Segment(text, draw(st.sampled_from(STYLES))))
        left -= Segment.get_line_length(segments[-1:])
    return Strip(segments, width)


@st.composite
def screens(draw: st.DrawFn) -> list[Screen]:
    """Contents of a screen, one after another: pieces move up or down, change, or are cut elsewhere."""
    cut = draw(st.integers(1, WIDTH - 1))
    library = [(pieces(draw, cut), pieces(draw, WIDTH - cut)) for _ in range(4)]
    first: Screen = [
        [(0, left), (cut, right)]
        for left, right in draw(st.lists(st.sampled_from(library), min_size=HEIGHT, max_size=HEIGHT))
    ]
    found = [first]
    for _ in range(draw(st.integers(1, 4))):
        shift = draw(st.integers(-3, 3))
        moved = [list(found[-1][(y + shift) % HEIGHT]) for y in range(HEIGHT)]
        for y in draw(st.sets(st.integers(0, HEIGHT - 1), max_size=3)):
            other = draw(st.integers(1, WIDTH - 1))
            moved[y] = [(0, pieces(draw, other)), (other, pieces(draw, WIDTH - other))]
        if draw(st.booleans()):
            # A column beside what moves stays.
            moved = [
                [new[0], old[1]] if new[1][0] == old[1][0] else new for new, old in zip(moved, found[-1], strict=True)
            ]
        found.append(moved)
    return found


def update_of(screen: Screen, spans: Sequence[tuple[int, int, int]]) -> ChopsUpdate:
    lines = {y for y, _, _ in spans}
    chops: list[dict[int, Any]] = [{x: one if y in lines else None for x, one in row} for y, row in enumerate(screen)]
    ends = [[*(x for x, _ in row[1:]), WIDTH] for row in screen]
    return ChopsUpdate(chops, list(spans), ends)


def cells(buffer: ScreenBuffer) -> list[Any]:
    return [buffer.lines, [[(sign, visible(sign, look)) for sign, look in row] for row in buffer._cells]]


@given(screens(), st.booleans())
def test_the_terminal_shows_the_same_as_with_every_row_written(contents: list[Screen], begins_known: bool) -> None:
    plain, painted, painter = ScreenBuffer(WIDTH, HEIGHT), ScreenBuffer(WIDTH, HEIGHT), FramePainter()
    whole = LayoutUpdate([[one for _, one in row] for row in contents[0]], Region(0, 0, WIDTH, HEIGHT))
    plain.feed(whole.render_segments(CONSOLE))
    painted.feed(painter.frame(whole).render_segments(CONSOLE) if begins_known else whole.render_segments(CONSOLE))
    for before, after in pairwise(contents):
        spans = [(y, 0, WIDTH) for y in range(HEIGHT) if before[y] != after[y]]
        if spans:
            update = update_of(after, spans)
            plain.feed(update.render_segments(CONSOLE))
            painted.feed(painter.frame(update).render_segments(CONSOLE))

        assert cells(painted) == cells(plain)


def test_a_new_row_below_scrolls_the_others_and_writes_only_itself() -> None:
    painter = FramePainter()
    rows = [strip(f"line {number:7}") for number in range(HEIGHT + 2)]
    painter.paint(LayoutUpdate([[one] for one in rows[:HEIGHT]], Region(0, 0, WIDTH, HEIGHT)), CONSOLE)
    moved: Screen = [[(0, one)] for one in rows[2:]]

    written = painter.paint(update_of(moved, [(y, 0, WIDTH) for y in range(HEIGHT)]), CONSOLE)

    assert written.count("line") == 2
    assert "line       8" in written
    assert "line       9" in written


def test_equal_rows_are_written_again_only_after_forgetting() -> None:
    painter = FramePainter()
    screen: Screen = [[(0, strip("same" * 3, STYLES[1]))] for _ in range(HEIGHT)]
    painter.paint(LayoutUpdate([[one for _, one in row] for row in screen], Region(0, 0, WIDTH, HEIGHT)), CONSOLE)
    again: Screen = [[(0, strip("same" * 3, STYLES[1]))] for _ in range(HEIGHT)]

    assert painter.paint(update_of(again, [(y, 0, WIDTH) for y in range(HEIGHT)]), CONSOLE) == ""
    painter.forget()
    assert painter.paint(update_of(again, [(2, 0, WIDTH)]), CONSOLE).count("same") == 3


def test_text_of_uncertain_width_makes_the_rest_of_its_row_be_written() -> None:
    painter = FramePainter()
    beside = strip("beside")
    rows: Screen = [[(0, strip("abcdef")), (6, beside)] for _ in range(HEIGHT)]
    painter.paint(LayoutUpdate([[one for _, one in row] for row in rows], Region(0, 0, WIDTH, HEIGHT)), CONSOLE)
    rows[1] = [(0, strip("ab⚠️ f")), (6, beside)]

    written = painter.paint(update_of(rows, [(1, 0, WIDTH)]), CONSOLE)

    # It begins at its own column, wherever the terminal's cursor is.
    assert "\x1b[2;7Hbeside" in written
