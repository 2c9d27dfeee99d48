"""What the engine knows of one call while it has it in hand: one state a call, filled stage by stage, ended once."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias, TypeVar

from tui_agent.execution.loop_clock import now
from tui_agent.execution.outcomes import Outcome, cancelled
from tui_agent.execution.scheduling.access_tree import accesses_of
from tui_agent.execution.scheduling.conflict_order import OrderEntry
from tui_agent.execution.untrusted_calls import in_time
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.events import ToolEnded
from tui_agent.protocol.messages import AssistantMessage, JsonObject, ToolCall, ToolResultMessage
from tui_agent.protocol.permissions import PermissionDecision
from tui_agent.protocol.reports import Metric, ToolCallReport
from tui_agent.protocol.tool import Accesses, JudgedTarget, Preview, Tool

from .early_executions import EarlyExecutions
from .tool_execution import ToolExecution
from .update_channel import UpdateChannel

T = TypeVar("T")

Phase: TypeAlias = Literal["waiting", "running", "ran", "over"]


class ConcurrencySlots(Protocol):
    """How a call's pipeline asks for its turn: stage 10, where HOW (the executor) meets WHEN (the scheduler)."""

    def settle(self, state: "CallState") -> None:
        """The call's effective arguments are known."""
        ...

    def change(self, state: "CallState") -> None:
        """They were changed once more, by a person."""
        ...

    async def take(self, state: "CallState") -> Outcome | None:
        """Waits for the call's turn and a permit, and notes in `state.stale` whether it had to.

        Returns:
            Why the call is not to run after all; None: it may run now.
        """
        ...

    def give_back(self, state: "CallState") -> None:
        """Gives the permit back, because a person must be asked once more."""
        ...


@dataclass(slots=True, eq=False)
class CallState:
    """One call in hand."""

    call: ToolCall
    index: int
    """OrderEntry in its message, from 0; its result's place, too (P05)."""
    step: int
    token: CancellationToken
    """The call's own; the tool sees it."""
    turns: ConcurrencySlots
    queued_at: float
    """Time of the event loop, in seconds, as all times here."""
    grace: float
    attempt: int = 1
    """Which attempt at the answer it stands in."""
    group: int | None = None
    """Its wave, where there are waves."""
    place: OrderEntry | None = None
    """Its place in the conflict order, where there is one."""

    answer: AssistantMessage | None = None
    """The answer it stands in, once that is complete."""
    tool: Tool | None = None
    arguments: JsonObject = field(default_factory=dict[str, object])
    """Arguments in effect."""
    invalid_outcome: Outcome | None = None
    """What stages 1 to 3 found wrong when the call was received."""
    read_only: bool = False
    safe: bool = False
    time_limit: float | None = None
    """Seconds it may execute; None: no limit."""

    decision: PermissionDecision | None = None
    """The judgement in force."""
    stale: bool = False
    """Something was awaited since the call was judged: nothing is taken for granted any more (stage 9)."""
    approved: str | None = None
    """Digest of what a person approved."""
    shown: tuple[JudgedTarget, ...] = ()
    """What stood where the call leads when a person was last asked."""
    hook_approved: str | None = None
    """Reason of a hook that approved, where hooks may."""
    questions: int = 0
    asked: tuple[tuple[float, float], ...] = ()
    """When a person was asked, and answered."""
    preview: Preview | None = None
    notes: tuple[str, ...] = ()
    """Notes for the model beside the result: the user's words."""
    edited: JsonObject | None = None
    """Arguments in effect after the user changed them."""
    edited_names: frozenset[str] = frozenset()
    """Names of the arguments that the user changed."""

    begun: bool = False
    """Its pipeline has begun."""
    admitted: bool = False
    """Stages 1 to 8 have begun, or are behind it."""
    refusal: Outcome | None = None
    """Why it does not run, as these stages found."""
    phase: Phase = "waiting"
    start_published: bool = False
    mark: str = ""
    """Mark of the processes that the call starts."""
    holds_permit: bool = False
    stopping: Outcome | None = None
    """Why the call was taken back; how it ends unless it ended by itself before."""
    stop_timeout: asyncio.Timeout | None = None
    """Ends what the call awaits right now."""
    execution: ToolExecution | None = None
    """Its tool's work, once it has begun."""
    early: EarlyExecutions | None = None
    """Where its execution runs if it begins while the model still talks; None: in the call's own task."""
    claimed: ToolExecution | None = None
    """What an earlier attempt at the same answer began for the same call; taken over if the call may run at once."""
    had_to_wait: bool = False
    """Whether it waited for a call it conflicts with."""
    started_at: float | None = None
    finished_at: float | None = None
    metrics: dict[str, Metric] = field(default_factory=dict[str, Metric])
    metrics_passed: bool = False
    """Whether guardrails looked at them, where they must."""
    channel: UpdateChannel | None = None
    """The way of its reports, once it runs."""

    outcome: Outcome | None = None
    ended: ToolEnded | None = None
    end_published: bool = False
    message: ToolResultMessage | None = None
    message_published: bool = False
    committed: bool = False
    report: ToolCallReport | None = None

    _forget: Callable[[], None] | None = None

    def __post_init__(self) -> None:
        self._forget = self.token.on_cancel(self._token_was_cancelled)

    @property
    def alone(self) -> bool:
        """Whether nothing of the message may run beside it (C1)."""
        return self.tool is not None and self.tool.execution_mode == "sequential"

    @property
    def started(self) -> bool:
        """Whether the tool was really called."""
        return self.started_at is not None

    @property
    def has_turn(self) -> bool:
        """Whether it runs, ran, or is about to."""
        return self.holds_permit or self.started

    @property
    def known_tool(self) -> Tool:
        """The tool, in stages that come after it was found."""
        assert self.tool is not None
        return self.tool

    @property
    def latency_s(self) -> float:
        """Seconds of execution."""
        return 0.0 if self.started_at is None or self.finished_at is None else self.finished_at - self.started_at

    @property
    def approval_s(self) -> float:
        """Seconds for which a person was asked."""
        return sum(end - begin for begin, end in self.asked)

    def accesses(self) -> Accesses | None:
        """The resolved paths of the call; None where they are not known or cannot be told (C3)."""
        if self.tool is None or self.invalid_outcome is not None:
            return Accesses()
        return accesses_of(self.tool, self.arguments)

    def targets(self) -> tuple[JudgedTarget, ...]:
        """The paths the call was judged by; where a person was asked, with what they were shown."""
        if self.decision is None or self.decision.decision == "ask":
            return self.shown
        return tuple(JudgedTarget(path) for path in self.decision.targets)

    def stop(self, outcome: Outcome) -> None:
        """Takes the call back: the first reason counts, and none once the tool has ended.

        A call that waits ends at once, one that runs as `ToolExecution.stop` says.
        """
        if self.stopping is not None or self.phase in ("ran", "over"):
            return
        self.stopping = outcome
        self.token.cancel(outcome.result.text)
        if self.execution is not None:
            self.execution.stop(self.token.reason)
        elif self.stop_timeout is not None:
            self.stop_timeout.reschedule(now())

    def set_aside(self, outcome: Outcome) -> None:
        """Its answer is thrown away: the call ends with `outcome` unless it has ended, but what began early goes on,
        for a call of the next answer that claims it."""
        keeps = self.execution is not None and self.stopping is None
        if self.early is not None and self.execution is not None and keeps:
            self.early.set_aside(self.execution)
            if self.stop_timeout is not None:
                self.stopping, self.execution = outcome, None
                self.stop_timeout.reschedule(now())
        elif self.phase not in ("ran", "over"):
            self.stop(outcome)

    def end(self, outcome: Outcome) -> None:
        """The call is over. Its token lets go of it, so that both are freed at once and not looked for later."""
        self.phase, self.outcome = "over", outcome
        forget, self._forget = self._forget, None
        if forget is not None:
            forget()

    def cancel(self, reason: str) -> None:
        """Takes the call back because somebody wants it to end."""
        self.stop(cancelled(reason, started=self.started))

    async def unless_stopped(self, work: Awaitable[T]) -> T:
        """What `work` gives; whatever a call awaits before and beside its tool, it awaits here.

        Raises:
            TimeoutError: the call was taken back first.
        """
        if self.stop_timeout is not None:
            return await work
        try:
            async with asyncio.timeout_at(None if self.stopping is None else now()) as self.stop_timeout:
                return await work
        finally:
            self.stop_timeout = None

    async def in_time(self, work: Awaitable[T]) -> T | None:
        """What `work` gives that is done once the tool has ended; None where the run is cancelled and it is not over a
        grace later (P44)."""
        run = self.token.parent or self.token
        try:
            return await in_time(work, run, self.grace)
        except TimeoutError:
            if not run.is_set():
                raise
            return None

    def _token_was_cancelled(self) -> None:
        self.cancel(self.token.reason)
