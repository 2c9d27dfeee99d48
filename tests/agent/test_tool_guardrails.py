"""Guardrails of the kinds `tool_input` and `tool_output`, in a whole agent."""

from typing import Any

import pytest

from tui_agent.agent import GuardrailContext, GuardrailDecision
from tui_agent.agent.guardrails import GuardrailKind, first_trip
from tui_agent.execution import HookBus
from tui_agent.protocol.events import ApprovalRequested, GuardrailTripped, ToolEnded
from tui_agent.protocol.hooks import BeforeTool, ModifyArguments
from tui_agent.providers.scripted_provider import call, reply

from .fakes import FakeGuardrail, FakePolicy
from .harness import BenchMaker, ScriptedTool

SOFT = GuardrailDecision(passed=False, reason="not that", severity="high")
TRIP = GuardrailDecision(passed=False, tripwire=True, reason="not that", severity="high")
PASS = GuardrailDecision(passed=True, tripwire=True)


@pytest.mark.parametrize(("decision", "reason"), [(SOFT, "done"), (TRIP, "guardrail")])
@pytest.mark.parametrize(
    ("kind", "status", "runs"), [("tool_input", "denied_guardrail", 0), ("tool_output", "withheld", 1)]
)
async def test_a_guardrail_denies_a_call_or_withholds_its_result_and_a_tripwire_ends_the_run(
    bench: BenchMaker, kind: GuardrailKind, status: str, runs: int, decision: GuardrailDecision, reason: str
) -> None:
    look = ScriptedTool("look")
    passing, first, later = (
        FakeGuardrail(name, one, kind) for name, one in (("a", PASS), ("b", decision), ("c", SOFT))
    )
    b = bench([reply(call("look")), "Done."], look, guardrails=[passing, first, later])

    report = await b.loop.run("Go")

    assert (report.reason, report.final_text) == (reason, "not that" if decision.tripwire else "Done.")
    assert report.error is None
    assert [event.status for event in b.of(ToolEnded)] == [status]
    assert len(look.runs) == runs
    tripped = {event.name: event for event in b.of(GuardrailTripped)}
    assert tripped["b"] == GuardrailTripped(
        name="b", lane=kind, severity="high", reason="not that", halted=decision.tripwire
    )
    assert [len(one.asked) for one in (passing, first, later)] == [1, 1, not decision.tripwire]
    assert len(tripped) == 1 + (not decision.tripwire), "each failed check is published"


@pytest.mark.parametrize("kind", ["tool_input", "tool_output"])
async def test_a_tripwire_after_a_guardrail_that_only_denies_ends_the_run_too(
    bench: BenchMaker, kind: GuardrailKind
) -> None:
    rails = [FakeGuardrail("soft", SOFT, kind), FakeGuardrail("hard", TRIP, kind)]
    b = bench([reply(call("look")), "never"], ScriptedTool("look"), guardrails=rails)

    report = await b.loop.run("Go")

    assert (report.reason, report.final_text, b.provider.left) == ("guardrail", "not that", 1)
    assert [(event.name, event.halted) for event in b.of(GuardrailTripped)] == [("soft", False), ("hard", True)]


async def test_a_guardrail_sees_the_final_call_the_conversation_and_the_result(bench: BenchMaker) -> None:
    hooks = HookBus()

    @hooks.before_tool
    def rewrite(question: BeforeTool) -> ModifyArguments | None:
        return None if question.arguments else ModifyArguments({"path": "/right"})

    before, after = FakeGuardrail("before", PASS, "tool_input"), FakeGuardrail("after", PASS, "tool_output")
    b = bench(
        ["One.", reply(call("look")), "Done."],
        ScriptedTool("look"),
        guardrails=[before, after],
        hooks=hooks,
        system="S",
    )

    await b.loop.run("Hello")
    await b.loop.run("Go")

    seen = [context.call.arguments for context in before.asked if context.call is not None]
    assert seen == [{}, {"path": "/right"}], "once with the model's arguments, once with the hook's"
    context = after.asked[0]
    assert context.call is not None
    assert context.result is not None
    assert (context.call.name, context.result.text, context.step, context.answer) == ("look", "look", 0, None)
    assert "S" in context.system
    assert [message.role for message in context.messages] == ["user", "assistant", "user", "assistant"]


async def test_a_guardrail_that_raises_lets_no_call_pass_and_asks_no_question(bench: BenchMaker) -> None:
    look = ScriptedTool("look")
    broken = FakeGuardrail("broken", ValueError("no model"), "tool_input")
    policy: Any = FakePolicy()
    b = bench([reply(call("look")), "never"], look, guardrails=[broken], policy=policy)

    report = await b.loop.run("Go")

    assert (report.reason, look.runs) == ("guardrail", [])
    assert b.of(ApprovalRequested) == []
    assert b.of(GuardrailTripped)[0].reason == "guardrail broken failed: no model"


CONTEXT = GuardrailContext("input", (), "system", None, 3)


async def test_an_invalid_answer_lets_nothing_pass() -> None:
    class Odd:
        name, kind = "odd", "input"

        async def check(self, context: GuardrailContext) -> bool:
            return True

    odd: Any = Odd()

    assert await first_trip([odd], CONTEXT, [].append) == "guardrail odd answered a bool"
