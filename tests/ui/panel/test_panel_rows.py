"""Rows of the panel: positions of the calls with filters, widths and live output."""

import pytest

from tests.ui.story import Story, working
from tui_agent.protocol.envelope import Envelope
from tui_agent.ui.panel.call_rows import RowContext
from tui_agent.ui.panel.panel_rows import PanelRows, RowsChange
from tui_agent.ui.state.call_ledger import CallLedger
from tui_agent.ui.text.styled_lines import text_of_runs


def fold(story: Story, width: int = 60) -> PanelRows:
    rows = PanelRows(CallLedger())
    rows.rebuild("all", width)
    for envelope in story.envelopes:
        apply(rows, envelope)
    return rows


def apply(rows: PanelRows, envelope: Envelope) -> RowsChange | None:
    """Apply one event to the ledger and lay out the calls it changed; None if it changed none."""
    changed = rows.ledger.apply(envelope)
    return rows.update(changed) if changed else None


def texts(rows: PanelRows, story: Story, width: int = 60) -> list[str]:
    context = RowContext(width, story.now, find=rows.ledger.find)
    return [text_of_runs(rows.runs(row, context)).strip() for row in range(rows.total)]


def test_steps_calls_and_live_output_follow_each_other() -> None:
    story = working()
    shown = [row.split("  ")[0] for row in texts(fold(story), story)]

    assert [row[:9] for row in shown] == [
        "✔ #1 read",
        "✔ #2 grep",
        "─────────",
        "◐ #3 bash",
        "tests/tes",
        "tests/tes",
        "◌ #4 edit",
    ]


def test_a_filter_shows_its_calls_without_steps() -> None:
    story = working()
    rows = fold(story)

    rows.rebuild("running", 60)

    assert [row[:9] for row in texts(rows, story)] == ["◐ #3 bash", "tests/tes", "tests/tes"]
    assert rows.call(0).number == 3


def test_a_filter_follows_the_events() -> None:
    story = working()
    rows = fold(story)
    rows.rebuild("running", 60)

    change = apply(rows, story.ended("c3", "bash").envelopes[-1])

    assert change is not None
    assert change.moved
    assert len(rows) == 0


def test_output_that_keeps_its_height_moves_nothing() -> None:
    story = working()
    rows = fold(story)
    change = apply(rows, story.output("c3", "more\nand more\n").envelopes[-1])
    assert change is not None
    assert change.moved

    change = apply(rows, story.output("c3", "and more\n").envelopes[-1])
    assert change is not None
    assert (change.moved, change.blocks) == (False, (2,))


def test_events_about_no_call_change_nothing() -> None:
    story = working()
    rows = fold(story)

    assert apply(rows, story.status("streaming").envelopes[-1]) is None


def test_rows_map_to_calls_and_back() -> None:
    story = working()
    rows = fold(story)

    for index in range(len(rows)):
        start, height = rows.block(index)
        assert {rows.find(row) for row in range(start, start + height)} == {index}
        assert start <= rows.row_within(index) < start + height
    assert rows.find(rows.total) is None
    assert rows.runs(rows.total, RowContext(60, story.now)) == ()


def test_only_rows_with_a_running_clock_move() -> None:
    rows = fold(working())

    assert list(rows.moving(0, 100)) == [3]
    assert list(rows.moving(0, 2)) == []


def test_a_hidden_call_has_no_block() -> None:
    rows = fold(working())
    read = rows.call(0)
    rows.rebuild("running", 60)

    assert rows.index_of(read) is None
    assert rows.index_of(None) is None


@pytest.mark.slow
def test_ten_thousand_calls_touch_only_what_changes() -> None:
    story = Story().run("x").step(0)
    for number in range(10_000):
        story.queued("read", f"file {number}")
    rows = fold(story)

    change = apply(rows, story.started("c5000", "read", "file 4999").envelopes[-2])

    assert change is not None
    assert (change.moved, change.blocks) == (False, (4_999,))
    assert rows.total == 10_000
