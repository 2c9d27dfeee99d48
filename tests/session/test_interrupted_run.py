"""The open state of an interrupted run is classified and closed."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.session.played_sessions import (
    FULL_SESSION,
    SESSION,
    PlayedCall,
    PlayedRun,
    PlayedStep,
    play,
    played_sessions,
)
from tests.session.test_history_fold import ONE_CALL, until
from tests.support.transcript_checks import validate_events, validate_history
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Envelope, Origin
from tui_agent.protocol.events import (
    AgentEvent,
    ApprovalRequested,
    ApprovalResolved,
    BackgroundEnded,
    BackgroundStarted,
    ChangesDiscarded,
    ChangesProposed,
    CompactionEnded,
    CompactionStarted,
    MessageDiscarded,
    MessageEnded,
    RunEnded,
    SessionRewinding,
    StepStarted,
    SubagentEnded,
    ToolEnded,
    ToolStarted,
)
from tui_agent.protocol.messages import TextBlock, Usage, UserMessage
from tui_agent.protocol.trial import ProposedChanges, ProposedFile
from tui_agent.session import StoredSession
from tui_agent.session.history_fold import messages_of
from tui_agent.session.interrupted_run import InterruptedRun, unfinished


def resumed(envelopes: Sequence[Envelope]) -> list[Envelope]:
    """Return the journal after a resume published the closing events."""
    bus = EventBus(Origin(session_id=SESSION), first_seq=envelopes[-1].seq + 1 if envelopes else 1)
    with bus.subscribe(merge=False) as subscription:
        left = unfinished(envelopes)
        for closing in (*left.closing, *left.notice):
            bus.publish(closing.event, closing.origin)
        return [*envelopes, *subscription.drain()]


def closing_events(envelopes: Sequence[Envelope]) -> list[AgentEvent]:
    return [closing.event for closing in unfinished(envelopes).closing]


def test_a_partial_answer_is_discarded_and_its_early_call_closed() -> None:
    script = (PlayedRun("go", (PlayedStep(("I do.",), (PlayedCall(early=True),)),)),)
    envelopes = until(play(script), ToolStarted)
    journal = resumed(envelopes)

    validate_events(journal)
    events = closing_events(envelopes)
    assert [type(event) for event in events[:2]] == [ToolEnded, MessageDiscarded]
    prompt, notice = messages_of(journal)
    assert isinstance(prompt, UserMessage)
    assert isinstance(notice, UserMessage)
    assert (notice.kind, "may have taken effect" in notice.text) == ("notice", True)
    assert messages_of(envelopes) == (prompt, notice)


def test_the_result_of_an_early_call_reaches_the_model_although_its_response_is_lost() -> None:
    calls = (PlayedCall(("built it\n", "in 3 s\n"), early=True), PlayedCall(early=True))
    envelopes = until(play((PlayedRun("go", (PlayedStep(("I do.",), calls),)),)), ToolEnded)
    journal = resumed(envelopes)

    validate_events(journal)
    _, notice = messages_of(journal)
    ended = next(envelope.event for envelope in envelopes if isinstance(envelope.event, ToolEnded))
    assert f"This one finished: {ended.name}" in notice.text
    assert all(block.text in notice.text for block in ended.content if isinstance(block, TextBlock))
    assert ("may have taken effect" in notice.text) == any(
        isinstance(one.event, ToolStarted) and one.event.call_id != ended.call_id for one in envelopes
    )
    assert messages_of(envelopes) == messages_of(journal)


def test_a_notice_that_a_killed_resume_began_is_ended_and_not_started_again() -> None:
    notice = UserMessage(id="msg_rewind", content=(TextBlock(text="A rewind was interrupted."),), kind="notice")
    envelopes = play(ONE_CALL)
    rewinding = SessionRewinding(to_seq=1, text="the start", notice=notice)
    envelopes.append(replace(envelopes[-1], event=rewinding, seq=envelopes[-1].seq + 1, origin=Origin(SESSION)))
    once = resumed(envelopes)
    assert once[-1].event == MessageEnded(message_id=notice.id, message=notice)

    twice = resumed(once[:-1])

    validate_events(twice)
    assert messages_of(twice) == messages_of(once)
    assert messages_of(once)[-1] == notice


def test_an_open_request_for_approval_is_denied_before_its_call_ends() -> None:
    script = (PlayedRun("go", (PlayedStep(("I do.",), (PlayedCall(asks=True, hooked=True),)),)),)
    events = closing_events(until(play(script), ApprovalRequested))

    answer = events[0]
    assert isinstance(answer, ApprovalResolved)
    assert (answer.decision, answer.by) == ("deny", "cancel")
    assert isinstance(events[1], ToolEnded)


def test_children_are_closed_before_their_parents() -> None:
    envelopes = until(play(FULL_SESSION), ToolStarted, 4)
    closing = unfinished(envelopes).closing

    depths = [entry.origin.depth for entry in closing]
    assert depths == sorted(depths, reverse=True)
    kinds = [type(entry.event) for entry in closing if isinstance(entry.event, RunEnded | SubagentEnded)]
    assert kinds == [RunEnded, SubagentEnded, RunEnded]


def test_the_closed_run_has_reason_and_usage() -> None:
    envelopes = until(play(ONE_CALL), StepStarted, 2)
    ended = next(event for event in closing_events(envelopes) if isinstance(event, RunEnded))

    assert (ended.reason, ended.steps, ended.tool_calls) == ("aborted", 2, 1)
    assert ended.usage == Usage(input_tokens=10, output_tokens=2)
    assert ended.error == "the program ended during this run"


def test_open_compaction_and_background_work_are_closed() -> None:
    envelopes = until(play(ONE_CALL), StepStarted)
    where = envelopes[-1]
    envelopes += [
        where.with_event(CompactionStarted(trigger="manual", strategy="trim", tokens_before=7)),
        where.with_event(BackgroundStarted(task_id="bg", kind="bash", command="sleep 9")),
        where.with_event(BackgroundStarted(task_id="over", kind="bash")),
        where.with_event(BackgroundEnded(task_id="over", kind="bash", status="ok", code=0)),
    ]
    events = closing_events(envelopes)

    compaction = next(event for event in events if isinstance(event, CompactionEnded))
    assert (compaction.ok, compaction.tokens_after) == (False, 7)
    assert [event.task_id for event in events if isinstance(event, BackgroundEnded)] == ["bg"]


def test_the_waiting_changes_of_a_subagent_are_discarded_and_named() -> None:
    envelopes = until(play(ONE_CALL), ToolStarted)
    files = (ProposedFile(path="a", kind="added", sort="workspace"),)
    proposed = ChangesProposed(call_id="child_call", changes=ProposedChanges(layer="l", files=files))
    origin = replace(envelopes[-1].origin, agent_id="helper-1", run_id="child", depth=1)
    told = [*envelopes, replace(envelopes[-1].with_event(proposed), origin=origin)]
    session = StoredSession(SESSION, None, Path(), told, resumed=True)

    (closing,) = (one for one in unfinished(told).closing if isinstance(one.event, ChangesDiscarded))
    assert (closing.event.paths, closing.event.count, closing.origin.agent_id) == (("a",), 1, "helper-1")
    assert session.abandoned_layers(resume_pending_calls=True) == ("child_call",)


@pytest.mark.slow
@given(played_sessions, st.data())
def test_any_interrupted_session_is_complete_once_resumed(script: tuple[PlayedRun, ...], data: st.DataObject) -> None:
    live = play(script)
    broken = live[: data.draw(st.integers(1, len(live)))]
    journal = resumed(broken)

    validate_events(journal)
    validate_history(messages_of(journal))
    assert messages_of(journal) == messages_of(broken)
    assert unfinished(journal) == InterruptedRun()

    # A resume that is interrupted is completed by the next.
    twice = resumed(journal[: data.draw(st.integers(1, len(journal)))])
    validate_events(twice)
    assert unfinished(twice) == InterruptedRun()


@pytest.mark.slow
@given(played_sessions, st.data())
def test_any_damaged_session_can_be_closed(script: tuple[PlayedRun, ...], data: st.DataObject) -> None:
    live = play(script)
    kept = data.draw(st.sets(st.integers(0, len(live) - 1), min_size=1))
    journal = resumed([envelope for place, envelope in enumerate(live) if place in kept])

    assert unfinished(journal) == InterruptedRun()
    validate_history(messages_of(journal))
