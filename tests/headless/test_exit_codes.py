"""Detection of runs that ended because no one could approve."""

from typing import Any

import pytest

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


@pytest.mark.parametrize("by", ["nobody", "timeout"])
def test_denied_last_calls_without_an_answer_count(by: str) -> None:
    assert stuck(RUN, STEP, resolved(by), ended("a", is_error=True), STEP_OVER, STEP, STEP_OVER)


@table("by", ["user", "policy", "cancel"])
def test_any_other_answer_does_not_count(by: str) -> None:
    assert not stuck(RUN, STEP, resolved(by), ended("a", is_error=True))


def test_a_read_is_not_progress() -> None:
    assert stuck(RUN, STEP, started("b", read_only=True), ended("b", is_error=False), *REFUSED)


def test_a_failed_change_is_not_progress() -> None:
    assert stuck(RUN, STEP, started("b", read_only=False), ended("b", is_error=True), *REFUSED)


def test_a_successful_change_is_progress() -> None:
    assert not stuck(RUN, STEP, *REFUSED, started("b", read_only=False), ended("b", is_error=False))
    assert not stuck(RUN, STEP, started("b", read_only=False), ended("b", is_error=False), *REFUSED)


def test_a_later_step_with_calls_is_progress() -> None:
    later = (STEP, started("b", read_only=True), ended("b", is_error=False))
    assert not stuck(RUN, STEP, *REFUSED, *later)


def test_a_new_run_resets_the_state() -> None:
    assert not stuck(RUN, STEP, *REFUSED, RUN, STEP, STEP_OVER)


def test_a_sub_agents_questions_are_not_counted() -> None:
    assert not stuck(RUN, STEP, *REFUSED, depth=1)
