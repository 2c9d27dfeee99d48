import asyncio
import contextlib
import sys
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, cast

import pytest

from tests.execution.kit import FakePolicy, ScriptedTool, call, run
from tests.execution.stage_kit import FreeTurns, Stand
from tests.support.validating_bus import ValidatingBus
from tests.support.virtual_clock import run_virtual
from tui_agent.execution import (
    ApprovalGate,
    ExecutionOptions,
    HookBus,
    SkipReason,
    ToolExecutor,
    ToolScheduler,
    execute_tool_calls,
    skip_tool_call,
)
from tui_agent.execution import executor as executor_module
from tui_agent.execution.executor import cut_off_outcome, take_turn
from tui_agent.execution.outcomes import Outcome
from tui_agent.execution.pipeline.call_state import CallState
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import ApprovalRequested, ToolEnded
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import ApprovalDecision
from tui_agent.protocol.tool import ToolContext, ToolResult

APPROVING = ApprovalDecision(decision="approve")

MOST_VISITS = 59
"""Most steps from file to file of `execution`, calls and returns, between the start and the end of a call's task. A
reader who follows one call makes these steps, too; the figure may only fall."""


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


async def test_two_calls_with_one_id_are_refused_before_any_event() -> None:
    bus, tool = ValidatingBus(), ScriptedTool()

    with pytest.raises(ConfigurationError, match="'c1'"):
        await execute_tool_calls([tool], [call("act", "c0"), call("act", "c1"), call("act", "c1")], bus=bus)

    assert (bus.last_seq, tool.calls) == (0, [])


async def test_a_second_call_with_one_id_while_streaming_leaves_the_first_intact() -> None:
    bus, tool = ValidatingBus(), ScriptedTool(read_only=True)

    async with ToolScheduler(ToolExecutor([tool], bus=bus)) as scheduler:
        scheduler.submit(call())
        with pytest.raises(ConfigurationError, match="'c'"):
            scheduler.submit(call())
        result = await scheduler.finish()

    assert [message.text for message in result.tool_results] == ["act {}"]


def test_an_unknown_reason_to_skip_is_refused_before_any_event() -> None:
    bus = ValidatingBus()

    with pytest.raises(ConfigurationError, match="unknown reason 'budget'; use one of steering, notice"):
        skip_tool_call(call(), bus, reason=cast(SkipReason, "budget"))

    assert bus.last_seq == 0


def test_a_scheduler_used_without_entering_it_raises_before_any_event() -> None:
    bus = ValidatingBus()
    scheduler = ToolScheduler(ToolExecutor([ScriptedTool()], bus=bus))

    with pytest.raises(RuntimeError, match="async with ToolScheduler"):
        scheduler.submit_all([call()])

    assert bus.last_seq == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"tools": "x"}, "tools must be a list of tools and functions, got 'x'"),
        ({"tools": [3]}, r"a tool must be a Tool, .* got 3"),
        ({"calls": "x"}, "calls must be a list of ToolCall, or the AssistantMessage with them, got 'x'"),
        ({"calls": [{"name": "act"}]}, r"calls\[0\] must be a ToolCall, got {'name': 'act'}"),
        ({"bus": None}, "bus must be an EventBus, or something else with `publish`, got None"),
        ({"options": "parallel"}, "options must be ExecutionOptions or None, got 'parallel'"),
        ({"hooks": []}, r"hooks must be a HookBus or None, got \[\]"),
        ({"gate": print}, "gate must be an ApprovalGate or None, got a builtin_function_or_method"),
        ({"policy": "ask"}, "policy must be a permission policy or None, got 'ask'"),
        ({"get_steering": ["x"]}, r"get_steering must be a function \(plain or async\) or None, got \['x'\]"),
        ({"before_effects": 3}, "before_effects must be a function or None, got 3"),
        ({"cancellation": "x"}, "cancellation must be a CancellationToken or None"),
    ],
)
async def test_an_argument_of_the_wrong_type_is_refused(arguments: dict[str, Any], words: str) -> None:
    right: dict[str, Any] = {"tools": [], "calls": [], "bus": ValidatingBus()}
    with pytest.raises(ConfigurationError, match=words):
        await execute_tool_calls(**{**right, **arguments})
