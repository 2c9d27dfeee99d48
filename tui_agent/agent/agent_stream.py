"""A run as an iterator: the event sequence of seed 004, for programs that have no use for a bus (S4-13, S4-46)."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import TypeAlias

from tui_agent.execution.foreign_code import Crash, contained
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import (
    AgentEvent,
    MessageDelta,
    MessageEnded,
    StepEnded,
    StepStarted,
    ToolEnded,
    ToolQueued,
    ToolStarted,
    TurnEnded,
)
from tui_agent.protocol.messages import AssistantMessage, JsonObject, Usage
from tui_agent.protocol.reports import AgentRunReport


@dataclass(frozen=True, slots=True)
class StepStart:
    """The model is about to be asked."""

    step: int


@dataclass(frozen=True, slots=True)
class TextPiece:
    """More text."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingPiece:
    """More reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallStart:
    """A call begins; comes before its end also where the call never executes."""

    step: int
    call_id: str
    tool_name: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class ToolCallEnd:
    """A call is over."""

    step: int
    call_id: str
    latency_ms: float


@dataclass(frozen=True, slots=True)
class StepEnd:
    """The model answered and its calls are done."""

    step: int
    usage: Usage
    latency_ms: float


@dataclass(frozen=True, slots=True)
class Done:
    """The run is over; always the last event."""

    response: AssistantMessage | None
    """The last answer; None where there was none."""
    report: AgentRunReport


AgentStreamEvent: TypeAlias = StepStart | TextPiece | ThinkingPiece | ToolCallStart | ToolCallEnd | StepEnd | Done


class AgentStream:
    """The run behind `AgentLoop.stream`, in a task of its own: it ends as it should also if nobody reads on (P31).

    `async for event in loop.stream("…")` reads it. Cancelling the reader, or `aclose` (as a context manager does),
    cancels the run and waits for it.
    """

    def __init__(self, bus: EventBus, agent_id: str, run: Callable[[], Awaitable[AgentRunReport]]) -> None:
        self._subscription = bus.subscribe(merge=False)
        self._batches = self._subscription.batches()
        self._agent_id = agent_id
        self._run = run
        self._tasks: asyncio.TaskGroup | None = None
        self._task: asyncio.Task[None] | None = None
        self._outcome: AgentRunReport | Crash | None = None
        self._fold = _StreamFold()
        self._ready: Iterator[AgentStreamEvent] = iter(())
        self._is_done = False

    def __aiter__(self) -> "AgentStream":
        return self

    async def __anext__(self) -> AgentStreamEvent:
        while True:
            for event in self._ready:
                return event
            if self._is_done:
                raise StopAsyncIteration
            try:
                self._ready = await self._next_events()
            except asyncio.CancelledError:
                await self.aclose()
                raise

    async def __aenter__(self) -> "AgentStream":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Cancels the run if it goes on, and waits until it has left everything whole."""
        self._is_done = True
        self._subscription.close()
        if self._task is not None:
            self._task.cancel()
        await self._leave()

    async def _next_events(self) -> Iterator[AgentStreamEvent]:
        """What comes next; in the end the report, or the exception of the run."""
        if self._tasks is None:
            # Entered by hand because the reader's code runs between two events. Its one task never raises, so that the
            # group has no reason to cancel the reader.
            self._tasks = await asyncio.TaskGroup().__aenter__()
            self._task = self._tasks.create_task(self._execute())
        async for batch in self._batches:
            return self._of(batch)
        self._is_done = True
        await self._leave()
        if isinstance(self._outcome, Crash):
            raise self._outcome.error
        return iter(() if self._outcome is None else (Done(self._fold.answer, self._outcome),))

    def _of(self, batch: list[Envelope]) -> Iterator[AgentStreamEvent]:
        own = (envelope for envelope in batch if envelope.origin.agent_id == self._agent_id)
        return iter(
            [event for envelope in own for event in self._fold.apply(envelope.event, envelope.origin.step or 0)]
        )

    async def _execute(self) -> None:
        try:
            self._outcome = await contained(self._run())
        finally:
            self._subscription.close()

    async def _leave(self) -> None:
        tasks, self._tasks = self._tasks, None
        if tasks is not None:
            await tasks.__aexit__(None, None, None)


@dataclass(slots=True)
class _StreamFold:
    """Makes the seed's events from ours."""

    answer: AssistantMessage | None = None
    """The last one that was kept."""
    calls: dict[str, ToolCallStart] = field(default_factory=dict[str, ToolCallStart])
    """Calls whose start was not told yet."""
    step: StepEnded | None = None
    """The step whose calls still run."""

    def apply(self, event: AgentEvent, step: int) -> list[AgentStreamEvent]:
        match event:
            case StepStarted(index=index):
                return [StepStart(index)]
            case MessageDelta(kind="text", delta=delta):
                return [TextPiece(delta)]
            case MessageDelta(kind="thinking", delta=delta):
                return [ThinkingPiece(delta)]
            case MessageEnded(message=AssistantMessage() as message):
                self.answer = message
            case ToolQueued(call_id=call_id, name=name, args_raw=arguments):
                self.calls[call_id] = ToolCallStart(step, call_id, name, arguments)
            case ToolStarted(call_id=call_id, name=name, args=arguments):
                self.calls.pop(call_id, None)
                return [ToolCallStart(step, call_id, name, arguments)]
            case ToolEnded(call_id=call_id, latency_ms=latency):
                start = self.calls.pop(call_id, None)
                return [*([start] if start else []), ToolCallEnd(step, call_id, latency)]
            case StepEnded():
                self.step = event
            case TurnEnded() if self.step is not None:
                ended, self.step = self.step, None
                return [StepEnd(ended.index, ended.usage, ended.llm_ms)]
            case _:
                pass
        return []
