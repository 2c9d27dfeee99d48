"""An agent with a scripted model and small tools; every event is recorded and validated afterwards."""

import asyncio
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.support.transcript_checks import validate_events, validate_history
from tests.support.validating_bus import ValidatingBus
from tui_agent.agent import AgentLoop, AgentLoopConfig, AgentLoopSnapshot, RetryPolicy
from tui_agent.execution import ApprovalGate
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import AgentEvent, CompactionEnded, MessageEnded, RunEnded, SteeringDelivered
from tui_agent.protocol.messages import AssistantMessage, JsonObject, Message, TextBlock, ToolCall, ToolResultMessage
from tui_agent.protocol.tool import Tool, ToolContext, ToolResult, ToolSpec
from tui_agent.providers import Call, Reply, ScriptedProvider
from tui_agent.providers.scripted_provider import Step

from .fakes import FakePolicy

AT_ONCE = RetryPolicy(first_wait=0)
"""Retry policy without delays."""

QUIET = {"status.changed", "context.usage", "usage.updated", "request.built", "message.delta", "agent.created"}
"""Events that most tests ignore."""


def asking(call_id: str, text: str = "") -> AssistantMessage:
    """Return an answer with one call that has no result yet."""
    said = (TextBlock(text=text),) if text else ()
    return AssistantMessage(content=(*said, ToolCall(id=call_id, name="look")), stop_reason="tool_use")


class ScriptedTool(Tool):
    """Tool that answers with its name; it can be held, raise, or end the run."""

    def __init__(
        self,
        name: str,
        *,
        read_only: bool = False,
        error: Exception | None = None,
        terminate: bool = False,
        interruptible: bool = False,
    ) -> None:
        self.spec = ToolSpec(name=name, description=f"the {name} tool", input_schema={"type": "object"})
        self.runs: list[JsonObject] = []
        """Arguments of each execution."""
        self.started = asyncio.Event()
        """Set when execution starts."""
        self.go_on = asyncio.Event()
        """Event that lets a held execution end."""
        self.go_on.set()
        self.cancelled = 0
        self._read_only = read_only
        self._error = error
        self._terminate = terminate
        self._interruptible = interruptible

    def hold(self) -> "ScriptedTool":
        """Make executions wait until `go_on` is set."""
        self.go_on.clear()
        return self

    def is_read_only(self, arguments: JsonObject) -> bool:
        return self._read_only

    def interruptible(self, arguments: JsonObject) -> bool:
        return self._interruptible

    async def execute(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        self.runs.append(arguments)
        self.started.set()
        try:
            await self.go_on.wait()
        finally:
            self.cancelled += not self.go_on.is_set()
        if self._error is not None:
            raise self._error
        text = f"{self.name} {arguments.get('n', '')}".strip()
        return ToolResult.of_text(text).model_copy(update={"terminate": self._terminate})


@dataclass
class Bench:
    """One agent and all events it published."""

    loop: AgentLoop
    provider: ScriptedProvider
    bus: EventBus
    unanswered: Collection[str] = ()
    """Calls that need no result message; see `validate_events`."""
    ordered: bool = True
    """True if result messages must be in call order; see `validate_events`."""
    balanced: bool = False
    """True if calls that never ran may have a start; see `validate_events`."""
    told: list[Envelope] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._subscription = self.bus.subscribe(merge=False, since=0)

    @property
    def events(self) -> list[AgentEvent]:
        """All events so far."""
        self.told += self._subscription.drain()
        return [envelope.event for envelope in self.told]

    @property
    def envelopes(self) -> list[Envelope]:
        """All envelopes so far."""
        return self.told if self.events else []

    def of(self, *kinds: type[Any]) -> list[Any]:
        """Return the events of some kinds."""
        return [event for event in self.events if isinstance(event, kinds)]

    def types(self, *, but: Iterable[str] = QUIET) -> list[str]:
        """Return the type names of all events except some."""
        return [event.type for event in self.events if event.type not in set(but)]

    @property
    def texts(self) -> list[str]:
        """Conversation as `role: text` lines."""
        return [f"{message.role}: {message.text}" for message in self.loop.history.messages()]

    @property
    def results(self) -> list[ToolResultMessage]:
        """Result messages of the conversation."""
        return [message for message in self.loop.history.messages() if isinstance(message, ToolResultMessage)]

    @property
    def ended(self) -> RunEnded:
        """The only `run.ended` of the last run."""
        return self.of(RunEnded)[-1]

    @property
    def delivered(self) -> list[str]:
        """Texts of the delivered steering messages and follow-ups, in order."""
        return [event.text for event in self.of(SteeringDelivered)]

    def sent(self, request: int) -> list[str]:
        """Return the messages of one request as `role: text` lines."""
        return [f"{message.role}: {message.text}" for message in self.provider.requests[request].messages]

    def judge(self) -> None:
        """Check the invariants of the events, of the conversation, and of both together."""
        history: list[Message] = list(self.loop.history.messages())
        told = [envelope.event for envelope in self.envelopes if not envelope.origin.depth]
        validate_events(self.told, ordered=self.ordered, balanced=self.balanced, unanswered=self.unanswered)
        validate_history(history)
        assert self.loop.history.sound
        kept = {message.id: message for message in history}
        # A compaction replaces messages by a summary.
        condensed = any(isinstance(event, CompactionEnded) for event in told)
        for event in told:
            if isinstance(event, MessageEnded) and not condensed:
                assert kept[event.message_id] == event.message


class BenchMaker:
    """Maker of benches, which are all validated in the end."""

    def __init__(self) -> None:
        self.benches: list[Bench] = []

    def __call__(self, steps: Iterable[Step] = (), *tools: Tool, **config: Any) -> Bench:
        provider = ScriptedProvider(steps)
        config.setdefault("retry", AT_ONCE)
        bus = ValidatingBus(whole=False)
        return self.add(AgentLoop(AgentLoopConfig(provider=provider, tools=tools, bus=bus, **config)), provider, bus)

    def add(self, loop: AgentLoop, provider: ScriptedProvider, bus: EventBus) -> Bench:
        """Return a bench for an agent that was created elsewhere."""
        bench = Bench(loop, provider, bus)
        self.benches.append(bench)
        return bench


async def killed_while_asking(
    bench: BenchMaker, answer: Reply, *tools: Tool, reason: str = "killed", **config: Any
) -> tuple[AgentLoopSnapshot, Bench]:
    """Return the snapshot of an agent that ended while all calls but `look` waited for the user, and its bench."""
    gate = ApprovalGate(interactive=True)
    b = bench([answer], *tools, **{"policy": FakePolicy(), "gate": gate, **config})
    questions = sum(isinstance(part, Call) and part.name != "look" for part in answer.parts)
    async with asyncio.TaskGroup() as group:
        group.create_task(b.loop.run("Go"))
        while len(gate.pending) < questions:
            await asyncio.sleep(0)
        snapshot = b.loop.dump()
        b.loop.abort(reason)
    return AgentLoopSnapshot.model_validate_json(snapshot.model_dump_json()), b


def revived(
    bench: BenchMaker, snapshot: AgentLoopSnapshot, steps: Iterable[Step], *tools: Tool, **config: Any
) -> Bench:
    """Return an agent of another process, restored from a snapshot."""
    provider, bus = ScriptedProvider(steps), ValidatingBus(whole=False)
    made = {"policy": FakePolicy(), "gate": ApprovalGate(interactive=True), "retry": AT_ONCE, **config}
    loop = AgentLoop.restore(snapshot, AgentLoopConfig(provider=provider, tools=tools, bus=bus, **made))
    return bench.add(loop, provider, bus)
