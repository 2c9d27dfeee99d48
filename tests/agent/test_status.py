"""The status of an agent, folded from the events."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.protocol_strategies import of_model
from tests.support.table import table
from tui_agent.agent.event_publisher import AFTER_STEP, StatusState, fold_status, status_of
from tui_agent.agent.stop_tokens import ABORT_REQUESTED, STOP_REQUESTED
from tui_agent.protocol.envelope import event_classes
from tui_agent.protocol.events import (
    AgentEvent,
    ApprovalRequested,
    ApprovalResolved,
    CompactionEnded,
    CompactionStarted,
    MessageDelta,
    MessageDiscarded,
    MessageEnded,
    Noticed,
    QuestionAnswered,
    QuestionAsked,
    RequestBuilt,
    RunEnded,
    RunStarted,
    StatusChanged,
    StepRetry,
    StepStarted,
    ToolEnded,
    ToolQueued,
)
from tui_agent.protocol.messages import AssistantMessage
from tui_agent.protocol.permissions import PermissionMode

RUN = RunStarted(input="go", trigger="prompt", model="m", mode=PermissionMode.ASK)
END = RunEnded(reason="done")
STEP = StepStarted(index=0, kind="initial")
TEXT = MessageDelta(message_id="m", kind="text", delta="x")
SPOKEN = MessageEnded(message_id="m", message=AssistantMessage(content=()))
RETRY = StepRetry(attempt=2, max=10, wait_s=4, error_kind="overloaded")


def _queued(call_id: str, name: str = "bash") -> ToolQueued:
    return ToolQueued(call_id=call_id, name=name, args_raw={}, index=0)


def _ended(call_id: str) -> ToolEnded:
    return ToolEnded(call_id=call_id, name="bash", index=0, status="ok", is_error=False, content=())


def _asked(request_id: str) -> ApprovalRequested:
    return ApprovalRequested(request_id=request_id, call_id="c", digest="d", tool="bash", args={})


def _answered(request_id: str) -> ApprovalResolved:
    return ApprovalResolved(request_id=request_id, call_id="c", decision="approve", by="user")


CASES: dict[str, tuple[list[AgentEvent], str, str]] = {
    "no event yet": ([], "idle", ""),
    "a run begins": ([RUN], "thinking", ""),
    "the model reasons": ([RUN, STEP, TEXT.model_copy(update={"kind": "thinking"})], "thinking", ""),
    "the model speaks": ([RUN, STEP, TEXT, TEXT], "streaming", ""),
    "the model wrote a call": ([RUN, STEP, TEXT.model_copy(update={"kind": "toolcall"})], "streaming", ""),
    "a call runs while the model speaks": ([RUN, STEP, TEXT, _queued("a")], "streaming", ""),
    "the answer is over": ([RUN, STEP, TEXT, SPOKEN], "thinking", ""),
    "an answer is thrown away": (
        [RUN, STEP, TEXT, MessageDiscarded(message_id="m", reason="cut")],
        "thinking",
        "",
    ),
    "one call runs": ([RUN, STEP, TEXT, _queued("a"), SPOKEN], "running_tools", "bash"),
    "two calls run": ([RUN, STEP, _queued("a"), _queued("b", "read"), SPOKEN], "running_tools", "2 tools"),
    "one of two is done": ([RUN, STEP, _queued("a"), _queued("b", "read"), _ended("a")], "running_tools", "read"),
    "all calls are done": ([RUN, STEP, _queued("a"), SPOKEN, _ended("a")], "thinking", ""),
    "a call needs approval": ([RUN, STEP, _queued("a"), SPOKEN, _asked("r")], "waiting_approval", ""),
    "two calls need approval": ([RUN, _queued("a"), _asked("r"), _asked("s")], "waiting_approval", "2 to decide"),
    "the user answered": ([RUN, _queued("a"), _asked("r"), _answered("r")], "running_tools", "bash"),
    "the model asks": ([RUN, QuestionAsked(question_id="q", text="?")], "waiting_user", ""),
    "the model was answered": (
        [RUN, QuestionAsked(question_id="q", text="?"), QuestionAnswered(question_id="q", text="!")],
        "thinking",
        "",
    ),
    "the conversation is shortened": (
        [RUN, CompactionStarted(trigger="automatic", strategy="s", tokens_before=9)],
        "compacting",
        "",
    ),
    "it was shortened": (
        [
            RUN,
            CompactionStarted(trigger="automatic", strategy="s", tokens_before=9),
            CompactionEnded(ok=True, tokens_after=1, removed=1),
        ],
        "thinking",
        "",
    ),
    "the model is asked again later": ([RUN, STEP, TEXT, RETRY], "retrying", "2/10 in 4 s"),
    "the model is asked again now": (
        [RUN, STEP, RETRY, RequestBuilt(message_count=1, est_tokens=1, tools=0)],
        "thinking",
        "",
    ),
    "it speaks again": ([RUN, STEP, RETRY, TEXT], "streaming", ""),
    "a stop was asked for": ([RUN, STEP, TEXT, Noticed(code=STOP_REQUESTED, text="")], "stopping", AFTER_STEP),
    "an abort was asked for": ([RUN, _asked("r"), Noticed(code=ABORT_REQUESTED, text="")], "stopping", ""),
    "a stop was asked for while idle": ([Noticed(code=STOP_REQUESTED, text="")], "idle", ""),
    "a run ended in the middle of things": ([RUN, TEXT, _queued("a"), _asked("r"), END], "idle", ""),
    "the next run begins afresh": ([RUN, _asked("r"), END, RUN], "thinking", ""),
}


@table("case", CASES)
def test_status_follows_from_the_events(case: str) -> None:
    events, status, detail = CASES[case]

    state = StatusState()
    for event in events:
        state = fold_status(state, event)

    assert status_of(state) == StatusChanged(status=status, detail=detail)


any_event: st.SearchStrategy[AgentEvent] = st.one_of([of_model(model) for model in event_classes().values()])


@pytest.mark.slow
@given(st.lists(any_event, max_size=8))
def test_any_sequence_of_events_has_a_status_and_is_idle_after_its_end(events: list[AgentEvent]) -> None:
    state = StatusState()
    for event in events:
        before = state
        state = fold_status(state, event)
        assert (status_of(before).status == "idle") is not (before.running or before.compacting)

    assert status_of(fold_status(state, END)).status == "idle"
