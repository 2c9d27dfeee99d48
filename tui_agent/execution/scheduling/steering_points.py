"""Where steering is looked for, and which calls give way to it: one mode of C7 each, one place for all of them."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from tui_agent.execution.options import ExecutionOptions
from tui_agent.execution.outcomes import Outcome, interrupted_by_steering, skipped
from tui_agent.execution.pipeline.call_state import CallState
from tui_agent.execution.untrusted_calls import call_or_default

from .steering_poll import SteeringPoll


class SteeringPoints:
    """The boundaries of one message's calls.

    Nobody looks before the last call is known and the first one has begun or ended: until then a message waits for the
    loop, or for the end of the model's answer.
    """

    def __init__(
        self, options: ExecutionOptions, poll: SteeringPoll, states: Sequence[CallState], *, has_waves: bool
    ) -> None:
        self.all_known = False
        """Whether no further call will come."""
        self.begun = False
        """Whether a call has begun to run, or ended without that."""
        self._mode = options.steering
        self._poll = poll
        self._states = states
        self._has_waves = has_waves
        self._due = 0
        self._clear = asyncio.Event()
        self._clear.set()

    @property
    def may_poll(self) -> bool:
        """Whether steering may be looked for."""
        return self.all_known and self.begun

    @property
    def polls_while_running(self) -> bool:
        """Whether this mode looks at any time (`interrupt`)."""
        return self._mode == "interrupt"

    async def poll(self) -> None:
        """Looks now; if a message waits, the calls that give way to it are taken back."""
        if self.may_poll and await self._poll.poll():
            self._stop_yielding_calls()

    async def poll_on_message(self) -> None:
        """The same where somebody says that a message came, in modes that need not wait for a boundary."""
        if self._mode in ("before_effects", "interrupt"):
            await self.poll()

    async def before_call(self, state: CallState) -> Outcome | None:
        """Before a call runs: why it gives way, or None. It never begins between a boundary and its poll (S0-15)."""
        while not self._clear.is_set():
            state.stale = True
            await state.unless_stopped(self._clear.wait())
        if not state.read_only and self._mode in ("before_effects", "interrupt") and self.may_poll:
            state.stale = True
            await state.unless_stopped(self.poll())
        return state.stopping

    @asynccontextmanager
    async def after_call(self, state: CallState) -> AsyncGenerator[None, None]:
        """A call is over: around what is told of it. Where that is a boundary, it looks behind it; waves of one call
        poll after their commit (S0-14). Until then no call begins in the modes that poll between calls."""
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
        """After the results of a wave were committed (S0-8, S0-14)."""
        if self._mode == "between_batches" or (self._mode == "between_calls" and size == 1):
            await self.poll()

    async def at_the_end(self) -> None:
        """After all results were committed (S0-19, S2-9)."""
        if self._mode in ("after_batch", "before_effects", "interrupt"):
            await self._poll.poll()

    def end(self) -> None:
        """The message is over: nothing gives way any more."""
        self._states = ()

    def _is_boundary(self, state: CallState) -> bool:
        match self._mode:
            case "between_calls":
                return not self._has_waves or any(
                    other.group == state.group and other is not state for other in self._states
                )
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
            elif state.phase == "running" and self._mode == "interrupt" and _is_interruptible(state):
                state.stop(interrupted_by_steering())

    def _may_still_run(self, state: CallState) -> bool:
        """In `before_effects` reads still run: their work is useful whatever the message says (P18)."""
        return self._mode == "before_effects" and (state.read_only or state.invalid_outcome is not None)


def _is_interruptible(state: CallState) -> bool:
    return call_or_default(state.known_tool.interruptible, state.arguments, otherwise=False)
