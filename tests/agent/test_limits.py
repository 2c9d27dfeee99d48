"""Limits that end a run between two steps: budgets, and repetition of the same calls."""

import pytest

from tests.support.table import table
from tui_agent.agent import Budget, RepetitionLimits
from tui_agent.agent.event_publisher import ApprovalWaitClock
from tui_agent.agent.run_report import RunTally
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import ApprovalRequested, ApprovalResolved, LoopDetected
from tui_agent.protocol.messages import (
    JsonObject,
    UserMessage,
)
from tui_agent.protocol.provider import ModelInfo, ModelRequest
from tui_agent.protocol.tool import ToolContext, ToolResult
from tui_agent.providers import Call, call, reply
from tui_agent.providers.scripted_provider import Reply

from .harness import BenchMaker, ScriptedTool


class CountingTool(ScriptedTool):
    """Tool that answers with the number of its execution, so every result differs."""

    async def execute(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        await super().execute(arguments, context)
        return ToolResult.of_text(str(len(self.runs)))


def looks(count: int, name: str = "look") -> list[Reply]:
    return [reply(f"Look {place}.", call(name)) for place in range(count)]


async def test_a_token_budget_ends_the_run_after_the_step_that_exhausts_it(bench: BenchMaker) -> None:
    tool = CountingTool("look")
    b = bench(looks(9), tool, budget=Budget(tokens=40))

    report = await b.loop.run("Go")

    assert (report.reason, report.step_count, len(tool.runs)) == ("budget", 3, 3)
    assert report.final_text.startswith("Look 2.")
    assert "45 tokens of 40" in report.final_text
    assert (await b.loop.run("On")).step_count == 3, "each run has a budget of its own"


async def test_a_cost_budget_ends_the_run(bench: BenchMaker) -> None:
    b = bench(looks(9), CountingTool("look"), budget=Budget(cost_usd=0.02))
    b.provider.model = ModelInfo("paid", input_price=1000.0, output_price=0.0)

    report = await b.loop.run("Go")

    assert (report.reason, report.step_count) == ("budget", 2)
    assert report.cost_usd == pytest.approx(0.02)
    assert "$0.02 of $0.02" in report.final_text


def test_a_time_budget_excludes_waits_for_the_user() -> None:
    budget = Budget(seconds=0.05)
    now = [0.0]
    waits = ApprovalWaitClock(now=lambda: now[0])
    tally = RunTally("run", "m", "Go", waits, started_mono=-1e9)

    assert budget.overrun(tally) is not None
    waits.note(ApprovalRequested(request_id="r", call_id="c", digest="d", tool="act", args={}))
    now[0] = 2e9
    assert budget.overrun(tally) is None


async def test_unknown_costs_are_not_counted(bench: BenchMaker) -> None:
    b = bench([*looks(2), "Done."], CountingTool("look"), budget=Budget(cost_usd=0.000001))

    assert (await b.loop.run("Go")).reason == "done"


@table(("nudge", "stop"), [(1, 5), (3, 3), (4, 3), (0, 0)])
def test_invalid_repetition_limits_are_refused(nudge: int, stop: int) -> None:
    with pytest.raises(ConfigurationError, match="1 < nudge_at < stop_at"):
        RepetitionLimits(nudge, stop)


async def test_repetition_leads_to_one_nudge_and_then_ends_the_run(bench: BenchMaker) -> None:
    tool = ScriptedTool("look")
    b = bench(looks(20), tool)

    report = await b.loop.run("Go")

    assert (report.reason, len(tool.runs)) == ("loop_detected", 6)
    assert b.of(LoopDetected) == [
        LoopDetected(tool="look", count=3, action="nudge"),
        LoopDetected(tool="look", count=6, action="abort"),
    ]
    notices = [message for message in b.loop.history.messages() if isinstance(message, UserMessage)][1:]
    assert [(notice.kind, "3 times" in notice.text) for notice in notices] == [("notice", True)]
    assert b.sent(3)[-2].startswith("tool_result"), "the nudge follows the results"
    assert b.sent(3)[-1].startswith("user: You have now made the same calls")


async def test_a_model_that_heeds_the_nudge_continues(bench: BenchMaker) -> None:
    def listens(request: ModelRequest) -> Reply:
        last = request.messages[-1]
        nudged = isinstance(last, UserMessage) and "try another way" in last.text
        return reply(Call("other" if nudged else "look", {}))

    b = bench([*([listens] * 4), "Done."], ScriptedTool("look"), ScriptedTool("other"))

    assert (await b.loop.run("Go")).reason == "done"


async def test_calls_with_changing_results_are_not_repetition(bench: BenchMaker) -> None:
    b = bench([*looks(12), "Done."], CountingTool("look"))

    assert (await b.loop.run("Go")).reason == "done"
    assert b.of(LoopDetected) == []


async def test_a_cycle_of_several_steps_is_repetition_too(bench: BenchMaker) -> None:
    names = ["look", "change", "check"] * 8
    b = bench([reply(call(name)) for name in names], *(ScriptedTool(name) for name in ("look", "change", "check")))

    report = await b.loop.run("Go")

    assert (report.reason, report.step_count) == ("loop_detected", 18)
    assert [(event.action, event.count) for event in b.of(LoopDetected)] == [("nudge", 3), ("abort", 6)]


async def test_a_user_message_restarts_the_count(bench: BenchMaker) -> None:
    b = bench([], ScriptedTool("look"))

    def steered(request: ModelRequest) -> Reply:
        if len(b.provider.requests) in (2, 4, 6, 8):
            b.loop.steer("once more please")
        return reply(call("look"))

    b.provider.add(*([steered] * 9), "Done.")

    assert (await b.loop.run("Go")).reason == "done"
    assert b.of(LoopDetected) == []


def _asked(request_id: str) -> ApprovalRequested:
    return ApprovalRequested(request_id=request_id, call_id="c", digest="d", tool="act", args={})


def _answered(request_id: str) -> ApprovalResolved:
    return ApprovalResolved(request_id=request_id, call_id="c", decision="approve", by="user")


def test_overlapping_questions_count_once_and_a_sub_agents_questions_count_for_its_parent() -> None:
    clock = {"now": 0.0}
    above = ApprovalWaitClock(now=lambda: clock["now"])
    first, second = (ApprovalWaitClock(above, now=lambda: clock["now"]) for _ in range(2))
    story = [(1, first, _asked("a")), (2, second, _asked("b")), (4, first, _answered("a")), (7, second, _answered("b"))]
    for at, waits, event in [*story, (9, above, _asked("c"))]:
        clock["now"] = float(at)
        waits.note(event)
    clock["now"] = 10.0

    assert (first.ms, second.ms, above.ms) == (3_000, 5_000, 7_000)
