"""Stacked parts: laid out only when visible, found by row, and kept within a budget."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ui.row_kit import rows_of
from tui_agent.ui.text.line import Line
from tui_agent.ui.text.styled_lines import plain_line
from tui_agent.ui.transcript.markdown_part import MarkdownPart, ThinkingPart
from tui_agent.ui.transcript.transcript_layout import MAX_CACHED_ROWS, Part, Transcript
from tui_agent.ui.transcript.transcript_parts import TextPart


class CountedPart(Part):
    """A part that counts how often its rows are built."""

    def __init__(self, name: str, rows: int, estimated: int | None = None) -> None:
        super().__init__()
        self.name, self.count, self.made = name, rows, 0
        self.estimated = rows if estimated is None else estimated

    def layout(self, width: int) -> list[Line]:
        self.made += 1
        return [plain_line(f"{self.name}{row}") for row in range(self.count)]

    def estimate(self, width: int) -> int:
        return self.estimated


def filled(*parts: Part, width: int = 20) -> Transcript:
    transcript = Transcript()
    transcript.set_width(width)
    for part in parts:
        transcript.add(part)
    return transcript


def test_rows_of_the_least_recently_used_parts_are_dropped() -> None:
    parts = [CountedPart(f"p{number}.", 100) for number in range(100)]
    transcript = filled(*parts)

    for row in range(0, 10_000, 50):
        transcript.settle(row, row + 50)

    assert sum(part.cached_rows for part in parts) <= MAX_CACHED_ROWS + 200
    assert transcript.total == 10_000
    assert transcript.line(5).plain == "p0.5"


@pytest.mark.parametrize(("estimated", "dirty"), [(3, None), (2, 5)])
def test_a_height_that_differs_from_its_estimate_marks_the_rows_that_it_moves(
    estimated: int, dirty: int | None
) -> None:
    transcript = filled(CountedPart("a", 5), CountedPart("b", 3, estimated), CountedPart("c", 9))
    transcript.take_dirty()

    transcript.settle(6, 9)

    assert transcript.take_dirty() == dirty


@given(st.lists(st.text("ab \n", max_size=40), max_size=8), st.integers(10, 30), st.integers(10, 30))
def test_another_width_shows_the_same_words(texts: list[str], one: int, other: int) -> None:
    transcript = filled(*(TextPart(text) for text in texts))

    words = ["".join(row.split()) for row in (*rows_of(transcript, one), "|", *rows_of(transcript, other))]
    before, _, after = "".join(words).partition("|")
    assert before == after == "".join("".join(texts).split())


# --- Markdown -------------------------------------------------------------------------------------------------------


ENDLESS = "\n\n".join(f"line **{number}**" for number in range(3_000))


@pytest.mark.slow
def test_a_reader_in_a_text_that_is_still_read_stays_where_they_are() -> None:
    part = MarkdownPart("\n\n".join(["word **bold** " * 7] * 2_000))
    transcript = filled(part, width=30)
    transcript.settle(0, 10)
    top = transcript.total - 40
    transcript.settle(top, top + 10)
    below = transcript.total - top

    while transcript.has_unread_at(top, top + 10) and transcript.line(top).plain.count("**"):
        top += transcript.read_on(top, top + 10)

        assert transcript.total - top == below or not transcript.line(top).plain.count("**")


@pytest.mark.slow
def test_a_long_text_is_not_read_again_after_its_rows_were_let_go() -> None:
    part = MarkdownPart(ENDLESS)
    transcript = filled(part, width=40)
    transcript.settle(0, 10)
    while part.waits:
        transcript.read_on(0, transcript.total)
    height = part.height(40)

    part.forget()

    assert part.cached_rows == 0
    assert not part.waits
    assert part.height(40) == height
    assert rows_of(transcript, 40)[-1] == "line 2999"


# --- thinking -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_opened_thinking_is_laid_out_only_where_it_is_looked_at() -> None:
    part = ThinkingPart(ENDLESS)
    transcript = filled(part, width=40)
    part.toggle()
    transcript.refresh(part)

    transcript.settle(0, 20)

    assert part.cached_rows < 60
    assert [transcript.line(row).plain.rstrip() for row in range(4)] == ["▾ thinking", "▏ line 0", "▏", "▏ line 1"]
    while transcript.has_unread_at(0, transcript.total):
        transcript.read_on(0, transcript.total)
    assert transcript.total == 6_000
    assert rows_of(transcript, 40)[-1] == "▏ line 2999"

    part.forget()
    part.toggle()
    transcript.refresh(part)
    assert len(rows_of(transcript, 40)) == 1
