"""Guardrails are called in order, the first tripwire decides, and failures do not pass (S4-67 … S4-70)."""

import asyncio
import contextlib
from dataclasses import replace
from typing import Any

import pytest

from tests.support.virtual_clock import run_virtual
from tui_agent.agent.guardrails import GuardrailContext, GuardrailDecision, first_trip
from tui_agent.protocol.events import AgentEvent, GuardrailTripped
from tui_agent.protocol.messages import AssistantMessage, ToolCall

from .fakes import FakeGuardrail

CONTEXT = GuardrailContext("input", (), "system", None, 3)
PASS = GuardrailDecision(passed=True, tripwire=True)
TRIP = GuardrailDecision(passed=False, tripwire=True, reason="too secret", severity="high")


async def test_only_those_of_the_kind_are_asked_in_order_until_one_trips() -> None:
    events: list[AgentEvent] = []
    other = FakeGuardrail("other", TRIP, "output")
    first, second, third = FakeGuardrail("first", PASS), FakeGuardrail("second", TRIP), FakeGuardrail("third", TRIP)

    reason = await first_trip([other, first, second, third], CONTEXT, events.append)

    assert reason == "too secret"
    assert [len(guardrail.asked) for guardrail in (other, first, second, third)] == [0, 1, 1, 0]
    assert [replace(asked, messages=()) for asked in first.asked] == [CONTEXT]
    assert events == [GuardrailTripped(name="second", lane="input", severity="high", reason="too secret", halted=True)]


async def test_not_passing_without_a_tripwire_is_told_and_does_not_halt() -> None:
    events: list[AgentEvent] = []
    warned = FakeGuardrail("soft", GuardrailDecision(passed=False))

    assert await first_trip([warned], CONTEXT, events.append) is None

    assert events == [
        GuardrailTripped(
            name="soft", lane="input", severity="medium", reason="guardrail soft did not pass", halted=False
        )
    ]


async def test_one_that_fails_lets_nothing_pass() -> None:
    events: list[AgentEvent] = []
    broken = FakeGuardrail("broken", ValueError("no model"))

    reason = await first_trip([broken], CONTEXT, events.append)

    assert reason == "guardrail broken failed: no model"
    assert isinstance(events[0], GuardrailTripped)
    assert (events[0].severity, events[0].halted) == ("critical", True)


async def test_what_it_writes_into_the_conversation_stays_its_own_and_it_may_be_a_plain_function() -> None:
    message = AssistantMessage(content=(ToolCall(id="c", name="act", arguments={"n": {"deep": 1}}),))

    class Writer:
        name, kind = "writer", "output"

        def check(self, context: GuardrailContext) -> GuardrailDecision:
            said: list[Any] = [context.answer, context.messages[0], *context.messages, *context.messages[:1]]
            for one in said:
                one.tool_calls[0].arguments["n"]["deep"] = 666
            return PASS

    writer: Any = Writer()

    assert await first_trip([writer], GuardrailContext("output", (message,), "", message, 0), [].append) is None
    assert message.tool_calls[0].arguments == {"n": {"deep": 1}}


async def test_one_whose_answer_is_none_lets_nothing_pass() -> None:
    class Odd:
        name, kind = "odd", "input"

        async def check(self, context: GuardrailContext) -> bool:
            return True

    odd: Any = Odd()

    assert await first_trip([odd], CONTEXT, [].append) == "guardrail odd answered a bool"


def test_one_that_swallows_every_cancellation_is_given_up() -> None:
    class Endless:
        name, kind = "endless", "input"

        async def check(self, context: GuardrailContext) -> GuardrailDecision:
            while True:
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.Event().wait()

    async def work() -> float:
        endless: Any = Endless()
        began = asyncio.get_running_loop().time()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(10):
                await first_trip([endless], CONTEXT, [].append)
        return asyncio.get_running_loop().time() - began

    assert 10 <= run_virtual(work()) < 20
