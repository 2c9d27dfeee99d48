"""Foreign code that modifies its arguments affects no other part; whatever it returns, its call ends."""

import asyncio
import contextlib
import dataclasses
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from tests.execution.bench import Bench, bench_of
from tests.execution.kit import FakePolicy, ScriptedTool, Steering, call
from tests.execution.stage_kit import FakeGuardrails
from tests.support.virtual_clock import run_virtual
from tui_agent.execution import (
    ApprovalGate,
    Auto,
    Batched,
    ExecutionOptions,
    HookBus,
    Parallel,
    Sequential,
    ToolExecutionResult,
)
from tui_agent.execution.untrusted_calls import now
from tui_agent.protocol.events import ToolStarted
from tui_agent.protocol.hooks import DenyCall, FailureAnswer, ModifyArguments, OverrideResult, SkipCall
from tui_agent.protocol.messages import AssistantMessage, JsonObject, TextBlock, ToolCall
from tui_agent.protocol.permissions import ApprovalDecision, PermissionDecision
from tui_agent.protocol.tool import Accesses, Preview, Timeout, ToolContext, ToolResult

STRATEGIES = [Auto(), Sequential(), Parallel(), Batched(2)]
HOOKS = ["before_tool", "before_update", "after_update", "on_tool_error", "after_tool", "after_tool_observer"]
PREDICATES = ["prepare_arguments", "is_read_only", "is_concurrency_safe", "accesses", "timeout", "summarise", "preview"]
JUDGES = ["floor", "check", "grant_rule", "grant_choices"]
OTHERS = ["check_input", "check_output", "approver", "on_request", "execute", "answer", "result"]


def scribble(value: Any) -> None:
    """Modify every mutable value within a value."""
    if isinstance(value, dict):
        for inner in list(value.values()):
            scribble(inner)
        value["scribbled"] = True
    elif isinstance(value, list | tuple):
        for inner in value:
            scribble(inner)
        if isinstance(value, list):
            value.append("scribbled")
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            scribble(getattr(value, name))
    elif dataclasses.is_dataclass(value):
        for one in dataclasses.fields(value):
            scribble(getattr(value, one.name))


class Scribbler:
    """All foreign code at once; the part named `who` modifies its arguments."""

    looks_at_results = True

    def __init__(self, who: str) -> None:
        self.who = who
        self.asked = 0
        self.ran: list[JsonObject] = []
        self.hooks = HookBus()
        for event in HOOKS:
            self.hooks.add(event, self._hook(event))
        self.gate = ApprovalGate(approver=self._approve)
        self.gate.on_request = lambda request: self.note("on_request", request)

    def note(self, who: str, *given: Any) -> None:
        if who == self.who:
            self.asked += 1
            scribble(given)

    def _hook(self, event: str) -> Any:
        return lambda question: self.note(event, question)

    async def check_input(self, call: ToolCall, tool: Any, arguments: JsonObject) -> None:
        self.note("check_input", call, arguments)

    async def check_output(self, call: ToolCall, result: ToolResult) -> None:
        self.note("check_output", call, result)

    def _approve(self, request: Any) -> ApprovalDecision:
        self.note("approver", request)
        return ApprovalDecision(decision="approve")


class ScribblingTool(ScriptedTool):
    """Tool whose predicates modify their arguments if its scribbler says so."""

    def __init__(self, name: str, scribbler: Scribbler, *, fails: bool = False) -> None:
        super().__init__(name, self._run)
        self._scribbler = scribbler
        self._fails = fails

    async def _run(self, arguments: JsonObject, context: ToolContext) -> Any:
        self._scribbler.ran.append(deepcopy(arguments))
        details: JsonObject = {"rows": [1]}
        context.update(ToolResult(details=details))
        context.emit("rows", details)
        self._scribbler.note("execute", arguments)
        self._scribbler.note("answer", context.answer)
        if self._fails:
            raise ValueError("broken")
        # A tool may keep its result and modify it long after the call.
        asyncio.get_running_loop().call_soon(self._scribbler.note, "result", details)
        return ToolResult.of_text("done", details=details)

    def prepare_arguments(self, arguments: JsonObject) -> JsonObject:
        prepared = deepcopy(arguments)
        self._scribbler.note("prepare_arguments", arguments)
        if self._scribbler.who == "prepare_arguments":
            asyncio.get_running_loop().call_soon(scribble, prepared)
        return prepared

    def is_read_only(self, arguments: JsonObject) -> bool:
        self._scribbler.note("is_read_only", arguments)
        return False

    def is_concurrency_safe(self, arguments: JsonObject) -> bool:
        self._scribbler.note("is_concurrency_safe", arguments)
        return False

    def accesses(self, arguments: JsonObject) -> Accesses | None:
        self._scribbler.note("accesses", arguments)
        return Accesses()

    def timeout(self, arguments: JsonObject) -> Timeout:
        self._scribbler.note("timeout", arguments)
        return "default"

    def summarise(self, arguments: JsonObject) -> str:
        self._scribbler.note("summarise", arguments)
        return ""

    async def preview(self, arguments: JsonObject) -> Preview | None:
        self._scribbler.note("preview", arguments)
        return None


class ScribblingPolicy(FakePolicy):
    """Policy that always asks, and modifies its arguments if its scribbler says so."""

    def __init__(self, scribbler: Scribbler) -> None:
        super().__init__({"act": "ask", "fail": "ask"})
        self._scribbler = scribbler

    def floor(self, tool: Any, arguments: JsonObject) -> PermissionDecision | None:
        self._scribbler.note("floor", arguments)
        return None

    def check(self, tool: Any, arguments: JsonObject) -> PermissionDecision:
        decision = super().check(tool, arguments)
        self._scribbler.note("check", arguments)
        return decision

    def grant_rule(self, tool: Any, arguments: JsonObject) -> str | None:
        self._scribbler.note("grant_rule", arguments)
        return self.rule

    def grant_choices(self, tool: Any, arguments: JsonObject) -> tuple[str, ...]:
        self._scribbler.note("grant_choices", arguments)
        return ()


@pytest.mark.parametrize("strategy", [Auto(), Sequential()], ids=repr)
@pytest.mark.parametrize("who", [*HOOKS, *PREDICATES, *JUDGES, *OTHERS])
async def test_modifications_by_foreign_code_stay_its_own(who: str, strategy: Any) -> None:
    scribbler = Scribbler(who)
    asked = [call("act", "c0", n={"deep": [1]}), call("fail", "c1", n={"deep": [2]})]
    message = AssistantMessage(content=tuple(asked), stop_reason="tool_use")
    before = message.model_dump_json()
    tools: list[ScriptedTool] = [ScribblingTool("act", scribbler), ScribblingTool("fail", scribbler, fails=True)]

    async with bench_of(
        tools,
        ExecutionOptions(strategy=strategy),
        hooks=scribbler.hooks,
        policy=ScribblingPolicy(scribbler),
        gate=scribbler.gate,
        guardrails=scribbler,
    ) as bench:
        bench.scheduler.submit_all(message.tool_calls)
        result = await bench.scheduler.finish(answer=message)
        await asyncio.sleep(0)

    assert scribbler.asked > 0, "it was never called"
    assert message.model_dump_json() == before
    assert scribbler.ran == [{"n": {"deep": [1]}}, {"n": {"deep": [2]}}]
    assert [report.arguments for report in result.reports] == scribbler.ran
    everything = [bench.events(), result.tool_results, result.reports]
    assert "scribbled" not in str(everything)


# --- unusable answers -------------------------------------------------------------------------------------------------


class BrokenPolicy(FakePolicy):
    """Policy of which one method raises or returns nonsense for calls of one tool."""

    def __init__(self, method: str, fault: Any) -> None:
        self._method, self._fault = "", fault
        super().__init__({"act": "ask", "fine": "ask"})
        self._method = method

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name.startswith("_") or name != self._method:
            return found
        if name == "mode":
            return self._faulty()
        return lambda *given: self._faulty() if getattr(given[0], "name", "act") == "act" else found(*given)

    def _faulty(self) -> Any:
        if isinstance(self._fault, BaseException):
            raise self._fault
        return self._fault


@pytest.mark.parametrize(
    "fault",
    [RuntimeError("lost"), asyncio.CancelledError(), SystemExit(1), object()],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("method", ["mode", "floor", "check", "grant_rule", "grant_choices", "grant"])
async def test_a_failing_policy_affects_no_other_call(method: str, fault: Any) -> None:
    policy = BrokenPolicy(method, fault)
    gate = ApprovalGate(approver=lambda request: ApprovalDecision(decision="approve", scope="session"))
    hooks = HookBus()
    hooks.before_tool(lambda question: None)
    tools = [ScriptedTool("act"), ScriptedTool("fine")]

    async with bench_of(tools, ExecutionOptions(strategy=Parallel()), policy=policy, gate=gate, hooks=hooks) as bench:
        bench.scheduler.submit_all([call("act", "c0"), call("fine", "c1")])
        result = await bench.scheduler.finish()

    statuses = [report.status for report in result.reports]
    assert statuses == ["denied_policy" if method in ("floor", "check") else "ok", "ok"]


@pytest.mark.parametrize("scope", ["session", "user"])
async def test_an_approval_counts_although_its_rule_cannot_be_stored(scope: Any) -> None:
    policy = BrokenPolicy("grant", OSError("disk full"))
    gate = ApprovalGate(approver=lambda request: ApprovalDecision(decision="approve", scope=scope))

    async with bench_of([ScriptedTool()], policy=policy, gate=gate) as bench:
        bench.scheduler.submit_all([call()])
        result = await bench.scheduler.finish()

    assert [report.status for report in result.reports] == ["ok"]
    assert "disk full" in next(event.text for event in bench.events() if event.type == "warning")


async def test_a_policy_that_fails_while_calls_wait_denies_them() -> None:
    policy = FakePolicy({"act": "ask"})
    gate = ApprovalGate(interactive=True)

    async with bench_of([ScriptedTool()], policy=policy, gate=gate) as bench, asyncio.TaskGroup() as group:
        bench.scheduler.submit_all([call()])
        finishing = group.create_task(bench.scheduler.finish())
        while not gate.pending:
            await asyncio.sleep(0)
        policy.verdicts = {"act": "nonsense"}
        gate.reconsider()
        result = await finishing

    assert [report.status for report in result.reports] == ["denied_policy"]


def cyclic() -> Any:
    value: dict[str, Any] = {"more": []}
    value["more"] += [value, value]
    return value


ODD_VALUES: list[Any] = [
    cyclic(),
    {1: {b"x": float("nan")}},
    {"n": 10**5000},
    {"n": float("inf")},
    {"n": {1, 2}, "o": object(), "b": b"\xff"},
    [1, 2],
    "text",
    None,
    object(),
]


def odd_answers() -> list[tuple[str, Any]]:
    """Return hooks, each with an invalid answer or an answer with invalid content."""
    found: list[tuple[str, Any]] = []
    for value in ODD_VALUES:
        found += [("before_tool", ModifyArguments(value)), ("before_tool", SkipCall(value))]
        found += [("before_tool", OverrideResult(value)), ("on_tool_error", FailureAnswer(value))]
        found += [(event, value) for event in HOOKS]
        result = ToolResult.model_construct(details=value, content=(TextBlock(text="x"),))
        found += [("after_tool", result), ("before_tool", OverrideResult(result))]
    found += [("before_tool", DenyCall(value)) for value in (None, 5)]
    errors = [RuntimeError("x"), asyncio.CancelledError(), SystemExit(1), GeneratorExit(), StopAsyncIteration()]
    return found + [(event, error) for event in HOOKS for error in errors]


async def finished(bench: Bench, *asked: ToolCall, streamed: bool = False) -> ToolExecutionResult:
    if streamed:
        for one in asked:
            bench.scheduler.submit(one)
            await asyncio.sleep(0)
    else:
        bench.scheduler.submit_all(asked)
    return await bench.scheduler.finish()


@pytest.mark.slow
@pytest.mark.parametrize("strategy", [Auto(), Sequential()], ids=repr)
async def test_whatever_a_hook_answers_each_call_ends_and_its_events_are_serialisable(strategy: Any) -> None:
    async def work(arguments: JsonObject, context: ToolContext) -> ToolResult:
        context.update(ToolResult.of_text("going on"))
        return ToolResult.of_text("done")

    async def fail(arguments: JsonObject, context: ToolContext) -> ToolResult:
        raise ValueError("broken")

    for event, answer in odd_answers():

        def hook(question: Any, answer: Any = answer) -> Any:
            if isinstance(answer, BaseException):
                raise answer
            return answer

        hooks = HookBus()
        hooks.add(event, hook)
        tools = [ScriptedTool("act", work, read_only=True), ScriptedTool("fail", fail)]
        async with bench_of(tools, ExecutionOptions(strategy=strategy), hooks=hooks) as bench:
            result = await finished(bench, call("act", "c0"), call("fail", "c1"), streamed=True)

        assert len(result.tool_results) == 2, (event, answer)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("value", ODD_VALUES, ids=lambda value: type(value).__name__)
async def test_whatever_a_tool_returns_and_reports_its_call_ends_and_its_events_are_serialisable(
    value: Any, streamed: bool
) -> None:
    async def odd(arguments: JsonObject, context: ToolContext) -> Any:
        context.update(value)
        context.progress(value, value)
        context.output(value, value, value)
        context.emit("rows", value)
        context.emit("file.changed", value)
        context.measure("n", value)
        return value

    async def constructed(arguments: JsonObject, context: ToolContext) -> Any:
        return ToolResult.model_construct(details=value, content=(TextBlock(text="x"),))

    tools = [ScriptedTool("odd", odd, read_only=True), ScriptedTool("built", constructed, read_only=True)]
    async with bench_of(tools) as bench:
        result = await finished(bench, call("odd", "c0"), call("built", "c1"), streamed=streamed)

    assert [report.status for report in result.reports] == ["ok", "ok"]


class OddTool(ScriptedTool):
    """Tool of which one predicate raises or returns nonsense."""

    predicate, answer = "", None

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name.startswith("_") or name in ("predicate", "answer") or name != self.predicate:
            return found
        return self._answer

    def _answer(self, *given: Any) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


ODD_PATHS: list[Any] = [None, frozenset({"a"}), frozenset({5}), ["a"]]
ODD_WORDS: list[Any] = [
    *ODD_VALUES,
    *[Accesses(reads=paths) for paths in ODD_PATHS],
    *[Accesses(writes=paths) for paths in ODD_PATHS],
    *(RuntimeError("x"), asyncio.CancelledError(), SystemExit(1), GeneratorExit(), 10**400, -1, b"x"),
]


@pytest.mark.parametrize("strategy", [Auto(), Sequential()], ids=repr)
@pytest.mark.parametrize("predicate", [*PREDICATES, "subject", "notices_changes", "interruptible"])
async def test_whatever_a_predicate_answers_each_call_ends(predicate: str, strategy: Any, tmp_path: Path) -> None:
    options = ExecutionOptions(strategy=strategy, steering_mode="interrupt", result_limit=500, archive_dir=tmp_path)
    for answer in ODD_WORDS:
        odd = OddTool("odd")
        odd.answer, odd.predicate = answer, predicate
        gate = ApprovalGate(approver=lambda request: ApprovalDecision(decision="approve"))
        policy = FakePolicy({"odd": "ask"}, targets=lambda arguments: ("/a",))
        asked = [call("odd", "c0"), call("act", "c1"), call("odd", "c2")]

        async with bench_of([odd, ScriptedTool()], options, policy=policy, gate=gate) as bench:
            result = await finished(bench, *asked, streamed=True)

        assert [report.call_id for report in result.reports] == ["c0", "c1", "c2"]
        assert result.reports[1].status == "ok"


@pytest.mark.parametrize("value", ODD_VALUES[:5], ids=lambda value: type(value).__name__)
async def test_arguments_that_are_not_json_are_refused_and_can_be_published(value: Any) -> None:
    odd = ToolCall.model_construct(id="c0", name="act", arguments=value, malformed=None, cut=False)

    async with bench_of([ScriptedTool()]) as bench:
        result = await finished(bench, odd)

    assert [report.status for report in result.reports] == ["invalid"]


@pytest.mark.parametrize(
    "answer", ["pass", 5, GeneratorExit(), SystemExit(1), object()], ids=lambda value: type(value).__name__
)
async def test_a_guardrail_with_an_invalid_answer_lets_nothing_pass(answer: Any) -> None:
    class Odd:
        looks_at_results = True

        def check_input(self, call: Any, tool: Any, arguments: Any) -> Any:
            return self.look("in")

        async def check_output(self, call: Any, result: Any) -> Any:
            return self.look(result.text)

        def look(self, text: str) -> Any:
            if text != self.lane:
                return None
            if isinstance(answer, BaseException):
                raise answer
            return answer

        def __init__(self, lane: str) -> None:
            self.lane = lane

    async def out(arguments: JsonObject, context: ToolContext) -> ToolResult:
        return ToolResult.of_text("out")

    for lane, status in (("in", "denied_guardrail"), ("out", "withheld")):
        guardrails: Any = Odd(lane)
        async with bench_of([ScriptedTool(behaviour=out)], guardrails=guardrails) as bench:
            result = await finished(bench, call())
        assert [report.status for report in result.reports] == [status]


async def test_empty_rewritten_arguments_are_executed_and_reported() -> None:
    hooks = HookBus()
    hooks.before_tool(lambda question: ModifyArguments({}))
    ran: list[JsonObject] = []

    async def keep(arguments: JsonObject, context: ToolContext) -> ToolResult:
        ran.append(arguments)
        return ToolResult()

    async with bench_of([ScriptedTool(behaviour=keep)], hooks=hooks) as bench:
        result = await finished(bench, call(path="/etc/x"))

    assert ran == [{}]
    assert bench.events(ToolStarted)[0].args == {}
    assert result.reports[0].arguments == {}


# --- code that ignores cancellation -----------------------------------------------------------------------------------


async def never() -> Any:
    """Ignore every cancellation."""
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()


class Endless(FakeGuardrails):
    """Policy of which one check never returns and cannot be cancelled."""

    def __init__(self, lane: str) -> None:
        super().__init__()
        self._lane = lane

    async def check_input(self, call: Any, tool: Any, arguments: Any) -> None:
        await (never() if self._lane == "check_input" else asyncio.sleep(0))

    async def check_output(self, call: Any, result: Any) -> None:
        await (never() if self._lane == "check_output" else asyncio.sleep(0))


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
@pytest.mark.parametrize("who", ["check_input", "check_output", "before_effects", "steering", *HOOKS])
def test_code_that_never_returns_and_ignores_cancellation_does_not_delay_an_abort(who: str, strategy: Any) -> None:
    async def report(arguments: JsonObject, context: ToolContext) -> ToolResult:
        context.update(ToolResult.of_text("part"))
        if who == "on_tool_error":
            raise ValueError("broken")
        return ToolResult.of_text("done")

    async def work() -> float:
        hooks = HookBus(timeout=None)
        if who in HOOKS:
            hooks.add(who, lambda question: never())
        async with bench_of(
            [ScriptedTool(behaviour=report)],
            ExecutionOptions(strategy=strategy, steering_mode="after_batch" if who == "steering" else None),
            hooks=hooks,
            guardrails=Endless(who),
            before_effects=never if who == "before_effects" else None,
            get_steering=(lambda: never()) if who == "steering" else Steering(),
        ) as bench:
            asyncio.get_running_loop().call_later(10, bench.token.cancel, "esc")
            began = now()
            await finished(bench, call("act", "c0"), call("act", "c1"))
            return now() - began

    assert 10 <= run_virtual(work()) <= 30
