"""S0: three strategies, steering and hooks, in the preset `rust_loop`."""

import asyncio
import inspect
from collections.abc import Sequence
from typing import Any

import pytest

from tests.behaviour.event_sequences import end_of, event_sequence, whole
from tests.execution.bench import Bench
from tests.execution.kit import Doors, Ran, ScriptedTool, Steering, call, calls, run, sleeping
from tests.support.table import table
from tests.support.validating_bus import ValidatingBus
from tests.support.virtual_clock import run_virtual
from tui_agent.execution import (
    Batched,
    ExecutionOptions,
    HookBus,
    Parallel,
    Sequential,
    Strategy,
    execute_tool_calls,
    parse_strategy,
    skip_tool_call,
)
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.events import AgentEvent, ToolEnded, ToolProgress, ToolQueued, ToolStarted, ToolUpdated
from tui_agent.protocol.messages import JsonObject, TextBlock, now_ms
from tui_agent.protocol.tool import ToolContext, ToolResult

STRATEGIES: list[Strategy] = [Sequential(), Parallel(), Batched(2)]
SKIPPED = "Skipped due to queued user message."
VETO = "Tool call skipped by before_tool_execution hook"


def literal(strategy: Strategy) -> ExecutionOptions:
    return ExecutionOptions.preset("rust_loop", strategy=strategy)


def started(ran: Ran) -> list[str]:
    return [event.call_id for event in ran.of(ToolStarted)]


async def steered(count: int, strategy: Strategy, at_poll: int | None) -> tuple[Ran, Steering]:
    steering = Steering(at_poll)
    return await run([ScriptedTool()], calls(*["act"] * count), literal(strategy), steering=steering), steering


class Timeline:
    """Time spans of calls on the virtual clock; each call takes the seconds in its argument."""

    def __init__(self, seconds: Sequence[float], strategy: Strategy) -> None:
        self.spans: dict[str, tuple[float, float]] = {}
        self.ran = run_virtual(self._run(seconds, strategy))

    async def _run(self, seconds: Sequence[float], strategy: Strategy) -> Ran:
        asked = [call("act", f"c{number}", seconds=one) for number, one in enumerate(seconds)]
        return await run([ScriptedTool(behaviour=self._work)], asked, literal(strategy))

    async def _work(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await asyncio.sleep(arguments["seconds"])
        self.spans[context.call_id] = (began, loop.time())
        return ToolResult.of_text(context.call_id)


def heard_hooks(heard: list[Any]) -> HookBus:
    hooks = HookBus()
    hooks.before_tool(lambda question: heard.append(("before", question.call.id)))
    hooks.after_tool_observer(lambda ended: heard.append(("after", ended.call_id)))
    return hooks


async def updating(arguments: JsonObject, context: ToolContext) -> ToolResult:
    for text in ("one", "two", "three"):
        context.on_update(ToolResult.of_text(text, details={"part": text}))
        context.on_progress(f"after {text}")
    return ToolResult.of_text("done")


async def fail(arguments: JsonObject, context: ToolContext) -> ToolResult:
    raise ValueError("the disk is full")


# --- the entry point --------------------------------------------------------------------------------------------------


async def test_s0_1_the_dispatcher_takes_these_inputs_and_returns_these_two_fields() -> None:
    assert list(inspect.signature(execute_tool_calls).parameters)[:6] == [
        "tools",
        "calls",
        "bus",
        "cancellation",
        "get_steering",
        "options",
    ]

    result = await execute_tool_calls(
        [ScriptedTool()],
        [call()],
        bus=ValidatingBus(literal(Sequential())),
        cancellation=CancellationToken(),
        get_steering=Steering(at_poll=1),
        options=literal(Sequential()),
    )

    assert [message.text for message in result.tool_results] == ["act {}"]
    assert [message.text for message in result.steering_messages or ()] == ["stop that"]


@table("strategy", STRATEGIES)
async def test_s0_2_without_calls_there_is_an_empty_result_no_event_and_no_poll(strategy: Strategy) -> None:
    steering = Steering(at_poll=1)

    ran = await run([ScriptedTool()], [], literal(strategy), steering=steering)

    assert (ran.result.tool_results, ran.result.steering_messages, ran.events) == ((), None, [])
    assert steering.polls == 0


@table("strategy", STRATEGIES)
async def test_s0_3_every_call_has_one_result_in_order_and_a_skipped_one_is_an_error(strategy: Strategy) -> None:
    asked = calls("act", "fail", "nothing", "act", "act")

    ran = await run([ScriptedTool(), ScriptedTool("fail", fail)], asked, literal(strategy), steering=Steering(2))

    assert [message.call_id for message in ran.result.tool_results] == ["c0", "c1", "c2", "c3", "c4"]
    skipped = [message for message in ran.result.tool_results if SKIPPED in message.text]
    assert all(message.is_error for message in skipped)
    assert len(skipped) == {"sequential": 3, "parallel": 0, "batched": 1}[type(strategy).__name__.lower()]


def test_s0_4_the_caller_chooses_one_of_three_strategies_at_run_time() -> None:
    chosen = [parse_strategy(text) for text in ("sequential", "parallel", "batched:2")]

    assert chosen == STRATEGIES
    assert [round(sum_of(Timeline([1, 1, 1, 1], strategy)), 6) for strategy in chosen] == [4, 1, 2]


def sum_of(timeline: Timeline) -> float:
    """Seconds from the first start to the last end."""
    return max(end for _, end in timeline.spans.values()) - min(begin for begin, _ in timeline.spans.values())


# --- batched ----------------------------------------------------------------------------------------------------------


@table(
    ("count", "at_poll", "ran_calls", "polls"),
    [(7, 2, 4, 2), (5, 1, 2, 1), (4, 2, 4, 2), (5, None, 5, 3)],
)
async def test_s0_9_s0_10_s0_11_s0_12_s0_23_steering_skips_later_chunks_in_order_and_ends_polling(
    count: int, at_poll: int | None, ran_calls: int, polls: int
) -> None:
    ran, steering = await steered(count, Batched(2), at_poll)

    assert ran.statuses == ["ok"] * ran_calls + ["skipped_steering"] * (count - ran_calls)
    assert [message.text for message in ran.result.steering_messages or ()] == ["stop that"] * (at_poll is not None)
    assert (ran.result.steering_messages is None) is (at_poll is None)
    assert steering.polls == polls
    assert [message.call_id for message in ran.result.tool_results] == [f"c{number}" for number in range(count)]
    assert [SKIPPED in text for text in ran.texts] == [number >= ran_calls for number in range(count)]
    skipped = [f"c{number}" for number in range(ran_calls, count)]
    told = event_sequence(ran.events)
    ends = [one for name in skipped for one in end_of(name, "act", ran.texts[-1], is_error=True)]
    assert told[len(told) - len(ends) :] == ends


# --- sequential -------------------------------------------------------------------------------------------------------


@table("strategy", STRATEGIES)
async def test_s0_16_steering_never_interrupts_a_running_call(strategy: Strategy) -> None:
    doors, steering = Doors(), Steering()
    bench = Bench([ScriptedTool(behaviour=doors, interruptible=True)], literal(strategy), get_steering=steering)
    async with bench.scheduler as scheduler, asyncio.TaskGroup() as group:
        scheduler.submit_all(calls("act"))
        finishing = group.create_task(scheduler.finish())
        await doors.until("c0")
        steering.say()
        scheduler.notify_steering()
        await asyncio.sleep(0)
        assert not scheduler.tool_results
        doors.open("c0")

    assert [report.status for report in finishing.result().reports] == ["ok"]


# --- a batch ----------------------------------------------------------------------------------------------------------


def test_s0_17_s0_18_all_calls_of_a_batch_are_awaited_and_their_results_are_in_call_order() -> None:
    ran = Timeline([3, 1, 2], Parallel()).ran
    assert [event.call_id for event in ran.of(ToolEnded)] == ["c1", "c2", "c0"]
    assert ran.texts == ["c0", "c1", "c2"]

    tools = [ScriptedTool("slow", sleeping(9)), ScriptedTool("fail", fail)]
    failed = run_virtual(run(tools, calls("slow", "fail", "slow"), literal(Parallel())))
    assert failed.statuses == ["ok", "error", "ok"]


@table("strategy", STRATEGIES)
async def test_s0_20_without_a_getter_the_messages_are_none_and_never_an_empty_list(strategy: Strategy) -> None:
    ran = await run([ScriptedTool()], calls("act", "act", "act"), literal(strategy))

    assert ran.result.steering_messages is None


# --- skipped calls ----------------------------------------------------------------------------------------------------


def told_by(act: Any) -> tuple[Any, list[AgentEvent]]:
    """Return the result of `act` and the events it publishes on a bus of its own."""
    bus = ValidatingBus()
    with bus.subscribe(merge=False) as subscription:
        given = act(bus)
        return given, [envelope.event for envelope in subscription.drain()]


async def test_s0_21_s2_13_a_skip_produces_an_error_and_its_own_events() -> None:
    message, told = told_by(lambda bus: skip_tool_call(call("act", "c0", n=1), bus))

    assert message.is_error
    assert message.text.startswith(SKIPPED)
    assert [event.type for event in told] == ["tool.queued", "tool.ended", "message.started", "message.ended"]
    assert event_sequence(told) == end_of("c0", "act", message.text, is_error=True)
    assert told[0].args_raw == {"n": 1}


async def test_s0_22_neither_the_tool_nor_a_hook_runs_for_a_skipped_call() -> None:
    heard: list[Any] = []
    tool = ScriptedTool()

    await run([tool], calls("act", "act"), literal(Sequential()), hooks=heard_hooks(heard), steering=Steering(1))

    assert tool.calls == ["c0"]
    assert heard == [("before", "c0"), ("after", "c0")]


# --- one call ---------------------------------------------------------------------------------------------------------


async def test_s0_24_names_match_exactly_and_the_hook_runs_for_unknown_tools() -> None:
    heard: list[Any] = []

    ran = await run([ScriptedTool()], calls("Act"), literal(Sequential()), hooks=heard_hooks(heard))

    assert ran.texts == ["Tool Act not found"]
    assert heard[0] == ("before", "c0")


async def test_s0_25_the_hook_runs_before_any_event_and_receives_the_original_arguments() -> None:
    seen: list[Any] = []
    bus = ValidatingBus(literal(Sequential()))
    hooks = HookBus()

    @hooks.before_tool
    def before(question: Any) -> bool:
        seen.append(event_sequence(envelope.event for envelope in subscription.drain()))
        seen.append(dict(question.arguments))
        question.arguments["n"] = 2
        question.call.arguments["n"] = 2
        return True

    with bus.subscribe(merge=False) as subscription:
        options = literal(Sequential())
        asked = [call("act", "c0", n=1)]
        result = await execute_tool_calls([ScriptedTool()], asked, bus=bus, hooks=hooks, options=options)

    assert seen == [[], {"n": 1}]
    assert result.tool_results[0].text == "act {'n': 1}"


@pytest.mark.parametrize("name", ["act", "nothing"])
async def test_s0_26_s0_27_a_vetoed_call_does_not_run_has_no_start_and_runs_no_after_hook(name: str) -> None:
    tool = ScriptedTool()
    after: list[Any] = []
    hooks = HookBus()
    hooks.before_tool(lambda question: False)
    hooks.after_tool_observer(after.append)

    ran = await run([tool], calls(name), literal(Sequential()), hooks=hooks)

    assert tool.calls == []
    assert event_sequence(ran.events) == end_of("c0", name, VETO, is_error=True)
    assert after == []


async def test_s0_29_a_tool_receives_id_name_a_new_child_token_and_two_callbacks() -> None:
    contexts: list[ToolContext] = []
    token = CancellationToken()

    async def keep(arguments: JsonObject, context: ToolContext) -> ToolResult:
        contexts.append(context)
        return ToolResult()

    await run([ScriptedTool(behaviour=keep)], calls("act", "act"), literal(Parallel()), cancellation=token)

    first, second = contexts
    assert (first.tool_call_id, first.tool_name, second.tool_call_id) == ("c0", "act", "c1")
    assert callable(first.on_update)
    assert callable(first.on_progress)
    assert first.cancel is first.cancellation
    assert first.cancel is not second.cancel
    assert first.cancel.parent is token


async def test_s0_30_s2_27_a_cancelled_run_reaches_every_call_and_a_cancelled_call_no_other() -> None:
    contexts: dict[str, ToolContext] = {}

    async def heed(arguments: JsonObject, context: ToolContext) -> ToolResult:
        contexts[context.call_id] = context
        await context.cancellation.wait()
        return ToolResult()

    bench = Bench([ScriptedTool(behaviour=heed)], literal(Parallel()))
    async with bench.scheduler as scheduler, asyncio.TaskGroup() as group:
        scheduler.submit_all(calls("act", "act", "act"))
        group.create_task(scheduler.finish())
        await bench.until(ToolStarted, 3)
        await asyncio.sleep(0)
        contexts["c1"].cancellation.cancel("only this one")
        await bench.until(ToolEnded)
        assert bench.ended() == {"c1": "cancelled"}
        assert not contexts["c0"].cancellation.is_set()
        assert not bench.token.is_set()
        bench.token.cancel("all")

    assert set(bench.ended()) == {"c0", "c1", "c2"}


async def test_s0_31_s0_32_s0_34_s2_6_hooks_hear_an_update_before_and_after_its_event_and_suppress_it() -> None:
    heard: list[Any] = []
    bus = ValidatingBus(literal(Sequential()))
    hooks = HookBus()

    async def update(arguments: JsonObject, context: ToolContext) -> ToolResult:
        context.on_update(ToolResult(content=(TextBlock(text="first"), TextBlock(text="second"))))
        return await updating(arguments, context)

    @hooks.before_update
    def before(question: Any) -> bool:
        heard.append(question.text)
        return question.text != "two"

    @hooks.after_update
    def after(question: Any) -> None:
        told = [envelope.event for envelope in subscription.drain()]
        heard.append((question.text, [event.partial.text for event in told if isinstance(event, ToolUpdated)]))

    with bus.subscribe(merge=False) as subscription:
        tool, options = ScriptedTool(behaviour=update), literal(Sequential())
        result = await execute_tool_calls([tool], calls("act"), bus=bus, hooks=hooks, options=options)

    # The blocks of an update are one text; what was suppressed reaches neither the after hook nor the events.
    published = ["first\nsecond", "one", "three"]
    assert [one for one in heard if isinstance(one, str)] == ["first\nsecond", "one", "two", "three"]
    assert [one for one in heard if isinstance(one, tuple)] == [(text, [text]) for text in published]
    assert [message.text for message in result.tool_results] == ["done"]


async def test_s0_33_s0_35_s0_36_s0_43_one_call_publishes_start_reports_end_and_message() -> None:
    asked: list[str] = []
    hooks = HookBus()

    @hooks.before_update
    def before(question: Any) -> None:
        asked.append(question.text)

    ran = await run([ScriptedTool(behaviour=updating)], calls("act"), literal(Sequential()), hooks=hooks)

    assert event_sequence(ran.events) == [
        ("Start", "c0", "act", {}),
        *[
            report
            for text in ("one", "two", "three")
            for report in (("Update", "c0", "act", text), ("Progress", "c0", "act", f"after {text}"))
        ],
        *end_of("c0", "act", "done"),
    ]
    assert ran.of(ToolUpdated)[0].partial == ToolResult.of_text("one", details={"part": "one"})
    # Progress passes no update hook.
    assert asked == ["one", "two", "three"]
    assert [(message.text, message.is_error) for message in ran.result.tool_results] == [("done", False)]


@table("strategy", STRATEGIES)
async def test_s0_37_a_tool_that_raises_produces_one_text_block_with_the_errors_text(strategy: Strategy) -> None:
    ran = await run([ScriptedTool(behaviour=fail)], calls("act"), literal(strategy))

    (message,) = ran.result.tool_results
    assert message.content == (TextBlock(text="the disk is full"),)
    assert message.is_error


async def test_s0_38_an_unknown_tool_produces_exactly_this_text_and_the_full_sequence() -> None:
    heard: list[Any] = []

    ran = await run([], [call("rm -rf", "c0", n=1)], literal(Sequential()), hooks=heard_hooks(heard))

    text = "Tool rm -rf not found"
    assert event_sequence(ran.events) == whole("c0", "rm -rf", text, args={"n": 1}, is_error=True)
    assert heard == [("before", "c0"), ("after", "c0")]


@table(("name", "is_error"), [("act", False), ("fail", True), ("nothing", True)])
async def test_s0_40_the_after_hook_runs_between_end_and_message(name: str, is_error: bool) -> None:
    bus = ValidatingBus(literal(Sequential()))
    heard: list[Any] = []
    hooks = HookBus()

    @hooks.after_tool_observer
    def after(ended: Any) -> None:
        told = event_sequence(envelope.event for envelope in subscription.drain())
        heard.append((ended.name, ended.call_id, ended.is_error, told[-1][0]))

    with bus.subscribe(merge=False) as subscription:
        tools, options = [ScriptedTool(), ScriptedTool("fail", fail)], literal(Sequential())
        await execute_tool_calls(tools, calls(name), bus=bus, hooks=hooks, options=options)
        rest = [envelope.type for envelope in subscription.drain() if not envelope.type.startswith("hook.")]

    assert heard == [(name, "c0", is_error, "End")]
    assert rest == ["message.started", "message.ended", "tool.batch_ended"]


async def test_s0_41_s0_42_start_and_end_of_the_message_carry_the_same_message_after_the_calls_end() -> None:
    before = now_ms()
    ran = await run([ScriptedTool()], calls("act"), literal(Sequential()))

    ended, message_started, message_ended = ran.events[-4:-1]
    (message,) = ran.result.tool_results
    assert (message.call_id, message.tool_name, message.text, message.is_error) == ("c0", "act", "act {}", False)
    assert before <= message.timestamp <= now_ms()
    assert (ended.type, message_started.type, message_ended.type) == ("tool.ended", "message.started", "message.ended")
    assert message_started.message_id == message_ended.message_id == message.id
    assert message_ended.message == message


async def test_s0_45_every_event_names_its_call_so_parallel_calls_can_be_distinguished() -> None:
    ran = await run([ScriptedTool(behaviour=updating)], calls("act", "act", "act"), literal(Parallel()))

    names = {event.call_id: event.name for event in ran.of(ToolQueued)}
    assert names == {"c0": "act", "c1": "act", "c2": "act"}
    for kind in (ToolStarted, ToolUpdated, ToolProgress, ToolEnded):
        assert {event.call_id for event in ran.of(kind)} == set(names), kind
    per_call = {name: [one[0] for one in event_sequence(ran.events) if one[1] == name] for name in names}
    assert len({tuple(kinds) for kinds in per_call.values()}) == 1
