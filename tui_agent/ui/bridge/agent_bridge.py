"""The only connection between the screen and the engine: queues what is typed, relays events, publishes the status.

Pages and actions ask the open session itself: `AgentBridge.bench`.
"""

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from textual.message import Message

from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.events import Failed, SessionRenamed, Warned
from tui_agent.protocol.messages import unbuilt_models
from tui_agent.protocol.permissions import ApprovalDecision, PermissionMode
from tui_agent.protocol.prompt_references import PromptCommand

from .prompt_queue import MessageEdits, PromptAttachments, PromptQueue

if TYPE_CHECKING:
    # The first screen must not wait until the engine is loaded.
    from tui_agent.workbench.sessions.prompt_store import PromptStore
    from tui_agent.workbench.workbench import AgentLoop, Workbench

NOT_READY = "The session is still being read; try again in a moment."
NOT_HERE = "This program does not have this command."
DELTA_INTERVAL = 1 / 15
"""Seconds between two batches of streaming text and output, as between two flushes of the conversation; all other
events are relayed at once."""

_MAX_BATCH = 1_500
"""Events handed over at once: few enough that the screen answers keys in between."""
_MAX_HISTORY_BATCH = 500
"""The same for the past, whose events take longer."""

Post = Callable[[Message], object]


_TOOL_OF = {"composer.shell": "bash", "composer.own_shell": "bash", "chat.init": "write"}
"""Commands that do nothing without a tool, which the agent of another program may lack."""


@dataclass(frozen=True, slots=True)
class AgentStatus:
    """The agent's state as far as the screen reads it but no event reports it. Not part of the journal."""

    pending: bool = False
    """True until the agent is there: a session that is resumed is still being read."""
    running: bool = False
    """True while a run, a command or a compaction runs or is about to."""
    mode: PermissionMode = PermissionMode.ASK
    unsent: tuple[str, ...] = ()
    """Prompts and commands that have not started, in order."""
    restored_messages: tuple[str, ...] = ()
    """Ids of the queued messages that the agent restored with the session."""
    commands: tuple[PromptCommand, ...] = ()
    """The `/` commands of the user's and the project's files, skills included."""


@dataclass
class StatusPublished(Message):
    """The agent's status changed; `AgentBridge.status` is the new one."""


@dataclass
class AgentEvents(Message):
    """A batch of events; the only message that carries engine data."""

    events: Sequence[Envelope]
    applied: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by the screen once it shows the events. Until then, the bridge collects and merges the next ones."""


@dataclass
class HistoryEvents(AgentEvents):
    """Events of a resumed session, in order; the screen shows them together with the first `AgentEvents`."""


class AgentBridge(PromptQueue):
    """The agent as the screen sees it. Except for the workers, all methods return at once; their effects are events.

    The screen reads the agent's state from `status`, and receives `StatusPublished` whenever it changes.
    """

    _post: Post | None = None
    shares_rules = True
    """True if one stored rule applies to all requests on the screen: they belong to one session."""

    def __init__(
        self,
        agent: "AgentLoop | None" = None,
        bus: EventBus | None = None,
        *,
        mode: PermissionMode = PermissionMode.ASK,
        prompts: "PromptStore | None" = None,
    ) -> None:
        """Create a bridge. Until `open`, it queues what the user types.

        Args:
            agent: an agent that another program made; None: `open` follows with a session.
            mode: the permission mode that the screen shows until `open`.
            prompts: keeps prompts and drafts, from the first key on; None: they are not kept.
        """
        super().__init__(bus)
        self.prompts = prompts
        """Keeps prompts and drafts; None: they are not kept."""
        self.messages = MessageEdits(self.attachments)
        """Changes to queued messages."""
        self._past: Iterator[Envelope] = iter(())
        self._mode: PermissionMode = mode
        self._restored: tuple[str, ...] = ()
        self._deferred: list[Callable[[], object]] = []
        self.warm = asyncio.Event()
        """Set once everything that the model needs is loaded, or has failed to load."""
        self.status = self._current_status()
        """The status as published last."""
        if agent is not None:
            self._connect(agent, self._bus)

    def open(self, bench: "Workbench") -> None:
        """Connect an open session, call once. What the user asked for before is carried out now, in order."""
        self.bench = bench
        self.attachments = PromptAttachments(bench.attachments)
        self._connect(bench.agent, bench.events, bench.past)

    def _connect(self, agent: "AgentLoop", bus: EventBus, past: Iterable[Envelope] = ()) -> None:
        """Connect an agent; its past is iterated once and in pieces, because a long one takes much memory."""
        self.agent, self._bus, self._past = agent, bus, iter(past)
        self.messages = MessageEdits(self.attachments, agent)
        # Sorted, so that equal statuses compare equal.
        self._restored = tuple(sorted(message.id for message in agent.waiting_messages))
        self._opened.set()
        # A mode that was chosen early holds for the first prompt.
        deferred, self._deferred = self._deferred, []
        for do in deferred:
            do()
        self._queue_waiting()
        self.publish_status()

    async def opened(self) -> None:
        """Wait until a session is connected; return at once if one is."""
        await self._opened.wait()

    @property
    def session_id(self) -> str:
        """Id of the session; empty while it is still being read."""
        return self._bus.origin.session_id if self.agent is not None else ""

    @property
    def is_saved(self) -> bool:
        """True if the session is stored, so that it can be resumed, copied and rewound."""
        return self.bench is not None and self.bench.rewind is not None

    def has_file(self, name: str) -> bool:
        """Return True if a path, taken from the workspace, exists and stays inside; False before the agent is loaded.

        Links are not resolved: a link in the workspace counts, wherever it leads, unless its target is missing.
        """
        if self.agent is None or (workspace := self.agent.config.workspace) is None:
            return False
        path = Path(os.path.normpath(Path(workspace, name)))
        return path.is_relative_to(os.path.normpath(workspace)) and path.exists()

    # --- status -------------------------------------------------------------------------------------------------------

    def show_status(self, status: AgentStatus) -> None:
        """Publish a status if it differs from the last one."""
        if status != self.status:
            self.status = status
            if self._post is not None:
                self._post(StatusPublished())

    def publish_status(self) -> None:
        """Publish the present status if it has changed."""
        self.show_status(self._current_status())

    def _current_status(self) -> AgentStatus:
        return AgentStatus(
            pending=self.agent is None,
            running=self.is_busy,
            mode=self._mode if self.agent is None else self.agent.policy.mode,
            unsent=self.unsent,
            restored_messages=self._restored,
            commands=() if self.bench is None else self.bench.slash_commands,
        )

    def refusal(self, action: str) -> str:
        """Return why something is impossible in this session, in words for the user; empty if it is possible.

        Args:
            action: the id of a command, or `send`, `shell`, `target` (a message to one call or sub-agent), `queue` (a
                change to a queued message), `call` (cancelling or extending one call).
        """
        if action == "shell" and self.lacks_tool_of("composer.shell"):
            return "Nothing was done: the agent of this program has no tool `bash`."
        return ""

    def lacks_tool_of(self, command: str) -> bool:
        """Return True if the agent of another program has no tool that a command needs; False in our sessions."""
        tool = _TOOL_OF.get(command)
        if tool is None or self.agent is None or self.bench is not None:
            return False
        return all(one.name != tool for one in self.agent.tools)

    @property
    def open_bench(self) -> "Workbench":
        """The open session.

        Raises:
            TuiAgentError: there is none.
        """
        if self.bench is None:
            raise TuiAgentError(NOT_READY if self.status.pending else NOT_HERE)
        return self.bench

    def report_crash(self, error: BaseException) -> None:
        """Publish that a worker failed unexpectedly; the conversation continues."""
        text = f"internal error: {type(error).__name__}: {error}. The conversation was kept; send your message again."
        self._bus.publish(Failed(code="internal_error", text=text))

    # --- requests that wait for the agent -----------------------------------------------------------------------------

    def set_mode(self, mode: PermissionMode) -> None:
        """Set the permission mode, also for open approval requests; before `open`, that of the next session.

        If the agent refuses the mode, it stays as it is and a warning is published.
        """
        if self.agent is None:
            self._mode = mode
            self._deferred.append(partial(self.set_mode, mode))
        else:
            try:
                self.agent.set_mode(mode, "user")
            except TuiAgentError as error:
                self._bus.publish(Warned(code="mode_refused", text=str(error)))
        self.publish_status()

    def rename(self, title: str) -> None:
        """Publish a new title of the session, on one line; before `open`, as soon as a session is connected."""
        if self.agent is None:
            self._deferred.append(partial(self.rename, title))
        else:
            self._bus.publish(SessionRenamed(id=self._bus.origin.session_id, title=" ".join(title.split())))

    def send_now(self) -> None:
        """Deliver queued messages now, or as soon as the agent is there."""
        if self.agent is None:
            self._deferred.append(self.send_now)
        else:
            super().send_now()

    def decide(self, request_id: str, decision: ApprovalDecision) -> bool:
        """Answer an approval request; False, and nothing changes, if it is unknown, answered or withdrawn."""
        return self.agent is not None and self.agent.resolve_approval(request_id, decision)

    # --- workers ------------------------------------------------------------------------------------------------------

    async def relay(self, post: Post) -> None:
        """Post the status, then the past of a resumed session once, then new events, until the bus closes.

        Each batch waits until the screen has shown the one before.

        Args:
            post: posts a message to the screen; must not block.
        """
        self._post = post
        # What was published before the screen listened is lost.
        post(StatusPublished())
        await self._opened.wait()
        with self._bus.subscribe(since=0) as subscription:
            # The screen shows the past together with the first events of the present.
            if await self._relay_past():
                await self.hand_over(AgentEvents(subscription.drain()))
            async for batch in subscription.batches(pace=DELTA_INTERVAL):
                for start in range(0, len(batch), _MAX_BATCH):
                    await self.hand_over(AgentEvents(batch[start : start + _MAX_BATCH]))

    async def _relay_past(self) -> bool:
        """Hand over the events of a resumed session; False if it has none."""
        past, self._past = self._past, iter(())
        count, part = 0, None
        while part is None or len(part) == _MAX_HISTORY_BATCH:
            # A journal is parsed as it is iterated: in a thread, and only a piece at a time.
            part = await asyncio.to_thread(lambda: list(islice(past, _MAX_HISTORY_BATCH)))
            if part:
                await self.hand_over(HistoryEvents(part))
            count += len(part)
        return count > 0

    async def hand_over(self, message: AgentEvents) -> None:
        """Post a batch of events and wait until the screen has applied it; does nothing before `relay` runs."""
        if self._post is not None:
            self.publish_status()
            self._post(message)
            await message.applied.wait()
            self.publish_status()

    async def warm_up(self) -> None:
        """Wait for a session, then load what the first prompt needs, in pieces, and connect to the model.

        Sets `warm` at its end. A failure is published as a warning: the first prompt meets it again and reports it.
        """
        await self._opened.wait()
        try:
            for model in unbuilt_models():
                model.model_rebuild()
                # Keys come first.
                await asyncio.sleep(0)
            if self.agent is not None:
                await self.agent.provider.prepare()
        except TuiAgentError as error:
            self._bus.publish(Warned(code="provider_not_ready", text=str(error)))
        finally:
            # Also after a failure: the first prompt reports it to the user.
            self.warm.set()
