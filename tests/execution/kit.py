"""Scripted tools and policies for tests of the engine, and checks after every run."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.transcript_checks import validate_history
from tests.support.validating_bus import ValidatingBus
from tui_agent.execution import ExecutionOptions, HookBus, SteeringGetter, ToolExecutionResult, execute_tool_calls
from tui_agent.execution.approval_gate import ApprovalGate
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import AgentEvent, ToolEnded
from tui_agent.protocol.messages import AssistantMessage, JsonObject, ToolCall, UserMessage, user_message
from tui_agent.protocol.permissions import GrantScope, PermissionChecker, PermissionDecision, PermissionMode
from tui_agent.protocol.tool import Accesses, Preview, Timeout, Tool, ToolContext, ToolResult, ToolSpec
from tui_agent.protocol.trial import Place

Behaviour = Callable[[JsonObject, ToolContext], Awaitable[Any]]


async def _echo(arguments: JsonObject, context: ToolContext) -> ToolResult:
    return ToolResult.of_text(f"{context.tool_name} {arguments}")


class ScriptedTool(Tool):
    """Tool with scripted behaviour."""

    def __init__(
        self,
        name: str = "act",
        behaviour: Behaviour = _echo,
        *,
        read_only: bool = False,
        safe: bool | None = None,
        alone: bool = False,
        paths: Callable[[JsonObject], Accesses | None] = lambda arguments: None,
        timeout: Timeout | None = None,
        interruptible: bool = False,
        schema: JsonObject | None = None,
        preview: Preview | None = None,
    ) -> None:
        self.spec = ToolSpec(name=name, description=name, input_schema=schema or {"type": "object"})
        self.behaviour = behaviour
        self.calls: list[str] = []
        self.execution_mode = "sequential" if alone else "shared"
        self._read_only = read_only
        self._safe = read_only if safe is None else safe
        self._paths = paths
        self._timeout = timeout
        self._interruptible = interruptible
        self._preview = preview

    async def execute(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        self.calls.append(context.call_id)
        return await self.behaviour(arguments, context)

    def is_read_only(self, arguments: JsonObject) -> bool:
        return self._read_only

    def is_concurrency_safe(self, arguments: JsonObject) -> bool:
        return self._safe

    def accesses(self, arguments: JsonObject) -> Accesses | None:
        return self._paths(arguments)

    def timeout(self, arguments: JsonObject) -> Timeout:
        return "default" if self._timeout is None else self._timeout

    def interruptible(self, arguments: JsonObject) -> bool:
        return self._interruptible

    def summarise(self, arguments: JsonObject) -> str:
        return f"{self.name}!"

    async def preview(self, arguments: JsonObject) -> Preview | None:
        return self._preview


@dataclass
class FakePolicy:
    """Policy that decides by tool name; the floor denies the tools in `floor_denies`."""

    verdicts: dict[str, str] = field(default_factory=dict[str, str])
    floor_denies: set[str] = field(default_factory=set[str])
    mode: PermissionMode = PermissionMode.ASK
    targets: Callable[[JsonObject], tuple[str, ...]] = lambda arguments: ()
    granted: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    rule: str | None = "act(*)"
    place: Place = "outside"
    checks: int = 0

    def set_mode(self, mode: PermissionMode) -> None:
        self.mode = mode

    def floor(self, tool: Tool, arguments: JsonObject) -> PermissionDecision | None:
        if tool.name in self.floor_denies or "forbidden" in arguments:
            return PermissionDecision(decision="deny", source="floor", reason="protected")
        return None

    def check(self, tool: Tool, arguments: JsonObject) -> PermissionDecision:
        self.checks += 1
        denial = self.floor(tool, arguments)
        if denial is not None:
            return denial
        verdict = self.verdicts.get(tool.name, "allow")
        if verdict == "ask" and any(rule == self.rule for rule, _ in self.granted):
            return PermissionDecision(decision="allow", source="grant", reason="granted")
        reason = f"{tool.name} is {verdict}"
        decided = {"decision": verdict, "source": "rule", "reason": reason, "targets": self.targets(arguments)}
        return PermissionDecision.model_validate({**decided, "place": self.place})

    def grant_rule(self, tool: Tool, arguments: JsonObject) -> str | None:
        return self.rule

    def grant_choices(self, tool: Tool, arguments: JsonObject) -> tuple[str, ...]:
        rule = self.grant_rule(tool, arguments)
        return () if rule is None else (rule,)

    def grant(self, rule: str, scope: GrantScope) -> None:
        self.granted.append((rule, scope))


@dataclass
class Ran:
    """Results and events of a run of calls."""

    result: ToolExecutionResult
    envelopes: list[Envelope]

    @property
    def events(self) -> list[AgentEvent]:
        return [envelope.event for envelope in self.envelopes]

    @property
    def types(self) -> list[str]:
        """`type call_id` for each event of a call, `type` for the others."""
        return [line(event) for event in self.events]

    @property
    def texts(self) -> list[str]:
        return [message.text for message in self.result.tool_results]

    @property
    def statuses(self) -> list[str]:
        return [report.status for report in self.result.reports]

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def ended(self, call_id: str) -> ToolEnded:
        return next(event for event in self.of(ToolEnded) if event.call_id == call_id)


def line(event: Any) -> str:
    """Return a short line for an event."""
    if event.type == "message.ended" and event.message.role == "tool_result":
        return f"message.ended {event.message.call_id}"
    call_id = getattr(event, "call_id", None)
    return f"{event.type} {call_id}" if call_id else event.type


def call(name: str = "act", call_id: str = "c", /, **arguments: Any) -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments=arguments)


def calls(*names: str) -> list[ToolCall]:
    """Return one call for each name, with ids c0, c1, …"""
    return [call(name, f"c{index}") for index, name in enumerate(names)]


def judge(asked: Sequence[ToolCall], ran: ToolExecutionResult) -> None:
    """Compare the results of a run with the calls of its message."""
    assert len(ran.reports) == len(asked)
    if asked:
        message = AssistantMessage(content=tuple(asked), stop_reason="tool_use")
        validate_history([user_message("go"), message, *ran.tool_results, *(ran.steering_messages or ())])


async def run(
    tools: Sequence[Any] | None,
    asked: Sequence[ToolCall],
    options: ExecutionOptions | None = None,
    *,
    hooks: HookBus | None = None,
    policy: PermissionChecker | None = None,
    gate: ApprovalGate | None = None,
    steering: SteeringGetter | None = None,
    cancellation: CancellationToken | None = None,
) -> Ran:
    """Run `execute_tool_calls` on a bus of its own, validated."""
    bus = ValidatingBus(options)
    with bus.subscribe(merge=False) as subscription:
        result = await execute_tool_calls(
            tools,
            asked,
            bus=bus,
            cancellation=cancellation,
            get_steering=steering,
            options=options,
            hooks=hooks,
            policy=policy,
            gate=gate,
        )
        envelopes = subscription.drain()
    bus.judge()
    judge(asked, result)
    return Ran(result, envelopes)


class Steering:
    """Steering getter that counts its polls and finds a message at the n-th poll, or once a test adds one."""

    def __init__(self, at_poll: int | None = None, kind: Any = "steer") -> None:
        self.polls = 0
        self.waiting: list[UserMessage] = []
        self._at_poll = at_poll
        self._kind = kind

    def say(self, text: str = "stop that") -> None:
        self.waiting.append(user_message(text, self._kind))

    async def __call__(self) -> list[UserMessage]:
        self.polls += 1
        if self.polls == self._at_poll:
            self.say()
        waiting, self.waiting = self.waiting, []
        return waiting


def sleeping(seconds: float, text: str = "slept") -> Behaviour:
    """Sleep on the virtual clock."""

    async def behaviour(arguments: JsonObject, context: ToolContext) -> ToolResult:
        await asyncio.sleep(seconds)
        return ToolResult.of_text(text)

    return behaviour


class Doors:
    """Gates that a test opens one by one: each call waits at the gate of its id."""

    def __init__(self) -> None:
        self.arrived: list[str] = []
        self._doors: dict[str, asyncio.Event] = {}
        self._bell = asyncio.Event()

    async def __call__(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        self.arrived.append(context.call_id)
        self._bell.set()
        await self._door(context.call_id).wait()
        return ToolResult.of_text(f"through {context.call_id}")

    def open(self, *call_ids: str) -> None:
        for call_id in call_ids:
            self._door(call_id).set()

    async def until(self, *call_ids: str) -> None:
        """Wait until these calls are at their gates."""
        while not set(call_ids) <= set(self.arrived):
            self._bell.clear()
            await self._bell.wait()

    def _door(self, call_id: str) -> asyncio.Event:
        return self._doors.setdefault(call_id, asyncio.Event())
