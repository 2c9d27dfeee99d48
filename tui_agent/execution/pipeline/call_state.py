"""Records of the pipeline, one for each stage, and the state that holds them while a call is under way."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Protocol, TypeAlias, TypeVar

from tui_agent.execution.contained_calls import Crash, try_call
from tui_agent.execution.outcomes import Outcome, cancelled
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.events import ToolEnded
from tui_agent.protocol.messages import AssistantMessage, JsonObject, ToolCall, ToolResultMessage
from tui_agent.protocol.permissions import PermissionDecision, PermissionMode
from tui_agent.protocol.reports import Metric, ToolCallReport
from tui_agent.protocol.server_question import FieldValue, ServerQuestion
from tui_agent.protocol.tool import Accesses, JudgedTarget, Preview, Tool
from tui_agent.protocol.trial import Place

from .tool_execution import EarlyExecutions, ToolExecution
from .update_channel import UpdateChannel

T = TypeVar("T")

Phase: TypeAlias = Literal["waiting", "running", "settling", "ran", "over"]
"""`settling`: the tool has ended, and what it changed in a trial waits for its turn or for an answer."""


@dataclass(frozen=True, slots=True)
class ReceivedCall:
    """Stage 0: a call as the model sent it."""

    call: ToolCall
    index: int
    """Position in its message, from 0; its result has the same position."""
    step: int
    """Number of the model response that contains the call."""
    attempt: int
    """Number of the attempt at that response, from 1."""
    queued_at: float
    """Event loop time in seconds, as are all times in this module."""


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """Stages 1 to 3 passed: the tool exists and accepts the arguments."""

    tool: Tool
    arguments: JsonObject
    """Arguments in effect."""
    read_only: bool
    safe: bool
    """True if the call may run beside other safe calls."""
    time_limit: float | None
    """Seconds the tool may execute; None: no limit."""
    interruptible: bool = False
    """True if a steering message may stop the call while it runs (mode `interrupt`)."""
    summary: str = ""
    """The call in one line."""
    question: ServerQuestion | None = None
    """Question to the user that comes before the call, in place of one for an approval."""

    @property
    def is_harmless(self) -> bool:
        """True if the call changes nothing and may run beside other such calls."""
        return self.read_only and self.safe


@dataclass(frozen=True, slots=True)
class RefusedCall:
    """Stages 1 to 3 failed: the call is invalid or its tool is unknown."""

    outcome: Outcome
    arguments: JsonObject
    tool: Tool | None = None
    """None if it is unknown."""
    summary: str = ""
    """The call in one line; empty if the tool has none."""
    read_only: ClassVar[bool] = False
    safe: ClassVar[bool] = False
    time_limit: ClassVar[float | None] = None


@dataclass(slots=True)
class Admission:
    """Stages 4 to 9: the judgement in force."""

    begun: bool = False
    decision: PermissionDecision | None = None
    early: tuple[PermissionDecision, PermissionMode] | None = None
    """Judgement at the call's arrival, and its mode; counts if the call starts in the next turn of the event loop."""
    hook_approval: str | None = None
    """Reason of a hook that approved the call; counts only with the option `hook_may_approve`, or if
    `hook_may_approve` is True."""
    hook_may_approve: bool = False
    """True if that hook may approve what the mode alone would ask."""
    hook_question: str | None = None
    """Reason of a hook that requires an approval by the user."""
    stale: bool = False
    """True if the call has waited for something since it was judged, so that it must be judged again (stage 9)."""
    refusal: Outcome | None = None
    """The reason why the call does not run."""


@dataclass(slots=True)
class Approval:
    """Stage 8: what the user was asked and answered."""

    digest: str | None = None
    """Digest of the call as the user approved it."""
    shown: tuple[JudgedTarget, ...] = ()
    """Targets of the call as they were when the user was last asked."""
    questions: int = 0
    is_answered: bool = False
    """True if the question of the tool was answered, or no one could answer it."""
    answers: Mapping[str, FieldValue] | None = None
    """The answer to the question of the tool; None if no one could answer."""
    is_open: bool = False
    """True while the call waits for the user's answer, or is about to ask for it."""
    asked: tuple[tuple[float, float], ...] = ()
    """Times at which each question was asked and answered."""
    preview: Preview | None = None
    notes: tuple[str, ...] = ()
    """Notes of the user that the model reads with the result."""
    edited: JsonObject | None = None
    """Arguments in effect after the user changed them."""
    edited_names: frozenset[str] = frozenset()
    """Names of the arguments that the user changed."""

    @property
    def seconds(self) -> float:
        """Seconds spent waiting for the user."""
        return sum(end - begin for begin, end in self.asked)


@dataclass(slots=True)
class Turn:
    """Stage 10: the call's place among the calls of its message."""

    wave: int | None = None
    """Number of its wave; None with the strategy `Auto`."""
    waited: bool = False
    """True if the call waited for one that it conflicts with."""
    holds_permit: bool = False
    place: Place | None = None
    """Place by which the call is ordered; None: not judged yet."""
    judge_place: Callable[["CallState"], Place] = lambda state: "trial"
    """Returns the place in which the policy of this moment lets the call run."""
    moved: bool = False
    """True if the call was ordered anew because its place changed."""


@dataclass(slots=True)
class ToolRun:
    """Stage 11: the tool at work."""

    early: EarlyExecutions | None = None
    """Runs the tool if the call starts while the model still streams; None: the call's own task does."""
    claimed: ToolExecution | None = None
    """Execution that an earlier attempt started for the same call; used if the call may run at once."""
    start_published: bool = False
    resumed_from: str = ""
    """As `ToolContext.resumed_from`."""
    discards: str = ""
    """Reason to discard the changes of a resumed call without a question; empty: they are decided on."""
    mark: str = ""
    """Mark of every process that the call starts."""
    execution: ToolExecution | None = None
    """Current execution; None before it starts and after it was set aside."""
    timer: asyncio.TimerHandle | None = None
    """Stops the call at its time limit; None without one, and while the tool does not run."""
    started_at: float | None = None
    finished_at: float | None = None
    metrics: dict[str, Metric] = field(default_factory=dict[str, Metric])
    metrics_passed: bool = False
    """True if the guardrails, where they hold metrics back, let them pass."""
    channel: UpdateChannel | None = None
    """Channel of the call's reports, once it runs."""

    @property
    def repeats_effects(self) -> bool:
        """True if the call only takes over an execution whose effects have happened or are about to."""
        return self.claimed is not None and self.claimed.has_effects and not self.claimed.is_stopped


@dataclass(frozen=True, slots=True)
class FinishedCall:
    """Stage 15: everything that is published about the end of a call."""

    outcome: Outcome
    event: ToolEnded
    message: ToolResultMessage
    report: ToolCallReport


class ConcurrencySlots(Protocol):
    """Interface through which a pipeline waits for its call's turn (stage 10)."""

    def settle(self, state: "CallState") -> None:
        """Mark the call's arguments as final, unless `change` reports that they are not."""
        ...

    def change(self, state: "CallState") -> None:
        """Order the call anew after its settled arguments were changed."""
        ...

    def is_next(self, state: "CallState") -> bool:
        """Return True if it is certain that no earlier call of the message may still change what this one finds."""
        ...

    async def before_question(self, state: "CallState") -> Outcome | None:
        """Return why the call must not ask the user, or None."""
        ...

    async def take(self, state: "CallState") -> Outcome | None:
        """Wait for the call's turn and a permit; after any wait, mark its admission as stale.

        Returns:
            Why the call must not run; None: it may run now.
        """
        ...

    async def until_complete(self) -> None:
        """Wait until the message is complete."""
        ...

    def may_settle(self, state: "CallState") -> bool:
        """Return True if no earlier call may still keep changes."""
        ...

    async def take_settling(self, state: "CallState") -> None:
        """Wait until no earlier call may still keep changes."""
        ...

    def give_back(self, state: "CallState") -> None:
        """Release the permit while the user is asked again."""
        ...


@dataclass(slots=True, eq=False)
class CallState:
    """One call under way: the record of each stage, and the means to stop it."""

    received: ReceivedCall
    prepared: PreparedCall | RefusedCall
    turns: ConcurrencySlots
    token: CancellationToken
    """The call's own token, which its tool sees."""
    grace: float
    """Seconds that work after the tool's end may take once the run is cancelled."""
    answer: AssistantMessage | None = None
    """Message that contains the call, once it is complete."""

    admission: Admission = field(default_factory=Admission)
    approval: Approval = field(default_factory=Approval)
    turn: Turn = field(default_factory=Turn)
    run: ToolRun = field(default_factory=ToolRun)
    finished: FinishedCall | None = None

    begun: bool = False
    """True once the call has a task."""
    phase: Phase = "waiting"
    stopping: Outcome | None = None
    """The reason why the call was stopped; its outcome unless it ended by itself before."""
    stop_timeout: asyncio.Timeout | None = None
    """Ends what the call currently awaits."""
    end_published: bool = False
    message_published: bool = False
    committed: bool = False

    _forget: Callable[[], None] | None = None

    def __post_init__(self) -> None:
        self._forget = self.token.on_cancel(self._token_was_cancelled)

    @property
    def index(self) -> int:
        """Position in the message, from 0."""
        return self.received.index

    @property
    def accepted(self) -> PreparedCall:
        """The call as prepared, in stages that no refused call reaches."""
        assert isinstance(self.prepared, PreparedCall)
        return self.prepared

    @property
    def safe(self) -> bool:
        """True if the call may run beside other safe calls."""
        return self.prepared.safe

    @property
    def alone(self) -> bool:
        """True if no other call of the message may run beside it."""
        tool = self.prepared.tool
        return tool is not None and tool.execution_mode == "sequential"

    @property
    def started(self) -> bool:
        """True if the tool was called."""
        return self.run.started_at is not None

    @property
    def has_turn(self) -> bool:
        """True if the call runs, ran, or is about to run."""
        return self.turn.holds_permit or self.started

    def accesses(self) -> Accesses | None:
        """Return the resolved paths of the call; None if they are unknown."""
        if isinstance(self.prepared, RefusedCall):
            return Accesses()
        declared = accesses_of(self.prepared.tool, self.prepared.arguments)
        if declared is None or not declared.keeps or self.run.resumed_from:
            return declared
        if self.turn.place is None:
            self.turn.place = self.turn.judge_place(self)
        # Outside of the trial nothing is known about what the call touches.
        return None if self.turn.place in ("outside", "nowhere") else declared

    @property
    def may_keep(self) -> bool:
        """True if the call may still keep changes of a trial."""
        if self.phase == "over" or self.admission.refusal is not None:
            return False
        accesses = self.accesses()
        proposes = self.run.execution is not None and self.run.execution.proposal is not None
        return proposes or (accesses is not None and bool(accesses.keeps))

    def targets(self) -> tuple[JudgedTarget, ...]:
        """Return the paths by which the call was judged; if the user was asked, with the identities shown."""
        decision = self.admission.decision
        if decision is None or decision.decision == "ask":
            return self.approval.shown
        return tuple(map(JudgedTarget, decision.targets))

    def stop(self, outcome: Outcome, reason: str = "") -> None:
        """Stop the call. Only the first reason counts, and none after the tool has ended.

        A waiting call ends at once, a running one as described at `ToolExecution.stop`.
        """
        if self.stopping is not None or self.phase in ("ran", "over"):
            return
        self.stopping = outcome
        self.token.cancel(reason or outcome.result.text)
        if self.run.execution is not None and self.phase != "settling":
            self.run.execution.stop(self.token.reason)
        elif self.stop_timeout is not None:
            self.stop_timeout.reschedule(asyncio.get_running_loop().time())

    def set_aside(self, outcome: Outcome) -> None:
        """End the call because its message was discarded; an early execution continues for a call that claims it."""
        early, execution = self.run.early, self.run.execution
        if early is not None and execution is not None and self.stopping is None:
            early.set_aside(execution)
            if self.stop_timeout is not None:
                self.stopping, self.run.execution = outcome, None
                self.stop_timeout.reschedule(asyncio.get_running_loop().time())
            return
        if early is not None and execution is not None:
            early.leave_unclaimed(execution)
        if self.phase not in ("ran", "over"):
            self.stop(outcome)

    def cancel(self, reason: str) -> None:
        """Stop the call at someone's request."""
        self.stop(cancelled(reason, started=self.started), reason)

    def end(self, finished: FinishedCall) -> None:
        """Record the end of the call."""
        self.phase, self.finished = "over", finished
        # Token and call refer to each other; apart, both are freed at once instead of by the garbage collector.
        forget, self._forget = self._forget, None
        if forget is not None:
            forget()

    async def unless_stopped(self, work: Awaitable[T]) -> T:
        """Return the result of `work`. All that a call awaits before and beside its tool goes through here.

        Raises:
            TimeoutError: the call was stopped first.
        """
        if self.stop_timeout is not None:
            return await work
        at_once = None if self.stopping is None else asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout_at(at_once) as self.stop_timeout:
                return await work
        finally:
            self.stop_timeout = None

    async def in_time(self, work: Awaitable[T]) -> T | None:
        """Return the result of `work` that follows the tool's end; None if the run is cancelled and the grace over."""
        run = self.token.parent or self.token
        try:
            return await run.within_grace(work, self.grace)
        except TimeoutError:
            if not run.is_set():
                raise
            return None

    def _token_was_cancelled(self) -> None:
        self.cancel(self.token.reason)


def accesses_of(tool: Tool, arguments: JsonObject) -> Accesses | None:
    """Return the paths that a tool declares for a call; None if it declares none or fails."""
    declared = try_call(tool.accesses, arguments)
    return None if isinstance(declared, Crash) else declared
