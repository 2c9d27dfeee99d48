"""Batch of one message's calls: commits results in call order and sums up the whole."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from tui_agent.execution.executor import ToolExecutor
from tui_agent.execution.options import Batched, Parallel, Sequential, strategy_name
from tui_agent.execution.pipeline.call_state import CallState
from tui_agent.protocol.events import ToolBatchEnded, ToolBatchStarted
from tui_agent.protocol.messages import ToolResultMessage, UserMessage, new_id
from tui_agent.protocol.reports import RunReason, ToolCallReport


@dataclass(frozen=True, slots=True)
class ToolExecutionResult:
    """Results of the calls of one message."""

    tool_results: tuple[ToolResultMessage, ...] = ()
    """One for each call, in call order (S0-3)."""
    steering_messages: tuple[UserMessage, ...] | None = None
    """Messages received at a boundary; they belong after the results. None: there were none (S0-20)."""
    reports: tuple[ToolCallReport, ...] = ()
    """One for each call, in call order."""
    terminate: bool = False
    """True if the results ask for the end of the run."""
    approval_ms: float = 0.0
    """Milliseconds in which at least one question waited for the user."""
    halted: RunReason | None = None
    """The reason why the run must end now that every call is answered."""
    halted_why: str = ""
    """Explanation of `halted`."""


class Batch:
    """States of one message's calls, by index."""

    def __init__(self, executor: ToolExecutor, on_result: Callable[[ToolResultMessage], None] | None) -> None:
        self.states: list[CallState] = []
        """In call order."""
        self.results: list[ToolResultMessage] = []
        """Results committed so far, in call order."""
        self.halted: RunReason | None = None
        """The reason why the run must end."""
        self.halted_why = ""
        """Explanation of `halted`."""
        self._executor = executor
        self._on_result = on_result
        self._id = new_id("batch")
        self._strategy = strategy_name(executor.services.options.strategy)
        self._began: float | None = None
        self._over = False

    def begin(self, states: Sequence[CallState]) -> None:
        """Publish the start of the batch, once."""
        if self._began is None:
            self._began = asyncio.get_running_loop().time()
            event = ToolBatchStarted(
                batch_id=self._id,
                strategy=self._strategy,
                call_ids=tuple(state.received.call.id for state in states),
                groups=_groups(states),
            )
            self._executor.services.publisher.publish(event)

    @property
    def busy_ms(self) -> float:
        """Milliseconds of execution of all finished calls together."""
        return sum(state.finished.event.latency_ms for state in self.states if state.finished is not None)

    def end(self, steering: int) -> None:
        """Publish the end of the batch, once; `steering` is the number of messages that were polled in it."""
        if self._began is None or self._over:
            return
        self._over = True
        event = ToolBatchEnded(
            batch_id=self._id,
            strategy=self._strategy,
            call_ids=tuple(state.received.call.id for state in self.states),
            total_ms=(asyncio.get_running_loop().time() - self._began) * 1000,
            busy_ms=self.busy_ms,
            steering=steering,
        )
        self._executor.services.publisher.publish(event)

    async def commit(self, states: Iterable[CallState]) -> None:
        """Stage 16: commit the results of finished calls in call order; publish ends that waited for this order."""
        for state in states:
            if not state.end_published:
                self._executor.publish_end(state)
                await self._executor.observe(state)
            self._commit(state)

    def commit_now(self) -> None:
        """Commit all remaining results without notifying observers, because the run is ending."""
        for state in self.states:
            self._executor.publish_end(state)
            self._commit(state)

    def give_up(self) -> None:
        """Publish the ends of calls whose message is discarded; they get no result messages."""
        for state in self.states:
            self._executor.publish_end(state)

    def result(self, steering: tuple[UserMessage, ...]) -> ToolExecutionResult:
        """Return the results and totals."""
        return ToolExecutionResult(
            tool_results=tuple(self.results),
            steering_messages=steering or None,
            reports=tuple(state.finished.report for state in self.states if state.finished is not None),
            terminate=self._terminates(),
            approval_ms=_union_length(span for state in self.states for span in state.approval.asked) * 1000,
            halted=self.halted,
            halted_why=self.halted_why,
        )

    def _commit(self, state: CallState) -> None:
        if state.committed or state.finished is None:
            return
        state.committed = True
        message = state.finished.message
        self.results.append(message)
        if self._on_result is not None:
            self._on_result(message)
        self._executor.publish_message(state)

    def _terminates(self) -> bool:
        wishes = [state.finished is not None and state.finished.outcome.result.terminate for state in self.states]
        if self._executor.services.options.terminate_policy == "any":
            return any(wishes)
        return bool(wishes) and all(wishes)


def _groups(states: Sequence[CallState]) -> tuple[tuple[str, ...], ...]:
    """Return the call ids by wave; empty without waves."""
    waves = groupby((state for state in states if state.turn.wave is not None), key=lambda state: state.turn.wave)
    return tuple(tuple(state.received.call.id for state in wave) for _, wave in waves)


def _union_length(spans: Iterable[tuple[float, float]]) -> float:
    """Return the length of time that at least one span covers."""
    total, reached = 0.0, float("-inf")
    for begin, end in sorted(spans):
        total += max(end - max(begin, reached), 0.0)
        reached = max(reached, end)
    return total


class WaveNumbering:
    """Counter that assigns each call to a wave; a call that must run alone is a wave of its own."""

    def __init__(self, strategy: Sequential | Parallel | Batched) -> None:
        self._size = _wave_size(strategy)
        self._wave = -1
        self._room = 0

    def place(self, *, alone: bool) -> int:
        """Return the number of the next call's wave, from 0; call it once for each call, in call order."""
        if alone or self._room == 0:
            self._wave += 1
            self._room = 0 if alone else self._size
        if not alone:
            self._room -= 1
        return self._wave


def _wave_size(strategy: Sequential | Parallel | Batched) -> int:
    match strategy:
        case Sequential():
            return 1
        case Batched(size=size):
            return size
        case Parallel():
            # No limit: no message has that many calls.
            return 1 << 62
