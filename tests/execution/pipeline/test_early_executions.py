"""Calls that started before an answer broke off, and the repeated answer: each runs once and has one result."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.execution.bench import Bench, settled
from tests.execution.kit import Doors, FakePolicy, ScriptedTool, call
from tests.support.virtual_clock import run_virtual
from tui_agent.execution import EarlyExecutions, ExecutionOptions, HookBus, SteeringGetter, ToolScheduler
from tui_agent.protocol.events import FileChanged, ToolEnded, ToolOutput, ToolProgress, ToolStarted
from tui_agent.protocol.hooks import ModifyArguments
from tui_agent.protocol.messages import JsonObject, ToolCall, ToolResultMessage, UserMessage, user_message
from tui_agent.protocol.tool import Accesses, ToolContext, ToolResult


class TwoAnswers(Bench):
    """Turn whose first answer breaks off: the calls of `first` are submitted and discarded, then `second` arrive."""

    def __init__(self, *tools: ScriptedTool, options: ExecutionOptions | None = None, **settings: Any) -> None:
        super().__init__(list(tools), options or ExecutionOptions(grace=0), **settings)
        self.bus.unanswered = lambda: self.first_ids
        self.results: tuple[ToolResultMessage, ...] = ()
        self.first_ids: set[str] = set()

    def scheduled(self, early: EarlyExecutions) -> ToolScheduler:
        return ToolScheduler(self.executor, cancellation=self.token, early=early)

    async def break_off(self, early: EarlyExecutions, *first: ToolCall) -> None:
        self.first_ids |= {one.id for one in first}
        async with self.scheduled(early) as scheduler:
            for one in first:
                scheduler.submit(one)
            await settled()
            await scheduler.discard("the stream broke")

    async def answer(self, early: EarlyExecutions, *second: ToolCall) -> None:
        async with self.scheduled(early) as scheduler:
            for one in second:
                scheduler.submit(one)
                await settled()
            self.results = (await scheduler.finish()).tool_results

    def adopted(self) -> dict[str, str]:
        return {event.call_id: event.adopted_from for event in self.events(ToolStarted) if event.adopted_from}


def look(behaviour: Any, **settings: Any) -> ScriptedTool:
    return ScriptedTool("look", behaviour, read_only=True, **settings)


async def test_two_identical_calls_run_twice_and_are_adopted_in_order() -> None:
    doors = Doors()
    tool = look(doors)
    turn = TwoAnswers(tool)
    async with EarlyExecutions(turn.token) as early:
        await turn.break_off(early, call("look", "a"), call("look", "b"))
        doors.open("a", "b", "e")
        await turn.answer(early, call("look", "c"), call("look", "d"), call("look", "e"))

    assert tool.calls == ["a", "b", "e"]
    assert [result.text for result in turn.results] == ["through a", "through b", "through e"]


async def test_a_read_after_a_conflicting_write_does_not_adopt_an_earlier_read() -> None:
    content = ["old"]

    async def read(arguments: JsonObject, context: ToolContext) -> str:
        return content[0]

    async def write(arguments: JsonObject, context: ToolContext) -> str:
        content[0] = "new"
        return "written"

    def at(kind: str) -> Any:
        return lambda arguments: Accesses(**{kind: frozenset({Path("/x")})})

    turn = TwoAnswers(look(read, paths=at("reads")), ScriptedTool("write", write, paths=at("writes")))
    async with EarlyExecutions(turn.token) as early:
        await turn.break_off(early, call("look", "a"))
        await turn.answer(early, call("write", "w"), call("look", "b"))

    assert [result.text for result in turn.results] == ["written", "new"]
    assert turn.adopted() == {}


async def test_the_call_that_takes_over_passes_the_whole_pipeline() -> None:
    asked: list[str] = []
    hooks = HookBus()
    hooks.before_tool(lambda question: asked.append(question.call.id))
    hooks.after_tool(lambda question: ToolResult.of_text(f"{question.call.id} {question.result.text}"))
    policy = FakePolicy()
    doors = Doors()
    tool = look(doors)
    turn = TwoAnswers(tool, hooks=hooks, policy=policy)
    async with EarlyExecutions(turn.token) as early:
        await turn.break_off(early, call("look", "a"), call("look", "a2"))
        doors.open("a", "a2")
        policy.verdicts["look"] = "deny"
        await turn.answer(early, call("look", "b"))

    assert turn.ended()["b"] == "denied_policy"
    assert turn.results[0].is_error

    policy.verdicts["look"] = "allow"
    turn.first_ids.add("b")
    async with EarlyExecutions(turn.token) as early:
        await turn.break_off(early, call("look", "c"))
        doors.open("c")
        await turn.answer(early, call("look", "d"))

    assert asked == ["a", "a2", "b", "c", "d"]
    assert [result.text for result in turn.results] == ["d through c"]


async def test_a_call_that_a_hook_rewrites_differently_runs_again() -> None:
    numbers = iter([1, 2])
    hooks = HookBus()
    hooks.before_tool(lambda question: ModifyArguments({"n": next(numbers)}))
    tool = look(lambda arguments, context: text_of(arguments))

    async def text_of(arguments: JsonObject) -> str:
        return str(arguments)

    turn = TwoAnswers(tool, hooks=hooks)
    async with EarlyExecutions(turn.token) as early:
        await turn.break_off(early, call("look", "a"))
        await turn.answer(early, call("look", "b"))

    assert tool.calls == ["a", "b"]
    assert [result.text for result in turn.results] == ["{'n': 2}"]
    assert turn.adopted() == {}


async def test_reports_without_an_owner_are_dropped_and_later_ones_go_to_the_new_owner() -> None:
    steps = [asyncio.Event() for _ in range(3)]

    async def tell(arguments: JsonObject, context: ToolContext) -> ToolResult:
        for number, step in enumerate(steps):
            context.output(f"{number} ")
            context.progress(f"step {number}")
            await step.wait()
        context.measure("steps", 3)
        return ToolResult.of_text("done")

    turn = TwoAnswers(look(tell))
    async with EarlyExecutions(turn.token) as early, asyncio.TaskGroup() as group:
        await turn.break_off(early, call("look", "a"))
        steps[0].set()
        await settled()
        group.create_task(turn.answer(early, call("look", "b")))
        await settled()
        steps[1].set()
        steps[2].set()

    assert [(event.call_id, event.chunk) for event in turn.events(ToolOutput)] == [("a", "0 "), ("b", "2 ")]
    assert [event.call_id for event in turn.events(ToolProgress)] == ["a", "b"]
    assert turn.events(ToolEnded)[-1].metrics["steps"].value == 3


@pytest.mark.parametrize("when", ["between", "after"])
async def test_an_abort_reaches_waiting_and_adopted_executions(when: str) -> None:
    heard: list[str] = []

    async def heed(arguments: JsonObject, context: ToolContext) -> ToolResult:
        await context.cancellation.wait()
        heard.append(context.cancellation.reason)
        return ToolResult.of_text("half")

    turn = TwoAnswers(look(heed), options=ExecutionOptions())
    async with EarlyExecutions(turn.token) as early, asyncio.TaskGroup() as group:
        await turn.break_off(early, call("look", "a"))
        if when == "after":
            group.create_task(turn.answer(early, call("look", "b")))
            await settled()
        turn.token.cancel("esc")

    assert heard == ["esc"]
    if when == "after":
        assert turn.ended()["b"] == "cancelled"
        assert "half" in turn.results[0].text


async def test_a_cancelled_task_leaves_nothing_running() -> None:
    doors = Doors()
    turn = TwoAnswers(look(doors))

    async def work() -> None:
        async with EarlyExecutions(turn.token) as early:
            await turn.break_off(early, call("look", "a"), call("look", "a2"))
            await turn.answer(early, call("look", "b"))

    async with asyncio.TaskGroup() as group:
        task = group.create_task(work())
        await doors.until("a", "a2")
        await settled()
        await settled()
        task.cancel()

    assert task.cancelled()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert turn.ended()["b"] == "cancelled"
    turn.first_ids.add("b")


async def test_a_call_discarded_before_its_turn_passes_its_claim_on() -> None:
    doors = Doors()
    tool = look(doors)
    turn = TwoAnswers(tool)
    async with EarlyExecutions(turn.token) as early:
        await turn.break_off(early, call("look", "a"))
        async with turn.scheduled(early) as scheduler:
            scheduler.submit(call("look", "b"))
            await scheduler.discard("the stream broke again")
        turn.first_ids.add("b")
        doors.open("a")
        await turn.answer(early, call("look", "c"))

    assert tool.calls == ["a"]
    assert turn.adopted() == {"c": "a"}


# --- calls with effects -----------------------------------------------------------------------------------------------


def taking(messages: list[UserMessage]) -> SteeringGetter:
    """Return a getter that takes all waiting messages."""

    async def take() -> list[UserMessage]:
        taken, messages[:] = list(messages), []
        return taken

    return take


ALLOWED = ExecutionOptions(stream_tools="allowed", grace=0)


def write(behaviour: Any, **settings: Any) -> ScriptedTool:
    return ScriptedTool("write", behaviour, **settings)


async def test_a_call_with_effects_starts_early_if_it_is_allowed_and_its_arguments_are_certain() -> None:
    tools = [ScriptedTool("write"), ScriptedTool("ask"), ScriptedTool("alone", alone=True)]
    turn = TwoAnswers(*tools, options=ALLOWED, policy=FakePolicy({"ask": "ask"}))

    async with (
        EarlyExecutions(turn.token, takes_effects=True) as early,
        turn.scheduled(early) as scheduler,
    ):
        for number, name in enumerate(("write", "ask", "alone")):
            scheduler.submit(call(name, f"c{number}", n=1))
        await settled()
        assert [event.call_id for event in turn.events(ToolStarted)] == ["c0"]
        await scheduler.discard("enough")
    turn.first_ids = {"c0", "c1", "c2"}

    for takes_effects, arguments in ((True, {}), (False, {"n": 1})):
        other = TwoAnswers(ScriptedTool("write"), options=ALLOWED)
        async with EarlyExecutions(other.token, takes_effects=takes_effects) as early:
            await other.break_off(early, call("write", "a", **arguments))
        assert other.events(ToolStarted) == []


@pytest.mark.parametrize("is_over", [True, False])
async def test_an_effect_of_an_answer_that_broke_off_happens_once(is_over: bool) -> None:
    gate, calls = asyncio.Event(), list[str]()

    async def behaviour(arguments: JsonObject, context: ToolContext) -> ToolResult:
        calls.append(context.call_id)
        await gate.wait()
        context.emit("file.changed", {"path": "/x", "change": "modified"})
        return ToolResult.of_text("done")

    told: list[str] = []
    turn = TwoAnswers(write(behaviour), look(behaviour), options=ALLOWED)
    if is_over:
        gate.set()
    async with (
        EarlyExecutions(turn.token, takes_effects=True, on_unclaimed=lambda one: told.append(one.call_id)) as early,
        asyncio.TaskGroup() as group,
    ):
        await turn.break_off(early, call("write", "a", n=1))
        answering = group.create_task(turn.answer(early, call("look", "r", n=2), call("write", "b", n=1)))
        await settled()
        # Nothing else starts while it runs.
        assert calls == (["a", "r"] if is_over else ["a"])
        gate.set()
        await answering

    assert sorted(calls) == ["a", "r"]
    assert turn.adopted() == {"b": "a"}
    assert told == []
    # Nothing is lost while no call owns the execution.
    assert sorted(event.call_id for event in turn.events(FileChanged)) == ["a", "r"]
    assert [result.is_error for result in turn.results] == [False, False]


async def test_no_effect_starts_early_while_a_message_of_the_user_waits() -> None:
    messages = [user_message("stop", "steer")]
    turn = TwoAnswers(ScriptedTool("write"), options=ALLOWED)

    async with (
        EarlyExecutions(turn.token, takes_effects=True) as early,
        ToolScheduler(
            turn.executor,
            cancellation=turn.token,
            early=early,
            get_steering=taking(messages),
            steer_waits=lambda: bool(messages),
        ) as scheduler,
    ):
        scheduler.submit(call("write", "a", n=1))
        scheduler.submit(call("write", "b", n=2))
        await settled()
        assert turn.events(ToolStarted) == []
        done = await scheduler.finish()

    assert [message.text for message in done.steering_messages or ()] == ["stop"]
    assert turn.ended()["b"] == "skipped_steering"


def test_a_message_interrupts_a_call_that_took_over_a_running_effect() -> None:
    """The call is stopped at the next poll, although `finish` still waits for the effect."""

    async def work() -> tuple[TwoAnswers, tuple[UserMessage, ...] | None, float]:
        messages = list[UserMessage]()

        async def heed(arguments: JsonObject, context: ToolContext) -> ToolResult:
            await context.cancellation.wait()
            return ToolResult.of_text("half")

        tools = [write(heed, interruptible=True), ScriptedTool("other")]
        options = ExecutionOptions(stream_tools="allowed", steering_mode="interrupt", interrupt_interval=0.5)
        turn = TwoAnswers(*tools, options=options)
        loop = asyncio.get_running_loop()
        async with EarlyExecutions(turn.token, takes_effects=True) as early:
            await turn.break_off(early, call("write", "a", n=1))
            async with ToolScheduler(
                turn.executor, cancellation=turn.token, early=early, get_steering=taking(messages)
            ) as scheduler:
                scheduler.submit(call("write", "b", n=1))
                scheduler.submit(call("other", "c", n=1))
                await settled()
                loop.call_later(1.2, messages.append, user_message("not that", "steer"))
                began = loop.time()
                done = await scheduler.finish()
        return turn, done.steering_messages, loop.time() - began

    turn, steering, seconds = run_virtual(work())

    assert turn.adopted() == {"b": "a"}
    assert turn.ended() == {"a": "cancelled", "b": "interrupted", "c": "skipped_steering"}
    assert [message.text for message in steering or ()] == ["not that"]
    assert round(seconds, 6) == 1.5


@pytest.mark.parametrize("obstacle", ["steer", "interrupt", "cut", "late"])
async def test_a_call_that_repeats_an_effect_takes_it_over_whatever_came_in_between(obstacle: str) -> None:
    messages, told, gate = list[UserMessage](), list[str](), asyncio.Event()

    async def wait(arguments: JsonObject, context: ToolContext) -> ToolResult:
        await gate.wait()
        return ToolResult.of_text("seen")

    tool = ScriptedTool("write")
    options = replace(ALLOWED, steering_mode="interrupt") if obstacle == "interrupt" else ALLOWED
    turn = TwoAnswers(tool, look(wait), options=options)
    async with EarlyExecutions(
        turn.token, takes_effects=True, on_unclaimed=lambda one: told.append(one.call_id)
    ) as early:
        await turn.break_off(early, call("write", "a", n=1))
        async with ToolScheduler(
            turn.executor,
            cancellation=turn.token,
            early=early,
            get_steering=taking(messages),
            steer_waits=lambda: bool(messages),
        ) as scheduler:
            # The write waits for the look.
            scheduler.submit(call("look", "r", n=2))
            await settled()
            if obstacle == "late":
                scheduler.submit_all([call("write", "b", n=1)])
            else:
                scheduler.submit(call("write", "b", n=1))
            await settled()
            if obstacle in ("steer", "interrupt"):
                messages.append(user_message("stop", "steer"))
            if obstacle != "cut":
                gate.set()
            results = (await scheduler.finish(cut=obstacle == "cut")).tool_results

    assert tool.calls == ["a"]
    assert turn.adopted() == {"b": "a"}
    assert turn.ended()["b"] == "ok"
    assert results[1].text == "write {'n': 1}"
    assert told == []


async def test_a_stopped_effect_of_an_answer_that_broke_off_is_reported() -> None:
    gate, told = asyncio.Event(), list[str]()

    async def behaviour(arguments: JsonObject, context: ToolContext) -> ToolResult:
        await gate.wait()
        return ToolResult.of_text("done")

    turn = TwoAnswers(write(behaviour), options=ALLOWED)
    turn.first_ids = {"a"}
    async with (
        EarlyExecutions(turn.token, takes_effects=True, on_unclaimed=lambda one: told.append(one.call_id)) as early,
        turn.scheduled(early) as scheduler,
    ):
        scheduler.submit(call("write", "a", n=1))
        await settled()
        assert scheduler.cancel_call("a", "the user stopped it")
        await settled()
        await scheduler.discard("the stream broke")

    assert turn.ended() == {"a": "cancelled"}
    assert told == ["a"]
