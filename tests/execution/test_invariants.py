"""The invariants of events, for random calls, options, hooks, answers, failures, cancellations and messages."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.execution.kit import FakePolicy, ScriptedTool, Steering
from tests.execution.stage_kit import FakeGuardrails
from tests.support.examples import examples
from tests.support.transcript_checks import validate_history
from tests.support.validating_bus import ValidatingBus
from tests.support.virtual_clock import run_virtual
from tui_agent.execution import (
    ApprovalGate,
    Auto,
    Batched,
    EarlyExecutions,
    ExecutionOptions,
    HookBus,
    Parallel,
    Sequential,
    ToolExecutor,
    ToolScheduler,
)
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.events import ToolBatchEnded, ToolStarted
from tui_agent.protocol.hooks import (
    ApproveCall,
    DenyCall,
    FailureAnswer,
    ModifyArguments,
    OverrideResult,
    SkipCall,
)
from tui_agent.protocol.messages import AssistantMessage, JsonObject, ToolCall, user_message
from tui_agent.protocol.permissions import ApprovalDecision
from tui_agent.protocol.tool import Accesses, ToolContext, ToolResult


async def tell_and_sleep(arguments: JsonObject, context: ToolContext) -> ToolResult:
    for number in range(arguments.get("updates", 0)):
        context.update(ToolResult.of_text(f"part {number}"))
        context.progress("going on")
        await asyncio.sleep(arguments.get("pause", 0))
    return ToolResult.of_text(arguments.get("text", "done"), is_error=arguments.get("bad", False))


async def fail(arguments: JsonObject, context: ToolContext) -> ToolResult:
    await asyncio.sleep(arguments.get("pause", 0))
    raise ValueError("broken")


async def quit_(arguments: JsonObject, context: ToolContext) -> ToolResult:
    raise asyncio.CancelledError


async def linger(arguments: JsonObject, context: ToolContext) -> ToolResult:
    try:
        await asyncio.sleep(1000)
    except asyncio.CancelledError:
        context.progress("not now")
    return ToolResult.of_text("late")


async def heed(arguments: JsonObject, context: ToolContext) -> ToolResult:
    await context.cancellation.wait()
    context.progress("stopping")
    return ToolResult.of_text("half")


def paths(arguments: JsonObject) -> Accesses | None:
    path = arguments.get("path")
    return Accesses(writes=frozenset({Path(path)})) if path else None


TOOLS = [
    ScriptedTool("look", tell_and_sleep, read_only=True, interruptible=True),
    ScriptedTool("act", tell_and_sleep, paths=paths),
    ScriptedTool("lone", tell_and_sleep, alone=True),
    ScriptedTool("fail", fail),
    ScriptedTool("quit", quit_, read_only=True),
    ScriptedTool("linger", linger, read_only=True),
    ScriptedTool("heed", heed, interruptible=True),
    ScriptedTool("picky", tell_and_sleep, schema={"type": "object", "required": ["needed"]}),
]
TOOLS[3].aborts_siblings = True
NAMES = [*[tool.name for tool in TOOLS], "unknown"]


def effects() -> int:
    """Return how often a tool with effects ran so far."""
    return sum(len(tool.calls) for tool in TOOLS if not tool.is_read_only({}))


arguments = st.fixed_dictionaries(
    {},
    optional={
        "updates": st.integers(0, 3),
        "pause": st.sampled_from([0, 0.5, 3]),
        "text": st.sampled_from(["done", "bad word", "worst", "x" * 900]),
        "bad": st.booleans(),
        "path": st.sampled_from(["/a", "/b", "/a/c"]),
    },
)
one_call = st.builds(
    lambda name, own, malformed: ToolCall(id="", name=name, arguments={} if malformed else own, malformed=malformed),
    st.sampled_from(NAMES),
    arguments,
    st.sampled_from([None] * 9 + ["no JSON"]),
)


some_options = st.fixed_dictionaries(
    {
        "strategy": st.sampled_from([Auto(), Auto(), Sequential(), Parallel(), Batched(2), Batched(3)]),
        "tool_timeout": st.sampled_from([2.0, 5.0]),
    },
    optional={
        "preset": st.sampled_from(["rust_loop", "permissioned", "ordered_parallel", "streaming", "sdk_loop"]),
        "validate_arguments": st.just(False),
        "unknown_tool": st.just("plain"),
        "skip_is_error": st.just(False),
        "error_traceback": st.sampled_from(["model", "none"]),
        "grouping": st.sampled_from(["conflicts", "consecutive", "safe_first"]),
        "steering_mode": st.sampled_from(
            ["between_calls", "between_batches", "after_batch", "before_effects", "interrupt", "off"]
        ),
        "max_concurrency": st.sampled_from([1, 2, None]),
        "admit_first": st.booleans(),
        "start_events": st.just("upfront"),
        "end_events": st.just("source_order"),
        "message_events": st.just("completion"),
        "stream_tools": st.just("off"),
        "balanced_start": st.booleans(),
        "start_unknown": st.booleans(),
        "pre_hook_position": st.sampled_from(["before_lookup", "after_permission"]),
        "hook_may_approve": st.booleans(),
        "on_reject": st.just("stop_turn"),
        "sibling_abort": st.just(True),
        "result_limit": st.just(500),
        "grace": st.sampled_from([0, 0.5]),
        "malformed_args": st.just("empty_object"),
        "terminate_policy": st.just("any"),
    },
)


def options_of(drawn: dict[str, Any]) -> ExecutionOptions:
    """Draw options on top of an optional preset, without combinations that are refused as ineffective."""
    base = ExecutionOptions.preset(drawn["preset"]) if "preset" in drawn else ExecutionOptions()
    chosen = {name: drawn.get(name, getattr(base, name)) for name in ExecutionOptions.__dataclass_fields__}
    if chosen["pre_hook_position"] == "after_permission":
        chosen["hook_may_approve"] = False
    if chosen["end_events"] == "source_order":
        chosen["message_events"] = "ordered"
    return ExecutionOptions(**chosen)


before_answers = st.sampled_from(
    [
        None,
        True,
        False,
        DenyCall("no"),
        SkipCall(ToolResult.of_text("known")),
        OverrideResult(ToolResult.of_text("instead")),
        ModifyArguments({"updates": 1, "path": "/b"}),
        ModifyArguments({"forbidden": 1}),
        ApproveCall("fine"),
        ValueError("broken hook"),
        asyncio.CancelledError(),
        "slow",
    ]
)
decisions = st.sampled_from(
    [
        {"decision": "approve"},
        {"decision": "approve", "scope": "session"},
        {"decision": "approve", "input": {"updates": 1, "path": "/a"}},
        {"decision": "approve", "input": {"forbidden": 1}},
        {"decision": "approve", "override_result": {"content": []}},
        {"decision": "deny"},
        {"decision": "deny", "note": "because"},
        {"decision": "skip"},
        None,
    ]
)


@dataclass
class Story:
    """Everything that happens to the calls of one message."""

    calls: list[ToolCall]
    options: dict[str, Any]
    before: list[Any] = field(default_factory=list[Any])
    hooks: frozenset[str] = frozenset()
    verdicts: dict[str, str] | None = None
    decisions: list[Any] = field(default_factory=list[Any])
    guarded: bool = False
    steer_at: int | None = None
    cancel_token_at: float | None = None
    cancel_task_at: float | None = None
    streamed: bool = False
    end: str = "finish"
    early: bool = False
    """True if early calls could outlive their message, as in the loop."""
    breaks: bool = False
    """True if an answer with the same calls broke off before."""
    records: str = "no"
    """`broken` if effects cannot be recorded before they happen."""
    notice_at: float | None = None
    """Seconds after which a message of the user is noticed at once."""
    drop_at: float | None = None
    """Seconds after which the user cancels the first call."""


stories = st.builds(
    Story,
    st.lists(one_call, min_size=1, max_size=6).map(
        lambda asked: [one.model_copy(update={"id": f"c{number}"}) for number, one in enumerate(asked)]
    ),
    some_options,
    st.lists(before_answers, max_size=3),
    st.frozensets(
        st.sampled_from(
            ["before_update", "after_update", "on_tool_error", "after_tool", "after_tool_observer", "broken"]
        )
    ),
    st.none() | st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["ask", "deny", "allow"]), max_size=4),
    st.lists(decisions, max_size=4),
    st.booleans(),
    st.none() | st.integers(1, 5),
    st.none() | st.sampled_from([0.0, 0.5, 1.0, 4.0]),
    st.none() | st.none() | st.sampled_from([0.0, 0.6, 1.1, 4.1]),
    st.booleans(),
    st.sampled_from(["finish"] * 6 + ["discard", "leave", "cut"]),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["no", "yes", "broken"]),
    st.none() | st.sampled_from([0.2, 1.5, 3.3]),
    st.none() | st.sampled_from([0.1, 0.8, 2.6]),
)


def cycle(answers: list[Any]) -> Any:
    """Return the answers in turn, repeatedly."""
    count = 0

    def next_answer() -> Any:
        nonlocal count
        count += 1
        return answers[(count - 1) % len(answers)]

    return next_answer


def hooks_of(story: Story) -> HookBus:
    hooks = HookBus(timeout=2.0)
    if story.before:
        answer_of = cycle(story.before)

        async def before(question: Any) -> Any:
            answer = answer_of()
            if answer == "slow":
                await asyncio.sleep(1000)
            if isinstance(answer, BaseException):
                raise answer
            return answer

        hooks.before_tool(before)

    async def broken(question: Any) -> Any:
        await asyncio.sleep(0.1)
        raise ValueError("broken")

    def keep_some(question: Any) -> bool:
        return "1" not in question.text

    helpful: dict[str, Any] = {
        "before_update": keep_some,
        "after_update": lambda question: None,
        "on_tool_error": lambda question: FailureAnswer(continue_on_error=False),
        "after_tool": lambda question: ToolResult.of_text("changed"),
        "after_tool_observer": lambda ended: None,
    }
    for event in sorted(story.hooks - {"broken"}):
        hooks.add(event, broken if "broken" in story.hooks else helpful[event])
    return hooks


def gate_of(story: Story) -> ApprovalGate:
    if not story.decisions:
        return ApprovalGate()
    decide = cycle(story.decisions)

    async def approve(request: Any) -> ApprovalDecision:
        await asyncio.sleep(0.7)
        decision = decide()
        if decision is None:
            raise RuntimeError("the approver went home")
        return ApprovalDecision.model_validate(decision)

    return ApprovalGate(approver=approve)


async def play(story: Story) -> None:
    options = options_of(story.options)
    policy = None if story.verdicts is None else FakePolicy(dict(story.verdicts))
    bus = ValidatingBus(options)
    token = CancellationToken()
    committed: list[Any] = []
    recorded = 0
    happened = effects()

    async def record() -> None:
        nonlocal recorded
        recorded += 1
        await asyncio.sleep(0.1)
        if story.records == "broken":
            raise OSError("disk full")

    executor = ToolExecutor(
        TOOLS,
        bus=bus,
        options=options,
        hooks=hooks_of(story),
        policy=policy,
        gate=gate_of(story),
        guardrails=FakeGuardrails(halts=True) if story.guarded else None,
        before_effects=None if story.records == "no" else record,
    )
    early = EarlyExecutions(token)
    steering = Steering(story.steer_at)
    scheduler = ToolScheduler(
        executor,
        cancellation=token,
        get_steering=steering,
        on_result=committed.append,
        early=early if story.early else None,
    )
    subscription = bus.subscribe(merge=False)
    finished = asyncio.Event()

    async def break_off() -> None:
        async with ToolScheduler(executor, cancellation=token, early=early if story.early else None) as first:
            for one in story.calls:
                first.submit(one.model_copy(update={"id": f"broken {one.id}"}))
                await asyncio.sleep(0.3)
            await first.discard("the stream broke")

    async def run_calls() -> None:
        async with early:
            if story.breaks:
                await break_off()
            async with scheduler:
                if story.streamed:
                    for one in story.calls:
                        scheduler.submit(one)
                        await asyncio.sleep(0.3)
                else:
                    scheduler.submit_all(story.calls)
                if story.end == "discard":
                    await scheduler.discard("the stream broke")
                elif story.end != "leave":
                    result = await scheduler.finish(cut=story.end == "cut")
                    assert result.tool_results == tuple(committed)
                    assert len(result.reports) == len(story.calls)
                    finished.set()

    def notice() -> None:
        steering.say()
        scheduler.notify_steering()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(run_calls())
        loop = asyncio.get_running_loop()
        if story.cancel_token_at is not None:
            loop.call_later(story.cancel_token_at, token.cancel, "esc")
        if story.cancel_task_at is not None:
            loop.call_later(story.cancel_task_at, task.cancel)
        if story.notice_at is not None:
            loop.call_later(story.notice_at, notice)
        if story.drop_at is not None:
            loop.call_later(story.drop_at, scheduler.cancel_call, story.calls[0].id, "not this one")

    envelopes = subscription.drain()
    answered = {message.call_id for message in committed}
    queued = {envelope.event.call_id for envelope in envelopes if envelope.type == "tool.queued"}  # pyright: ignore
    broken = {call_id for call_id in queued if call_id.startswith("broken")}
    bus.unanswered = lambda: broken if answered else queued
    bus.judge()
    if finished.is_set():
        assert answered == queued - broken == {one.id for one in story.calls}
        history = [user_message("go"), AssistantMessage(content=tuple(story.calls)), *committed]
        validate_history([*history, *scheduler.steering_messages])
    if queued:
        assert isinstance(envelopes[-1].event, ToolBatchEnded)
    started = [envelope.event for envelope in envelopes if isinstance(envelope.event, ToolStarted)]
    assert all(event.read_only for event in started if event.adopted_from), "an effect was adopted"
    assert story.records == "no" or effects() - happened <= recorded, "an effect without a record"
    assert executor.services.gate.pending == ()
    assert len(asyncio.all_tasks()) == 1, "a task outlived its calls"


@pytest.mark.slow
@settings(max_examples=examples(400))
@given(stories)
def test_every_invariant_is_kept_whatever_happens(story: Story) -> None:
    run_virtual(play(story))
