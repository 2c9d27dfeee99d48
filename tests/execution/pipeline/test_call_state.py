import asyncio
from typing import Any

import pytest

from tests.execution.kit import ScriptedTool, call
from tests.execution.stage_kit import Stand
from tests.support.virtual_clock import run_virtual
from tui_agent.execution.outcomes import failure
from tui_agent.execution.pipeline.call_state import CallState, PreparedCall, ReceivedCall, RefusedCall
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.tool import Accesses


class NoTurns:
    """Turns for states that never need one."""

    def __getattr__(self, name: str) -> Any:
        return lambda state: None


def new_state(parent: CancellationToken | None = None) -> CallState:
    token = (parent or CancellationToken()).child()
    received = ReceivedCall(call(), index=0, step=0, attempt=1, queued_at=0.0)
    refused = RefusedCall(failure("not_found", "unknown"), {})
    return CallState(received, refused, turns=NoTurns(), token=token, grace=2.0)


async def test_the_first_reason_to_stop_counts() -> None:
    state = new_state()

    state.stop(failure("timeout", "late"))
    state.cancel("no")

    assert state.stopping is not None
    assert state.stopping.status == "timeout"
    assert state.token.reason == "late"


async def test_a_cancelled_token_stops_the_call_with_its_reason() -> None:
    parent = CancellationToken()
    state = new_state(parent)

    parent.cancel("esc")

    assert state.stopping is not None
    assert "esc" in state.stopping.result.text


async def test_a_call_of_a_cancelled_run_starts_out_stopped() -> None:
    parent = CancellationToken()
    parent.cancel("esc")

    assert new_state(parent).stopping is not None


async def test_a_call_that_ended_cannot_be_stopped() -> None:
    for phase in ("ran", "over"):
        state = new_state()
        state.phase = phase  # pyright: ignore[reportAttributeAccessIssue]
        state.cancel("late")
        assert state.stopping is None


def test_a_waiting_call_ends_at_once() -> None:
    async def seconds() -> float:
        state = new_state()
        loop = asyncio.get_running_loop()
        began = loop.time()
        loop.call_soon(state.cancel, "stop")
        with pytest.raises(TimeoutError):
            await state.unless_stopped(asyncio.Event().wait())
        assert state.stop_timeout is None
        return loop.time() - began

    assert run_virtual(seconds()) == 0.0


async def test_a_cancelled_call_waits_for_nothing() -> None:
    state = new_state()
    state.cancel("stop")

    with pytest.raises(TimeoutError):
        await state.unless_stopped(asyncio.Event().wait())


async def test_a_nested_wait_ends_with_the_outer_one() -> None:
    state = new_state()

    async def inner() -> None:
        await state.unless_stopped(asyncio.sleep(0))
        state.cancel("stop")
        await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await state.unless_stopped(inner())


async def test_a_finished_call_no_longer_follows_its_token() -> None:
    parent = CancellationToken()
    state = new_state(parent)
    Stand().executor.end(state, failure("error", "broken"))

    parent.cancel("late")

    assert state.phase == "over"
    assert state.stopping is None


async def test_a_call_that_cannot_run_has_no_accesses() -> None:
    state = new_state()
    assert state.accesses() == Accesses()

    def broken(arguments: Any) -> Accesses:
        raise OSError

    state.prepared = PreparedCall(ScriptedTool(paths=broken), {}, read_only=False, safe=False, time_limit=None)
    assert state.accesses() is None


async def test_seconds_spent_on_questions_add_up() -> None:
    state = new_state()
    state.approval.asked = ((1.0, 2.0), (5.0, 5.5))

    assert state.approval.seconds == 1.5
