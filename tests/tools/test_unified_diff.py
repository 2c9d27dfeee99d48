"""Differences: the patch program agrees with them."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tui_agent.tools import unified_diff
from tui_agent.tools.unified_diff import Diff, diff_of, replaced_lines

LINES = st.lists(st.sampled_from(["a", "b", "c", "", "- x", "+ y", "\\"]), max_size=30)
TEXTS = st.builds(lambda lines, end: "\n".join(lines) + end, LINES, st.sampled_from(["", "\n"]))


def test_shows_lines_with_their_surroundings() -> None:
    old = "".join(f"{number}\n" for number in range(1, 21))
    diff = diff_of(old, old.replace("10\n", "ten\n"), "a/f", "b/f")

    assert diff.text == "--- a/f\n+++ b/f\n@@ -7,7 +7,7 @@\n 7\n 8\n 9\n-10\n+ten\n 11\n 12\n 13\n"
    assert diff.counts == "+1 −1 lines"


def test_a_new_file_is_all_added() -> None:
    diff = diff_of("", "a\nb", "/dev/null", "b/f")

    assert diff.text == "--- /dev/null\n+++ b/f\n@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n"
    assert (diff.added, diff.removed) == (2, 0)


def test_line_endings_are_no_difference() -> None:
    assert diff_of("a\r\nb\r\n", "a\nb\n", "a", "b") == Diff("")


def test_only_line_feeds_end_lines() -> None:
    diff = diff_of("a\x0cb\u2028c\n", "a\x0cb\u2028d\n", "a", "b")

    assert (diff.added, diff.removed) == (1, 1)


def test_a_long_difference_is_cut_after_a_line() -> None:
    diff = diff_of("", "line\n" * 100, "a", "b").shortened(50)

    assert diff.text.endswith("+line\n… 97 more lines\n")
    assert len(diff.text) < 80
    assert diff.shortened(1000) is diff


@pytest.mark.parametrize("most_compared", [6_000, 0])
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(old=TEXTS, new=TEXTS)
def test_patch_makes_the_new_text_of_the_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_compared: int, old: str, new: str
) -> None:
    monkeypatch.setattr(unified_diff, "_MOST_COMPARED", most_compared)
    (tmp_path / "f").write_text(old, "utf-8", newline="")
    diff = diff_of(old, new, "a/f", "b/f")

    if diff.text:
        command = ["git", "apply", "-p1", "--unidiff-zero", "-"]
        subprocess.run(command, input=diff.text.encode(), cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "f").read_text("utf-8") == new


@pytest.mark.parametrize(
    ("old", "new", "counts"),
    [
        ("", "", (0, 0)),
        ("x\ny", "", (2, 0)),
        ("", "x\n", (0, 1)),
        ("a\nb\nc", "a\nB\nb2\nc", (1, 2)),
        ("a\na", "a", (1, 0)),
        ("same", "same", (0, 0)),
    ],
)
def test_replaced_lines_leave_out_what_is_the_same_around_them(old: str, new: str, counts: tuple[int, int]) -> None:
    assert replaced_lines(old, new) == counts
