"""The one door between the screen and the engine: words go in through methods, events come out as one message.

Nothing typed is ever lost: text that cannot be sent at once waits with the agent, where the screen shows it.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol

from textual.message import Message

from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.cancellation import PROGRAM_QUIT
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.errors import AlreadyRunningError, TuiAgentError
from tui_agent.protocol.events import Failed, SessionRenamed, Warned
from tui_agent.protocol.messages import JsonObject, UserKind, UserMessage
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest, PermissionMode
from tui_agent.protocol.provider import ModelProvider
from tui_agent.ui.approval.rule_offer import GrantFacts

from .pending_agent import PendingAgent
from .superseded_events import drop_superseded

if TYPE_CHECKING:
    # They bring the whole agent and its tools along, which the first screen does not wait for.
    from tui_agent.agent import ContextBreakdown
    from tui_agent.ui.dialogs.rewind_rows import RewindService

DELTA_INTERVAL = 1 / 30
"""Seconds between two looks at streaming text and output; everything else is shown at once."""

CYCLED_MODES = (PermissionMode.ASK, PermissionMode.ACCEPT_EDITS, PermissionMode.PLAN)
"""The modes one key steps through; the others are only set by name."""


@dataclass
class AgentEvents(Message):
    """Events since the last look; the only message that carries engine data."""

    events: Sequence[Envelope]
    applied: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by the screen once it shows them; until then the next events gather and are merged."""


@dataclass
class HistoryEvents(AgentEvents):
    """Events of an earlier life of the session, in order; they are shown together with the first `AgentEvents`."""


class ModeSource(Protocol):
    """Who knows the permission mode in force."""

    @property
    def mode(self) -> PermissionMode:
        """The mode."""
        ...


class Agent(Protocol):
    """What the bridge asks of an agent loop."""

    @property
    def running(self) -> bool:
        """Whether a run goes on."""
        ...

    @property
    def waiting_messages(self) -> Sequence[UserMessage]:
        """Messages that wait for delivery, in order."""
        ...

    @property
    def pending_calls(self) -> Sequence[ApprovalRequest]:
        """Calls that wait for a person, here or since the program ended."""
        ...

    @property
    def provider(self) -> ModelProvider:
        """The model it asks."""
        ...

    @property
    def policy(self) -> ModeSource:
        """What judges its calls."""
        ...

    async def run(self, user_input: str | None, /) -> object:
        """Handles one input to its end; None: what waits, or going on."""
        ...

    async def run_command(self, tool: str, arguments: JsonObject, said: str, *, shared: bool) -> object:
        """Calls a tool for the person."""
        ...

    async def compact(self, focus: str) -> bool:
        """Makes the conversation shorter now."""
        ...

    def undo_compaction(self) -> None:
        """Takes the last shortening back."""
        ...

    def context_breakdown(self) -> "ContextBreakdown":
        """What fills the model's window."""
        ...

    def steer(self, text: str, /) -> UserMessage:
        """Queues a message for the next boundary."""
        ...

    def follow_up(self, text: str, /) -> UserMessage:
        """Queues a message for a turn of its own."""
        ...

    def drop_message(self, message_id: str, /) -> UserMessage | None:
        """Takes a waiting message back."""
        ...

    def steer_child(self, name: str, text: str, /) -> UserMessage | None:
        """Steers a sub-agent; None: there is none of that name."""
        ...

    def cancel_call(self, call_id: str, reason: str, /) -> bool:
        """Takes one call back; False: it is over."""
        ...

    def stop(self) -> None:
        """Ends the run after this step."""
        ...

    def abort(self, reason: str, /) -> None:
        """Ends the run now."""
        ...

    def set_mode(self, mode: PermissionMode, by: str) -> None:
        """Changes the permission mode."""
        ...

    def resolve_approval(self, request_id: str, decision: ApprovalDecision, /) -> bool:
        """Answers a waiting question."""
        ...


class LeftoverCommands(Protocol):
    """Commands that still run because tui-agent was killed. Its answers are events."""

    async def report(self) -> None:
        """Publish which commands still run."""
        ...

    async def end(self, pid: int | None) -> None:
        """End the command that has a process with this id; None: all of them."""
        ...


class AgentBridge:
    """Everything the screen may ask of the agent. All methods return at once; what comes of them are events."""

    def __init__(
        self,
        agent: Agent,
        bus: EventBus,
        past: Iterable[Envelope] = (),
        *,
        rewinding: "RewindService | None" = None,
        grants: GrantFacts | None = None,
        left_running: LeftoverCommands | None = None,
    ) -> None:
        """Opens the door to an agent; of one that comes later, `for_pending_agent` does.

        Args:
            agent: the agent.
            bus: where it tells its events.
            past: events of an earlier life of the session, shown first. To be taken once: a long past takes a lot of
                memory.
            rewinding: goes back to earlier moments; not given: nothing is kept to go back to.
            grants: where rules that a person gives are kept; not given: for the session only.
            left_running: commands that an earlier tui-agent left running; not given: there are none.
        """
        self._work: deque[Callable[[], Awaitable[object]]] = deque()
        self._unsent: deque[str] = deque()
        self._queued_while_pending: list[tuple[UserKind, str]] = []
        self._arrived = asyncio.Event()
        self._agent_ready = asyncio.Event()
        self._then: list[Callable[[], object]] = []
        self.open(agent, bus, past, rewinding=rewinding, grants=grants, left_running=left_running)
        self._send_when_over = False
        self._compaction: asyncio.Task[object] | None = None

    @classmethod
    def for_pending_agent(cls, mode: PermissionMode) -> "AgentBridge":
        """A door to an agent that is not there yet: what is typed waits for it.

        Args:
            mode: the permission mode it will begin with.
        """
        bridge = cls(PendingAgent(mode), EventBus())
        bridge._agent_ready.clear()
        return bridge

    def open(
        self,
        agent: Agent,
        bus: EventBus,
        past: Iterable[Envelope] = (),
        *,
        rewinding: "RewindService | None" = None,
        grants: GrantFacts | None = None,
        left_running: LeftoverCommands | None = None,
    ) -> None:
        """The agent is there, with everything its door is made of: what was asked of it meanwhile is done now."""
        self._agent = agent
        self._bus = bus
        self._past = list(past)
        self.rewinding = rewinding
        """Goes back to earlier moments; None: nothing is kept to go back to."""
        self.grants = grants
        """Where rules that a person gives are kept; None: for the session only."""
        self.left_running = left_running
        """Commands that an earlier tui-agent left running; None: there are none."""
        self.waited = frozenset(message.id for message in agent.waiting_messages)
        """Ids of the messages the agent knew of when it came."""
        self._agent_ready.set()
        for do in self._then:
            do()
        self._then.clear()
        for kind, text in self._queued_while_pending:
            self.keep(kind, text)
        self._queued_while_pending.clear()

    # --- what is going on ---------------------------------------------------------------------------------------------

    @property
    def agent_pending(self) -> bool:
        """Whether the agent is not there yet."""
        return not self._agent_ready.is_set()

    @property
    def running(self) -> bool:
        """Whether something goes on or is about to: a run, a command, the shortening of the conversation."""
        return self._agent.running or self._compaction is not None or bool(self._work)

    @property
    def waiting(self) -> tuple[UserMessage, ...]:
        """Messages that wait for delivery, in order."""
        return tuple(self._agent.waiting_messages)

    @property
    def unsent(self) -> tuple[str, ...]:
        """Prompts and commands that nothing has begun with yet, in order."""
        return (*self._unsent, *(text for _, text in self._queued_while_pending))

    @property
    def mode(self) -> PermissionMode:
        """The permission mode in force."""
        return self._agent.policy.mode

    # --- words --------------------------------------------------------------------------------------------------------

    def submit(self, text: str) -> None:
        """Starts a run with `text`; while one goes on, steers it."""
        if self._agent.running:
            self._agent.steer(text)
        else:
            self._prompt("steer", text)

    def follow_up(self, text: str) -> None:
        """Gives `text` a turn of its own once the agent is done; at once when it is."""
        if self._agent.running:
            self._agent.follow_up(text)
        else:
            self._prompt("follow_up", text)

    def run_shell(self, command: str, said: str, *, shared: bool) -> bool:
        """Runs a shell command of the person's own; False, and nothing is done, while the agent works.

        Args:
            command: what bash is given.
            said: as it was typed, marks included.
            shared: whether the model reads what it gives.
        """
        if self.running:
            return False
        self._unsent.append(said)
        self._enqueue(partial(self._run_command, command, said, shared=shared))
        return True

    def steer_child(self, name: str, text: str) -> bool:
        """Says something to the sub-agent of that name; False where none is at work."""
        return self._agent.steer_child(name, text) is not None

    def cancel_call(self, call_id: str, reason: str) -> bool:
        """Takes one call back while the run goes on; the model is told why. False where the call is over."""
        return self._agent.cancel_call(call_id, reason)

    def keep(self, kind: UserKind, text: str) -> None:
        """Queues a message without starting a run: one that waited in an earlier life of the session."""
        if kind == "follow_up":
            self._agent.follow_up(text)
        else:
            self._agent.steer(text)

    def recall_message(self, message_id: str) -> str | None:
        """Takes a waiting message out of the queue and returns its text; None where it was delivered already."""
        message = self._agent.drop_message(message_id)
        return message.text if message is not None else None

    def recall_all_messages(self) -> str:
        """Takes back what waits for an agent that is not there yet, and returns what was said of it."""
        said = "\n\n".join(self.unsent)
        self._unsent.clear()
        self._queued_while_pending.clear()
        self._work.clear()
        return said

    def compact(self, focus: str) -> bool:
        """Makes the conversation shorter, by the model's own words; False, and nothing is done, while the agent works.

        Args:
            focus: what the summary should not lose.
        """
        if self.running:
            return False
        self._enqueue(partial(self._compact, focus))
        return True

    def undo_compaction(self) -> str:
        """Takes the last shortening of the conversation back; gives why that cannot be, or nothing."""
        try:
            self._agent.undo_compaction()
        except TuiAgentError as error:
            return str(error)
        return ""

    def context_breakdown(self) -> "ContextBreakdown | None":
        """What fills the model's window, part by part; None as long as the agent is not there."""
        return None if self.agent_pending else self._agent.context_breakdown()

    def rename(self, title: str) -> None:
        """Gives the session a name, on one line."""
        if self.agent_pending:
            self._then.append(partial(self.rename, title))
            return
        self._bus.publish(SessionRenamed(id=self._bus.origin.session_id, title=" ".join(title.split())))

    def send_now(self) -> None:
        """Delivers what waits without waiting for what runs: that is cancelled first, its partial output kept."""
        if self.agent_pending:
            self._then.append(self.send_now)
        elif self._agent.running:
            self._send_when_over = True
            self._agent.abort("a person sent a message now")
        else:
            self._run_waiting()

    # --- the brakes ---------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Ends the run after this step."""
        self._agent.stop()

    def cancel(self) -> None:
        """Ends the run now; the conversation stays whole, and what waits keeps waiting."""
        self._send_when_over = False
        if self._agent.running:
            self._agent.abort("cancelled by a person")
        elif self._compaction is not None:
            self._compaction.cancel()

    def leave(self) -> None:
        """Ends the run now because the program ends; a call that waits for a person waits again when it goes on."""
        self._agent.abort(PROGRAM_QUIT)

    # --- permissions --------------------------------------------------------------------------------------------------

    def decide(self, request_id: str, decision: ApprovalDecision) -> bool:
        """Answers the question with this id; False where it is no longer open."""
        return self._agent.resolve_approval(request_id, decision)

    def set_mode(self, mode: PermissionMode) -> None:
        """Sets the permission mode, also for questions that wait; says so where the agent cannot keep to it."""
        if self.agent_pending:
            self._then.append(partial(self.set_mode, mode))
        try:
            self._agent.set_mode(mode, "user")
        except TuiAgentError as error:
            self._bus.publish(Warned(code="mode_refused", text=str(error)))

    def cycle_mode(self) -> PermissionMode:
        """Steps to the next of `CYCLED_MODES`; from any other mode back to the first."""
        place = CYCLED_MODES.index(self.mode) + 1 if self.mode in CYCLED_MODES else 0
        mode = CYCLED_MODES[place % len(CYCLED_MODES)]
        self.set_mode(mode)
        return mode

    # --- workers ------------------------------------------------------------------------------------------------------

    async def serve(self) -> None:
        """Runs prompts one after another, for ever; a run that fails is told and the next one is served.

        Calls that waited for a person when the program ended come first.
        """
        await self._agent_ready.wait()
        if self._agent.pending_calls:
            self._work.appendleft(partial(self._run, None))
        while True:
            while not self._work:
                self._arrived.clear()
                await self._arrived.wait()
            async with asyncio.TaskGroup() as group:
                group.create_task(self._run_work(self._work.popleft()))
            if self._send_when_over:
                self._send_when_over = False
                self._run_waiting()

    async def relay(self, post: Callable[[AgentEvents], object]) -> None:
        """Hands over everything that is told, a batch at a time, until the bus closes: the past first, once.

        Args:
            post: takes one batch; the next one comes when its `applied` is set.
        """
        await self._agent_ready.wait()
        with self._bus.subscribe(since=0) as subscription:
            if await self._relay_history(post):
                await _hand_over(post, AgentEvents(subscription.drain()))
            async for batch in subscription.batches(pace=DELTA_INTERVAL):
                for part in _parts(batch, _MAX_BATCH):
                    await _hand_over(post, AgentEvents(part))

    async def warm_up(self) -> None:
        """Loads and connects what the model needs, so that the first prompt does not wait for it."""
        await self._agent_ready.wait()
        try:
            await self._agent.provider.prepare()
        except TuiAgentError as error:
            self._bus.publish(Warned(code="provider_not_ready", text=str(error)))

    def report_crash(self, error: BaseException) -> None:
        """Tells that a part of the program failed in a way nobody expected; the conversation goes on."""
        text = f"internal error: {type(error).__name__}: {error}. The conversation was kept; send your message again."
        self._bus.publish(Failed(code="internal_error", text=text))

    # --- inside -------------------------------------------------------------------------------------------------------

    async def _relay_history(self, post: Callable[[AgentEvents], object]) -> bool:
        """Hands over what was told in earlier lives of the session; False where there was none."""
        past, self._past = self._past, []
        events = await asyncio.to_thread(drop_superseded, past)
        past.clear()
        for part in _parts(events, _MAX_HISTORY_BATCH):
            await _hand_over(post, HistoryEvents(part))
        return bool(events)

    def _prompt(self, kind: UserKind, text: str) -> None:
        """A run with this text; behind one that waits for an agent to come, it is what it would be while that runs."""
        if self.agent_pending and self._unsent:
            self._queued_while_pending.append((kind, text))
            return
        self._unsent.append(text)
        self._enqueue(partial(self._run, text))

    def _enqueue(self, work: Callable[[], Awaitable[object]]) -> None:
        self._work.append(work)
        self._arrived.set()

    async def _run_work(self, work: Callable[[], Awaitable[object]]) -> None:
        """One run. In a task of its own: a cancelled run ends with it and not with who serves."""
        try:
            await work()
        except TuiAgentError as error:
            self._bus.publish(Failed(code="run_failed", text=str(error)))

    async def _run(self, prompt: str | None) -> None:
        if prompt is not None:
            self._unsent.popleft()
        try:
            await self._agent.run(prompt)
        except AlreadyRunningError:
            if prompt is not None:
                self._agent.steer(prompt)

    async def _run_command(self, command: str, said: str, *, shared: bool) -> None:
        """A command; what was said while it ran is sent behind it, unless it was cancelled."""
        self._unsent.popleft()
        self._send_when_over = True
        await self._agent.run_command("bash", {"command": command}, said, shared=shared)

    async def _compact(self, focus: str) -> None:
        self._compaction = asyncio.current_task()
        try:
            await self._agent.compact(focus)
        finally:
            self._compaction = None

    def _run_waiting(self) -> None:
        """Starts a run with what waits: the agent takes it up by itself where it is given nothing else."""
        if self._agent.waiting_messages:
            self._enqueue(partial(self._run, None))


_MAX_BATCH = 1_500
"""Events handed over at once: few enough that keys are answered in between."""
_MAX_HISTORY_BATCH = 500
"""The same while the past comes, which takes a while."""


def _parts(events: Sequence[Envelope], most: int) -> Iterator[Sequence[Envelope]]:
    return (events[start : start + most] for start in range(0, len(events), most))


async def _hand_over(post: Callable[[AgentEvents], object], message: AgentEvents) -> None:
    """Hands events over and waits until they are shown."""
    post(message)
    await message.applied.wait()
