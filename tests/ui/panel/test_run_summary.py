"""The newest run in two rows, one for the model and one for calls, and the counters of its calls by state."""

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.ui.story import Story, working
from tui_agent.ui.panel.time_bars import strip_row
from tui_agent.ui.panel.tool_panel import counts
from tui_agent.ui.state.call_ledger import CallLedger
from tui_agent.ui.state.run_times import RunTimes
from tui_agent.ui.text.styled_lines import text_of_runs


def drawn(story: Story, width: int = 60) -> list[str]:
    times = RunTimes()
    for envelope in story.envelopes:
        times.apply(envelope)
    return [text_of_runs(strip_row(times, row, story.now, width)) for row in range(4)]


def test_one_bar_is_the_models_and_one_that_of_all_calls() -> None:
    above, model, tools, below = drawn(working())

    assert above == ""
    assert model.startswith(" model ▆")
    assert "▼" in model
    assert tools.split()[0] == "tools"
    # While a call runs, that another one waits for it does not show.
    assert set(tools.split(maxsplit=1)[1]) <= {"▆", " "}
    assert below == ""


def test_waiting_for_the_user_and_a_failure_are_seen_among_calls_that_ran() -> None:
    story = Story().run("x").step(0)
    asked, failed = story.queued("bash", "x"), story.queued("bash", "y")
    request = story.started(failed, "bash").asks(asked, "bash", "x", "no rule")
    assert "░░░" in drawn(story.wait(5))[2]

    story.resolved(request, asked)
    story.wait(5).ended(failed, "bash", "error")
    shown = drawn(story)[2]
    assert "░░" in shown
    assert "▚▚" in shown


@given(st.integers(1, 120), st.floats(0, 10_000))
def test_every_row_fits_the_width(width: int, later: float) -> None:
    assert all(cell_len(row) <= max(width, 8) for row in drawn(working().wait(later), width))


def counted(story: Story, room: int = 1_000) -> str:
    ledger = CallLedger()
    for envelope in story.envelopes:
        ledger.apply(envelope)
    return counts(ledger, room).plain


def test_done_counts_no_call_that_failed_was_denied_skipped_or_cancelled() -> None:
    story = Story().run("x").step(0)
    story.call("read", "a.py")
    for status in ("error", "timeout", "denied_user", "skipped_steering", "cancelled"):
        story.call("bash", "make", status=status)

    assert counted(story) == "1 done · 2 failed · 1 denied · 1 skipped · 1 cancelled"
    assert counted(story, 20) == "1 done · 2 failed"


def test_open_calls_are_counted_before_finished_ones() -> None:
    story = working()
    story.asks("c4", "edit", "src/price.py", "no rule")

    assert counted(story) == "1 running · 1 needs you"
    assert counted(story, 12) == "1 needs you"
