"""Diffs as rows: one column or two, never wider than the width."""

import difflib
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from tests.support.table import table
from tui_agent.protocol.diffs import Diff
from tui_agent.ui.text.diff_rows import LONGEST_COMPARED, MAX_COMPARED, MAX_LINES, SPLIT_WIDTH, diff_rows
from tui_agent.ui.text.line import NARROWEST, Run
from tui_agent.ui.text.sanitiser import sanitise, visible
from tui_agent.ui.text.styled_lines import hard_wrapped, width_of_runs

DIFF = "\n".join(
    (
        "--- a/src/price.py",
        "+++ b/src/price.py",
        "@@ -8,4 +8,4 @@ class Price:",
        " def total(items):",
        "-    return round(sum(items), 2)",
        "+    return sum(items)",
        " ",
        " RATE = 1",
        "",
    )
)
code_lines = st.lists(st.text("ab \t日(){}=", max_size=40), max_size=8)


def plain(diff: str, width: int, *, split: bool | None = None) -> list[str]:
    return [row.plain.rstrip() for row in diff_rows(Diff(diff).files, width, split=split)]


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
        " 9 -     return round(sum(     │  9 +     return sum(items)",
        "   ↪ items), 2)                │",
        "10                             │ 10",
        "11   RATE = 1                  │ 11   RATE = 1",
    ]


def test_the_sides_split_if_there_is_room_and_a_line_was_removed() -> None:
    only_added = "@@ -0,0 +1,2 @@\n+a\n+b\n"

    assert any("│" in row for row in plain(DIFF, SPLIT_WIDTH))
    assert not any("│" in row for row in plain(DIFF, SPLIT_WIDTH - 1))
    assert not any("│" in row for row in plain(only_added, SPLIT_WIDTH))


def words(diff: str, width: int = 200) -> list[str]:
    """Return the marked words of each changed line that is not marked as a whole."""
    rows = [row.painted for row in diff_rows(Diff(diff).files, width, split=False)]
    found = [[text for text, style in row if "-word" in style] for row in rows if "+" in row[1][0] or "-" in row[1][0]]
    return ["|".join(one) for one in found]


LONG = "a " * LONGEST_COMPARED


@table(
    ("diff", "expected"),
    [
        (DIFF, ["round|(|, |2|)", ""]),
        (
            "@@ -1 +1,3 @@\n-    if quantity > BULK:\n+    # Ten or more.\n+    if quantity >= BULK:\n+    pass\n",
            ["", "", "=", ""],
        ),
        ("@@ -1,2 +1,2 @@\n-value = 1\n-other = 2\n+value = 10\n+other = 20\n", ["1", "2", "10", "20"]),
        ("@@ -1 +1 @@\n-completely other words here\n+x = {1: 2}\n", ["", ""]),
        (f"@@ -1 +1 @@\n-{LONG}b\n+{LONG}c\n", ["", ""]),
        (
            f"@@ -1,{MAX_COMPARED + 1} +1,{MAX_COMPARED + 1} @@\n"
            + "-a b\n" * (MAX_COMPARED + 1)
            + "+a c\n" * (MAX_COMPARED + 1),
            [""] * 2 * (MAX_COMPARED + 1),
        ),
    ],
)
def test_words_that_changed_stand_out(diff: str, expected: list[str]) -> None:
    assert words(diff, 2_000) == expected


@table(
    ("clean", "expected"),
    [
        (sanitise, ["a", "b\\u202e", "c\\x0bd\\x0c\\x85e\\u2028f\\x0d"]),
        (visible, ["a\\x1b[31m", "b\\u202e\\x20", "c\\x0bd\\x0c\\x85e\\u2028f\\x0d"]),
    ],
)
def test_lines_are_made_safe_and_other_line_ends_stay_inside_them(
    clean: Callable[[str], str], expected: list[str]
) -> None:
    raw = "@@ -1 +1,2 @@\n-a\x1b[31m\n+b\u202e \n+c\x0bd\x0c\x85e\u2028f\r\n"

    assert [row.plain[4:].rstrip() for row in diff_rows(Diff(raw).files, 60, clean=clean)] == expected


def test_a_huge_diff_says_how_much_is_left_out() -> None:
    rows = diff_rows(Diff(f"@@ -0,0 +1,{MAX_LINES + 9} @@\n" + "+x\n" * (MAX_LINES + 9)).files, 60)

    assert (rows[-1].plain, len(rows)) == ("… 9 more lines", MAX_LINES + 1)


def coloured(diff: str, width: int, word: str) -> list[Run]:
    return [
        run
        for row in diff_rows(Diff(diff).files, width)
        for run in row.prefixed(("    ", "")).painted
        if word in run[0]
    ]


@table("width", [60, 120])
def test_code_has_the_colours_of_its_language_under_the_tint(width: int) -> None:
    assert coloured(DIFF, width, "return") == [("return ", "code-keyword removed"), ("return ", "code-keyword added")]
    assert ("def ", "code-keyword") in coloured(DIFF, width, "def")
    assert coloured(DIFF.replace(".py", ".unknown"), width, "return")[0][1] == "removed"


def test_a_new_and_a_deleted_file_are_one_column_at_any_width() -> None:
    deleted = "--- a/x\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n"

    assert plain(deleted, SPLIT_WIDTH) == ["1 - a", "2 - b"]
    assert plain(deleted.replace("a/x", "a/x").replace("/dev/null", "b/x"), SPLIT_WIDTH)[0].endswith("│")


def test_notes_have_their_own_rows() -> None:
    assert plain("@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n", 60) == ["1 + a", "No newline at end of file"]


@given(code_lines, code_lines, st.integers(1, 90), st.booleans())
def test_no_row_is_wider_than_asked(before: list[str], after: list[str], width: int, split: bool) -> None:
    text = "\n".join(difflib.unified_diff(before, after, "a/x", "b/x", lineterm=""))

    for row in diff_rows(Diff(text).files, width, split=split and width >= 2 * NARROWEST + 20):
        assert width_of_runs(row.runs) <= max(width, NARROWEST + 3)


@table(
    "line, rows",
    [
        ("subtotal = sum(item.price for item in items)", ["subtotal = sum(item.price for ", "item in items)"]),
        ("return self.price_of_the_items_here", ["return self.price_of_the_items", "_here"]),
        ("total = self.count(self.items_of)", ["total = self.count(self.", "items_of)"]),
        ("x" * 40, ["x" * 30, "x" * 10]),
        ("a" * 25 + "  b c d e f", ["a" * 25 + "  b ", "c d e f"]),
    ],
)
def test_a_long_row_is_broken_behind_a_word_and_loses_nothing(line: str, rows: list[str]) -> None:
    assert [row.plain for row in hard_wrapped([(line, "")], 30, whole_words=True)] == rows
    assert "".join(rows) == line


def test_both_sides_are_beside_each_other_only_where_every_line_fits() -> None:
    def changed(length: int) -> str:
        return f"@@ -1 +1 @@\n-{'x' * length}\n+y\n"

    assert any("│" in row for row in plain(changed(50), SPLIT_WIDTH + 10))
    assert not any("│" in row for row in plain(changed(60), SPLIT_WIDTH + 10))
