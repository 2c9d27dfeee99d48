"""Diffs as rows: one column or two, never wider than the width."""

import difflib

from hypothesis import given
from hypothesis import strategies as st

from tests.ui.text.test_diff_parser import DIFF
from tui_agent.ui.text.diff_layout import SPLIT_WIDTH, layout_diff
from tui_agent.ui.text.diff_parser import read_diff
from tui_agent.ui.text.line import NARROWEST
from tui_agent.ui.text.styled_lines import width_of_runs

code_lines = st.lists(st.text("ab \t日(){}=", max_size=40), max_size=8)


def plain(diff: str, width: int, *, split: bool | None = None) -> list[str]:
    return [row.plain.rstrip() for row in layout_diff(read_diff(diff), width, split=split)]


def test_one_column_has_numbers_and_signs() -> None:
    assert plain(DIFF, 40) == [
        " ⋯ class Price:",
        " 8   def total(items):",
        " 9 -     return round(sum(items), 2)",
        " 9 +     return sum(items)",
        "10",
        "11   RATE = 1",
    ]


def test_numbers_are_aligned_where_they_get_another_digit() -> None:
    nine_to_ten = "@@ -8,2 +8,3 @@\n a\n-b\n+c\n+d\n"
    to_a_hundred = "@@ -98,2 +98,3 @@\n a\n b\n+c\n"

    assert plain(nine_to_ten, 40)[-4:] == [" 8   a", " 9 - b", " 9 + c", "10 + d"]
    assert plain(to_a_hundred, 40)[-3:] == [" 98   a", " 99   b", "100 + c"]
    assert [row.split("│")[1].strip() for row in plain(nine_to_ten, 40, split=True)[-2:]] == ["9 + c", "10 + d"]
    assert len({row.index("+") for row in plain(nine_to_ten, 40, split=True)[-2:]}) == 1


def test_two_columns_are_side_by_side() -> None:
    assert plain(DIFF, 64, split=True) == [
        " ⋯ class Price:",
        " 8   def total(items):         │  8   def total(items):",
        " 9 -     return round(sum(item │  9 +     return sum(items)",
        "   ↪ s), 2)                    │",
        "10                             │ 10",
        "11   RATE = 1                  │ 11   RATE = 1",
    ]


def test_the_sides_split_if_there_is_room_and_a_line_was_removed() -> None:
    only_added = "@@ -0,0 +1,2 @@\n+a\n+b\n"

    assert any("│" in row for row in plain(DIFF, SPLIT_WIDTH))
    assert not any("│" in row for row in plain(DIFF, SPLIT_WIDTH - 1))
    assert not any("│" in row for row in plain(only_added, SPLIT_WIDTH))


def test_unequal_sides_are_filled() -> None:
    diff = "@@ -1,3 +1,1 @@\n-a\n-b\n-c\n+d\n"

    assert [row.split("│")[0].strip() for row in plain(diff, 40, split=True)] == ["1 - a", "2 - b", "3 - c"]
    assert [row.partition("│")[2].strip() for row in plain(diff, 40, split=True)] == ["1 + d", "", ""]


def test_long_lines_hang_on_their_number() -> None:
    assert plain("@@ -0,0 +1 @@\n+abcdefghijklmnop\n", 14) == ["1 + abcdefghij", "  ↪ klmnop"]


def test_words_that_changed_stand_out() -> None:
    runs = [run for row in layout_diff(read_diff(DIFF), 60) for run in row.runs]

    assert ("round(", "removed removed-word") in runs


def test_files_are_named_where_there_are_several() -> None:
    assert "src/price.py" not in plain(DIFF, 60)
    assert "src/cart.py" in plain(DIFF + DIFF.replace("price", "cart"), 60)


def test_notes_have_their_own_rows() -> None:
    assert plain("@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n", 60) == ["1 + a", "No newline at end of file"]


@given(code_lines, code_lines, st.integers(1, 90), st.booleans())
def test_no_row_is_wider_than_asked(before: list[str], after: list[str], width: int, split: bool) -> None:
    text = "\n".join(difflib.unified_diff(before, after, "a/x", "b/x", lineterm=""))

    for row in layout_diff(read_diff(text), width, split=split and width >= 2 * NARROWEST + 20):
        assert width_of_runs(row.runs) <= max(width, NARROWEST + 3)
