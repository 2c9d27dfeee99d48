"""A unit's row is a fold over its events."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tui_agent.fleet.unit_progress import UnitProgress
from tui_agent.fleet.worker_messages import UnitEnded
from tui_agent.protocol.envelope import Envelope, Origin
from tui_agent.protocol.events import (
    AgentEvent,
    ApprovalRequested,
    ApprovalResolved,
    MessageEnded,
    RunEnded,
    StepStarted,
    ToolEnded,
    ToolStarted,
    UsageUpdated,
)
from tui_agent.protocol.fleet_records import UnitTask
from tui_agent.protocol.messages import AssistantMessage, TextBlock, ToolCall, Usage

TASK = UnitTask(id="1", task="1", prompt="Go", repo="/r", verify="true")


def line_of(event: AgentEvent, seq: int, depth: int = 0) -> bytes:
    return Envelope(event, seq, 1, 0.0, Origin(session_id="unit-1", depth=depth)).to_json().encode()


def asked(number: int) -> ApprovalRequested:
    return ApprovalRequested(request_id=f"ask_{number}", call_id="c", digest="d", tool="bash", args={})


def resolved(number: int) -> ApprovalResolved:
    return ApprovalResolved(request_id=f"ask_{number}", call_id="c", decision="deny", by="user")


def ended(status: Any) -> ToolEnded:
    return ToolEnded(call_id="c", name="bash", index=0, status=status, is_error=status != "ok", content=())


EVENTS = st.one_of(
    st.integers(1, 3).map(asked),
    st.integers(1, 3).map(resolved),
    st.sampled_from(("ok", "error", "interrupted")).map(ended),
    st.just(StepStarted(index=0, kind="initial")),
    st.integers(0, 9).map(lambda count: UsageUpdated(delta=Usage(), total=Usage(input_tokens=count), cost=count / 2)),
)


@given(st.lists(st.tuples(EVENTS, st.integers(0, 1))))
def test_the_row_follows_the_events(events: list[tuple[AgentEvent, int]]) -> None:
    unit = UnitProgress(TASK)
    unit.begin("w", 1)
    questions: set[str] = set()

    for seq, (event, depth) in enumerate(events, 1):
        unit.apply(line_of(event, seq, depth))
        if isinstance(event, ApprovalRequested):
            questions.add(event.request_id)
        elif isinstance(event, ApprovalResolved):
            questions.discard(event.request_id)
        assert set(unit.questions) == questions
        assert (unit.row.state == "asking") is bool(questions)
        assert unit.last_seq == seq

    of_root = [event for event, depth in events if not depth]
    assert unit.row.step == sum(isinstance(event, StepStarted) for event in of_root)
    calls = [event for event, _ in events if isinstance(event, ToolEnded)]
    assert unit.row.unknown_effects == sum(call.status == "interrupted" for call in calls)
    totals = [event for event in of_root if isinstance(event, UsageUpdated)]
    assert unit.row.input_tokens == (totals[-1].total.input_tokens if totals else 0)
    assert unit.row.cost == ((totals[-1].cost or 0.0) if totals else 0.0)


@given(st.binary())
def test_any_line_is_taken(line: bytes) -> None:
    unit = UnitProgress(TASK)

    unit.apply(line)
    unit.apply(b'{"seq":1,"step":null,"type":"approval.requested","data":' + json.dumps(line.hex()).encode() + b"}")

    assert not unit.questions


def test_the_states_of_a_unit() -> None:
    unit = UnitProgress(TASK)
    states = [unit.row.state]
    unit.begin("one", 1)
    states.append(unit.row.state)
    unit.apply(line_of(StepStarted(index=0, kind="initial"), 1))
    states.append(unit.row.state)
    unit.apply(line_of(asked(1), 2))
    unit.lose_worker()
    states.append(unit.row.state)
    assert not unit.questions
    unit.begin("two", 2)
    states.append(unit.row.state)
    unit.apply(line_of(RunEnded(reason="done", final_text="Done."), 3))
    states.append(unit.row.state)
    unit.end("failed", UnitEnded("a", 2, 0, "verify ended with code 1", verified=False))
    states.append(unit.row.state)

    assert states == ["queued", "starting", "running", "resuming", "resuming", "verifying", "failed"]
    assert [(span.worker, span.ended is not None) for span in unit.row.spans] == [("one", True), ("two", True)]
    assert unit.final_text == "Done."


def test_the_activity_is_a_call_that_began_before_its_message_ended_then_the_last_text() -> None:
    def said(*content: Any) -> MessageEnded:
        return MessageEnded(message_id="a1", message=AssistantMessage(content=content, id="a1", timestamp=0))

    unit = UnitProgress(TASK)
    unit.apply(line_of(ToolStarted(call_id="c", name="bash", args={}, summary="make", read_only=False), 1))
    unit.apply(line_of(said(TextBlock(text="I run it."), ToolCall(id="c", name="bash")), 2))
    assert unit.row.activity == "make"

    unit.apply(line_of(said(TextBlock(text="Done.")), 3))
    assert unit.row.activity == "Done."
