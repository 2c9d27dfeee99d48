"""Rows of text: never wider than the width, nothing lost, and copied as before wrapping."""

from hypothesis import given
from hypothesis import strategies as st

from tests.support.table import table
from tui_agent.ui.text.line import NARROWEST
from tui_agent.ui.text.styled_lines import (
    clipped,
    copied_text,
    hard_wrapped,
    prefixed_lines,
    text_of_runs,
    width_of_runs,
    wrapped,
)

run_lists = st.lists(
    st.tuples(st.text("ab  日é\n/-", max_size=30), st.sampled_from(["", "strong", "code"])), max_size=5
)


@given(run_lists, st.integers(0, 40))
def test_no_row_is_wider_than_asked_and_rows_are_copied_as_they_were(runs: list[tuple[str, str]], width: int) -> None:
    by_words, anywhere = wrapped(runs, width), hard_wrapped(runs, width)

    assert all(width_of_runs(row.runs) <= max(width, NARROWEST) for row in (*by_words, *anywhere))
    assert copied_text([(row, 0, None) for row in anywhere]) == text_of_runs(runs)
    assert copied_text([(row, 0, None) for row in by_words]).split() == text_of_runs(runs).split()


def test_words_wider_than_a_row_are_broken_inside() -> None:
    rows = wrapped([("a abcdefghijklmnop b", "")], 8)

    assert [row.plain for row in rows] == ["a", "abcdefgh", "ijklmnop", "b"]
    assert [row.joint for row in rows] == [None, " ", "", " "]


def test_wide_characters_are_never_cut_in_half() -> None:
    assert [row.plain for row in hard_wrapped([("日本語日本語日本語", "")], 9)] == ["日本語日", "本語日本", "語"]


@table(("width", "text"), [(9, "abcdefghi"), (8, "abcdefg…"), (1, "…"), (0, "")])
def test_clipped_runs_say_that_something_is_missing(width: int, text: str) -> None:
    assert text_of_runs(clipped((("abcd", ""), ("efghi", "code")), width)) == text


def test_margins_are_not_copied_but_a_marker_is() -> None:
    rows = prefixed_lines(wrapped([("one two three four", "")], 10), (("• ", "marker"),), (("  ", ""),))

    assert [row.plain for row in rows] == ["• one two", "  three four"]
    assert copied_text([(row, 0, None) for row in rows]) == "• one two three four"
