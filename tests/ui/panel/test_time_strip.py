"""Lanes of the timeline as they are drawn."""

from hypothesis import given
from hypothesis import strategies as st

from tests.ui.story import Story, working
from tui_agent.ui.panel.time_strip import TimeWindow, timeline_rows
from tui_agent.ui.state.call_ledger import CallLedger
from tui_agent.ui.state.run_times import RunTimes
from tui_agent.ui.text.styled_lines import text_of_runs

WHOLE = TimeWindow()


def drawn(story: Story, width: int = 60, height: int = 12, window: TimeWindow = WHOLE) -> list[str]:
    times, ledger = RunTimes(), CallLedger()
    for envelope in story.envelopes:
        times.apply(envelope)
        ledger.apply(envelope)
    return [text_of_runs(row) for row in timeline_rows(times, ledger, story.now, width, height, window)]


def test_each_lane_shows_when_something_happened() -> None:
    heading, model, read, grep, bash, edit = drawn(working())

    assert heading.split() == ["TIMELINE", "15", "s"]
    assert model.startswith(" model ▆")
    assert "▼" in model
    assert read.split() == ["#1", "▆"]
    assert grep.split() == ["#2", "▆"]
    assert bash.split()[0] == "#3"
    assert set(bash.split()[1]) == {"▆"}
    assert set(edit.split()[1]) == {"·"}
    assert bash.index("▆") == edit.index("·")


def test_waiting_for_the_user_has_its_own_bar() -> None:
    story = Story().run("x").step(0)
    story.asks(story.queued("bash", "x"), "bash", "x", "no rule")
    story.wait(5)

    assert "░░░" in drawn(story)[-1]


def test_after_the_run_the_totals_are_shown() -> None:
    story = working().wait(1)
    story.ended("c3", "bash").ended("c4", "edit", "error")

    last = drawn(story.end())[-1]

    assert last.split() == ["model", "2.7", "s", "tools", "13.3", "s"]


def test_running_calls_keep_their_lane_when_there_are_too_many() -> None:
    story = Story().run("x").step(0)
    running = story.queued("bash", "slow")
    story.started(running, "bash")
    for number in range(20):
        story.call("read", f"file {number}")
    labels = [row.split()[0] for row in drawn(story, height=6)]

    assert labels == ["TIMELINE", "model", "#1", "#19", "#20", "#21"]


@given(st.integers(1, 120), st.integers(0, 20), st.floats(0, 10_000))
def test_every_row_fits_the_width(width: int, height: int, later: float) -> None:
    story = working().wait(later)
    rows = drawn(story, width, height)

    assert len(rows) <= height
    assert all(len(row) <= max(width, 20) for row in rows)
