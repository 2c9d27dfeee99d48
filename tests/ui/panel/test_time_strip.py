"""The newest run in two rows, one for the model and one for calls."""

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.ui.story import Story, working
from tui_agent.ui.panel.time_bars import strip_row
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


def test_before_the_first_run_it_is_empty() -> None:
    assert drawn(Story()) == [""] * 4


@given(st.integers(1, 120), st.floats(0, 10_000))
def test_every_row_fits_the_width(width: int, later: float) -> None:
    assert all(cell_len(row) <= max(width, 8) for row in drawn(working().wait(later), width))
