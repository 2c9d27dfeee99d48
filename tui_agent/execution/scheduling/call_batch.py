"""The calls of one message as a whole: their results in call order, told and committed once, and what they come to."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from tui_agent.execution.executor import ToolExecutor
from tui_agent.execution.pipeline.call_state import CallState
from tui_agent.execution.strategy import strategy_name
from tui_agent.execution.untrusted_calls import now
from tui_agent.protocol.events import ToolBatchEnded, ToolBatchStarted
from tui_agent.protocol.messages import ToolResultMessage, UserMessage, new_id
from tui_agent.protocol.reports import RunReason, ToolCallReport


@dataclass(frozen=True, slots=True)
class ToolExecutionResult:
    """What the calls of one message came to."""

    tool_results: tuple[ToolResultMessage, ...] = ()
    """One for each call, in call order (S0-3)."""
    steering_messages: tuple[UserMessage, ...] | None = None
    """Messages taken over at a boundary; they belong behind the results. None: there were none (S0-20)."""
    reports: tuple[ToolCallReport, ...] = ()
    """One for each call, in call order."""
    terminate: bool = False
    """Whether the results ask for the end of the run (C48)."""
    approval_ms: float = 0.0
    """Milliseconds in which at least one question waited for a person."""
    halted: RunReason | None = None
    """Why the run must end now that every call is answered."""
    halted_why: str = ""
    """What is said of that."""


class Batch:
    """The states of one message's calls, by index."""

    def __init__(self, executor: ToolExecutor, on_result: Callable[[ToolResultMessage], None] | None) -> None:
        self.states: list[CallState] = []
        """In call order."""
        self.results: list[ToolResultMessage] = []
        """Committed so far, in call order."""
        self.halted: RunReason | None = None
        """Why the run must end."""
        self.halted_why = ""
        """What is said of that."""
        self._executor = executor
        self._on_result = on_result
        self._id = new_id("batch")
        self._strategy = strategy_name(executor.services.options.strategy)
        self._began: float | None = None
        self._over = False

    def begin(self, states: Sequence[CallState]) -> None:
        """Tells that the calls are taken in hand, once."""
        if self._began is None:
            self._began = now()
            told = ToolBatchStarted(
                batch_id=self._id,
                strategy=self._strategy,
                call_ids=tuple(state.received.call.id for state in states),
                groups=_groups(states),
            )
            self._executor.services.publisher.publish(told)

    @property
    def busy_ms(self) -> float:
        """Milliseconds of execution so far of all calls that are over, together."""
        return sum(state.run.latency_s for state in self.states) * 1000

    def end(self, steering: int) -> None:
        """Tells that every call is over, once."""
        if self._began is None or self._over:
            return
        self._over = True
        told = ToolBatchEnded(
            batch_id=self._id,
            strategy=self._strategy,
            call_ids=tuple(state.received.call.id for state in self.states),
            total_ms=(now() - self._began) * 1000,
            busy_ms=self.busy_ms,
            steering=steering,
        )
        self._executor.services.publisher.publish(told)

    async def commit(self, states: Iterable[CallState]) -> None:
        """Stage 16: commits the results of calls that are over, in call order; ends told late are told here (C5)."""
        for state in states:
            if not state.end_published:
                self._executor.publish_end(state)
                await self._executor.observe(state)
            self._commit(state)

    def commit_now(self) -> None:
        """The same for everything that is left, when there is no time to ask observers."""
        for state in self.states:
            self._executor.publish_end(state)
            self._commit(state)

    def give_up(self) -> None:
        """Tells the ends of calls whose message is thrown away; they get no result messages."""
        for state in self.states:
            self._executor.publish_end(state)

    def result(self, steering: tuple[UserMessage, ...]) -> ToolExecutionResult:
        """What the calls came to."""
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
    """The ids by wave; empty where there are no waves."""
    waves = groupby((state for state in states if state.turn.wave is not None), key=lambda state: state.turn.wave)
    return tuple(tuple(state.received.call.id for state in wave) for _, wave in waves)


def _union_length(spans: Iterable[tuple[float, float]]) -> float:
    """The time that at least one span covers."""
    total, reached = 0.0, float("-inf")
    for begin, end in sorted(spans):
        total += max(end - max(begin, reached), 0.0)
        reached = max(reached, end)
    return total
