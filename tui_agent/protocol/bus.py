"""The one way facts travel: from whoever tells them to whoever listens, in one total order.

`publish` never waits and never raises because of a subscriber: each has its own queue, so nothing one of them does
reaches another (engine §5.5, P89). Events a person only glances at (text as it streams, output, progress) are merged
with their neighbours when a subscriber comes to fetch; lifecycle events never are, and never get lost.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from .callbacks import Crash, failure_text
from .envelope import Envelope, Origin
from .events import AgentEvent, ContextUsage, MessageDelta, ToolOutput, ToolProgress, ToolUpdated, Warned
from .messages import now_ms

RING_SIZE = 5_000
"""Events kept for subscribers that come late."""

_MergeKey = tuple[Any, ...]

_GLANCED_AT = frozenset({MessageDelta, ToolOutput, ToolUpdated, ToolProgress, ContextUsage})
"""Events that may be merged, and so may wait a moment."""


class Publisher(Protocol):
    """Something events can be told to."""

    def publish(self, event: AgentEvent) -> None:
        """Tells one event; never waits, never raises because of who listens."""
        ...


class EventBus:
    """Gives each event its sequence number and hands it to every subscriber's queue. For one event loop."""

    def __init__(self, origin: Origin | None = None, first_seq: int = 1) -> None:
        self.origin = origin or Origin()
        """Used for events that are told without one."""
        self._seq = first_seq - 1
        self._ring: deque[Envelope] = deque(maxlen=RING_SIZE)
        self._subscriptions: list[Subscription] = []

    @property
    def last_seq(self) -> int:
        """Sequence number of the newest event; one less than `first_seq` before the first."""
        return self._seq

    def publish(self, event: AgentEvent, origin: Origin | None = None) -> None:
        """Tells one event; never waits."""
        self._seq += 1
        envelope = Envelope(event, self._seq, now_ms(), time.monotonic(), origin or self.origin)
        self._ring.append(envelope)
        for subscription in self._subscriptions:
            subscription.put(envelope)

    def subscribe(self, *, merge: bool = True, since: int | None = None) -> "Subscription":
        """A new subscription, to be used as a context manager; subscribe first, then run.

        Args:
            merge: whether neighbouring deltas are merged; a subscriber that keeps everything says no.
            since: also deliver events after this sequence number that are still in the ring.
        """
        subscription = Subscription(self, merge=merge)
        if since is not None:
            for envelope in self._ring:
                if envelope.seq > since:
                    subscription.put(envelope)
        self._subscriptions.append(subscription)
        return subscription

    def unsubscribe(self, subscription: "Subscription") -> None:
        """Forgets a subscription; unknown ones are ignored."""
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)

    def close(self) -> None:
        """Ends every subscription after what it still holds."""
        for subscription in list(self._subscriptions):
            subscription.close()


class Subscription:
    """One listener's queue. A context manager; leaving it unsubscribes."""

    def __init__(self, bus: EventBus, *, merge: bool) -> None:
        self._bus = bus
        self._merge = merge
        self._waiting: list[Envelope] = []
        self._may_merge = False
        self._arrived = asyncio.Event()
        self._urgent = asyncio.Event()
        self._closed = False

    def __enter__(self) -> "Subscription":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def put(self, envelope: Envelope) -> None:
        """Takes one event; called by the bus."""
        if self._closed:
            return
        if not self._waiting:
            self._arrived.set()
        self._waiting.append(envelope)
        if type(envelope.event) in _GLANCED_AT:
            self._may_merge = self._merge
        elif not self._urgent.is_set():
            self._urgent.set()

    def close(self) -> None:
        """Unsubscribes; `batches` ends after what is still waiting."""
        self._closed = True
        self._bus.unsubscribe(self)
        self._arrived.set()
        self._urgent.set()

    def drain(self) -> list[Envelope]:
        """Everything since the last look, at once, without waiting."""
        waiting, self._waiting = self._waiting, []
        may_merge, self._may_merge = self._may_merge, False
        self._arrived.clear()
        self._urgent.clear()
        return merge_neighbours(waiting) if may_merge else waiting

    async def batches(self, pace: float = 0.0) -> AsyncIterator[list[Envelope]]:
        """Everything since the last look, again and again; ends once the subscription is closed and empty.

        Args:
            pace: seconds that a batch of nothing but deltas keeps from the batch before; lifecycle events never wait.
        """
        last = -pace
        while True:
            await self._arrived.wait()
            if pace > 0:
                await self._hold_deltas(last + pace - time.monotonic())
            batch = self.drain()
            if batch:
                last = time.monotonic()
                yield batch
            if self._closed and not self._waiting:
                return

    async def _hold_deltas(self, seconds: float) -> None:
        """Waits until the time is over or something that is no delta has come."""
        if seconds <= 0:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._urgent.wait()
        except TimeoutError:
            pass


@dataclass(frozen=True, slots=True)
class EventScope:
    """A publisher that says where its events come from."""

    bus: EventBus
    origin: Origin = field(default_factory=Origin)

    def publish(self, event: AgentEvent) -> None:
        """Tells one event with this scope's origin."""
        self.bus.publish(event, self.origin)

    def at(self, **changes: Any) -> "EventScope":
        """The same scope with some fields of its origin changed, such as `step=3`."""
        return EventScope(self.bus, replace(self.origin, **changes))


def listener_warning(name: str, crash: Crash) -> Warned:
    """Return the event that reports a listener's failure."""
    context = {"listener": name, "error": type(crash.error).__name__, "traceback": crash.trace}
    return Warned(code="listener_failed", text=failure_text(name, crash), context=context)


def merge_neighbours(envelopes: Iterable[Envelope]) -> list[Envelope]:
    """Merges deltas of the same thing that no lifecycle event parts; keeps the place and number of the first.

    Concatenates message deltas and output; of updates, progress and context usage the last counts (invariant 8).
    """
    merged: list[Envelope] = []
    open_runs: dict[_MergeKey, tuple[int, list[Envelope]]] = {}

    def close_runs() -> None:
        for place, members in open_runs.values():
            if len(members) > 1:
                merged[place] = _merge(members)
        open_runs.clear()

    for envelope in envelopes:
        if type(envelope.event) in _GLANCED_AT:
            key = _merge_key(envelope)
            if key in open_runs:
                open_runs[key][1].append(envelope)
                continue
            open_runs[key] = (len(merged), [envelope])
        elif open_runs:
            close_runs()
        merged.append(envelope)
    close_runs()
    return merged


def _merge_key(envelope: Envelope) -> _MergeKey:
    """What must be equal for two events to be merged."""
    origin = envelope.origin
    match envelope.event:
        case MessageDelta(message_id=message_id, kind=kind, call_id=call_id):
            return ("message.delta", origin, message_id, kind, call_id)
        case ToolOutput(call_id=call_id, stream=stream):
            return ("tool.output", origin, call_id, stream)
        case ToolUpdated(call_id=call_id):
            return ("tool.update", origin, call_id)
        case ToolProgress(call_id=call_id):
            return ("tool.progress", origin, call_id)
        case event:
            return (event.type, origin)


def _merge(members: list[Envelope]) -> Envelope:
    """One envelope for neighbours with the same key."""
    first, last = members[0], members[-1].event
    if isinstance(last, MessageDelta):
        text = "".join(member.event.delta for member in members if isinstance(member.event, MessageDelta))
        return first.with_event(last.model_copy(update={"delta": text}))
    if isinstance(last, ToolOutput):
        text = "".join(member.event.chunk for member in members if isinstance(member.event, ToolOutput))
        return first.with_event(last.model_copy(update={"chunk": text}))
    return first.with_event(last)
