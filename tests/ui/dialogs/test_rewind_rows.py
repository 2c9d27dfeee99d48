"""Rows of the rewind page."""

from pathlib import Path

from tests.ui.rewinds import CONFLICT, PLAN, POINTS, STUCK
from tui_agent.protocol.facts.rewind_facts import RewindOutcome, RewindPlan
from tui_agent.ui.dialogs.rewind_rows import key_row, plan_rows, point_rows, rewind_outcome_text, state_row

WHEN = ["11-21 14:05", "11-21 14:02", "11-21 13:40"]


def texts(plan: RewindPlan, *, cursor: int = 0, overwritten: frozenset[Path] = frozenset(), width: int = 76) -> str:
    rows, _ = plan_rows(plan, "both", cursor, overwritten, width)
    return "\n".join(row.plain.rstrip() for row in rows)


def test_a_moment_tells_when_what_and_what_changed_since() -> None:
    rows = [row.plain for row in point_rows(POINTS, 1, 72, WHEN)]

    assert rows[0].startswith("  11-21 14:05  ↶ undo: ")
    assert rows[1].startswith("› 11-21 14:02  fix the failing price test")
    assert rows[1].endswith("  3 files         +12 −4")
    assert all(len(row) <= 72 for row in rows)


def test_each_file_tells_what_happens_to_it() -> None:
    shown = texts(PLAN, cursor=9)

    assert "  changed back    src/price.py" in shown
    assert "  deleted         notes.txt" in shown
    assert "  created again   old.py" in shown


def test_a_conflict_is_shown_with_what_would_be_lost() -> None:
    shown = texts(PLAN, cursor=9)

    assert "[ ] left alone  src/cart.py" in shown
    assert CONFLICT.problem in shown
    assert "+ mine" in shown


def test_a_file_that_is_taken_all_the_same_says_so() -> None:
    shown = texts(PLAN, overwritten=frozenset({CONFLICT.path}))

    assert "[x] changed back" in shown


def test_a_file_that_cannot_go_back_says_why() -> None:
    assert STUCK.problem[:40] in texts(PLAN)


def test_the_difference_of_the_file_at_the_cursor_is_shown() -> None:
    assert "- round(total)" in texts(PLAN, cursor=0)
    assert "- round(total)" not in texts(PLAN, cursor=1)


def test_the_conversation_alone_leaves_files_out() -> None:
    rows, starts = plan_rows(PLAN, "conversation", 0, frozenset(), 76)

    assert starts == []
    assert "5 files changed since; they stay as they are." in "\n".join(row.plain for row in rows)


def test_what_would_happen_is_counted() -> None:
    assert state_row(PLAN, "both", frozenset(), 76).plain == "3 files go back · 2 are left alone"
    assert state_row(PLAN, "both", {CONFLICT.path}, 76).plain == "4 files go back · 1 is left alone"
    assert state_row(PLAN, "conversation", frozenset(), 76).plain == "no file changes"


def test_keys_say_what_they_do() -> None:
    assert key_row(("choose", "close"), {"choose"}, 60, "do it").plain.split("   ")[:2] == ["enter do it", "esc back"]


def test_the_outcome_is_one_message() -> None:
    outcome = RewindOutcome(("a", "b"), ("c",), ("d: it is locked",))

    assert rewind_outcome_text(outcome) == "2 files changed back. Left as they are: c. Not changed: d: it is locked."
