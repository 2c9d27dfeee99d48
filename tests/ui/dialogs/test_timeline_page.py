"""The timeline as a page: zoom, pan, follow, legend and totals."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ui.still import drawn, shown, still_app
from tests.ui.story import Story, working
from tui_agent.ui.dialogs.timeline_page import TimelineScreen, head_rows, lane_row, summary_rows
from tui_agent.ui.panel.call_detail_screen import CallDetailScreen
from tui_agent.ui.panel.time_bars import SHORTEST, TimeStrip, TimeWindow
from tui_agent.ui.state.call_ledger import CallLedger
from tui_agent.ui.state.run_times import RunTimes
from tui_agent.ui.text.rows_view import RowsView


def text_of(screen: TimelineScreen, name: str) -> str:
    view = screen.query_one(f"#timeline-{name}", RowsView)
    rows = [view.line_at(row) for row in range(view.total)]
    return "\n".join(row.plain for row in rows if row is not None)


async def test_a_lane_for_each_call_and_the_keys_that_choose_the_part_that_is_shown() -> None:
    story = working()
    story.queued("edit", "a.py (+1 −1)")
    app = still_app(story, running=True)
    async with app.run_test(size=(120, 40)) as pilot:
        await shown(pilot)
        await pilot.click(TimeStrip)
        while not isinstance(app.screen, TimelineScreen):
            await pilot.pause()
        await drawn(pilot)
        screen = app.screen
        lanes = text_of(screen, "body").splitlines()
        assert [lane.removeprefix("›").split()[0] for lane in lanes] == ["#1", "#2", "#3", "#4", "#5"]
        assert "#5 edit a.py (+1 −1)" in lanes[4]
        assert "follows" in text_of(screen, "state")

        await pilot.press("0")
        head, body = (screen.query_one(f"#timeline-{name}", RowsView) for name in ("heading", "body"))
        lane, axis = body.line_at(2), head.line_at(1)
        assert lane is not None
        assert axis is not None
        assert len(lane.plain) == len(axis.plain) == body.row_width, "the model and the calls have one scale"

        await pilot.press("plus")
        assert screen.window.follows
        start, span = screen.window.seen(15.0)
        assert (start, span) == pytest.approx((15.0 - span, span))
        await pilot.press("left")
        assert not screen.window.follows
        assert "stands still" in text_of(screen, "state")
        await pilot.press("f")
        assert screen.window.follows
        await pilot.press("left", "0")
        assert screen.window == TimeWindow()
        await pilot.press("minus")
        assert screen.window.span == 0.0

        await pilot.press("down", "down", "enter")
        while not isinstance(app.screen, CallDetailScreen):
            await pilot.pause()
        await pilot.press("escape")
        while app.screen is not screen:
            await pilot.pause()
        assert screen.selected == "c3"
        await pilot.press("escape")
        await pilot.pause()
        assert app.screen is app.chat


def test_the_totals_say_in_words_what_was_saved_only_if_calls_overlapped() -> None:
    def totals(*starts: float) -> str:
        story = Story().run("x").step(0)
        calls = [story.queued("bash", "make") for _ in starts]
        for call_id, start in zip(calls, starts, strict=True):
            story.wait(start).started(call_id, "bash", "make")
            if len(starts) == 1:
                story.wait(4)
        for call_id in calls:
            story.wait(2).ended(call_id, "bash")
        times = RunTimes()
        for envelope in story.end().envelopes:
            times.apply(envelope)
        return summary_rows(times, TimeWindow(), story.now, 200)[0].plain

    assert "saved" not in totals(0.0)
    assert totals(0.0, 0.5).endswith(" · calls at the same time saved 2.0 s")


moves = st.lists(st.one_of(st.sampled_from((0.5, 2.0)), st.sampled_from((-1, 1))), max_size=30)


@given(moves, st.floats(0, 10_000))
def test_any_zoom_and_pan_stays_within_the_run(steps: list[float], length: float) -> None:
    window, whole = TimeWindow(), max(length, SHORTEST)
    for step in steps:
        window = window.panned(int(step), length) if step in (-1, 1) else window.zoomed(step, length)
        start, span = window.seen(length)
        assert 0 <= start <= whole
        assert SHORTEST * 0.999 <= span <= whole
        assert start + span <= whole * 1.001


@given(st.integers(1, 150), moves)
def test_every_row_fits_the_width(width: int, steps: list[float]) -> None:
    times, ledger, story = RunTimes(), CallLedger(), working()
    for envelope in story.envelopes:
        times.apply(envelope)
        ledger.apply(envelope)
    window = TimeWindow()
    for step in steps:
        window = window.panned(int(step), 15.0) if step in (-1, 1) else window.zoomed(step, 15.0)

    lanes = [lane_row(call_id, times, call_id, window, story.now, width) for call_id in times.calls]
    rows = [*head_rows(times, window, story.now, width), *lanes]
    assert all(len(row.plain) <= max(width, 8) for row in (*rows, *summary_rows(times, window, story.now, width)))
