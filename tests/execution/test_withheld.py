"""Withheld results stay hidden from all, whatever their origin and whatever their call reported before."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.execution.bench import Bench, bench_of
from tests.execution.kit import FakePolicy, ScriptedTool, call
from tests.execution.stage_kit import FakeGuardrails
from tui_agent.execution import ApprovalGate, ExecutionOptions, HookBus
from tui_agent.protocol.events import FileChanged, ToolOutput
from tui_agent.protocol.hooks import AfterTool, FailureAnswer, OverrideResult, SkipCall
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest
from tui_agent.protocol.tool import ToolContext, ToolResult

SECRET = ToolResult.of_text("a bad secret", details={"raw": "bad"})


async def give(arguments: JsonObject, context: ToolContext) -> ToolResult:
    return SECRET


async def fail(arguments: JsonObject, context: ToolContext) -> ToolResult:
    raise ValueError("a bad secret")


def hooked(event: str, answer: Any) -> HookBus:
    hooks = HookBus()
    hooks.add(event, lambda question: answer)
    return hooks


def answering(**answer: Any) -> dict[str, Any]:
    decision = ApprovalDecision.model_validate(answer)
    return {"gate": ApprovalGate(approver=lambda request: decision), "policy": FakePolicy({"act": "ask"})}


FALLBACK = FailureAnswer(fallback=SECRET)
WAYS: dict[str, Callable[[], dict[str, Any]]] = {
    "the tool": dict,
    "an error": lambda: {"behaviour": fail},
    "override": lambda: {"hooks": hooked("before_tool", OverrideResult(SECRET))},
    "skip": lambda: {"hooks": hooked("before_tool", SkipCall(SECRET))},
    "the user": lambda: answering(decision="approve", override_result=SECRET),
    "the user, skipping": lambda: answering(decision="skip", override_result=SECRET),
    "fallback of an error": lambda: {"behaviour": fail, "hooks": hooked("on_tool_error", FALLBACK)},
    "fallback of no tool": lambda: {"name": "unknown", "hooks": hooked("on_tool_error", FALLBACK)},
}


async def came_by(way: str, **settings: Any) -> Bench:
    """Run one call whose result has this origin."""
    chosen = WAYS[way]()
    hooks: HookBus = settings.pop("hooks", HookBus())
    for event in ("before_tool", "on_tool_error"):
        for hook in chosen.get("hooks", HookBus()).hooks(event):
            hooks.add(event, hook.function)
    asked = call(chosen.pop("name", "act"))
    tools = [ScriptedTool(behaviour=chosen.pop("behaviour", give))]
    async with bench_of(tools, **{**chosen, **settings, "hooks": hooks}) as bench:
        bench.scheduler.submit_all([asked])
        await bench.scheduler.finish()
    return bench


def said(bench: Bench) -> str:
    return str(bench.events()) + str(bench.committed) + str(bench.scheduler.tool_results)


@pytest.mark.parametrize("way", WAYS)
async def test_a_result_passes_the_guardrails_whatever_its_origin(way: str) -> None:
    assert "secret" in said(await came_by(way))

    bench = await came_by(way, guardrails=FakeGuardrails())

    assert bench.ended() == {"c": "withheld"}
    assert "secret" not in said(bench)


@pytest.mark.parametrize("way", WAYS)
async def test_a_failing_hook_reveals_nothing_of_the_result(way: str) -> None:
    def parse(question: AfterTool) -> ToolResult:
        raise ValueError(f"cannot read {question.result.text}")

    hooks = HookBus()
    hooks.after_tool(parse)

    assert "secret" not in said(await came_by(way, hooks=hooks))


# --- earlier reports --------------------------------------------------------------------------------------------------


def reporting(text: str, result: str = "done") -> Any:
    async def work(arguments: JsonObject, context: ToolContext) -> ToolResult:
        half = len(text) // 2
        context.output(text[:half])
        context.output("between", "stderr")
        context.output(text[half:])
        context.progress(text, 0.5)
        context.update(ToolResult.of_text(text, details={"raw": text}))
        context.emit("rows", {"rows": [text]})
        context.emit("file.changed", {"path": "/a", "change": "modified", "diff": text})
        return ToolResult.of_text(result)

    return work


async def reported(text: str, result: str = "done", **settings: Any) -> Bench:
    async with bench_of([ScriptedTool(behaviour=reporting(text, result))], **settings) as bench:
        bench.scheduler.submit_all([call()])
        await bench.scheduler.finish()
    return bench


REPORTS = ["tool.output", "tool.output", "tool.output", "tool.progress", "tool.update", "tool.data"]


def reports(bench: Bench) -> list[str]:
    return [event.type for event in bench.events() if event.type in REPORTS]


# No event id, which is hexadecimal, contains the forbidden word.
@pytest.mark.parametrize(("text", "result"), [("a toxic secret", "a toxic secret"), ("toxic", "done"), ("x", "toxic")])
async def test_no_report_of_a_withheld_call_was_published(text: str, result: str) -> None:
    bench = await reported(text, result, guardrails=FakeGuardrails("toxic"))

    assert bench.ended() == {"c": "withheld"}
    assert reports(bench) == []
    assert bench.events(FileChanged) == [FileChanged(call_id="c", path="/a", change="modified", diff="")]
    assert "toxic" not in said(bench)


async def test_a_cancelled_call_publishes_nothing_unchecked() -> None:
    async def hang(arguments: JsonObject, context: ToolContext) -> ToolResult:
        context.output("a bad secret")
        await asyncio.Event().wait()
        return ToolResult()

    options = ExecutionOptions(grace=0)
    async with bench_of([ScriptedTool(behaviour=hang)], options, guardrails=FakeGuardrails()) as bench:
        bench.scheduler.submit_all([call()])
        asyncio.get_running_loop().call_soon(asyncio.get_running_loop().call_soon, bench.token.cancel)
        await bench.scheduler.finish()

    assert "secret" not in said(bench)


async def test_a_hiding_hook_delays_reports_and_any_other_leaves_them_live() -> None:
    hiding, formatting = HookBus(), HookBus()
    hiding.add("after_tool", lambda question: None, hides=True)
    formatting.add("after_tool", lambda question: None)

    assert reports(await reported("fine", hooks=hiding)) == []
    assert reports(await reported("fine", hooks=formatting)) == REPORTS
    assert reports(await reported("fine")) == REPORTS


async def test_of_endless_delayed_reports_the_oldest_are_dropped() -> None:
    async def work(arguments: JsonObject, context: ToolContext) -> ToolResult:
        for number in range(30):
            context.output(f"{number:02}" * 50_000)
        return ToolResult()

    async with bench_of([ScriptedTool(behaviour=work)], guardrails=FakeGuardrails()) as bench:
        bench.scheduler.submit_all([call()])
        await bench.scheduler.finish()

    assert [event.chunk[:2] for event in bench.events(ToolOutput)] == [str(number) for number in range(20, 30)]


async def measured(value: str, result: str = "done", **settings: Any) -> str:
    """Return the events of a call with these metrics and this result."""

    async def work(arguments: JsonObject, context: ToolContext) -> ToolResult:
        context.measure("seen", value)
        return ToolResult.of_text(result)

    async with bench_of([ScriptedTool(behaviour=work)], **settings) as bench:
        bench.scheduler.submit_all([call()])
        reports = (await bench.scheduler.finish()).reports
    return said(bench) + str(reports)


async def test_guardrails_check_metrics_too() -> None:
    for result in ("done", "bad"):
        assert "secret" not in await measured("a bad secret", result, guardrails=FakeGuardrails())
    assert "fine value" in await measured("fine value", guardrails=FakeGuardrails())


async def test_unchecked_metrics_of_a_cancelled_call_are_not_published() -> None:
    class HangingGuardrails(FakeGuardrails):
        async def check_output(self, call: Any, result: ToolResult) -> Any:
            bench.token.cancel("enough")
            await asyncio.Event().wait()

    async def work(arguments: JsonObject, context: ToolContext) -> ToolResult:
        context.measure("seen", "a bad secret")
        return ToolResult.of_text("done")

    options = ExecutionOptions(grace=0)
    async with bench_of([ScriptedTool(behaviour=work)], options, guardrails=HangingGuardrails()) as bench:
        bench.scheduler.submit_all([call()])
        result = await bench.scheduler.finish()

    assert "secret" not in said(bench) + str(result.reports)


async def test_a_result_that_the_user_supplies_when_asked_again_is_checked_too() -> None:
    targets = ["/a"]

    def answer(request: ApprovalRequest) -> ApprovalDecision:
        if request.targets == ("/b",):
            return ApprovalDecision(decision="approve", override_result=ToolResult.of_text("bad word"))
        targets[0] = "/b"
        return ApprovalDecision(decision="approve")

    policy = FakePolicy({"act": "ask"}, targets=lambda arguments: (targets[0],))
    tool = ScriptedTool()
    gate = ApprovalGate(approver=answer)
    async with bench_of([tool], policy=policy, gate=gate, guardrails=FakeGuardrails()) as bench:
        bench.scheduler.submit_all([call()])
        result = await bench.scheduler.finish()

    assert [report.status for report in result.reports] == ["withheld"]
    assert tool.calls == []
