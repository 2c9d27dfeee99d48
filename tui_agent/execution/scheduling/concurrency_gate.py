"""Stage 10: a call's turn, in its order and within the permits, and whether steering came before it (C2, C7)."""

import asyncio
from collections.abc import Sequence
from itertools import pairwise

from tui_agent.execution.outcomes import Outcome
from tui_agent.execution.pipeline.call_state import CallState
from tui_agent.protocol.bus import Publisher
from tui_agent.protocol.events import ToolBlockedOn

from .conflict_order import ConflictOrder
from .steering_points import SteeringPoints

_NO_LIMIT = 1 << 62


class ConcurrencyGate:
    """Gives turns to the calls of one message."""

    def __init__(
        self, order: ConflictOrder | None, boundaries: SteeringPoints, max_concurrency: int | None, publisher: Publisher
    ) -> None:
        self._order = order
        self._steering_points = boundaries
        self._permits = asyncio.Semaphore(max_concurrency or _NO_LIMIT)
        self._publisher = publisher
        self._ids: list[str] = []

    def add(self, state: CallState, *, settled: bool) -> None:
        """Notes a call, in call order.

        Args:
            state: the call.
            settled: whether its arguments are those that will run; nobody can rewrite them any more but a person.
        """
        self._ids.append(state.call.id)
        if self._order is None or (settled and state.invalid_outcome is not None):
            return
        state.place = self._order.add(state)
        if settled:
            self._order.settle(state.place)

    def close(self) -> None:
        """No further call will come."""
        self._steering_points.all_known = True
        if self._order is not None:
            self._order.close()

    def settle(self, state: CallState) -> None:
        """The call's effective arguments are known."""
        if self._order is not None and state.place is not None:
            self._order.settle(state.place)

    def change(self, state: CallState) -> None:
        """They were changed once more, by a person."""
        if self._order is not None and state.place is not None:
            self._order.change(state.place)

    async def take(self, state: CallState) -> Outcome | None:
        """Waits for the call's turn and a permit; gives why it is not to run after all, or None."""
        if self._order is not None and state.place is not None and not state.place.is_free:
            self._publish_wait(state, [self._ids[index] for index in self._order.blockers(state.place)])
            state.stale = state.had_to_wait = True
            await state.unless_stopped(self._order.wait(state.place))
        if self._permits.locked():
            self._publisher.publish(ToolBlockedOn(call_id=state.call.id, what="slot"))
            state.stale = True
            await state.unless_stopped(self._permits.acquire())
        else:
            await self._permits.acquire()
        state.holds_permit = True
        refusal = await self._steering_points.before_call(state)
        if refusal is None:
            self._steering_points.begun = True
        return refusal

    def give_back(self, state: CallState) -> None:
        """Gives the permit back; the call's turn stays its own."""
        if state.holds_permit:
            state.holds_permit = False
            self._permits.release()

    def leave(self, state: CallState) -> None:
        """The call is over: whoever waited for it may go on."""
        self.give_back(state)
        if self._order is not None and state.place is not None:
            self._order.leave(state.place)
            state.place = None

    def end(self) -> None:
        """The message is over. States know their keeper; a keeper that forgets them makes no circle with them."""
        self._order = None
        self._steering_points.end()

    def publish_waits(self, waves: Sequence[Sequence[CallState]]) -> None:
        """Tells of every call of a later wave for whom it waits."""
        for before, wave in pairwise(waves):
            for state in wave:
                self._publish_wait(state, [other.call.id for other in before])

    def _publish_wait(self, state: CallState, ids: list[str]) -> None:
        self._publisher.publish(ToolBlockedOn(call_id=state.call.id, what="group", on=tuple(ids)))
