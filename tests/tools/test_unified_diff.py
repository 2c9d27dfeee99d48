"""Unified diffs, checked with the program `patch`."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.table import table
from tui_agent.protocol import diffs
from tui_agent.protocol.visible_text import SURROGATES_NOTE
from tui_agent.tools.unified_diff import counts_text, diff_of

LINES = st.lists(st.sampled_from(["a", "b", "c", "", "- x", "+ y", "\\"]), max_size=30)
TEXTS = st.builds(lambda lines, end: "\n".join(lines) + end, LINES, st.sampled_from(["", "\n"]))


def test_shows_lines_with_context() -> None:
    old = "".join(f"{number}\n" for number in range(1, 21))
    diff = diff_of(old, old.replace("10\n", "ten\n"), "a/f", "b/f")

    assert diff == "--- a/f\n+++ b/f\n@@ -7,7 +7,7 @@\n 7\n 8\n 9\n-10\n+ten\n 11\n 12\n 13\n"
    assert counts_text(diff) == "+1 −1 lines"


@table(
    ("old", "new", "notes"),
    [
        ("a\r\nb\r\n", "a\nb\n", ["# Line endings change from CR LF to LF"]),
        ("a\nb\n", "a\r\nb\r\n", ["# Line endings change from LF to CR LF"]),
        ("a\r\n", "b\r\n", ["# Lines end in CR LF"]),
        ("", "b\r\n", ["# Lines end in CR LF"]),
        ("a", "a\r\n", ["# Lines end in CR LF"]),
        ("a\r\n", "", ["# Lines ended in CR LF"]),
        ("a\n", "b\n", []),
        ("", "b\n", []),
    ],
)
def test_line_endings_are_noted_above_the_diff(old: str, new: str, notes: list[str]) -> None:
    lines = diff_of(old, new, "a/f", "b/f").split("\n")

    assert lines[: lines.index("--- a/f")] == notes
    assert not any("\r" in line for line in lines)


def test_mixed_line_ends_are_compared_line_by_line() -> None:
    assert diff_of("a\r\nb\n", "a\nb\n", "a/f", "b/f") == (
        "# Line endings change from mixed to LF\n# A line that ends in CR LF shows its CR\n"
        "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-a\r\n+a\n b\n"
    )


def test_lone_surrogates_are_reversible_escapes() -> None:
    diff = diff_of("x\udc80\n", "x\\udc80 \\\udcff \\n\n", "a/f", "b/f")

    assert diff == (f"{SURROGATES_NOTE}\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\\udc80\n+x\\\\udc80 \\\\\\udcff \\n\n")
    assert diff_of("\\udc80\n", "\\\\udc80\n", "a/f", "b/f").endswith("-\\udc80\n+\\\\udc80\n")


alike = st.text(st.sampled_from("ab\n\n\r\x00\\udc80x0\udc80\ud800\x85\u2028 "), max_size=12)


@given(alike, alike, alike)
@example("", "a\r\n", "a\n")
@example("a\n", "M1\x00M2\n", "M1\\x00M2\n")
@example("a\n", "a\udc80\n", "a\\udc80\n")
def test_two_contents_never_have_the_same_diff(old: str, one: str, other: str) -> None:
    first, second = diff_of(old, one, "a/f", "b/f"), diff_of(old, other, "a/f", "b/f")

    assert (first == second) == (one == other)
    first.encode("utf-8", "strict")
    assert (first == "") == (one == old)


def test_a_long_diff_is_cut_after_a_line() -> None:
    diff = diff_of("", "line\n" * 100, "a", "b").shortened(50)

    assert diff.endswith("+line\n… 97 more lines\n")
    assert len(diff) < 80
    assert diff.shortened(1000) is diff


@pytest.mark.parametrize("most_compared", [6_000, 0])
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(old=TEXTS, new=TEXTS)
def test_patch_makes_the_new_text_of_the_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_compared: int, old: str, new: str
) -> None:
    monkeypatch.setattr(diffs, "MOST_COMPARED", most_compared)
    (tmp_path / "f").write_text(old, "utf-8", newline="")
    diff = diff_of(old, new, "a/f", "b/f")

    if diff:
        command = ["git", "apply", "-p1", "--unidiff-zero", "-"]
        subprocess.run(command, input=diff.encode(), cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "f").read_text("utf-8") == new
