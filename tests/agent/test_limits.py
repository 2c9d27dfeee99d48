"""Limits that end a run between two steps: budgets, and repetition of the same calls."""

import asyncio
from time import monotonic
from typing import Literal

import pytest

from tests.support.table import table
from tui_agent.agent import Budget, RepetitionLimits
from tui_agent.agent.event_publisher import ApprovalWaitClock
from tui_agent.agent.guardrails import MAX_CONTINUATIONS, PromptCheck, RunHooks
from tui_agent.agent.run_report import RunTally
from tui_agent.agent.stop_tokens import unless_cancelled
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import ApprovalRequested, ApprovalResolved, LoopDetected, StepStarted, Warned
from tui_agent.protocol.messages import (
    JsonObject,
    UserMessage,
)
from tui_agent.protocol.provider import ModelInfo
from tui_agent.protocol.tool import ToolContext, ToolResult
from tui_agent.providers import call, reply
from tui_agent.providers.scripted_provider import Reply

from .harness import Bench, BenchMaker, ScriptedTool


class CountingTool(ScriptedTool):
    """Tool that answers with the number of its execution, so every result differs."""

    async def execute(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        await super().execute(arguments, context)
        return ToolResult.of_text(str(len(self.runs)))


def looks(count: int, name: str = "look") -> list[Reply]:
    return [reply(f"Look {place}.", call(name)) for place in range(count)]


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


async def test_no_request_is_sent_before_the_delay_is_over(bench: BenchMaker) -> None:
    b = bench(["Answer."])
    begun = monotonic()
    b.loop.delay_requests(0.1)
    b.loop.delay_requests(0.05)

    await b.loop.run("Go")

    assert monotonic() - begun >= 0.1
    assert b.ended.reason == "done"


async def test_a_stop_ends_the_wait(bench: BenchMaker) -> None:
    b = bench(["never asked for"])
    b.loop.delay_requests(3600)

    async with asyncio.TaskGroup() as group:
        group.create_task(b.loop.run("Go"))
        while not b.of(StepStarted):
            await asyncio.sleep(0)
        b.loop.stop()

    assert b.ended.reason in ("stopped", "aborted")
    assert b.provider.left == 1


async def test_a_timeout_of_the_work_itself_is_not_mistaken_for_the_token() -> None:
    async def work() -> None:
        raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        await unless_cancelled(CancellationToken(), work())


class StubbornHooks:
    """Hooks that never let a run end; the user writes during their last question that counts."""

    def __init__(self) -> None:
        self.bench: Bench | None = None
        self.asked = 0

    async def check_prompt(self, message: UserMessage, /) -> PromptCheck:
        return PromptCheck()

    async def before_end(self, answer: str, is_continued: bool, /) -> str | None:
        self.asked += 1
        if self.asked == MAX_CONTINUATIONS + 1:
            assert self.bench is not None
            self.bench.loop.steer("wait")
        return "Not yet."

    async def before_compaction(self, trigger: Literal["automatic", "manual"], focus: str, /) -> None:
        pass

    async def after_compaction(self) -> str | None:
        return None

    def for_sub_agent(self, agent_id: str, /) -> RunHooks | None:
        return None


async def test_hooks_at_their_limit_do_not_end_a_run_before_a_message_of_the_user(bench: BenchMaker) -> None:
    hooks = StubbornHooks()
    hooks.bench = made = bench(["answer"] * (MAX_CONTINUATIONS + 2), run_hooks=hooks)

    report = await made.loop.run("go")

    assert report.reason == "done"
    assert made.delivered == ["wait"]
    assert made.sent(MAX_CONTINUATIONS + 1)[-1] == "user: wait"
    assert [event.code for event in made.of(Warned)] == ["hook_limit"] * 2
