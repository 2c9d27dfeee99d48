"""The bridge while a recording is taken: the same queries, and whatever goes through them to the screen is noted."""

from collections.abc import Callable, Coroutine, Iterable, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TypeVar

from textual.events import Event

from tui_agent.agent import ContextBreakdown
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.messages import UserMessage
from tui_agent.protocol.permissions import ApprovalDecision, GrantScope, PermissionMode
from tui_agent.recording import RecordingSink
from tui_agent.rewind.rewind_plan import RewindOutcome, RewindPlan, RewindPoint, Scope
from tui_agent.ui.approval.rule_offer import GrantFacts
from tui_agent.ui.dialogs.rewind_rows import RewindService

from . import queries as queries
from .agent_bridge import Agent, AgentBridge, AgentEvents, HistoryEvents, LeftoverCommands
from .input_events import encode_input
from .pending_agent import PendingAgent
from .queries import Query, QueryRecorder

T = TypeVar("T")


def input_noter(sink: RecordingSink) -> Callable[[Event], None]:
    """Notes what comes from the terminal."""

    def note(event: Event) -> None:
        data = encode_input(event)
        if data is not None:
            sink.note("input", data)

    return note


class RecordingBridge(AgentBridge):
    """Notes events as they are handed to the screen, and everything the screen is told when it asks."""

    def __init__(self, agent: Agent, bus: EventBus, sink: RecordingSink) -> None:
        self._sink = sink
        self._notes = QueryRecorder(sink)
        super().__init__(agent, bus)

    @classmethod
    def on_tape(cls, sink: RecordingSink, mode: PermissionMode) -> "RecordingBridge":
        """A door to an agent that is not there yet, as `for_pending_agent`."""
        bridge = cls(PendingAgent(mode), EventBus(), sink)
        bridge._agent_ready.clear()
        return bridge

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
        """The agent is there."""
        super().open(
            agent,
            bus,
            past,
            rewinding=RecordedRewindService(rewinding, self._sink) if rewinding is not None else None,
            grants=RecordedGrants(grants, self._sink) if grants is not None else None,
            left_running=left_running,
        )
        self._notes.read(queries.LEFT_RUNNING, left_running is not None)
        self._notes.read(queries.REWINDS, rewinding is not None)
        self._notes.read(queries.INITIAL_QUEUE, tuple(sorted(self.waited)))

    @property
    def agent_pending(self) -> bool:
        """Whether the agent is not there yet."""
        return self._notes.read(queries.COMING, super().agent_pending)

    @property
    def running(self) -> bool:
        """Whether something goes on."""
        return self._notes.read(queries.RUNNING, super().running)

    @property
    def waiting(self) -> tuple[UserMessage, ...]:
        """Messages that wait."""
        return self._notes.read(queries.WAITING, super().waiting)

    @property
    def unsent(self) -> tuple[str, ...]:
        """What nothing has begun with yet."""
        return self._notes.read(queries.UNSENT, super().unsent)

    @property
    def mode(self) -> PermissionMode:
        """The permission mode in force."""
        return self._notes.read(queries.MODE, super().mode)

    def run_shell(self, command: str, said: str, *, shared: bool) -> bool:
        """Runs a shell command of the person's own."""
        return self._notes.answer(queries.RUN_SHELL, super().run_shell(command, said, shared=shared), said)

    def steer_child(self, name: str, text: str) -> bool:
        """Says something to a sub-agent."""
        return self._notes.answer(queries.STEER_CHILD, super().steer_child(name, text), name)

    def cancel_call(self, call_id: str, reason: str) -> bool:
        """Takes one call back."""
        return self._notes.answer(queries.CANCEL_CALL, super().cancel_call(call_id, reason), call_id)

    def recall_message(self, message_id: str) -> str | None:
        """Takes a waiting message out of the queue."""
        return self._notes.answer(queries.RECALL_MESSAGE, super().recall_message(message_id), message_id)

    def recall_all_messages(self) -> str:
        """Takes back what waits for an agent that is not there yet."""
        return self._notes.answer(queries.RECALL_ALL_MESSAGES, super().recall_all_messages())

    def compact(self, focus: str) -> bool:
        """Makes the conversation shorter."""
        return self._notes.answer(queries.COMPACT, super().compact(focus))

    def undo_compaction(self) -> str:
        """Takes the last shortening back."""
        return self._notes.answer(queries.UNDO, super().undo_compaction())

    def context_breakdown(self) -> ContextBreakdown | None:
        """What fills the model's window."""
        return self._notes.read(queries.CONTEXT, super().context_breakdown())

    def decide(self, request_id: str, decision: ApprovalDecision) -> bool:
        """Answers a question."""
        return self._notes.answer(queries.DECIDE, super().decide(request_id, decision), request_id)

    async def relay(self, post: Callable[[AgentEvents], object]) -> None:
        """Hands over everything that is told, and notes it at that moment."""

        def noting(message: AgentEvents) -> None:
            self._sink.events(message.events, past=isinstance(message, HistoryEvents))
            post(message)

        await super().relay(noting)


class RecordedGrants:
    """What is known of grants, noted; implements `GrantFacts`."""

    def __init__(self, facts: GrantFacts, sink: RecordingSink) -> None:
        self._facts = facts
        self._notes = QueryRecorder(sink)

    def file_of(self, scope: GrantScope) -> str | None:
        """The file that keeps rules of a scope."""
        return self._notes.read(queries.FILE_OF, self._facts.file_of(scope), scope)

    def answered(self, rule: str, but_call: str) -> Sequence[str]:
        """The calls that the rule would have let pass."""
        return self._notes.read(queries.ANSWERED, tuple(self._facts.answered(rule, but_call)), f"{but_call} {rule}")


class RecordedRewindService:
    """Who goes back, noted; implements `RewindService`."""

    def __init__(self, rewinding: RewindService, sink: RecordingSink) -> None:
        self._rewinding = rewinding
        self._notes = QueryRecorder(sink)

    async def points(self) -> Sequence[RewindPoint]:
        """The moments."""
        return await self._record_answer(queries.POINTS, self._points())

    async def plan(self, point: RewindPoint, /) -> RewindPlan:
        """What going back to a moment would do."""
        return await self._record_answer(queries.PLAN, self._rewinding.plan(point))

    async def plan_for_call(self, call_id: str, text: str, /) -> RewindPlan:
        """What taking back the changes of a call would do."""
        return await self._record_answer(queries.PLAN, self._rewinding.plan_for_call(call_id, text))

    async def carry_out(self, plan: RewindPlan, scope: Scope, overwritten: AbstractSet[Path], /) -> RewindOutcome:
        """Does it."""
        return await self._record_answer(queries.CARRY_OUT, self._rewinding.carry_out(plan, scope, overwritten))

    async def _points(self) -> tuple[RewindPoint, ...]:
        return tuple(await self._rewinding.points())

    async def _record_answer(self, door: Query[T], work: Coroutine[object, object, T]) -> T:
        try:
            return self._notes.answer(door, await work)
        except TuiAgentError as error:
            self._notes.refused(door, error)
            raise
