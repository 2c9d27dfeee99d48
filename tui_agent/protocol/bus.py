"""The event bus: publishers and subscribers of one session, in one total order.

`publish` never waits and never raises because of a subscriber: each has its own queue. The callbacks of `on` are called
by `publish` itself and isolated from one another. High-frequency events (streamed text, output, progress) are merged
with their neighbours when a subscriber reads its queue; lifecycle events are never merged and never lost.
"""

import asyncio
import difflib
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from types import UnionType
from typing import Any, Protocol, TypeVar, Union, cast, get_args, get_origin, overload

from .callbacks import Crash, Listener, failure_text
from .envelope import Envelope, Origin, event_classes
from .errors import ConfigurationError
from .events import AgentEvent, ContextUsage, MessageDelta, ToolOutput, ToolProgress, ToolUpdated, Warned
from .function_schema import is_async_function
from .messages import now_ms
from .value_checks import expect_kind, expect_whole, shown_value, wrong_kind

E = TypeVar("E")
H = TypeVar("H", bound=Callable[[Any], object])

RING_SIZE = 500
"""Number of past events kept for late subscribers: those of an opening session, and some more."""

_MergeKey = tuple[Any, ...]

_MERGEABLE = frozenset({MessageDelta, ToolOutput, ToolUpdated, ToolProgress, ContextUsage})
"""Events that may be merged and, to that end, delayed."""


class Publisher(Protocol):
    """Anything that accepts events."""

    def publish(self, event: AgentEvent) -> None:
        """Publish one event; never waits, and never raises because of a subscriber."""
        ...


class EventBus:
    """Numbers each event and puts it into every subscriber's queue. For one event loop."""

    def __init__(self, origin: Origin | None = None, first_seq: int = 1) -> None:
        """
        Raises:
            ConfigurationError: an argument is of the wrong kind.
        """
        expect_kind("EventBus.origin", origin, (Origin, type(None)), "an Origin or None")
        expect_whole("EventBus.first_seq", first_seq, 0)
        self.origin = origin or Origin()
        """Origin of events published without one."""
        self._seq = first_seq - 1
        self._ring: deque[Envelope] = deque(maxlen=RING_SIZE)
        self._subscriptions: list[Subscription] = []
        self._listeners: list[_EventListener] = []
        self._uncalled: deque[Envelope] = deque()
        """Events that listeners have not received yet."""
        self._is_calling = False

    @property
    def last_seq(self) -> int:
        """Sequence number of the newest event; one less than `first_seq` before the first."""
        return self._seq

    def publish(self, event: AgentEvent, origin: Origin | None = None) -> None:
        """Publish one event from `origin` (None: the bus's own); never waits."""
        self._seq += 1
        envelope = Envelope(event, self._seq, now_ms(), time.monotonic(), origin or self.origin)
        self._ring.append(envelope)
        for subscription in self._subscriptions:
            subscription.put(envelope)
        if self._listeners:
            self._uncalled.append(envelope)
            self._call_listeners()

    @overload
    def on(self, kinds: type[E], callback: Callable[[E], object]) -> Callable[[], None]: ...

    @overload
    def on(self, kinds: Any, callback: Callable[[Any], object]) -> Callable[[], None]: ...

    @overload
    def on(self, kinds: Any) -> Callable[[H], H]: ...

    def on(self, kinds: Any, callback: Callable[[Any], object] | None = None) -> Any:
        """Call `callback` with each event of these kinds: `bus.on(ToolEnded, print)`, or `@bus.on(ToolEnded)`.

        `publish` calls it on the event loop, after the callbacks added before it, so it must be quick. It gets a copy
        of the event. Events that it publishes are delivered after this one has reached every callback. If it raises,
        the others still get the event, and its first failure is published as a `warning` with the code
        `listener_failed`. Use `subscribe` for the origin, number and time of an event, for merged deltas, or to await
        something.

        Args:
            kinds: an event class, the name of its type such as `"tool.ended"`, several of them as a tuple or a union,
                or `AgentEvent` for all.
            callback: a plain function of the event; its result is dropped. None: the result is a decorator.

        Returns:
            A function that removes the callback; as a decorator, the callback.

        Raises:
            ConfigurationError: a kind is not an event, or the callback is not a plain function. An async one needs a
                task of its own: use `subscribe` and a task group.
        """
        classes = _event_kinds(kinds)
        if callback is not None:
            return self._add_listener(classes, callback)

        def decorate(function: H) -> H:
            self._add_listener(classes, function)
            return function

        return decorate

    def subscribe(self, *, merge: bool = True, since: int | None = None) -> "Subscription":
        """Return a new subscription, to use as a context manager. Subscribe before the run starts.

        Args:
            merge: True to merge neighbouring deltas; a subscriber that records everything passes False.
            since: first deliver the past events after this sequence number, of which the bus keeps the last
                `RING_SIZE`; None: only later ones.
        """
        subscription = Subscription(self, merge=merge)
        if since is not None:
            for envelope in self._ring:
                if envelope.seq > since:
                    subscription.put(envelope)
        self._subscriptions.append(subscription)
        return subscription

    def unsubscribe(self, subscription: "Subscription") -> None:
        """Remove a subscription: later events do not reach it, and queued ones stay. Ignores unknown ones."""
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)

    def close(self) -> None:
        """End every subscription after its queued events, and remove the callbacks of `on`."""
        for listener in self._listeners:
            listener.is_on = False
        self._listeners.clear()
        for subscription in list(self._subscriptions):
            subscription.close()

    def _add_listener(self, kinds: tuple[type, ...], callback: Callable[[Any], object]) -> Callable[[], None]:
        if not callable(callback):
            raise wrong_kind("a callback of EventBus.on", "a plain function of one event", callback)
        if is_async_function(callback):
            advice = "to await something, iterate over bus.subscribe() in a task of a task group"
            raise ConfigurationError(f"a callback of EventBus.on must be a plain function, not an async one; {advice}")
        listener = _EventListener(kinds, Listener(callback), self._seq)
        self._listeners.append(listener)

        def stop() -> None:
            listener.is_on = False
            if listener in self._listeners:
                self._listeners.remove(listener)

        return stop

    def _call_listeners(self) -> None:
        """Deliver published events to every listener, one after another."""
        # A callback has published: the event waits, so that each listener gets all events in their order.
        if self._is_calling:
            return
        self._is_calling = True
        try:
            while self._uncalled:
                envelope = self._uncalled.popleft()
                # A copy, because a callback may add and remove callbacks.
                for listener in tuple(self._listeners):
                    crash = listener.deliver(envelope)
                    if crash is not None:
                        self.publish(listener_warning(listener.name, crash), envelope.origin)
        finally:
            self._is_calling = False


@dataclass(slots=True, eq=False)
class _EventListener:
    """A callback of `EventBus.on`."""

    kinds: tuple[type, ...]
    listener: Listener[Any]
    since: int
    """Sequence number of the last event before it was added."""
    is_on: bool = True

    @property
    def name(self) -> str:
        return self.listener.name

    def deliver(self, envelope: Envelope) -> Crash | None:
        if not self.is_on or envelope.seq <= self.since or not isinstance(envelope.event, self.kinds):
            return None
        # A copy, because a callback could change arguments and details of the event before the journal writes them.
        return self.listener.notify(envelope.event.model_copy(deep=True))


class Subscription:
    """Event queue of one subscriber. A context manager that unsubscribes on exit."""

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
        """Add one event to the queue, or drop it once closed; called by the bus."""
        if self._closed:
            return
        if not self._waiting:
            self._arrived.set()
        self._waiting.append(envelope)
        if type(envelope.event) in _MERGEABLE:
            self._may_merge = self._merge
        elif not self._urgent.is_set():
            self._urgent.set()

    def close(self) -> None:
        """Unsubscribe; `batches` ends after the queued events."""
        self._closed = True
        self._bus.unsubscribe(self)
        self._arrived.set()
        self._urgent.set()

    @property
    def waiting(self) -> Sequence[Envelope]:
        """The queued events, which stay queued and are not merged."""
        return self._waiting

    def drain(self) -> list[Envelope]:
        """Remove the queued events and return them, oldest first; empty if there are none. Never waits.

        Neighbouring deltas are merged unless the subscription has `merge=False`.
        """
        waiting, self._waiting = self._waiting, []
        may_merge, self._may_merge = self._may_merge, False
        self._arrived.clear()
        self._urgent.clear()
        # Most batches have no delta, and merging looks at every event.
        return merge_neighbours(waiting) if may_merge else waiting

    async def batches(self, pace: float = 0.0) -> AsyncIterator[list[Envelope]]:
        """Yield the queued events whenever there are any; end once the subscription is closed and empty.

        Args:
            pace: minimum seconds between two batches if the second has only deltas; lifecycle events never wait.
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
        """Wait for `seconds`, or until an event other than a delta arrives."""
        if seconds <= 0:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._urgent.wait()
        except TimeoutError:
            pass


@dataclass(frozen=True, slots=True)
class EventScope:
    """A publisher with a fixed origin."""

    bus: EventBus
    origin: Origin = field(default_factory=Origin)

    def publish(self, event: AgentEvent) -> None:
        """Publish one event with this scope's origin."""
        self.bus.publish(event, self.origin)

    def at(self, **changes: Any) -> "EventScope":
        """Return a scope with changed fields of the origin, such as `step=3`."""
        return EventScope(self.bus, replace(self.origin, **changes))


def listener_warning(name: str, crash: Crash) -> Warned:
    """Return the event that reports a listener's failure."""
    context = {"listener": name, "error": type(crash.error).__name__, "traceback": crash.trace}
    return Warned(code="listener_failed", text=failure_text(name, crash), context=context)


def _event_kinds(kinds: Any) -> tuple[type, ...]:
    """Return the event classes of a class, a type name, or a tuple or union of them."""
    if get_origin(kinds) in (UnionType, Union) or hasattr(kinds, "__metadata__"):
        # `AgentEvent` is an annotated union.
        return _event_kinds(get_args(kinds) if not hasattr(kinds, "__metadata__") else get_args(kinds)[0])
    if isinstance(kinds, tuple | list | set | frozenset) and kinds:
        return tuple(found for kind in cast(Iterable[object], kinds) for found in _event_kinds(kind))
    known = event_classes()
    if isinstance(kinds, str):
        if kinds in known:
            return (known[kinds],)
        near = difflib.get_close_matches(kinds, known, 1)
        raise ConfigurationError(f"no event of type {kinds!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
    if isinstance(kinds, type) and kinds in known.values():
        return (kinds,)
    shown = kinds.__name__ if isinstance(kinds, type) else shown_value(cast(object, kinds))
    raise ConfigurationError(f"EventBus.on takes events of tui_agent.protocol.events, not {shown}")


def merge_neighbours(envelopes: Iterable[Envelope]) -> list[Envelope]:
    """Merge deltas of one source between two lifecycle events, at the position and number of the first.

    Message deltas and output are concatenated; of updates, progress and context usage the last one is kept.
    """
    merged: list[Envelope] = []
    open_runs: dict[_MergeKey, tuple[int, list[Envelope]]] = {}

    def close_runs() -> None:
        for index, members in open_runs.values():
            if len(members) > 1:
                merged[index] = _merge(members)
        open_runs.clear()

    for envelope in envelopes:
        if type(envelope.event) in _MERGEABLE:
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
    """Return the key of an event; events with equal keys are merged."""
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
    """Return one envelope for neighbours with the same key."""
    first, last = members[0], members[-1].event
    if isinstance(last, MessageDelta):
        text = "".join(member.event.delta for member in members if isinstance(member.event, MessageDelta))
        return first.with_event(last.model_copy(update={"delta": text}))
    if isinstance(last, ToolOutput):
        text = "".join(member.event.chunk for member in members if isinstance(member.event, ToolOutput))
        return first.with_event(last.model_copy(update={"chunk": text}))
    return first.with_event(last)
