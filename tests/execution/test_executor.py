import asyncio
import contextlib
import sys
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, cast

import pytest

from tests.execution.kit import FakePolicy, Ran, ScriptedTool, call, run, sleeping
from tests.execution.stage_kit import FreeTurns, Stand
from tests.support.validating_bus import ValidatingBus
from tests.support.virtual_clock import run_virtual
from tui_agent.execution import ApprovalGate, ExecutionOptions, HookBus, ToolScheduler, execute_tool_calls
from tui_agent.execution import executor as executor_module
from tui_agent.execution.executor import ADMISSION, cut_off_outcome, take_turn
from tui_agent.execution.outcomes import Outcome
from tui_agent.execution.pipeline.call_state import CallState
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.events import ApprovalRequested, HookEnded, ToolEnded
from tui_agent.protocol.hooks import DenyCall, ModifyArguments
from tui_agent.protocol.messages import JsonObject, ToolCall
from tui_agent.protocol.permissions import ApprovalDecision
from tui_agent.protocol.tool import Tool, ToolContext, ToolResult, ToolSpec

APPROVING = ApprovalDecision(decision="approve")

MOST_VISITS = 59
"""Most steps from file to file of `execution`, calls and returns, between the start and the end of a call's task. A
reader who follows one call makes these steps, too; the figure may only fall."""


class Order:
    """Record of the order in which the parts of the pipeline run."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.hooks = HookBus()
        self.hooks.add("before_tool", lambda question: self.heard.append("before"))
        self.hooks.add("after_tool", lambda question: self.heard.append("after"))
        self.hooks.add("after_tool_observer", lambda question: self.heard.append("observer"))
        self.gate = ApprovalGate(approver=self._approve)
        self.tool = ScriptedTool(behaviour=self._behave)

    async def _behave(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        self.heard.append("tool")
        return ToolResult()

    def _approve(self, request: Any) -> ApprovalDecision:
        self.heard.append("person")
        return APPROVING


@pytest.mark.parametrize(
    ("position", "heard"),
    [
        ("before_permission", ["before", "person", "tool", "after", "observer"]),
        ("after_permission", ["person", "before", "tool", "after", "observer"]),
        ("before_lookup", ["before", "person", "tool", "after", "observer"]),
    ],
)
async def test_the_parts_of_the_pipeline_are_asked_in_their_order(position: Any, heard: list[str]) -> None:
    order = Order()
    options = ExecutionOptions(pre_hook_position=position)

    await run([order.tool], [call()], options, hooks=order.hooks, policy=FakePolicy({"act": "ask"}), gate=order.gate)

    assert order.heard == heard


async def test_rewriting_after_the_approval_asks_the_user_about_the_new_arguments() -> None:
    asked: list[JsonObject] = []
    hooks = HookBus()
    hooks.before_tool(lambda question: ModifyArguments({"b": 2}))

    def approve(request: Any) -> ApprovalDecision:
        asked.append(request.args)
        return APPROVING

    ran = await run(
        [ScriptedTool()],
        [call(a=1)],
        ExecutionOptions(pre_hook_position="after_permission"),
        hooks=hooks,
        policy=FakePolicy({"act": "ask"}),
        gate=ApprovalGate(approver=approve),
    )

    assert asked == [{"a": 1}, {"b": 2}]
    assert ran.texts == ["act {'b': 2}"]


def test_time_is_split_into_queue_approval_and_work() -> None:
    async def approve(request: Any) -> ApprovalDecision:
        await asyncio.sleep(60)
        return APPROVING

    async def work() -> ToolEnded:
        tools = [ScriptedTool("act", sleeping(5)), ScriptedTool("ask", sleeping(2))]
        ran = await run(
            tools,
            [call("act", "a"), call("ask", "b")],
            policy=FakePolicy({"ask": "ask"}),
            gate=ApprovalGate(approver=approve),
        )
        assert round(ran.result.approval_ms) == 60_000
        return ran.ended("b")

    ended = run_virtual(work())

    assert (round(ended.approval_ms), round(ended.latency_ms), round(ended.queued_ms)) == (60_000, 2_000, 0)


async def test_after_an_answer_the_call_waits_for_effects_and_is_decided_once_more() -> None:
    policy = FakePolicy({"act": "ask"})
    stand = Stand(policy=policy, gate=ApprovalGate(approver=lambda request: APPROVING))
    waits: list[str] = []

    async def effects_published() -> None:
        waits.append(policy.verdicts["act"])
        if len(waits) == 2:
            # Another call has ended while the user was asked.
            await asyncio.sleep(0)
            policy.verdicts["act"] = "deny"

    stand.state.admission.stale = True
    outcome = await take_turn(replace(stand.services, effects_published=effects_published), stand.state)

    assert waits == ["ask", "ask"]
    assert outcome is not None
    assert outcome.status == "denied_policy"


async def test_an_interrupted_call_reports_its_progress() -> None:
    texts: dict[str, str] = {}

    async def cut(phase: Any, *, started: bool) -> None:
        stand = Stand()
        stand.state.phase = phase
        stand.state.run.started_at = 1.0 if started else None
        try:
            await asyncio.Event().wait()
        finally:
            texts[phase] = cut_off_outcome(stand.state).result.text

    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(cut("waiting", started=False)),
            group.create_task(cut("running", started=True)),
            group.create_task(cut("ran", started=True)),
        ]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()

    assert "not run" in texts["waiting"]
    assert "part of its work" in texts["running"]
    assert "ran to its end" in texts["ran"]


async def test_an_internal_fault_ends_its_call() -> None:
    class Broken(FreeTurns):
        async def take(self, state: CallState) -> Outcome | None:
            raise TimeoutError("never raises, they said")

    stand = Stand()
    stand.state.turns = Broken()

    await stand.executor.execute(stand.state)

    ended = stand.events(ToolEnded)[0]
    assert ended.status == "error"
    assert "never raises, they said" in (ended.traceback or "")


async def test_the_outcome_of_a_call_is_unknown_if_the_engine_fails_after_its_tool_began() -> None:
    stand = Stand()
    stand.state.run.started_at = 1.0
    stand.state.turns = cast(Any, None)

    await stand.executor.execute(stand.state)

    ended = stand.events(ToolEnded)[0]
    assert ended.status == "interrupted"
    assert "The engine failed while it handled this call" in ended.content[0].text
    assert "AttributeError" in (ended.traceback or "")


@pytest.mark.parametrize("position", ADMISSION)
async def test_the_policy_never_sees_an_invalid_call(position: Any) -> None:
    policy = FakePolicy()
    tool = ScriptedTool(schema={"type": "object", "required": ["a"]})

    await run([tool], [call()], ExecutionOptions(pre_hook_position=position), policy=policy)

    assert policy.checks == 0


async def test_a_tool_that_truncates_its_own_output_names_the_file_with_all_of_it() -> None:
    class Shortening(Tool):
        spec = ToolSpec(name="long", description="long", input_schema={"type": "object"})

        async def execute(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
            return ToolResult.of_text("head … tail", details={"truncated": True, "persisted_path": "/kept/output.txt"})

    bus = ValidatingBus()
    with bus.subscribe(merge=False) as heard:
        await execute_tool_calls([Shortening()], [ToolCall(id="1", name="long")], bus=bus)
        [ended] = [envelope.event for envelope in heard.drain() if isinstance(envelope.event, ToolEnded)]

    assert (ended.truncated, ended.persisted_path) == (True, "/kept/output.txt")


# --- a run cancelled while hooks check a finished call ----------------------------------------------------------------


def reporting(*, fails: bool = False) -> ScriptedTool:
    async def report(arguments: JsonObject, context: ToolContext) -> ToolResult:
        context.update(ToolResult.of_text("half"))
        if fails:
            raise ValueError("broken")
        return ToolResult.of_text("done")

    return ScriptedTool(behaviour=report)


@pytest.mark.parametrize(
    ("event", "fails", "status"),
    [
        ("after_tool", False, "interrupted"),
        ("on_tool_error", True, "interrupted"),
        ("after_tool_observer", False, "ok"),
        ("before_update", False, "ok"),
        ("after_update", False, "ok"),
    ],
)
def test_a_hook_that_hangs_does_not_hold_a_cancelled_run(event: str, fails: bool, status: str) -> None:
    async def work() -> tuple[list[str], float]:
        token, asked, hooks, began = (
            CancellationToken(),
            asyncio.Event(),
            HookBus(timeout=None),
            asyncio.get_running_loop().time(),
        )

        async def hang(question: object) -> None:
            asked.set()
            await asyncio.sleep(10_000)

        hooks.add(event, hang)
        async with asyncio.TaskGroup() as group:
            running = group.create_task(run([reporting(fails=fails)], [call()], hooks=hooks, cancellation=token))
            await asked.wait()
            token.cancel("enough")
        return running.result().statuses, asyncio.get_running_loop().time() - began

    statuses, seconds = run_virtual(work())

    assert statuses == [status]
    assert seconds == ExecutionOptions().grace


def test_a_quick_answer_of_a_hook_counts_although_the_run_is_cancelled() -> None:
    async def work() -> list[str]:
        token, hooks = CancellationToken(), HookBus()

        async def redact(question: object) -> ToolResult:
            token.cancel("enough")
            await asyncio.sleep(1)
            return ToolResult.of_text("redacted")

        hooks.after_tool(redact)
        return (await run([reporting()], [call()], hooks=hooks, cancellation=token)).texts

    assert run_virtual(work()) == ["redacted"]


def test_a_hook_that_ignores_its_cancellation_does_not_let_a_cancelled_call_continue() -> None:
    async def work() -> Any:
        token, asked, hooks = CancellationToken(), asyncio.Event(), HookBus()
        gate = ApprovalGate(interactive=True)

        @hooks.before_tool
        async def swallow(question: object) -> None:
            asked.set()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(20)

        policy = FakePolicy({"act": "ask"})
        async with asyncio.TaskGroup() as group:
            running = group.create_task(
                run([ScriptedTool()], [call()], hooks=hooks, cancellation=token, policy=policy, gate=gate)
            )
            await asked.wait()
            token.cancel("enough")
        return running.result()

    ran = run_virtual(work())

    assert ran.statuses == ["cancelled"]
    assert ran.of(ApprovalRequested) == []


async def test_a_tool_that_exits_the_process_fails_alone() -> None:
    async def leave(arguments: JsonObject, context: ToolContext) -> ToolResult:
        raise SystemExit(1)

    ran = await run([ScriptedTool("leave", leave), ScriptedTool()], [call("leave", "a"), call("act", "b")])

    assert ran.statuses == ["error", "ok"]


async def test_an_observers_return_value_changes_nothing() -> None:
    hooks, bus = HookBus(), ValidatingBus()
    answer: Any = DenyCall(3)  # type: ignore[arg-type] — a reason of the wrong kind stays out of the event, too
    hooks.add("after_tool_observer", lambda _: answer)
    ended: list[HookEnded] = []
    bus.on(HookEnded, ended.append)

    ran = await execute_tool_calls([ScriptedTool()], [call()], bus=bus, hooks=hooks)

    assert [result.is_error for result in ran.tool_results] == [False]
    assert [(one.action, one.reason) for one in ended] == [("allow", "")]


def test_a_call_that_ignores_its_token_is_cancelled_after_two_seconds_of_grace() -> None:
    ends: list[float] = []

    async def stay(arguments: JsonObject, context: ToolContext) -> ToolResult:
        try:
            await asyncio.sleep(1000)
        finally:
            ends.append(asyncio.get_running_loop().time() - began)
        return ToolResult()

    began = 0.0

    async def work() -> Ran:
        nonlocal began
        began = asyncio.get_running_loop().time()
        return await run([ScriptedTool(behaviour=stay)], [call()])

    assert run_virtual(work()).statuses == ["timeout"]
    assert [round(end, 6) for end in ends] == [32.0]


def visits_of_a_call() -> list[str]:
    """Return the files of `execution` that one call with effects passes, in order, each as often as it is entered."""
    room, task = str(Path(executor_module.__file__).parent), ToolScheduler._run_task.__code__
    passed: list[str] = []
    inside = [False]

    def visit(frame: FrameType | None) -> None:
        while frame is not None and not frame.f_code.co_filename.startswith(room):
            frame = frame.f_back
        if frame is not None and passed[-1:] != [frame.f_code.co_filename]:
            passed.append(frame.f_code.co_filename)

    def profile(frame: FrameType, event: str, argument: object) -> None:
        if frame.f_code is task:
            inside[0] = event == "call"
        if inside[0] and event in ("call", "return"):
            visit(frame if event == "call" else frame.f_back)

    async def recorded() -> None: ...

    async def work() -> None:
        tools, policy = [ScriptedTool(read_only=False)], FakePolicy()
        await execute_tool_calls(tools, [call()], bus=ValidatingBus(), policy=policy, before_effects=recorded)

    sys.setprofile(profile)
    try:
        asyncio.run(work())
    finally:
        sys.setprofile(None)
    return passed


def test_a_call_passes_few_files() -> None:
    visits_of_a_call()  # Caches are filled by the first call.

    assert len(visits_of_a_call()) <= MOST_VISITS
