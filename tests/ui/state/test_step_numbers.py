"""Steps are numbered through the session, not within a run."""

from tui_agent.ui.state.session_status import StepNumbers


def test_a_run_continues_the_numbers_of_the_runs_before() -> None:
    steps = StepNumbers()
    steps.begin_run()
    assert [steps.begin_step(index) for index in range(3)] == [1, 2, 3]

    steps.begin_run()
    assert steps.begin_step(0) == 4
    assert steps.in_session("after step 1") == "after step 4"
    assert steps.in_session("at the end") == "at the end"


def test_a_number_that_is_not_known_is_left_out() -> None:
    steps = StepNumbers(is_known=False)
    steps.begin_run()

    assert steps.in_session("after step 1") == ""
    assert steps.in_session("at the end") == "at the end"
