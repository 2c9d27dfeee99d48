"""One message with one call of every outcome, run under a preset; everything that happens, as one list in order."""

import asyncio
from collections.abc import Sequence
from typing import Any

from tests.execution.bench import bench_of
from tests.execution.kit import FakePolicy, ScriptedTool, call
from tests.support.virtual_clock import run_virtual
from tui_agent.execution import ExecutionOptions, HookBus
from tui_agent.protocol.events import (
    HookEnded,
    MessageEnded,
    PermissionDecided,
    ToolBatchStarted,
    ToolBlockedOn,
    ToolEnded,
    ToolStarted,
)
from tui_agent.protocol.hooks import BeforeTool, OverrideResult, SkipCall
from tui_agent.protocol.messages import JsonObject, UserMessage, user_message
from tui_agent.protocol.tool import ToolContext, ToolResult

SCHEMA: JsonObject = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}

CALLS = {
    "look": call("look", "look", path="a"),
    "fail": call("fail", "fail", path="a"),
    "unknown": call("nothing", "unknown"),
    "invalid": call("act", "invalid"),
    "denied": call("denied", "denied", path="a"),
    "veto": call("act", "veto", path="a"),
    "skip": call("act", "skip", path="a"),
    "override": call("act", "override", path="a"),
    "act": call("act", "act", path="a"),
}
"""One call of every outcome, by id."""

QUIET = ("message.started", "hook.started", "warning")
"""Events left out of the list: each comes directly before a listed one."""


class Story:
    """Record of published events and of polls for steering."""

    def __init__(self, finds_at: int) -> None:
        self.lines: list[str] = []
        self.subscription: Any = None
        self._finds_at = finds_at
        self._polls = 0

    async def poll(self) -> Sequence[UserMessage]:
        self.read_on()
        self.lines.append("poll")
        self._polls += 1
        return [user_message("stop that", "steer")] if self._polls == self._finds_at else []

    def read_on(self) -> None:
        self.lines += [line(envelope.event) for envelope in self.subscription.drain() if envelope.type not in QUIET]


def events_of(options: ExecutionOptions, *names: str, finds_at: int) -> list[str]:
    """Return what happens to these calls, or to all of them, as the model's answer delivers them one by one.

    Poll number `finds_at` finds a message of the user.
    """
    return run_virtual(_events_of(options, names or tuple(CALLS), finds_at))


async def _events_of(options: ExecutionOptions, names: Sequence[str], finds_at: int) -> list[str]:
    story = Story(finds_at)
    tools = [
        ScriptedTool("look", _look, read_only=True, schema=SCHEMA),
        ScriptedTool("fail", _fail, schema=SCHEMA),
        ScriptedTool("denied", schema=SCHEMA),
        ScriptedTool("act", _act, schema=SCHEMA),
    ]
    policy = FakePolicy({"denied": "deny"})
    async with bench_of(tools, options, hooks=_hooks(), policy=policy, get_steering=story.poll) as bench:
        story.subscription = bench.bus.subscribe(merge=False)
        for name in names:
            bench.scheduler.submit(CALLS[name])
            await asyncio.sleep(0.1)
        await bench.scheduler.finish()
    story.read_on()
    return story.lines


def _hooks() -> HookBus:
    hooks = HookBus()

    @hooks.before_tool
    def decide(question: BeforeTool) -> object:
        match question.call.id:
            case "veto":
                return False
            case "skip":
                return SkipCall(ToolResult.of_text("known"))
            case "override":
                return OverrideResult(ToolResult.of_text("instead"))
            case _:
                return None

    return hooks


async def _look(arguments: JsonObject, context: ToolContext) -> ToolResult:
    context.update(ToolResult.of_text("half"))
    context.progress("going on")
    await asyncio.sleep(3)
    return ToolResult.of_text("seen")


async def _fail(arguments: JsonObject, context: ToolContext) -> ToolResult:
    await asyncio.sleep(1)
    raise ValueError("broken")


async def _act(arguments: JsonObject, context: ToolContext) -> ToolResult:
    await asyncio.sleep(2)
    return ToolResult.of_text("done")


def line(event: Any) -> str:
    """Return a short line for an event."""
    match event:
        case ToolBatchStarted():
            return f"batch {event.strategy}"
        case ToolBlockedOn():
            return f"blocked {event.call_id} on {event.what} {' '.join(event.on)}".strip()
        case PermissionDecided():
            return f"judged {event.call_id} {event.decision}"
        case HookEnded():
            return f"hook {event.call_id} {event.action}"
        case ToolStarted():
            return f"start {event.call_id} {event.timeout_s}"
        case ToolEnded():
            return f"end {event.call_id} {event.status}{'' if event.is_error else ', no error'}"
        case MessageEnded():
            return f"message {event.message.call_id}"
        case _:
            return f"{event.type.partition('.')[2]} {getattr(event, 'call_id', '')}".strip()
