"""Times of the model and the calls in the newest run: the fold behind the timeline."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import (
    AgentEvent,
    ApprovalRequested,
    ApprovalResolved,
    MessageDiscarded,
    MessageEnded,
    RunEnded,
    RunStarted,
    SessionForked,
    SessionLoaded,
    SteeringDelivered,
    StepRetry,
    StepStarted,
    ToolEnded,
    ToolQueued,
    ToolStarted,
    ToolStatus,
)
from tui_agent.protocol.messages import AssistantMessage, FrozenModel

SpanKind = Literal["model", "waits", "asks", "runs", "trial", "failed", "stopped"]
"""Activity: the model answers; a call waits, waits for the user, runs, runs in a trial, failed, was cancelled."""


HANDLED_EVENTS: frozenset[type[FrozenModel]] = frozenset(
    (
        *(RunStarted, RunEnded, SessionLoaded, SessionForked, StepStarted, StepRetry, MessageEnded, MessageDiscarded),
        *(ToolQueued, ToolStarted, ToolEnded, ApprovalRequested, ApprovalResolved, SteeringDelivered),
    )
)
"""Events that may change the times."""


LEAST_SAVED = 1.0
"""Seconds below which saved time is not worth a word."""


@dataclass(slots=True)
class Span:
    """A span of time, in seconds on the monotonic clock of the events."""

    kind: SpanKind
    start: float
    end: float | None = None
    """None while it lasts."""


@dataclass(slots=True)
class Lane:
    """Spans of one call, or of the model."""

    spans: list[Span] = field(default_factory=list[Span])

    @property
    def open(self) -> bool:
        """True if a span is open."""
        return bool(self.spans) and self.spans[-1].end is None

    def begin(self, kind: SpanKind, at: float) -> None:
        """End the current span and begin another, at a time in seconds on the clock of the events."""
        self.finish(at)
        self.spans.append(Span(kind, at))

    def finish(self, at: float) -> None:
        """End the current span; nothing if none is open."""
        if self.open:
            self.spans[-1].end = max(at, self.spans[-1].start)


@dataclass(frozen=True, slots=True)
class Totals:
    """Totals of a finished run, in seconds."""

    model: float
    tools: float
    saved: float
    """Time saved because calls overlapped."""
    person: float
    """Time spent waiting for the user."""


class RunTimes:
    """Times of the root agent's newest run. Changed by `apply` only."""

    def __init__(self) -> None:
        self.model = Lane()
        self.calls: dict[str, Lane] = {}
        """Lanes of this run's calls by call id, in order."""
        self.steers: list[float] = []
        """Times at which messages of the user were delivered."""
        self.started: float | None = None
        self.ended: float | None = None
        self.last: Totals | None = None
        """Totals of the last run that ended."""
        self._newest = 0.0
        self._inner: set[str] = set()
        """Calls of sub-agents: their time is part of that of the call that started them."""

    @property
    def in_progress(self) -> bool:
        """True while the run lasts."""
        return self.started is not None and self.ended is None

    def apply(self, envelope: Envelope) -> bool:
        """Apply one event; return False if it changed nothing."""
        event, at = envelope.event, envelope.mono
        if isinstance(event, SessionLoaded):
            at = self._newest  # Another process: its clock does not continue that of the run.
        self._newest = at
        match event:
            case ToolQueued(call_id=call_id):
                lane = self.calls[call_id] = Lane()
                lane.begin("waits", at)
                if envelope.origin.depth:
                    self._inner.add(call_id)
            case ApprovalRequested(call_id=call_id):
                self._begin(call_id, "asks", at)
            case ApprovalResolved(call_id=call_id):
                self._begin(call_id, "waits", at)
            case ToolStarted(call_id=call_id, place=place):
                self._begin(call_id, "trial" if place == "trial" else "runs", at)
            case ToolEnded(call_id=call_id, status=status):
                self._end_call(call_id, at, status)
            case _:
                return envelope.origin.depth == 0 and self._apply_own(event, at)
        return True

    def totals(self) -> Totals | None:
        """Return the totals; None while the run lasts, and before the first one."""
        if self.started is None or self.ended is None:
            return None
        model = [_stretch(span) for span in self.model.spans]
        own = [lane for call_id, lane in self.calls.items() if call_id not in self._inner]
        tools = [_stretch(span) for lane in own for span in lane.spans if span.kind in _EXECUTING]
        asking = [_stretch(span) for lane in self.calls.values() for span in lane.spans if span.kind == "asks"]
        busy = sum(end - start for start, end in tools)
        return Totals(
            model=sum(end - start for start, end in model),
            tools=busy,
            saved=max(0.0, busy - covered(tools)),
            person=covered(asking),
        )

    def _apply_own(self, event: AgentEvent, at: float) -> bool:
        match event:
            case RunStarted():
                self._forget()
                self.started, self.ended = at, None
            case StepStarted():
                self.model.begin("model", at)
            # While a retry waits, no model answers.
            case MessageEnded(message=AssistantMessage()) | MessageDiscarded() | StepRetry():
                self.model.finish(at)
            case SessionForked():
                self._forget()
                self.started = self.ended = self.last = None
            case SteeringDelivered():
                self.steers.append(at)
            case RunEnded() | SessionLoaded():
                if not self.in_progress:
                    return False
                for lane in (self.model, *self.calls.values()):
                    lane.finish(at)
                self.ended = at
                self.last = self.totals()
            case _:
                return False
        return True

    def _forget(self) -> None:
        self.model, self.calls, self.steers = Lane(), {}, []
        self._inner.clear()

    def _begin(self, call_id: str, kind: SpanKind, at: float) -> None:
        # A late event of a call that has ended would begin a span that nothing ends.
        if (lane := self.calls.get(call_id)) is not None and lane.open:
            lane.begin(kind, at)

    def _end_call(self, call_id: str, at: float, status: ToolStatus) -> None:
        if (lane := self.calls.get(call_id)) is not None:
            lane.finish(at)
            # After a trial the changes may have waited for the user.
            last = next((span for span in reversed(lane.spans) if span.kind not in ("asks", "waits")), None)
            if last is not None and last.kind in _RUNNING and status not in ("ok", "overridden"):
                last.kind = "stopped" if status in ("cancelled", "interrupted") else "failed"


_RUNNING: frozenset[SpanKind] = frozenset(("runs", "trial"))
_EXECUTING: frozenset[SpanKind] = frozenset((*_RUNNING, "failed", "stopped"))


def covered(stretches: Iterable[tuple[float, float]]) -> float:
    """Return the time that at least one of the spans covers."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted(stretches):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


def _stretch(span: Span) -> tuple[float, float]:
    return span.start, span.end if span.end is not None else span.start
