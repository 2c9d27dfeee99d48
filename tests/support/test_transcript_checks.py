"""The validators find faults: one fault of each kind."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from tests.support.table import table
from tests.support.transcript_checks import validate_events, validate_history
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Envelope, Origin
from tui_agent.protocol.events import (
    AgentEvent,
    ApprovalRequested,
    ApprovalResolved,
    MessageEnded,
    MessageStarted,
    RunEnded,
    RunStarted,
    StatusChanged,
    StepStarted,
    ToolBatchEnded,
    ToolBatchStarted,
    ToolEnded,
    ToolQueued,
    ToolStarted,
)
from tui_agent.protocol.messages import (
    AssistantMessage,
    Message,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    user_message,
)
from tui_agent.protocol.permissions import PermissionMode

TEXT = (TextBlock(text="done"),)


def envelopes_of(*events: AgentEvent) -> list[Envelope]:
    bus = EventBus(Origin(run_id="r"))
    with bus.subscribe(merge=False) as subscription:
        for event in events:
            bus.publish(event)
        return subscription.drain()


def queued(name: str, index: int = 0) -> ToolQueued:
    return ToolQueued(call_id=name, name="t", args_raw={}, index=index)


def started(name: str) -> ToolStarted:
    return ToolStarted(call_id=name, name="t", args={})


def ended(name: str, index: int = 0, status: str = "ok", is_error: bool = False) -> ToolEnded:
    return ToolEnded.model_validate(
        {"call_id": name, "name": "t", "index": index, "status": status, "is_error": is_error, "content": TEXT}
    )


def result(name: str, text: str = "done") -> list[AgentEvent]:
    message = ToolResultMessage(call_id=name, tool_name="t", content=(TextBlock(text=text),), id=f"msg_{name}")
    return [
        MessageStarted(message_id=message.id, role="tool_result", call_id=name),
        MessageEnded(message_id=message.id, message=message),
    ]


def one_call(name: str = "c") -> list[AgentEvent]:
    return [queued(name), started(name), ended(name), *result(name)]


def asked(name: str = "c") -> ApprovalRequested:
    return ApprovalRequested(request_id="q", call_id=name, digest="d", tool="t", args={})


def answered(name: str = "c") -> ApprovalResolved:
    return ApprovalResolved(request_id="q", call_id=name, decision="approve", by="user")


def run_started() -> RunStarted:
    return RunStarted(input="x", trigger="prompt", model="m", mode=PermissionMode.ASK)


BROKEN: dict[str, tuple[list[AgentEvent], str]] = {
    "never ended": ([queued("c")], "never ended"),
    "never answered": (one_call()[:3], "no result message"),
    "ok without a start": ([queued("c"), ended("c"), *result("c")], "never started"),
    "result before the end": ([queued("c"), started("c"), *result("c"), ended("c")], "before it ended"),
    "other text than shown": ([*one_call()[:3], *result("c", "raw")], "get different results"),
    "results against call order": (
        [
            ToolBatchStarted(batch_id="b", strategy="auto"),
            *[queued("1", 0), queued("2", 1), started("1"), started("2"), ended("1", 0), ended("2", 1)],
            *result("2"),
            *result("1"),
        ],
        "against call order",
    ),
    "batch ends early": (
        [
            ToolBatchStarted(batch_id="b", strategy="auto"),
            queued("c"),
            ToolBatchEnded(batch_id="b", strategy="auto", call_ids=("c",), total_ms=0, busy_ms=0),
        ],
        "has not ended",
    ),
    "question never answered": ([queued("c"), asked(), ended("c", status="cancelled", is_error=True)], "still open"),
    "run ends with an open step": (
        [run_started(), StepStarted(index=0, kind="initial"), RunEnded(reason="done")],
        "still open",
    ),
}


@table(("events", "fault"), BROKEN.values())
def test_each_broken_invariant_is_named(events: list[AgentEvent], fault: str) -> None:
    with pytest.raises(AssertionError, match=fault):
        validate_events(envelopes_of(*events))


def test_numbers_have_no_gaps_and_time_never_goes_back() -> None:
    first, second = envelopes_of(StatusChanged(status="idle"), StatusChanged(status="thinking"))

    with pytest.raises(AssertionError, match="is not the next"):
        validate_events([second, first])
    third = replace(second, seq=second.seq + 1)
    with pytest.raises(AssertionError, match="is not the next"):
        validate_events([first, third])
    validate_events([first, third], gaps=True)


def assistant(*names: str) -> AssistantMessage:
    return AssistantMessage(content=tuple(ToolCall(id=name, name="t") for name in names))


def answer(name: str) -> ToolResultMessage:
    return ToolResultMessage(call_id=name, tool_name="t", content=TEXT)


@table(
    ("build", "fault"),
    [
        (lambda: [assistant()], "follows nothing"),
        (lambda: [user_message("a"), assistant(), assistant()], "follows assistant"),
        (lambda: [user_message("a"), assistant("1")], "without a result"),
        (lambda: [user_message("a"), assistant("1"), user_message("b"), answer("1")], "before the results"),
        (lambda: [user_message("a"), answer("1")], "waits for no answer"),
        (lambda: [user_message("a"), assistant("1"), answer("1"), answer("1")], "waits for no answer"),
        (lambda: [user_message("a"), assistant("1", "2"), answer("2"), answer("1")], "before '1'"),
        (lambda: [user_message("a"), assistant("1", "1"), answer("1")], "twice"),
        (lambda: [user_message("a").model_copy(update={"content": ()})], "says nothing"),
        (lambda: [message := user_message("a"), message], "used twice"),
    ],
)
def test_each_fault_of_a_conversation_is_named(build: Callable[[], Sequence[Message]], fault: str) -> None:
    with pytest.raises(AssertionError, match=fault):
        validate_history(build())
