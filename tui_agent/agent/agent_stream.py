"""A run as an iterator of events, for programs that do not need a bus (S4-13, S4-46)."""

import asyncio
import contextlib
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Generic, Self, TypeAlias

from typing_extensions import TypeVar

from tui_agent.execution.contained_calls import Crash, contained
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import (
    AgentEvent,
    MessageDelta,
    MessageEnded,
    StepEnded,
    StepStarted,
    ToolEnded,
    ToolOutput,
    ToolProgress,
    ToolQueued,
    ToolStarted,
    ToolUpdated,
    TurnEnded,
)
from tui_agent.protocol.messages import AssistantMessage, JsonObject, Usage
from tui_agent.protocol.reports import AgentRunReport

ReportT = TypeVar("ReportT", bound=AgentRunReport, covariant=True, default=AgentRunReport)


@dataclass(frozen=True, slots=True)
class StepStart:
    """A request to the model is about to be sent."""

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
    """A call begins. It precedes `ToolCallEnd` even if the call is never executed."""

    step: int
    call_id: str
    tool_name: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class ToolCallProgress:
    """A running call reports progress, or a piece of its output."""

    step: int
    call_id: str
    text: str
    fraction: float | None = None
    """From 0.0 to 1.0; None if it is not known."""
    is_output: bool = False
    """True for output, which continues the piece before; False for a line of progress."""


@dataclass(frozen=True, slots=True)
class ToolCallEnd:
    """A call has ended."""

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
class Done(Generic[ReportT]):
    """The run has ended; always the last event."""

    response: AssistantMessage | None
    """The last answer; None if there was none."""
    report: ReportT


_StepEvent: TypeAlias = StepStart | TextPiece | ThinkingPiece | ToolCallStart | ToolCallProgress | ToolCallEnd | StepEnd

AgentStreamEvent: TypeAlias = _StepEvent | Done[ReportT]
"""One event of a stream; `ReportT` is the kind of report at its end."""


class AgentStream(Generic[ReportT]):
    """A run that is read event by event: `async for event in loop.stream("…")`.

    Leaving the loop, by `break`, `return` or an exception, aborts the run, as `aclose` and cancelling the reader do. No
    request goes out after that; the next `run` waits until the aborted one has ended. A stream that was left is over:
    reading it again yields nothing.

    To read in several loops, hold the stream open with `async with`, or keep one iterator: `events = aiter(stream)`.
    Then the end of the block aborts, or the end of the last reference to the iterator. Close an async generator of your
    own that reads a stream with `contextlib.aclosing`: Python finalises a generator that was left only some time later.
    """

    def __init__(self, run: "StreamedRun[ReportT]") -> None:
        """
        Args:
            run: the run to read; only this object and its iterators read it.
        """
        self._run = run
        self._reader: weakref.ref[_Reader[ReportT]] | None = None
        self._is_held_open = False

    def __aiter__(self) -> AsyncIterator[AgentStreamEvent[ReportT]]:
        reader = self._reader() if self._reader is not None else None
        if reader is None:
            reader = _Reader(self)
            self._reader = weakref.ref(reader)
        return reader

    async def __anext__(self) -> AgentStreamEvent[ReportT]:
        """Return the next event, without an iterator: the run is aborted once the stream itself is dropped."""
        return await self._run.next_event()

    async def __aenter__(self) -> Self:
        self._is_held_open = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_held_open = False
        await self.aclose()

    def __del__(self) -> None:
        self._run.abandon()

    async def aclose(self) -> None:
        """Abort the run if it is running, and wait for its end; the conversation is then complete."""
        await self._run.aclose()

    def abort_unless_held_open(self) -> None:
        """Abort the run unless a context manager holds it open. Called when its iterator is dropped."""
        if not self._is_held_open:
            self._run.abandon()


class _Reader(Generic[ReportT]):
    """The iterator of one stream. `async for` alone refers to it, so leaving the loop drops it, at once in CPython."""

    def __init__(self, stream: AgentStream[ReportT]) -> None:
        self._stream = stream

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AgentStreamEvent[ReportT]:
        # A coroutine of its own, so that `await anext(aiter(stream))` keeps the reader until the event is there.
        return await anext(self._stream)

    def __del__(self) -> None:
        self._stream.abort_unless_held_open()


class StreamedRun(Generic[ReportT]):
    """The run behind an `AgentStream`, in a task of its own: it ends properly even if its reader stops."""

    def __init__(
        self,
        bus: EventBus,
        run: Callable[[], Awaitable[ReportT]],
        *,
        agent_id: str,
        run_id: str,
        at_work: "set[StreamedRun[Any]]",
    ) -> None:
        """
        Args:
            bus: the bus on which the run publishes its events.
            run: runs the agent; a task awaits it once the first event is requested.
            agent_id: the agent whose events are read.
            run_id: the id the run will have; events of earlier runs are not read.
            at_work: contains this object while its task runs.
        """
        # Before the run starts, so that its first event is not missed.
        self._subscription = bus.subscribe(merge=False)
        self._batches = self._subscription.batches()
        self._run = run
        self._agent_id = agent_id
        self._run_id = run_id
        self._at_work = at_work
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: asyncio.TaskGroup | None = None
        self._task: asyncio.Task[None] | None = None
        self._outcome: ReportT | Crash | None = None
        self._fold = _StreamFold()
        self._ready: Iterator[AgentStreamEvent[ReportT]] = iter(())
        self._is_done = False
        self._is_abandoned = False
        self._is_cut = False

    async def next_event(self) -> AgentStreamEvent[ReportT]:
        """Return the next event.

        Raises:
            StopAsyncIteration: the run is over and everything was read, or its reader left it.
        """
        while True:
            for event in self._ready:
                return event
            if self._is_done:
                raise StopAsyncIteration
            try:
                # Cancelling the reader cancels the run: no one else would read its events.
                self._ready = await self._next_events()
            except asyncio.CancelledError:
                await self.aclose()
                raise

    async def aclose(self) -> None:
        """Cancel the run if it is running, and wait for its end; the conversation is then complete."""
        self._cut()
        await self._leave()

    def abandon(self) -> None:
        """Cancel the run without waiting for it. Called when its reader is dropped, in any thread."""
        if self._is_done:
            return
        # Set in the dropping thread, so that no other request goes out until the loop has cut it.
        self._is_done = self._is_abandoned = True
        if self._loop is None or _running_loop() is self._loop:
            self._cut()
        else:
            # A closed loop has cancelled its tasks already.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._cut)

    async def wait_for_cleanup(self) -> None:
        """Wait for the end of the run if its reader has left it; else return at once."""
        if self._is_abandoned and self._task is not None and not self._task.done():
            self._cut()
            await asyncio.wait((self._task,))

    def runs_in(self, task: "asyncio.Task[Any] | None") -> bool:
        """Return True if `task` executes this run."""
        return self._task is task

    def _cut(self) -> None:
        self._is_done = True
        self._ready = iter(())
        # No one reads any more, and the queue would grow until the run has ended.
        self._subscription.close()
        # Once only: a second cancellation would interrupt the clean-up after the first.
        if self._task is not None and not self._is_cut:
            self._is_cut = True
            self._task.cancel()

    async def _next_events(self) -> Iterator[AgentStreamEvent[ReportT]]:
        """Return the next events; at the end the report, or raise the exception of the run."""
        if self._tasks is None:
            # Entered by hand because the reader's code runs between two events. Its one task never raises, so that the
            # group has no reason to cancel the reader.
            self._loop = asyncio.get_running_loop()
            self._tasks = await asyncio.TaskGroup().__aenter__()
            self._task = self._tasks.create_task(self._execute())
            self._at_work.add(self)
            self._task.add_done_callback(lambda _: self._at_work.discard(self))
        async for batch in self._batches:
            return self._of(batch)
        self._is_done = True
        await self._leave()
        if isinstance(self._outcome, Crash):
            raise self._outcome.error
        return iter(() if self._outcome is None else (Done(self._fold.answer, self._outcome),))

    def _of(self, batch: list[Envelope]) -> Iterator[AgentStreamEvent[ReportT]]:
        own = (
            envelope
            for envelope in batch
            # Sub-agents and other runs publish on the same bus.
            if (envelope.origin.agent_id, envelope.origin.run_id) == (self._agent_id, self._run_id)
        )
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


def _running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that is running in this thread, if any."""
    with contextlib.suppress(RuntimeError):
        return asyncio.get_running_loop()
    return None


@dataclass(slots=True)
class _StreamFold:
    """Translates bus events into stream events."""

    answer: AssistantMessage | None = None
    """The last answer that was kept."""
    calls: dict[str, ToolCallStart] = field(default_factory=dict[str, ToolCallStart])
    """Calls whose start was not returned yet."""
    step: StepEnded | None = None
    """The step whose calls are still running."""

    def apply(self, event: AgentEvent, step: int) -> list[_StepEvent]:
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
            case ToolProgress(call_id=call_id, text=text, fraction=fraction):
                return [ToolCallProgress(step, call_id, text, fraction)]
            case ToolOutput(call_id=call_id, chunk=chunk):
                return [ToolCallProgress(step, call_id, chunk, is_output=True)]
            case ToolUpdated(call_id=call_id, partial=partial):
                return [ToolCallProgress(step, call_id, partial.text)]
            case ToolEnded(call_id=call_id, latency_ms=latency):
                start = self.calls.pop(call_id, None)
                # A call that was refused never started; a reader still gets both.
                return [*([start] if start else []), ToolCallEnd(step, call_id, latency)]
            case StepEnded():
                # Returned with the end of its calls, so that a step's end follows theirs.
                self.step = event
            case TurnEnded() if self.step is not None:
                ended, self.step = self.step, None
                return [StepEnd(ended.index, ended.usage, ended.llm_ms)]
            case _:
                pass
        return []
