"""Stage 10: a call waits for its turn in the conflict order and for a permit, and may have to yield to steering.

Polls for steering messages come one at a time, and none after one that found messages.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import pairwise
from typing import TypeAlias, cast

from tui_agent.execution.contained_calls import Crash, asked
from tui_agent.execution.json_coercion import replace_lone_surrogates
from tui_agent.execution.options import ExecutionOptions
from tui_agent.execution.outcomes import Outcome, SkipReason, interrupted_by_steering, skipped
from tui_agent.execution.pipeline.call_state import CallState, RefusedCall
from tui_agent.protocol.bus import Publisher
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.events import ToolBlockedOn, Warned
from tui_agent.protocol.messages import UserMessage, user_message
from tui_agent.protocol.value_checks import shown_value

from .conflict_order import ConflictOrder, OrderEntry

SteeringAnswer: TypeAlias = str | UserMessage | Iterable[str | UserMessage] | None
"""One message or several, each a text or a `UserMessage`; None, an empty list and blank text mean no message."""

SteeringGetter = Callable[[], SteeringAnswer | Awaitable[SteeringAnswer]]
"""Plain or async; returns the waiting messages and forgets them."""


class SteeringPoll:
    """Poller that receives waiting messages, at most once a batch."""

    def __init__(
        self, getter: SteeringGetter | None, publisher: Publisher, run: CancellationToken, grace: float
    ) -> None:
        """
        Args:
            getter: returns waiting messages.
            publisher: publishes a warning if the getter fails.
            run: token of the run; once it is cancelled, the getter has `grace` seconds left, so that it cannot delay
                the cancellation.
            grace: seconds.
        """
        self.found: tuple[UserMessage, ...] = ()
        """Messages received; they belong after the results of the batch."""
        self._getter = getter
        self._publisher = publisher
        self._run = run
        self._grace = grace
        self._turn = asyncio.Lock()

    async def poll(self) -> bool:
        """Return True if messages were found, now or before.

        If the getter raises, no message counts as found; anything in its answer that is not a message is dropped. A
        warning reports both.
        """
        if self._getter is None or self.found:
            return bool(self.found)
        async with self._turn:
            if not self.found:
                await self._receive(self._getter)
        return bool(self.found)

    @property
    def reason(self) -> SkipReason:
        """Reason for skipped calls: their text must not attribute a system notice to the user."""
        return "notice" if all(message.kind == "notice" for message in self.found) else "steering"

    async def _receive(self, getter: SteeringGetter) -> None:
        try:
            # A getter of another program may hang, and must not hold a cancelled run.
            answer = await self._run.within_grace(asked(getter, timeout=None), self._grace)
        except TimeoutError:
            return
        if isinstance(answer, Crash):
            text = f"Could not read queued messages ({answer.text}). They stay queued; running tools continue."
            self._publisher.publish(Warned(code="steering_failed", text=text))
            return
        self.found, wrong = _messages_of(answer)
        if wrong:
            text = f"Steering must be texts or user messages, got {wrong}. It was dropped; running tools continue."
            self._publisher.publish(Warned(code="steering_failed", text=text))


def _messages_of(answer: object) -> tuple[tuple[UserMessage, ...], str]:
    """Return the messages, and the first item of the answer that is not one, in words."""
    found: list[UserMessage] = []
    wrong = ""
    # Text, and the dict that is a message in other libraries, are iterable but count as one item.
    is_one = isinstance(answer, str | bytes | Mapping | UserMessage) or not isinstance(answer, Iterable)
    one = (cast(object, answer),)
    for item in one if is_one else cast(Iterable[object], answer):
        if isinstance(item, UserMessage):
            found.append(item)
        elif isinstance(item, str):
            # A blank message cannot be sent.
            found += [user_message(replace_lone_surrogates(item), "steer")] if item.strip() else []
        elif item is not None:
            wrong = wrong or shown_value(item)
    return tuple(found), wrong


_NO_LIMIT = 1 << 62


class ConcurrencyGate:
    """Turns and permits for the calls of one message."""

    def __init__(
        self,
        order: ConflictOrder | None,
        steering_points: "SteeringPoints",
        max_concurrency: int | None,
        publisher: Publisher,
    ) -> None:
        self._order = order
        self._steering_points = steering_points
        self._permits = asyncio.Semaphore(max_concurrency or _NO_LIMIT)
        self._publisher = publisher
        self._ids: list[str] = []
        self._states: list[CallState] = []
        self._left = asyncio.Event()
        """Set once the next call leaves."""
        self._entries: dict[int, OrderEntry] = {}
        """Entries in the conflict order of calls that are not over, by index."""

    def add(self, state: CallState, *, settled: bool) -> None:
        """Add a call, in call order.

        Args:
            state: the call.
            settled: True if no hook can rewrite the call's arguments.
        """
        self._ids.append(state.received.call.id)
        self._states.append(state)
        # A call that never runs must hold up no other.
        if self._order is None or (settled and isinstance(state.prepared, RefusedCall)):
            return
        entry = self._entries[state.received.index] = self._order.add(state)
        if settled:
            self._order.settle(entry)

    def close(self) -> None:
        """Declare that no further call will be added."""
        self._steering_points.known.set()
        if self._order is not None:
            self._order.close()

    def settle(self, state: CallState) -> None:
        """Mark the call's arguments as final, unless `change` reports that they are not."""
        entry = self._entries.get(state.received.index)
        if self._order is not None and entry is not None and not entry.settled:
            self._order.settle(entry)

    def change(self, state: CallState) -> None:
        """Order the call anew after its settled arguments were changed, by the user or by a late hook."""
        entry = self._entries.get(state.received.index)
        if self._order is not None and entry is not None:
            self._order.change(entry)

    def is_next(self, state: CallState) -> bool:
        """Return True if the call certainly waits for no other."""
        entry = self._entries.get(state.received.index)
        return entry is not None and entry.is_free

    async def before_question(self, state: CallState) -> Outcome | None:
        """Return why the call must not ask the user, or None."""
        return await self._steering_points.before_question(state)

    async def take(self, state: CallState) -> Outcome | None:
        """Wait for the call's turn and a permit; return why it must not run, or None."""
        call_id, turn = state.received.call.id, state.turn
        entry = self._entries.get(state.received.index)
        if self._order is not None and entry is not None and not entry.is_free:
            state.admission.stale = turn.waited = True
            await state.unless_stopped(self._order.wait(entry, partial(self._publish_blockers, state)))
        if self._permits.locked():
            self._publisher.publish(ToolBlockedOn(call_id=call_id, what="slot"))
            state.admission.stale = True
            await state.unless_stopped(self._permits.acquire())
        else:
            # A permit that is free needs no task that watches for a stop.
            await self._permits.acquire()
        # Before the next wait, so that a stopped call gives it back.
        turn.holds_permit = True
        refusal = await self._steering_points.before_call(state)
        if refusal is None:
            self._steering_points.begun = True
        return refusal

    async def until_complete(self) -> None:
        """Wait until the message is complete."""
        await self._steering_points.known.wait()

    def may_settle(self, state: CallState) -> bool:
        """Return True if no earlier call may still keep changes."""
        return not any(self._settles_first(other, state) for other in self._states[: state.index])

    async def take_settling(self, state: CallState) -> None:
        """Wait until no earlier call may still keep changes."""
        reported: list[str] = []
        while before := [other for other in self._states[: state.index] if self._settles_first(other, state)]:
            ids = [other.received.call.id for other in before]
            if not set(ids) & set(reported):
                reported = ids
                self._publish_wait(state, ids)
            await self._left.wait()

    def _settles_first(self, other: CallState, state: CallState) -> bool:
        # An earlier call whose arguments or place changed may have to wait for this one.
        entry, own = self._entries.get(other.index), self._entries.get(state.index)
        waits_for_own = entry is not None and own is not None and own in entry.waits_for
        return not waits_for_own and other.may_keep

    def give_back(self, state: CallState) -> None:
        """Release the permit; the call keeps its turn."""
        if state.turn.holds_permit:
            state.turn.holds_permit = False
            self._permits.release()

    def leave(self, state: CallState) -> None:
        """Release permit and turn of a call that is over."""
        self.give_back(state)
        entry = self._entries.pop(state.received.index, None)
        if self._order is not None and entry is not None:
            self._order.leave(entry)
        # A new event for the next wait: one that stays set would wake its waiters at once.
        left, self._left = self._left, asyncio.Event()
        left.set()

    def end(self) -> None:
        """Forget the calls: they refer to this gate, and together they would be left to the garbage collector."""
        self._order = None
        self._entries.clear()
        self._states.clear()
        self._steering_points.end()

    def publish_waits(self, waves: Sequence[Sequence[CallState]]) -> None:
        """Publish for every call of a later wave which calls it waits for."""
        for before, wave in pairwise(waves):
            for state in wave:
                self._publish_wait(state, [other.received.call.id for other in before])

    def _publish_blockers(self, state: CallState, indexes: tuple[int, ...]) -> None:
        self._publish_wait(state, [self._ids[index] for index in indexes])

    def _publish_wait(self, state: CallState, ids: list[str]) -> None:
        self._publisher.publish(ToolBlockedOn(call_id=state.received.call.id, what="group", on=tuple(ids)))


class SteeringPoints:
    """Points between the calls of one message at which the steering mode polls for messages.

    Polling starts once the last call is known and the first one has begun, ended, or is about to ask the user: until
    then a message waits for the agent loop, or for the end of the model's response.
    """

    def __init__(
        self,
        options: ExecutionOptions,
        poll: SteeringPoll,
        states: Sequence[CallState],
        *,
        has_waves: bool,
        steer_waits: Callable[[], bool] | None = None,
    ) -> None:
        self.known = asyncio.Event()
        """Set once no further call will come."""
        self._steer_waits = steer_waits or (lambda: False)
        self.begun = False
        """True once a call has begun to run, ended without running, or is about to ask the user."""
        self._mode = options.steering
        self._poll = poll
        self._states = states
        self._has_waves = has_waves
        self._due = 0
        """Number of calls that ended, and whose poll is not over."""
        self._clear = asyncio.Event()
        self._clear.set()

    @property
    def may_poll(self) -> bool:
        """True if polling has started."""
        return self.known.is_set() and self.begun

    @property
    def polls_while_running(self) -> bool:
        """True if the mode polls at any time (`interrupt`)."""
        return self._mode == "interrupt"

    async def poll(self) -> None:
        """Poll now; if a message waits, stop the calls that yield to it."""
        if self.may_poll and await self._poll.poll():
            self._stop_yielding_calls()

    async def poll_on_message(self) -> None:
        """Poll because a message is known to wait, if the mode does not have to wait for a boundary."""
        if self._polls_at_once:
            await self.poll()

    async def before_question(self, state: CallState) -> Outcome | None:
        """Return why a call yields instead of asking the user, or None.

        The user is not asked about a call while a message waits that the model must read first.
        """
        # The user is about to be disturbed, so a message that waits is worth more now.
        self.begun = True
        await self.poll_on_message()
        return state.stopping

    async def before_call(self, state: CallState) -> Outcome | None:
        """Return why a call yields, or None; it never begins between a boundary and its poll (S0-15)."""
        while not self._clear.is_set():
            state.admission.stale = True
            await state.unless_stopped(self._clear.wait())
        # Effects of a discarded response that the call takes over have happened, whatever the message says.
        if state.prepared.read_only or state.run.repeats_effects or not self._polls_at_once:
            return state.stopping
        if not self.known.is_set() and self._steer_waits():
            # The poll, which takes the message, has to wait for the end of the response.
            state.admission.stale = True
            await state.unless_stopped(self.known.wait())
        if self.may_poll:
            state.admission.stale = True
            await state.unless_stopped(self.poll())
        return state.stopping

    @asynccontextmanager
    async def after_call(self, state: CallState) -> AsyncGenerator[None, None]:
        """Enclose what is published about a call's end, and poll after it if this is a boundary.

        Until then no call begins in the modes that poll between calls. Waves of one call poll after their commit
        (S0-14).
        """
        self.begun = True
        is_boundary = self._is_boundary(state)
        holds_others = is_boundary and self._mode != "interrupt"
        if holds_others:
            self._due += 1
            self._clear.clear()
        try:
            yield
            if is_boundary:
                await self.poll()
        finally:
            if holds_others:
                self._due -= 1
                if not self._due:
                    self._clear.set()

    async def after_wave(self, size: int) -> None:
        """Poll after the results of a wave of `size` calls were committed (S0-8, S0-14), if the mode does so."""
        # After the commit: the message then follows results that the model has.
        if self._mode == "between_batches" or (self._mode == "between_calls" and size == 1):
            await self.poll()

    async def at_the_end(self) -> None:
        """Poll after all results were committed (S0-19, S2-9), if the mode does so."""
        if self._mode in ("after_batch", "before_effects", "interrupt"):
            await self._poll.poll()

    def end(self) -> None:
        """Forget the calls."""
        self._states = ()

    @property
    def _polls_at_once(self) -> bool:
        """True if the mode polls whenever a message is known to wait, and before each question and effect."""
        return self._mode in ("before_effects", "interrupt")

    def _is_boundary(self, state: CallState) -> bool:
        match self._mode:
            case "between_calls":
                wave = state.turn.wave
                return not self._has_waves or any(
                    other.turn.wave == wave and other is not state for other in self._states
                )
            # Without waves, a moment in which nothing runs is the boundary.
            case "between_batches":
                return not self._has_waves and not any(other.phase == "running" for other in self._states)
            case "interrupt":
                return True
            case _:
                return False

    def _stop_yielding_calls(self) -> None:
        for state in self._states:
            if state.phase == "waiting" and not self._may_still_run(state):
                state.stop(skipped(self._poll.reason))
            elif state.phase == "running" and self._mode == "interrupt" and state.accepted.interruptible:
                state.stop(interrupted_by_steering())

    def _may_still_run(self, state: CallState) -> bool:
        # Reads are useful whatever the message says, and a refusal does nothing but inform the model. But the message
        # must not wait for an answer to a question that it may have made pointless.
        if state.approval.is_open:
            return False
        harmless = state.prepared.read_only or isinstance(state.prepared, RefusedCall)
        return state.run.repeats_effects or (harmless and self._mode == "before_effects")
