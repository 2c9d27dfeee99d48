"""Detection of runs that ended because no one could approve."""

from typing import Any

from tests.support.table import table
from tui_agent.headless.exit_codes import UnansweredApprovals
from tui_agent.protocol.envelope import Envelope, Origin
from tui_agent.protocol.events import (
    AgentEvent,
    ApprovalResolved,
    RunStarted,
    StepEnded,
    StepStarted,
    ToolEnded,
    ToolStarted,
)
from tui_agent.protocol.messages import Usage
from tui_agent.protocol.permissions import PermissionMode

STEP = StepStarted(index=1, kind="initial")
STEP_OVER = StepEnded(index=1, kind="initial", llm_ms=1, finish_reason="end_turn", usage=Usage())
RUN = RunStarted(input="go", trigger="prompt", model="m", mode=PermissionMode.ASK)


def resolved(by: Any, call_id: str = "a") -> ApprovalResolved:
    return ApprovalResolved(request_id=f"ask_{call_id}", call_id=call_id, decision="deny", by=by)


def ended(call_id: str, *, is_error: bool) -> ToolEnded:
    status = "error" if is_error else "ok"
    return ToolEnded(call_id=call_id, name="t", index=0, status=status, is_error=is_error, content=())


def started(call_id: str, *, read_only: bool) -> ToolStarted:
    return ToolStarted(call_id=call_id, name="t", args={}, read_only=read_only)


def stuck(*events: AgentEvent, depth: int = 0) -> bool:
    questions = UnansweredApprovals()
    for event in events:
        questions.apply(Envelope(event, 1, 1, 1.0, Origin(depth=depth)))
    return questions.stuck


REFUSED = (resolved("nobody"), ended("a", is_error=True))


def call(*, read_only: bool = False, is_error: bool = False) -> tuple[AgentEvent, ...]:
    return started("b", read_only=read_only), ended("b", is_error=is_error)


@table(
    ("events", "is_stuck"),
    [
        *(((STEP, resolved(by), ended("a", is_error=True), STEP_OVER), True) for by in ("nobody", "timeout")),
        *(((STEP, resolved(by), ended("a", is_error=True)), False) for by in ("user", "policy", "cancel")),
        ((STEP, *REFUSED, STEP_OVER, STEP, STEP_OVER), True),
        # A change, a later step with calls and a new run count as progress, a read or a failed change does not.
        ((STEP, *call(read_only=True), *REFUSED), True),
        ((STEP, *call(is_error=True), *REFUSED), True),
        ((STEP, *REFUSED, *call()), False),
        ((STEP, *call(), *REFUSED), False),
        ((STEP, *REFUSED, STEP, *call(read_only=True)), False),
        ((STEP, *REFUSED, RUN, STEP, STEP_OVER), False),
    ],
)
def test_a_run_is_stuck_if_its_last_calls_were_denied_and_no_one_answered(
    events: tuple[AgentEvent, ...], is_stuck: bool
) -> None:
    assert stuck(RUN, *events) is is_stuck
    assert not stuck(RUN, *events, depth=1), "questions of sub-agents are not counted"
