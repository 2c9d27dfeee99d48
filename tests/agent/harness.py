"""A test bench for an agent: a scripted model, small tools, and a check of all recorded events afterwards."""

import asyncio
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.support.transcript_checks import validate_events, validate_history
from tests.support.validating_bus import ValidatingBus
from tui_agent.agent import AgentLoop, AgentLoopConfig, RetryPolicy
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import AgentEvent, MessageEnded, RunEnded, SteeringDelivered
from tui_agent.protocol.messages import AssistantMessage, JsonObject, Message, TextBlock, ToolCall, ToolResultMessage
from tui_agent.protocol.tool import Tool, ToolContext, ToolResult, ToolSpec
from tui_agent.providers import ScriptedProvider
from tui_agent.providers.scripted_provider import Step

AT_ONCE = RetryPolicy(first_wait=0)
"""Retries without a wait."""

QUIET = {"status.changed", "context.usage", "usage.updated", "request.built", "message.delta", "agent.created"}
"""Events most tests do not look at."""


def asking(call_id: str, text: str = "") -> AssistantMessage:
    """An answer with one call that nobody has answered yet."""
    said = (TextBlock(text=text),) if text else ()
    return AssistantMessage(content=(*said, ToolCall(id=call_id, name="look")), stop_reason="tool_use")


class ScriptedTool(Tool):
    """Answers with its name; can be held, and can be told to raise or to end the run."""

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
        """Set as soon as it executes."""
        self.go_on = asyncio.Event()
        """It ends when this is set."""
        self.go_on.set()
        self.cancelled = 0
        self._read_only = read_only
        self._error = error
        self._terminate = terminate
        self._interruptible = interruptible

    def hold(self) -> "ScriptedTool":
        """From now on it runs until `go_on` is set."""
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
    """One agent and everything it told."""

    loop: AgentLoop
    provider: ScriptedProvider
    bus: EventBus
    unanswered: Collection[str] = ()
    """Calls that need no result message; see `validate_events`."""
    ordered: bool = True
    """Whether result messages must come in call order; see `validate_events`."""
    condenses: bool = False
    """Whether messages that were told may be gone from the conversation by now."""
    balanced: bool = False
    """Whether calls that never ran may have a start; see `validate_events`."""
    told: list[Envelope] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._subscription = self.bus.subscribe(merge=False, since=0)

    @property
    def events(self) -> list[AgentEvent]:
        """Every event so far."""
        self.told += self._subscription.drain()
        return [envelope.event for envelope in self.told]

    @property
    def envelopes(self) -> list[Envelope]:
        """The same with where they come from."""
        return self.told if self.events else []

    def of(self, *kinds: type[Any]) -> list[Any]:
        """The events of some kinds."""
        return [event for event in self.events if isinstance(event, kinds)]

    def types(self, *, but: Iterable[str] = QUIET) -> list[str]:
        """Type names of all events but some."""
        return [event.type for event in self.events if event.type not in set(but)]

    @property
    def texts(self) -> list[str]:
        """The conversation as `role: text` lines."""
        return [f"{message.role}: {message.text}" for message in self.loop.history.messages()]

    @property
    def results(self) -> list[ToolResultMessage]:
        """The result messages of the conversation."""
        return [message for message in self.loop.history.messages() if isinstance(message, ToolResultMessage)]

    @property
    def ended(self) -> RunEnded:
        """The one `run.ended` of the last run."""
        return self.of(RunEnded)[-1]

    @property
    def delivered(self) -> list[str]:
        """Texts of the steering and follow-ups that were delivered, in order."""
        return [event.text for event in self.of(SteeringDelivered)]

    def sent(self, request: int) -> list[str]:
        """What the model was sent with one request, as `role: text` lines."""
        return [f"{message.role}: {message.text}" for message in self.provider.requests[request].messages]

    def judge(self) -> None:
        """The invariants: of the events, of the conversation, and of both together."""
        history: list[Message] = list(self.loop.history.messages())
        told = [envelope.event for envelope in self.envelopes if not envelope.origin.depth]
        validate_events(self.told, ordered=self.ordered, balanced=self.balanced, unanswered=self.unanswered)
        validate_history(history)
        assert self.loop.history.sound
        kept = {message.id: message for message in history}
        for event in told:
            if isinstance(event, MessageEnded) and not self.condenses:
                assert kept[event.message_id] == event.message


class BenchMaker:
    """Makes benches and judges all of them in the end."""

    def __init__(self) -> None:
        self.benches: list[Bench] = []

    def __call__(self, steps: Iterable[Step] = (), *tools: Tool, **config: Any) -> Bench:
        provider = ScriptedProvider(steps)
        config.setdefault("retry", AT_ONCE)
        bus = ValidatingBus(whole=False)
        return self.add(AgentLoop(AgentLoopConfig(provider=provider, tools=tools, bus=bus, **config)), provider, bus)

    def add(self, loop: AgentLoop, provider: ScriptedProvider, bus: EventBus) -> Bench:
        """Puts an agent that was made elsewhere on a bench."""
        bench = Bench(loop, provider, bus)
        self.benches.append(bench)
        return bench
