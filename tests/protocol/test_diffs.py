"""Diffs as data: what a tool makes is what is read from its text, and no line of a text from outside is lost."""

from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.table import table
from tui_agent.protocol.activity_events import FileChanged
from tui_agent.protocol.diffs import Diff, DiffLine, FileDiff, hunks_between, split_lines
from tui_agent.protocol.tool import Preview
from tui_agent.protocol.visible_text import SURROGATES_NOTE
from tui_agent.tools.unified_diff import diff_of

LINES = st.lists(st.sampled_from(["a", "b b", "-- c", "++ d", "@@ -1 +1 @@", "\\ x", "# n", "", "\udc80", "\\udc80\r"]))
TEXTS = st.builds(lambda lines, end: "\n".join(lines) + end, LINES, st.sampled_from(["", "\n"]))


@given(TEXTS, TEXTS, TEXTS, TEXTS)
@example("a\r\n", "b\r\n", "", "\udc80 \\udc80\n")
def test_data_and_text_of_a_diff_say_the_same(old: str, new: str, other_old: str, other_new: str) -> None:
    diffs = [diff_of(old, new, "a/x y", "b/x y"), diff_of(other_old, other_new, "/dev/null", "b/z")]
    files = [file for diff in diffs for file in diff.files]

    assert list(Diff("".join(diffs)).files) == files
    assert list(Diff.joined(diffs).files) == list(Diff(Diff.joined(diffs)).files) == files
    for diff in diffs:
        lines = list(Diff(str(diff)).files[0].lines) if diff else []
        assert (diff.added, diff.removed) == tuple(
            sum(one.kind == kind for one in lines) for kind in ("added", "removed")
        )


def test_an_event_and_a_preview_keep_the_data_and_are_text_in_a_journal() -> None:
    diff = diff_of("a\n", "b\n", "a/x", "b/x")
    event, preview = FileChanged(path="x", change="modified", diff=diff), Preview(kind="diff", text=diff)

    assert event.diff is diff
    assert preview.diff is diff
    assert event.model_dump(mode="json")["diff"] == preview.model_dump(mode="json")["text"] == str(diff)
    read = FileChanged.model_validate_json(event.model_dump_json())
    assert read == event
    assert read.diff.files == diff.files


def shape(diff: Diff) -> list[object]:
    """Return paths, notes, places and lines in order."""
    found: list[object] = []
    for file in diff.files:
        found += [file.path, *file.notes]
        for hunk in file.hunks:
            found += [f"{hunk.header}", *((line.kind, line.text) for line in hunk.lines)]
        found += [file.left_out] if file.left_out else []
    return found


@table(
    ("text", "expected"),
    [
        ("", []),
        ("just words\n\nmore", ["", "just words", "more"]),
        (
            "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@ class Price:\n--- a\n-b\n+++ c\n+d\n",
            [
                "x",
                "@@ -1,2 +1,2 @@ class Price:",
                *(("removed", "-- a"), ("removed", "b"), ("added", "++ c"), ("added", "d")),
            ],
        ),
        ("@@ -0,0 +1 @@\n+a\n… 12 more lines\n", ["", "@@ -0,0 +1 @@", ("added", "a"), 12]),
        (
            "--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n a\n… 8 more lines\n--- a/y\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n",
            ["x", "@@ -1,9 +1,9 @@", ("same", "a"), 8, "y", "@@ -1 +0,0 @@", ("removed", "b")],
        ),
        (
            "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\nBinary files differ\n",
            [
                *("x", "diff --git a/x b/x", "index 1..2 100644", "@@ -1 +1 @@", ("removed", "a"), ("added", "b")),
                *("", "Binary files differ"),
            ],
        ),
        (
            "--- a/x\t2026-01-01\n+++ b/x\t\n@@ -1 +1 @@\n-a\n+b\n",
            ["x", "@@ -1 +1 @@", ("removed", "a"), ("added", "b")],
        ),
        ("--- a/x\n+++ b/x\n… It is too large to be compared.\n", ["x", "… It is too large to be compared."]),
    ],
)
def test_text_from_outside_is_read_whole(text: str, expected: list[object]) -> None:
    assert shape(Diff(text)) == expected


def test_only_what_is_in_front_of_a_file_makes_escapes_of_it_halves() -> None:
    halves, plain = diff_of("", "\udc80\n", "a/x", "b/x"), diff_of("", "\\udc80\n", "a/y", "b/y")
    forged = diff_of("", f"{SURROGATES_NOTE}\n\\udc80\n", "a/z", "b/z")

    added = [line.text for file in Diff(halves + plain + forged).files for line in file.lines]
    assert added == ["\udc80", "\\udc80", SURROGATES_NOTE, "\\udc80"]


def test_lines_know_their_numbers_and_their_ends() -> None:
    (hunk,) = hunks_between(split_lines("a\nb"), split_lines("a\nB\nc"))

    assert hunk.lines == (
        DiffLine("same", "a", 1, 1),
        DiffLine("removed", "b", 2, None, ends=False),
        DiffLine("added", "B", None, 2),
        DiffLine("added", "c", None, 3, ends=False),
    )
    assert (hunk.old, hunk.new) == (("a\n", "b"), ("a\n", "B\n", "c"))
    assert FileDiff("/dev/null", "b/src/x.py").is_new
    assert FileDiff("a/src/x.py", "/dev/null").path == "src/x.py"
