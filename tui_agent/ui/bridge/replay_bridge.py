"""The bridge of a replay: nobody works behind it. What the screen asks is answered as it was when it was recorded."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

from tui_agent.agent import ContextBreakdown
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.messages import UserKind, UserMessage
from tui_agent.protocol.permissions import ApprovalDecision, GrantScope, PermissionMode
from tui_agent.rewind.rewind_plan import RewindOutcome, RewindPlan, RewindPoint, Scope
from tui_agent.ui.approval.rule_offer import GrantFacts
from tui_agent.ui.dialogs.rewind_rows import RewindService

from . import queries as queries
from .agent_bridge import Agent, AgentBridge, AgentEvents, HistoryEvents, LeftoverCommands
from .queries import RecordedAnswers


class ReplayBridge(AgentBridge):
    """Every door of a bridge without an agent: what asks for work does nothing, since its events are recorded."""

    def __init__(self, answers: RecordedAnswers) -> None:
        self._answers = answers
        self._post: Callable[[AgentEvents], object] | None = None
        self.rewinding = ReplayedRewindService(answers) if answers.last(queries.REWINDS) else None
        self.grants = ReplayedGrants(answers)
        self.left_running = ReplayedLeftRunning() if answers.last(queries.LEFT_RUNNING) else None
        # Before anything is played, what was known when the agent came.
        self.waited = frozenset(answers.last(queries.INITIAL_QUEUE))

    async def show(self, events: Sequence[Envelope], *, past: bool) -> None:
        """Hands events to the screen and waits until it shows them; `past`: those of an earlier life of the session."""
        if self._post is not None:
            message = HistoryEvents(events) if past else AgentEvents(events)
            self._post(message)
            await message.applied.wait()

    def open(
        self,
        agent: Agent,
        bus: EventBus,
        past: Iterable[Envelope] = (),
        *,
        rewinding: RewindService | None = None,
        grants: GrantFacts | None = None,
        left_running: LeftoverCommands | None = None,
    ) -> None:
        """No agent comes."""

    @property
    def agent_pending(self) -> bool:
        """Whether the agent was not there yet."""
        return self._answers.read(queries.COMING)

    @property
    def running(self) -> bool:
        """Whether something went on."""
        return self._answers.read(queries.RUNNING)

    @property
    def waiting(self) -> tuple[UserMessage, ...]:
        """Messages that waited."""
        return self._answers.read(queries.WAITING)

    @property
    def unsent(self) -> tuple[str, ...]:
        """What nothing had begun with yet."""
        return self._answers.read(queries.UNSENT)

    @property
    def mode(self) -> PermissionMode:
        """The permission mode."""
        return self._answers.read(queries.MODE)

    def run_shell(self, command: str, said: str, *, shared: bool) -> bool:
        """Whether the command could run."""
        return self._answers.answer(queries.RUN_SHELL, said)

    def steer_child(self, name: str, text: str) -> bool:
        """Whether there was such a sub-agent."""
        return self._answers.answer(queries.STEER_CHILD, name)

    def cancel_call(self, call_id: str, reason: str) -> bool:
        """Whether the call went on."""
        return self._answers.answer(queries.CANCEL_CALL, call_id)

    def recall_message(self, message_id: str) -> str | None:
        """The text of a message that waited."""
        return self._answers.answer(queries.RECALL_MESSAGE, message_id)

    def recall_all_messages(self) -> str:
        """Takes back what waited for an agent that was not there yet."""
        return self._answers.answer(queries.RECALL_ALL_MESSAGES)

    def compact(self, focus: str) -> bool:
        """Whether the conversation could be made shorter."""
        return self._answers.answer(queries.COMPACT)

    def undo_compaction(self) -> str:
        """Why the shortening could not be taken back."""
        return self._answers.answer(queries.UNDO)

    def context_breakdown(self) -> ContextBreakdown | None:
        """What filled the window."""
        return self._answers.read(queries.CONTEXT)

    def decide(self, request_id: str, decision: ApprovalDecision) -> bool:
        """Whether the question was open."""
        return self._answers.answer(queries.DECIDE, request_id)

    def cycle_mode(self) -> PermissionMode:
        """The mode; the next one is told by an event."""
        return self.mode

    def submit(self, text: str) -> None:
        """Nothing."""

    def follow_up(self, text: str) -> None:
        """Nothing."""

    def keep(self, kind: UserKind, text: str) -> None:
        """Nothing."""

    def rename(self, title: str) -> None:
        """Nothing."""

    def send_now(self) -> None:
        """Nothing."""

    def stop(self) -> None:
        """Nothing."""

    def cancel(self) -> None:
        """Nothing."""

    def leave(self) -> None:
        """Nothing."""

    def set_mode(self, mode: PermissionMode) -> None:
        """Nothing."""

    async def serve(self) -> None:
        """Nothing is asked for that would have to be done."""

    async def warm_up(self) -> None:
        """There is no model."""

    def report_crash(self, error: BaseException) -> None:
        """A worker of the replay failed: the screen has a fault of its own.

        Raises:
            BaseException: that one.
        """
        raise error

    async def relay(self, post: Callable[[AgentEvents], object]) -> None:
        """Lets `show` hand events over."""
        self._post = post
        await asyncio.Event().wait()


class ReplayedLeftRunning:
    """Does nothing, because the events are recorded; implements `LeftoverCommands`."""

    async def report(self) -> None:
        """Nothing."""

    async def end(self, pid: int | None) -> None:
        """Nothing."""


class ReplayedGrants:
    """What was known of grants; implements `GrantFacts`."""

    def __init__(self, answers: RecordedAnswers) -> None:
        self._answers = answers

    def file_of(self, scope: GrantScope) -> str | None:
        """The file that kept rules of a scope."""
        return self._answers.read(queries.FILE_OF, scope)

    def answered(self, rule: str, but_call: str) -> Sequence[str]:
        """The calls that the rule would have let pass."""
        return self._answers.read(queries.ANSWERED, f"{but_call} {rule}")


class ReplayedRewindService:
    """Who went back; implements `RewindService`."""

    def __init__(self, answers: RecordedAnswers) -> None:
        self._answers = answers

    async def points(self) -> Sequence[RewindPoint]:
        """The moments there were."""
        return self._answers.answer(queries.POINTS)

    async def plan(self, point: RewindPoint, /) -> RewindPlan:
        """What going back to one would have done."""
        return self._answers.answer(queries.PLAN)

    async def plan_for_call(self, call_id: str, text: str, /) -> RewindPlan:
        """What taking back the changes of a call would have done."""
        return self._answers.answer(queries.PLAN)

    async def carry_out(self, plan: RewindPlan, scope: Scope, overwritten: AbstractSet[Path], /) -> RewindOutcome:
        """What became of it; nothing is done."""
        return self._answers.answer(queries.CARRY_OUT)
