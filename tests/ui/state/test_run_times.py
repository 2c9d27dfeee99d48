"""Totals and lanes of a run's times."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.ui.story import START, Story, folded
from tui_agent.protocol.events import SessionForked, SessionLoaded, StepRetry
from tui_agent.ui.state.call_ledger import CallLedger
from tui_agent.ui.state.run_times import RunTimes, covered
from tui_agent.ui.state.session_status import SessionStatus


def spans(times: RunTimes, call_id: str) -> list[tuple[str, float, float | None]]:
    lane = times.calls[call_id]
    return [
        (span.kind, round(span.start - START, 3), None if span.end is None else round(span.end - START, 3))
        for span in lane.spans
    ]


def test_a_call_waits_then_asks_then_waits_then_runs() -> None:
    story = Story().run("x").step(0).wait(1)
    call_id = story.queued("bash", "x")
    request_id = story.wait(1).asks(call_id, "bash", "x", "no rule")
    story.wait(5).resolved(request_id, call_id).wait(0.5).started(call_id, "bash").wait(2).ended(call_id, "bash")

    assert spans(folded(RunTimes(), story), call_id) == [
        ("waits", 1, 2),
        ("asks", 2, 7),
        ("waits", 7, 7.5),
        ("runs", 7.5, 9.5),
    ]


def test_a_call_that_never_ran_did_not_fail() -> None:
    story = Story().run("x").step(0)
    call_id = story.queued("bash", "x")
    story.wait(1).ended(call_id, "bash", "denied_policy")

    assert spans(folded(RunTimes(), story), call_id) == [("waits", 0, 1)]


def test_the_model_answers_from_the_start_of_a_step_to_the_end_of_its_message() -> None:
    story = Story().run("x").step(0).wait(2).answer("a").wait(3).step(1).wait(1)
    story.tell(StepRetry(attempt=2, max=10, wait_s=4.0, error_kind="overloaded"))

    assert [(span.start - START, span.end) for span in folded(RunTimes(), story).model.spans] == [
        (0, START + 2),
        (5, START + 6),
    ]


def test_the_totals_separate_overlap_and_waiting() -> None:
    story = Story().run("x").step(0).wait(1).answer("a")
    first, second = story.queued("bash", "x"), story.queued("bash", "y")
    story.started(first, "bash").started(second, "bash").wait(4)
    story.ended(first, "bash").ended(second, "bash")
    asked = story.queued("bash", "z")
    request_id = story.asks(asked, "bash", "z", "no rule")
    story.wait(3).resolved(request_id, asked).started(asked, "bash").wait(2).ended(asked, "bash")
    totals = folded(RunTimes(), story.end()).totals()

    assert totals is not None
    assert (totals.model, totals.tools, totals.saved, totals.person) == (1, 10, 4, 3)


def test_two_agents_save_time_and_the_calls_within_one_do_not() -> None:
    story = Story().run("x").step(0)
    agents = [story.queued("agent", "find"), story.queued("agent", "check")]
    for agent in agents:
        story.started(agent, "agent")
    root = story.origin
    for agent in agents:
        story.origin = replace(root, run_id=agent, parent_call_id=agent, depth=1)
        story.call("read", "a.py", 4.0)
    story.origin = root
    for agent in agents:
        story.ended(agent, "agent")
    totals = folded(RunTimes(), story.end()).totals()

    assert totals is not None
    assert (totals.tools, totals.saved) == (16.0, 8.0)


def test_no_clock_of_another_process_remains() -> None:
    story = Story().run("x").step(0)
    story.call("bash", "make", 3.0)
    running = story.queued("bash", "sleep 9")
    story.started(running, "bash").wait(2)
    story.now = 90_000.0
    story.tell(SessionLoaded(id="s1"))
    times = folded(RunTimes(), story)
    ledger, status = CallLedger(), SessionStatus()
    for envelope in story.envelopes:
        ledger.apply(envelope)
        status.apply(envelope)

    assert times.ended == START + 3.0, "the last time that the process reported"
    view = ledger.calls[-1].view
    assert (view.status, view.elapsed_ms(story.now)) == ("interrupted", 0.0)
    assert status.progress.began_at is None

    story.tell(SessionForked(id="s2", parent="s1", at_seq=3))
    times = folded(RunTimes(), story)
    assert (times.started, times.ended, times.last, times.calls) == (None, None, None, {})


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), max_size=12))
def test_covered_time_counts_every_moment_once(pairs: list[tuple[int, int]]) -> None:
    stretches = [(start, start + length) for start, length in pairs]
    moments = {moment for start, end in stretches for moment in range(start, end)}

    assert covered(stretches) == len(moments)
