"""The bridge while a recording is taken: the same doors, and whatever goes through them to the screen is noted."""

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
from tui_agent.recording import Tape
from tui_agent.rewind.rewind_plan import Outcome, RewindPlan, RewindPoint, Scope

from . import bridge_doors as doors
from .bridge import Agent, AgentBridge, AgentEvents, LeftRunning, PastEvents
from .bridge_doors import Door, DoorNotes
from .coming_agent import ComingAgent
from .grant_offer import GrantFacts
from .input_tape import plain_input
from .rewind_rows import Rewinding

T = TypeVar("T")


def input_noter(tape: Tape) -> Callable[[Event], None]:
    """Notes what comes from the terminal."""

    def note(event: Event) -> None:
        data = plain_input(event)
        if data is not None:
            tape.note("input", data)

    return note


class RecordingBridge(AgentBridge):
    """Notes events as they are handed to the screen, and everything the screen is told when it asks."""

    def __init__(self, agent: Agent, bus: EventBus, tape: Tape) -> None:
        self._tape = tape
        self._notes = DoorNotes(tape)
        super().__init__(agent, bus)

    @classmethod
    def on_tape(cls, tape: Tape, mode: PermissionMode) -> "RecordingBridge":
        """A door to an agent that is not there yet, as `to_come`."""
        bridge = cls(ComingAgent(mode), EventBus(), tape)
        bridge._there.clear()
        return bridge

    def open(
        self,
        agent: Agent,
        bus: EventBus,
        past: Iterable[Envelope] = (),
        *,
        rewinding: Rewinding | None = None,
        grants: GrantFacts | None = None,
        left_running: LeftRunning | None = None,
    ) -> None:
        """The agent is there."""
        super().open(
            agent,
            bus,
            past,
            rewinding=RecordedRewinding(rewinding, self._tape) if rewinding is not None else None,
            grants=RecordedGrants(grants, self._tape) if grants is not None else None,
            left_running=left_running,
        )
        self._notes.read(doors.LEFT_RUNNING, left_running is not None)
        self._notes.read(doors.REWINDS, rewinding is not None)
        self._notes.read(doors.WAITED, tuple(sorted(self.waited)))

    @property
    def coming(self) -> bool:
        """Whether the agent is not there yet."""
        return self._notes.read(doors.COMING, super().coming)

    @property
    def running(self) -> bool:
        """Whether something goes on."""
        return self._notes.read(doors.RUNNING, super().running)

    @property
    def waiting(self) -> tuple[UserMessage, ...]:
        """Messages that wait."""
        return self._notes.read(doors.WAITING, super().waiting)

    @property
    def unsent(self) -> tuple[str, ...]:
        """What nothing has begun with yet."""
        return self._notes.read(doors.UNSENT, super().unsent)

    @property
    def mode(self) -> PermissionMode:
        """The permission mode in force."""
        return self._notes.read(doors.MODE, super().mode)

    def run_shell(self, command: str, said: str, *, shared: bool) -> bool:
        """Runs a shell command of the person's own."""
        return self._notes.answer(doors.RUN_SHELL, super().run_shell(command, said, shared=shared), said)

    def steer_child(self, name: str, text: str) -> bool:
        """Says something to a sub-agent."""
        return self._notes.answer(doors.STEER_CHILD, super().steer_child(name, text), name)

    def cancel_call(self, call_id: str, reason: str) -> bool:
        """Takes one call back."""
        return self._notes.answer(doors.CANCEL_CALL, super().cancel_call(call_id, reason), call_id)

    def take_back(self, message_id: str) -> str | None:
        """Takes a waiting message out of the queue."""
        return self._notes.answer(doors.TAKE_BACK, super().take_back(message_id), message_id)

    def take_all_back(self) -> str:
        """Takes back what waits for an agent that is not there yet."""
        return self._notes.answer(doors.TAKE_ALL_BACK, super().take_all_back())

    def compact(self, focus: str) -> bool:
        """Makes the conversation shorter."""
        return self._notes.answer(doors.COMPACT, super().compact(focus))

    def undo_compaction(self) -> str:
        """Takes the last shortening back."""
        return self._notes.answer(doors.UNDO, super().undo_compaction())

    def context_breakdown(self) -> ContextBreakdown | None:
        """What fills the model's window."""
        return self._notes.read(doors.CONTEXT, super().context_breakdown())

    def decide(self, request_id: str, decision: ApprovalDecision) -> bool:
        """Answers a question."""
        return self._notes.answer(doors.DECIDE, super().decide(request_id, decision), request_id)

    async def relay(self, post: Callable[[AgentEvents], object]) -> None:
        """Hands over everything that is told, and notes it at that moment."""

        def noting(message: AgentEvents) -> None:
            self._tape.events(message.events, past=isinstance(message, PastEvents))
            post(message)

        await super().relay(noting)


class RecordedGrants:
    """What is known of grants, noted; implements `GrantFacts`."""

    def __init__(self, facts: GrantFacts, tape: Tape) -> None:
        self._facts = facts
        self._notes = DoorNotes(tape)

    def file_of(self, scope: GrantScope) -> str | None:
        """The file that keeps rules of a scope."""
        return self._notes.read(doors.FILE_OF, self._facts.file_of(scope), scope)

    def answered(self, rule: str, but_call: str) -> Sequence[str]:
        """The calls that the rule would have let pass."""
        return self._notes.read(doors.ANSWERED, tuple(self._facts.answered(rule, but_call)), f"{but_call} {rule}")


class RecordedRewinding:
    """Who goes back, noted; implements `Rewinding`."""

    def __init__(self, rewinding: Rewinding, tape: Tape) -> None:
        self._rewinding = rewinding
        self._notes = DoorNotes(tape)

    async def points(self) -> Sequence[RewindPoint]:
        """The moments."""
        return await self._noted(doors.POINTS, self._points())

    async def plan(self, point: RewindPoint, /) -> RewindPlan:
        """What going back to a moment would do."""
        return await self._noted(doors.PLAN, self._rewinding.plan(point))

    async def plan_for_call(self, call_id: str, text: str, /) -> RewindPlan:
        """What taking back the changes of a call would do."""
        return await self._noted(doors.PLAN, self._rewinding.plan_for_call(call_id, text))

    async def carry_out(self, plan: RewindPlan, scope: Scope, overwritten: AbstractSet[Path], /) -> Outcome:
        """Does it."""
        return await self._noted(doors.CARRY_OUT, self._rewinding.carry_out(plan, scope, overwritten))

    async def _points(self) -> tuple[RewindPoint, ...]:
        return tuple(await self._rewinding.points())

    async def _noted(self, door: Door[T], work: Coroutine[object, object, T]) -> T:
        try:
            return self._notes.answer(door, await work)
        except TuiAgentError as error:
            self._notes.refused(door, error)
            raise
