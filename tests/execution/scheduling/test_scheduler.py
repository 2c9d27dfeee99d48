import asyncio
import gc
from pathlib import Path
from typing import Any

import pytest

from tests.execution.bench import Bench, bench_of, settled
from tests.execution.kit import Doors, FakePolicy, Ran, ScriptedTool, Steering, call, calls, run, sleeping
from tests.support.validating_bus import ValidatingBus
from tests.support.virtual_clock import run_virtual
from tui_agent.execution import (
    ApprovalGate,
    Auto,
    Batched,
    ExecutionOptions,
    HookBus,
    Parallel,
    Sequential,
    execute_tool_calls,
)
from tui_agent.execution.pipeline.call_state import CallState
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    MessageStarted,
    ToolBlockedOn,
    ToolEnded,
    ToolQueued,
)
from tui_agent.protocol.hooks import ModifyArguments
from tui_agent.protocol.messages import TRUNCATED, AssistantMessage, JsonObject, TextBlock
from tui_agent.protocol.permissions import ApprovalDecision
from tui_agent.protocol.tool import Accesses, ToolContext, ToolResult

# --- strategies ---


@pytest.mark.slow
@pytest.mark.parametrize("strategy", [Sequential(), Parallel(), Batched(2), Auto()])
async def test_a_finished_message_leaves_nothing_to_the_garbage_collector(strategy: Any) -> None:
    tools = [ScriptedTool("look", read_only=True), ScriptedTool()]
    gc.collect()
    gc.disable()
    try:
        before = _states_in_memory()
        await run(tools, calls("look", "act", "nothing", "look", "act"), ExecutionOptions(strategy=strategy))
        assert _states_in_memory() == before
    finally:
        gc.enable()


def _states_in_memory() -> int:
    return sum(type(thing) is CallState for thing in gc.get_objects())


@pytest.mark.parametrize(
    ("how", "flagged", "sibling_abort", "siblings"),
    [
        ("error", True, True, "cancelled"),
        ("timeout", True, True, "cancelled"),
        ("ok", True, True, "ok"),
        ("error", False, True, "ok"),
        ("error", True, False, "ok"),
    ],
)
def test_a_failing_flagged_tool_stops_its_siblings_if_configured(
    how: str, flagged: bool, sibling_abort: bool, siblings: str
) -> None:
    async def end(arguments: JsonObject, context: ToolContext) -> ToolResult:
        await asyncio.sleep(1000 if how == "timeout" else 1)
        if how == "error":
            raise ValueError("broken")
        return ToolResult()

    options = ExecutionOptions(strategy=Batched(2), sibling_abort=sibling_abort)
    first = ScriptedTool("end", end, timeout=5.0)
    first.aborts_siblings = flagged
    tools = [ScriptedTool(behaviour=sleeping(20)), first]

    ran = run_virtual(run(tools, calls("end", "act", "act"), options))

    assert ran.statuses == [how, siblings, siblings]
    if siblings == "cancelled":
        running, waiting = ran.texts[1:]
        assert (
            running == "Cancelled: another call of the same message failed: end (c0). A part of its work may be done."
        )
        assert waiting == "Cancelled: another call of the same message failed: end (c0). The call was not run."


@pytest.mark.parametrize("policy", ["all", "any"])
def test_a_call_that_timed_out_does_not_end_the_run(policy: Any) -> None:
    async def give_up_late(arguments: JsonObject, context: ToolContext) -> ToolResult:
        await context.cancellation.wait()
        return ToolResult(content=(TextBlock(text="half"),), terminate=True)

    tool = ScriptedTool(behaviour=give_up_late, timeout=1.0)

    ran = run_virtual(run([tool], [call()], ExecutionOptions(terminate_policy=policy)))

    assert ran.statuses == ["timeout"]
    assert "half" in ran.texts[0]
    assert not ran.result.terminate
    assert not ran.ended("c").terminate


# --- waiting calls ----------------------------------------------------------------------------------------------------


async def test_a_waiting_call_names_what_it_waits_for() -> None:
    doors = Doors()
    async with bench_of([ScriptedTool(behaviour=doors), ScriptedTool("look", doors, read_only=True)]) as bench:
        bench.scheduler.submit_all(calls("look", "act", "look"))
        async with asyncio.TaskGroup() as group:
            group.create_task(bench.scheduler.finish())
            await doors.until("c0")
            await settled()
            assert [(event.call_id, event.what, event.on) for event in bench.events(ToolBlockedOn)] == [
                ("c1", "group", ("c0",)),
                ("c2", "group", ("c1",)),
            ]
            doors.open("c0", "c1", "c2")


async def test_a_call_that_the_user_edits_waits_for_its_new_conflicts() -> None:
    doors = Doors()
    gate = ApprovalGate(interactive=True)
    tools = [
        ScriptedTool(name, doors, paths=lambda arguments: Accesses(writes=frozenset({Path(arguments["path"])})))
        for name in ("act", "ask")
    ]
    async with bench_of(tools, gate=gate, policy=FakePolicy({"ask": "ask"})) as bench:
        bench.scheduler.submit_all([call("act", "c0", path="/a"), call("ask", "c1", path="/b")])
        async with asyncio.TaskGroup() as group:
            group.create_task(bench.scheduler.finish())
            await bench.until(ApprovalRequested)
            await doors.until("c0")
            answer = ApprovalDecision(decision="approve", input={"path": "/a"})
            gate.resolve(gate.pending[0].request_id, answer)
            await settled()
            assert doors.arrived == ["c0"]
            doors.open("c0", "c1")

    assert doors.arrived == ["c0", "c1"]
    assert bench.ended() == {"c0": "ok", "c1": "ok"}


async def test_a_call_without_a_slot_says_so() -> None:
    look = ScriptedTool("look", sleeping(0), read_only=True)

    ran = await run([look], calls("look", "look"), ExecutionOptions(max_concurrency=1))

    assert [(event.call_id, event.what) for event in ran.of(ToolBlockedOn)] == [("c1", "slot")]


async def test_a_later_wave_names_what_it_waits_for() -> None:
    ran = await run([ScriptedTool()], calls(*["act"] * 5), ExecutionOptions(strategy=Batched(2)))

    assert [(event.call_id, event.on) for event in ran.of(ToolBlockedOn)] == [
        ("c2", ("c0", "c1")),
        ("c3", ("c0", "c1")),
        ("c4", ("c2", "c3")),
    ]
    assert [event.group for event in ran.of(ToolQueued)] == [0, 0, 1, 1, 2]


# --- streaming ---


@pytest.mark.parametrize(
    ("tool", "options", "verdict"),
    [
        (ScriptedTool("t"), ExecutionOptions(), "allow"),
        (ScriptedTool("t", read_only=True, safe=False), ExecutionOptions(), "allow"),
        (ScriptedTool("t", safe=True), ExecutionOptions(), "allow"),
        (ScriptedTool("t", read_only=True, alone=True), ExecutionOptions(), "allow"),
        (ScriptedTool("t", read_only=True), ExecutionOptions(), "ask"),
        (ScriptedTool("t", read_only=True), ExecutionOptions(), "deny"),
        (ScriptedTool("t", read_only=True), ExecutionOptions(stream_tools="off"), "allow"),
        (ScriptedTool("t", read_only=True), ExecutionOptions(strategy=Parallel()), "allow"),
    ],
)
async def test_an_unsafe_call_waits_for_the_end_of_the_message(
    tool: ScriptedTool, options: ExecutionOptions, verdict: str
) -> None:
    tool.calls.clear()
    async with bench_of([tool], options, policy=FakePolicy({"t": verdict})) as bench:
        bench.scheduler.submit(call("t"))
        bench.scheduler.submit(call("nothing", "d"))
        await settled()
        assert tool.calls == []
        assert bench.events(ApprovalRequested) == []
        await bench.scheduler.finish()

    assert (tool.calls == ["c"]) is (verdict == "allow")


@pytest.mark.parametrize(("grouping", "started"), [("conflicts", []), ("consecutive", []), ("safe_first", ["b"])])
async def test_a_safe_call_after_an_effect_starts_early_only_if_it_may_come_first(
    grouping: Any, started: list[str]
) -> None:
    tools = [ScriptedTool(), ScriptedTool("look", read_only=True)]
    async with bench_of(tools, ExecutionOptions(grouping=grouping)) as bench:
        bench.scheduler.submit(call("act", "a"))
        bench.scheduler.submit(call("look", "b"))
        await settled()
        assert bench.started() == started
        await bench.scheduler.finish()


async def test_a_queued_event_says_whether_the_user_will_be_asked_only_after_an_early_decision() -> None:
    tools = [ScriptedTool("peek", read_only=True), ScriptedTool("look", read_only=True), ScriptedTool("act")]
    policy = FakePolicy({"peek": "ask", "act": "ask"})
    async with bench_of(tools, policy=policy, gate=ApprovalGate()) as bench:
        for name in ("peek", "look", "act"):
            bench.scheduler.submit(call(name, name))
        assert policy.checks == 2, "the event alone must cause no decision"
        await bench.scheduler.finish()

    told = {event.call_id: event.will_ask for event in bench.events(ToolQueued)}
    assert told == {"peek": True, "look": False, "act": None}
    assert [event.call_id for event in bench.events(ApprovalRequested)] == ["peek", "act"]


async def test_a_truncated_message_starts_no_more_calls() -> None:
    doors = Doors()
    look = ScriptedTool("look", doors, read_only=True)
    act = ScriptedTool()
    doors.open("done")
    async with bench_of([look, act], ExecutionOptions(grace=0)) as bench:
        for name, call_id in (("look", "done"), ("look", "running"), ("act", "waiting")):
            bench.scheduler.submit(call(name, call_id))
        await bench.until(ToolEnded)
        result = await bench.scheduler.finish(cut=True)

    assert bench.ended() == {"done": "ok", "waiting": "output_limit", "running": "output_limit"}
    running, waiting = (message.text for message in result.tool_results[1:])
    assert running.startswith("Stopped while it ran. A part of its work may be done. The response hit the output token")
    assert waiting.startswith("Not run: the response hit the output token limit")
    assert act.calls == []


@pytest.mark.parametrize("reason", sorted(TRUNCATED))
async def test_an_answer_that_was_truncated_runs_nothing(reason: Any) -> None:
    act = ScriptedTool()
    answer = AssistantMessage(content=(call(),), stop_reason=reason)

    result = await execute_tool_calls([act], answer, bus=ValidatingBus())

    assert ([report.status for report in result.reports], act.calls) == (["output_limit"], [])


async def test_one_truncated_call_refuses_its_whole_message() -> None:
    asked = [call("act", "a"), call("act", "b").model_copy(update={"cut": True})]
    tool = ScriptedTool()

    ran = await run([tool], asked)

    assert ran.statuses == ["output_limit", "output_limit"]
    assert tool.calls == []


async def test_discarding_ends_every_call_without_results() -> None:
    doors = Doors()
    async with bench_of(
        [ScriptedTool("look", doors, read_only=True), ScriptedTool()], ExecutionOptions(grace=0)
    ) as bench:
        bench.scheduler.submit(call("look", "a"))
        bench.scheduler.submit(call("act", "b"))
        await doors.until("a")
        reports = await bench.scheduler.discard("the stream broke")

    assert bench.ended() == {"a": "cancelled", "b": "cancelled"}
    assert [report.status for report in reports] == ["cancelled", "cancelled"]
    assert bench.committed == []
    assert "the stream broke" in bench.events(ToolEnded)[0].content[0].text


async def test_no_result_is_published_for_a_message_that_may_still_be_discarded() -> None:
    options = ExecutionOptions(message_events="completion")
    async with bench_of([ScriptedTool("look", read_only=True)], options) as bench:
        bench.scheduler.submit(call("look", "a"))
        await bench.until(ToolEnded)
        await settled()
        await bench.scheduler.discard("the stream broke")

    assert [event.type for event in bench.events(MessageStarted)] == []


async def test_a_finished_scheduler_accepts_no_more_calls() -> None:
    async with bench_of([ScriptedTool()]) as bench:
        await bench.scheduler.finish()
        with pytest.raises(RuntimeError, match="finished"):
            bench.scheduler.submit(call())
        with pytest.raises(RuntimeError, match="finished"):
            await bench.scheduler.finish()


# --- cancelling ---


async def test_a_cancelled_run_gives_every_call_a_result_before_it_continues() -> None:
    doors = Doors()
    gate = ApprovalGate(interactive=True)
    bench = Bench(
        [ScriptedTool("look", doors, read_only=True), ScriptedTool(), ScriptedTool("ask")],
        policy=FakePolicy({"ask": "ask"}),
        gate=gate,
    )
    asked = [call("look", "done"), call("look", "running"), call("act", "waiting"), call("ask", "asked")]

    async def work() -> None:
        async with bench.scheduler as scheduler:
            scheduler.submit_all(asked)
            await scheduler.finish()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(work())
        await doors.until("done", "running")
        await bench.until(ApprovalRequested)
        doors.open("done")
        await bench.until(ToolEnded)
        task.cancel()

    assert task.cancelled()
    assert [message.call_id for message in bench.scheduler.tool_results] == ["done", "running", "waiting", "asked"]
    assert bench.ended()["done"] == "ok"
    assert {status for name, status in bench.ended().items() if name != "done"} == {"cancelled"}
    assert [event.by for event in bench.events(ApprovalResolved)] == ["cancel"]
    assert bench.committed == list(bench.scheduler.tool_results)
    assert gate.pending == ()


def test_a_cancelled_token_ends_running_calls_after_the_grace_and_waiting_ones_at_once() -> None:
    async def work() -> tuple[Ran, float]:
        token = CancellationToken()

        async def cancel(arguments: JsonObject, context: ToolContext) -> ToolResult:
            await asyncio.sleep(1)
            token.cancel("esc")
            return ToolResult.of_text("done")

        tools = [ScriptedTool("look", sleeping(1000), read_only=True), ScriptedTool("cancel", cancel, read_only=True)]
        loop = asyncio.get_running_loop()
        began = loop.time()
        ran = await run([*tools, ScriptedTool()], calls("look", "cancel", "act"), cancellation=token)
        return ran, round(loop.time() - began, 6)

    ran, took = run_virtual(work())

    assert took == 3.0
    assert ran.statuses == ["cancelled", "cancelled", "cancelled"]
    assert "Until then it returned:\ndone" in ran.texts[1]
    assert "was not run" in ran.texts[2]
    assert ran.result.halted == "aborted"


async def test_one_call_can_be_cancelled_with_a_reason() -> None:
    doors = Doors()
    tools = [ScriptedTool("look", doors, read_only=True), ScriptedTool()]
    async with bench_of(tools, ExecutionOptions(grace=0)) as bench:
        bench.scheduler.submit_all(calls("look", "look", "act"))
        async with asyncio.TaskGroup() as group:
            finishing = group.create_task(bench.scheduler.finish())
            await doors.until("c0", "c1")
            assert bench.scheduler.cancel_call("c1", "use the other file")
            assert not bench.scheduler.cancel_call("c1", "again")
            assert not bench.scheduler.cancel_call("unknown", "x")
            assert bench.scheduler.cancel_call("c2", "not needed")
            doors.open("c0")
        result = finishing.result()
        assert not bench.scheduler.cancel_call("c0", "over")

    assert [report.status for report in result.reports] == ["ok", "cancelled", "cancelled"]
    assert "use the other file" in result.tool_results[1].text
    assert result.halted is None


async def test_a_call_with_an_unknown_outcome_gets_a_result_that_says_so() -> None:
    tool = ScriptedTool()
    async with bench_of([tool]) as bench:
        bench.scheduler.submit_all(calls("act", "act"))
        assert bench.scheduler.mark_interrupted("c0", "It may have run before the crash.")
        assert not bench.scheduler.mark_interrupted("c0", "again")
        result = await bench.scheduler.finish()

    assert [report.status for report in result.reports] == ["interrupted", "ok"]
    assert result.tool_results[0].text == "It may have run before the crash."
    assert tool.calls == ["c1"]


async def test_a_call_that_ran_in_an_earlier_process_gets_its_earlier_result() -> None:
    tool = ScriptedTool()
    async with bench_of([tool]) as bench:
        bench.scheduler.submit_all(calls("act", "act"))
        assert bench.scheduler.answer_call("c0", ToolResult.of_text("done before"))
        assert not bench.scheduler.answer_call("c0", ToolResult.of_text("again"))
        result = await bench.scheduler.finish()

    assert [report.status for report in result.reports] == ["overridden", "ok"]
    assert result.tool_results[0].text == "done before"
    assert tool.calls == ["c1"]


# --- conclusions ---


@pytest.mark.parametrize(
    ("policy", "wishes", "answer"),
    [
        ("all", [True, True], True),
        ("all", [True, False], False),
        ("any", [True, False], True),
        ("any", [False, False], False),
    ],
)
async def test_the_number_of_results_that_must_request_the_end(policy: Any, wishes: list[bool], answer: bool) -> None:
    async def wish(arguments: JsonObject, context: ToolContext) -> ToolResult:
        return ToolResult(terminate=arguments["end"])

    asked = [call("act", f"c{number}", end=end) for number, end in enumerate(wishes)]

    ran = await run([ScriptedTool(behaviour=wish)], asked, ExecutionOptions(terminate_policy=policy))

    assert ran.result.terminate is answer


# --- approvals ---


async def test_reads_continue_during_a_question_and_a_wider_answer_settles_all() -> None:
    gate = ApprovalGate(interactive=True)
    policy = FakePolicy({"act": "ask"})
    tools = [ScriptedTool("look", read_only=True), ScriptedTool()]
    async with bench_of(tools, ExecutionOptions(strategy=Parallel()), gate=gate, policy=policy) as bench:
        bench.scheduler.submit_all(calls("act", "look", "act", "act"))
        async with asyncio.TaskGroup() as group:
            finishing = group.create_task(bench.scheduler.finish())
            await bench.until(ApprovalRequested, 3)
            assert bench.ended() == {"c1": "ok"}
            gate.resolve(gate.pending[1].request_id, ApprovalDecision(decision="approve", scope="session"))
        statuses = [report.status for report in finishing.result().reports]

    assert statuses == ["ok"] * 4
    assert sorted(event.by for event in bench.events(ApprovalResolved)) == ["policy", "policy", "user"]


def test_a_question_occupies_no_slot_and_does_not_count_as_work() -> None:
    async def approve(request: Any) -> ApprovalDecision:
        await asyncio.sleep(100)
        return ApprovalDecision(decision="approve")

    async def work() -> tuple[Ran, float]:
        tools = [ScriptedTool("ask", sleeping(1), timeout=5.0), ScriptedTool("look", sleeping(1), read_only=True)]
        loop = asyncio.get_running_loop()
        began = loop.time()
        ran = await run(
            tools,
            calls("ask", *["look"] * 3),
            ExecutionOptions(strategy=Parallel(), max_concurrency=1),
            policy=FakePolicy({"ask": "ask"}),
            gate=ApprovalGate(approver=approve),
        )
        return ran, loop.time() - began

    ran, took = run_virtual(work())

    assert ran.statuses == ["ok"] * 4
    assert round(took) == 101
    assert round(ran.ended("c1").queued_ms) == 0


async def test_a_link_made_by_an_earlier_call_is_checked_as_it_is_then() -> None:
    target = ["/w/safe"]
    asked: list[Any] = []
    answered = asyncio.Event()

    async def relink(arguments: JsonObject, context: ToolContext) -> ToolResult:
        await answered.wait()
        target[0] = "/w/.git/hooks"
        return ToolResult()

    def approve(request: Any) -> ApprovalDecision:
        asked.append(request.targets)
        answered.set()
        return ApprovalDecision(decision="approve" if request.targets == ("/w/safe",) else "deny")

    policy = FakePolicy({"write": "ask"}, targets=lambda arguments: (target[0],))
    write = ScriptedTool("write")

    ran = await run(
        [ScriptedTool("shell", relink), write],
        calls("shell", "write"),
        policy=policy,
        gate=ApprovalGate(approver=approve),
    )

    assert asked == [("/w/safe",), ("/w/.git/hooks",)]
    assert ran.statuses == ["ok", "denied_user"]
    assert write.calls == []


async def test_delivered_steering_is_not_lost_by_a_cancellation() -> None:
    doors = Doors()
    steering = Steering(at_poll=1)
    bench = Bench(
        [ScriptedTool(behaviour=doors)],
        ExecutionOptions(strategy=Parallel(), steering_mode="between_calls"),
        get_steering=steering,
    )

    async def work() -> None:
        async with bench.scheduler as scheduler:
            scheduler.submit_all(calls("act", "act"))
            await scheduler.finish()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(work())
        await doors.until("c0", "c1")
        doors.open("c0")
        while not bench.scheduler.steering_messages:
            await asyncio.sleep(0)
        task.cancel()

    assert [message.text for message in bench.scheduler.steering_messages] == ["stop that"]
    assert set(bench.ended()) == {"c0", "c1"}


def writing(doors: Doors) -> list[ScriptedTool]:
    """Return tools that write their `path`; the policy asks about the first."""
    return [
        ScriptedTool(name, doors, paths=lambda arguments: Accesses(writes=frozenset({Path(arguments["path"])})))
        for name in ("ask", "write")
    ]


async def test_a_call_that_a_hook_rewrites_after_its_approval_waits_for_its_new_conflicts() -> None:
    gate, hooks, doors = ApprovalGate(interactive=True), HookBus(), Doors()
    hooks.before_tool(lambda question: ModifyArguments({"path": "/b"}) if question.call.id == "c0" else None)
    options = ExecutionOptions(pre_hook_position="after_permission")
    async with bench_of(writing(doors), options, gate=gate, policy=FakePolicy({"ask": "ask"}), hooks=hooks) as bench:
        bench.scheduler.submit_all([call("ask", "c0", path="/a"), call("write", "c1", path="/b")])
        async with asyncio.TaskGroup() as group:
            group.create_task(bench.scheduler.finish())
            await bench.until(ApprovalRequested)
            await settled()
            assert doors.arrived == ["c1"]
            gate.resolve(gate.pending[0].request_id, ApprovalDecision(decision="approve"))
            await settled()
            assert doors.arrived == ["c1"]
            doors.open("c0", "c1")
            await bench.until(ApprovalRequested, 2)
            gate.resolve(gate.pending[0].request_id, ApprovalDecision(decision="approve"))

    assert doors.arrived == ["c1", "c0"]
