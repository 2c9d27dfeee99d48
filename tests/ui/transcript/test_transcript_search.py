"""Search over the whole conversation, also in closed parts."""

import pytest

from tests.ui.row_kit import rows_of
from tui_agent.ui.transcript import transcript_search
from tui_agent.ui.transcript.markdown_part import MarkdownPart, ThinkingPart
from tui_agent.ui.transcript.transcript_layout import Transcript
from tui_agent.ui.transcript.transcript_parts import TextPart
from tui_agent.ui.transcript.transcript_search import LONGEST_LAID_OUT, TranscriptSearch


def filled() -> Transcript:
    transcript = Transcript()
    for part in (
        TextPart("nothing here"),
        TextPart("a Needle and\nanother needle"),
        MarkdownPart("word " * 40 + "**needle** at the end", gap=True),
        ThinkingPart("first\n\nsecret needle"),
        TextPart("the needle-tool"),
    ):
        transcript.add(part)
    rows_of(transcript, 40)
    return transcript


def test_a_match_that_is_not_shown_leads_to_its_part() -> None:
    transcript = Transcript()
    transcript.add(MarkdownPart("see **bo**ld"))
    rows_of(transcript, 40)
    search = TranscriptSearch(transcript, "**bo**ld")

    search.step()

    assert search.row() == 0


def test_a_part_that_grew_is_counted_again() -> None:
    transcript = filled()
    search = TranscriptSearch(transcript, "needle")
    [text] = [part for part in transcript.parts if isinstance(part, MarkdownPart)]
    text.feed(" needle")

    found = [search.step() for _ in range(4)]

    assert found[2:] == [text, text]


def test_the_row_of_a_match_in_a_very_long_part_is_found_nearby() -> None:
    transcript = Transcript()
    transcript.set_width(40)
    lines = [f"line {number}" for number in range(LONGEST_LAID_OUT // 5)]
    transcript.add(part := MarkdownPart("\n\n".join(lines)))
    search = TranscriptSearch(transcript, "line 15000")

    assert search.step() is part
    row = search.row()

    assert part.line(40, row).plain == "line 15000"
    assert part.cached_rows < 5_000


def test_the_place_of_a_match_is_known_once_everything_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript_search, "SLICE", 1)
    transcript = Transcript()
    transcript.set_width(60)
    for number in range(4):
        transcript.add(TextPart("a needle, a needle" if number % 2 else "nothing"))
    search = TranscriptSearch(transcript, "needle")
    assert search.step(backwards=True) is transcript.parts[3]
    assert (search.position, search.count, search.is_counted) == (0, 2, False)

    while search.count_on():
        pass

    assert (search.position, search.count, search.is_counted) == (4, 4, True)
    search.step(backwards=True)
    search.step(backwards=True)
    assert search.position == 2
    search.step()
    assert search.position == 3
