"""Parsed diffs: numbers, signs, changes inside a line, and lines that are not part of a diff."""

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.protocol.visible_text import SURROGATES_NOTE
from tui_agent.tools.unified_diff import diff_of
from tui_agent.ui.text.diff_parser import LONGEST_COMPARED, MAX_COMPARED, MAX_LINES, DiffLine, diff_counts, read_diff
from tui_agent.ui.text.sanitiser import sanitise, visible

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


def test_lines_have_numbers_and_kinds() -> None:
    assert [(line.kind, line.old, line.new) for line in read_diff(DIFF)] == [
        ("file", None, None),
        ("hunk", 8, 8),
        ("same", 8, 8),
        ("removed", 9, None),
        ("added", None, 9),
        ("same", 10, 10),
        ("same", 11, 11),
    ]
    assert [line.text for line in read_diff(DIFF)][:2] == ["src/price.py", "class Price:"]


def test_changes_inside_a_line_are_found() -> None:
    _, _, _, removed, added, *_ = read_diff(DIFF)

    assert [removed.text[start:end] for start, end in removed.changes] == ["round(", ", 2)"]
    assert added.changes == ()


def test_a_line_is_compared_with_the_one_that_is_like_it() -> None:
    new = ("+    # Ten or more includes ten.", "+    if quantity >= BULK:", "+    pass")
    text = "\n".join(("@@ -1 +1,3 @@", "-    if quantity > BULK:", *new))

    removed, comment, condition, last = read_diff(text)[1:]

    assert removed.changes == ()
    assert [condition.text[start:end] for start, end in condition.changes] == ["="]
    assert comment.changes == last.changes == ()


def test_each_line_has_one_counterpart_at_most_and_in_order() -> None:
    text = "@@ -1,2 +1,2 @@\n-value = 1\n-other = 2\n+value = 10\n+other = 20\n"

    changed = [[line.text[start:end] for start, end in line.changes] for line in read_diff(text)[1:]]

    assert changed == [["1"], ["2"], ["10"], ["20"]]


def test_lines_that_look_like_headers_count_inside_a_hunk() -> None:
    lines = read_diff("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- a\n-b\n+++ c\n+d\n")

    assert [(line.kind, line.text) for line in lines[2:]] == [
        ("removed", "-- a"),
        ("removed", "b"),
        ("added", "++ c"),
        ("added", "d"),
    ]


def test_notes_are_kept() -> None:
    lines = read_diff("@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n… 12 more lines\n")

    assert [(line.kind, line.text) for line in lines[1:]] == [
        ("added", "a"),
        ("note", "No newline at end of file"),
        ("note", "… 12 more lines"),
    ]


def test_text_that_is_not_a_diff_is_shown() -> None:
    assert read_diff("just words\n\nmore") == [DiffLine("note", "just words"), DiffLine("note", "more")]
    assert read_diff("") == []


def test_lines_are_made_safe() -> None:
    raw = "@@ -1 +1 @@\n-a\x1b[31m\n+b\u202e \n"

    assert [line.text for line in read_diff(raw)[1:]] == ["a", "b\\u202e "]
    assert [line.text for line in read_diff(raw, visible)[1:]] == ["a\\x1b[31m", "b\\u202e\\x20"]


def test_other_line_ends_are_visible_inside_a_line() -> None:
    raw = "@@ -1 +1 @@\n-a\rb\n+a\x0bb\x0cc\x85d\u2028e\r\n"

    for clean in (sanitise, visible):
        assert [line.text for line in read_diff(raw, clean)[1:]] == ["a\\x0db", "a\\x0bb\\x0cc\\x85d\\u2028e\\x0d"]


def test_text_before_a_file_follows_its_name() -> None:
    ends, halves = diff_of("a\r\n", "b\r\n", "a/x", "b/x").text, diff_of("", "\udc80 \\udc80\n", "a/y", "b/y").text

    assert [(line.kind, line.text) for line in read_diff(ends + halves, visible)] == [
        ("file", "x"),
        ("note", "Lines end in CR LF"),
        ("hunk", ""),
        ("removed", "a"),
        ("added", "b"),
        ("file", "y"),
        ("hunk", ""),
        ("added", "\\udc80 \\\\udc80"),
    ]


def test_only_what_is_in_front_of_a_file_makes_escapes_of_it_halves() -> None:
    halves, plain = diff_of("", "\udc80\n", "a/x", "b/x").text, diff_of("", "\\udc80\n", "a/y", "b/y").text
    forged = diff_of("", f"{SURROGATES_NOTE}\n\\udc80\n", "a/z", "b/z").text

    added = [line.text for line in read_diff(halves + plain + forged, visible) if line.kind == "added"]
    assert added == ["\\udc80", "\\\\udc80", visible(SURROGATES_NOTE), "\\\\udc80"]


def test_several_files_are_told_apart() -> None:
    assert [line.text for line in read_diff(DIFF + DIFF.replace("price", "cart")) if line.kind == "file"] == [
        "src/price.py",
        "src/cart.py",
    ]


def test_very_different_and_very_long_lines_count_as_a_whole() -> None:
    apart = read_diff("@@ -1 +1 @@\n-completely other words here\n+x = {1: 2}\n")
    long = "a " * LONGEST_COMPARED
    endless = read_diff(f"@@ -1 +1 @@\n-{long}b\n+{long}c\n")

    assert all(line.changes == () for line in apart + endless)


def test_long_runs_are_not_compared_line_by_line() -> None:
    count = MAX_COMPARED + 1
    text = f"@@ -1,{count} +1,{count} @@\n" + "-a b\n" * count + "+a c\n" * count

    assert all(line.changes == () for line in read_diff(text))


def test_a_huge_diff_says_how_much_is_left_out() -> None:
    lines = read_diff(f"@@ -0,0 +1,{MAX_LINES + 9} @@\n" + "+x\n" * (MAX_LINES + 9))

    assert lines[-1] == DiffLine("note", "… 10 more lines")
    assert len(lines) == MAX_LINES + 1


@given(st.lists(st.sampled_from(["a", "b b", "-- c", "++ d", ""])), st.lists(st.sampled_from(["a", "b c", "-- c", ""])))
def test_both_sides_can_be_read_back(before: list[str], after: list[str]) -> None:
    text = "\n".join(difflib.unified_diff(before, after, "a/x", "b/x", n=99, lineterm=""))

    lines = read_diff(text)

    if before != after:
        assert [line.text for line in lines if line.old and line.kind != "hunk"] == before
        assert [line.text for line in lines if line.new and line.kind != "hunk"] == after
    assert diff_counts(lines) == (
        sum(line.kind == "added" for line in lines),
        sum(line.kind == "removed" for line in lines),
    )


@pytest.mark.parametrize("kind", ["removed", "added"])
def test_spans_are_inside_their_line(kind: str) -> None:
    for line in read_diff(DIFF):
        assert all(0 <= start < end <= len(line.text) for start, end in line.changes)
