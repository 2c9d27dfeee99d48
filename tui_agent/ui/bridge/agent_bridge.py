"""The only connection between the screen and the engine: methods call the agent, messages carry events back.

Text that cannot be sent at once is queued, and the screen shows it; none is lost.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from textual.message import Message

from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.cancellation import PROGRAM_QUIT
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.errors import AlreadyRunningError, TuiAgentError
from tui_agent.protocol.events import Failed, SessionRenamed, Warned
from tui_agent.protocol.facts.definition_facts import DefinitionFact
from tui_agent.protocol.messages import JsonObject, UserKind, UserMessage, unbuilt_models
from tui_agent.protocol.permissions import ApprovalDecision, PermissionMode

from .bridge_messages import AgentEvents, AgentStatus, HistoryEvents, StatusPublished
from .hook_queries import HookQueries
from .job_queries import JobQueries
from .message_edits import MessageEdits
from .prompt_attachments import PromptAttachments
from .queries import (
    NOT_READY,
    FileQueries,
    GrantQueries,
    PromptQueries,
    RewindQueries,
    SessionQueries,
    SubAgentQueries,
)
from .rule_queries import RuleQueries
from .server_queries import ServerQueries

if TYPE_CHECKING:
    # The first screen must not wait until the engine is loaded.
    from tui_agent.workbench.configuration.permission_rules import RuleImpact
    from tui_agent.workbench.leftover_commands import LeftoverCommands
    from tui_agent.workbench.session_commands import SessionCommands
    from tui_agent.workbench.session_hooks import SessionHooks
    from tui_agent.workbench.session_jobs import SessionJobs
    from tui_agent.workbench.session_rules import SessionRules
    from tui_agent.workbench.session_servers import SessionServers
    from tui_agent.workbench.sessions.prompt_files import PromptFiles
    from tui_agent.workbench.sessions.prompt_store import PromptStore
    from tui_agent.workbench.typed_definitions import TypedDefinitions
    from tui_agent.workbench.workbench import Workbench
    from tui_agent.workbench.workspace_files import WorkspaceFiles
    from tui_agent.workbench.workspace_symbols import WorkspaceSymbols

    from .engine_types import AgentLoop, ContextBreakdown, Rewinder

DELTA_INTERVAL = 1 / 30
"""Seconds between two batches of streaming text and output; all other events are relayed at once."""

CYCLED_MODES = (PermissionMode.ASK, PermissionMode.ACCEPT_EDITS, PermissionMode.PLAN)
"""Modes that the mode key cycles through; the others are set by name only."""

Post = Callable[[Message], object]
Work = Callable[[], Awaitable[object]]


class AgentBridge:
    """The agent as the screen sees it. Except for the workers, all methods return at once; their effects are events.

    The screen reads the agent's state from `status`, and receives `StatusPublished` whenever it changes.
    """

    _compaction: asyncio.Task[object] | None = None
    _post: Post | None = None
    _definitions: "TypedDefinitions | None" = None
    _leftovers: "LeftoverCommands | None" = None
    is_detached = False
    """True once the screen shows another session."""
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
            agent: the agent to open it to at once; None: the agent does not exist yet.
            bus: the agent's bus.
            mode: the permission mode that the screen shows until `open`.
            prompts: keeps prompts and drafts; None: they are not kept.
        """
        self._agent: AgentLoop | None = None
        self._bus = bus if bus is not None else EventBus()
        self._past: Iterator[Envelope] = iter(())
        self._mode: PermissionMode = mode
        self._restored: tuple[str, ...] = ()
        self._rewinds = RewindQueries()
        self.attachments = PromptAttachments()
        """Files that the user attaches to messages."""
        self.messages = MessageEdits(self.attachments)
        """Changes to queued messages."""
        self.files = FileQueries()
        """Files of the workspace."""
        self.commands = SessionQueries(refusal=NOT_READY)
        """Commands that need the whole program."""
        self.sub_agents = SubAgentQueries()
        """The running sub-agents."""
        self.earlier = PromptQueries(prompts, lambda: self._bus.origin.session_id)
        """The prompts of the project."""
        self.grants = GrantQueries()
        """Facts about rules that an approval would store."""
        self.rules = RuleQueries()
        """Rules and tools of the session."""
        self.jobs, self.servers = JobQueries(), ServerQueries()
        """Background commands and tool servers of the session."""
        self.hooks = HookQueries()
        """Hooks of the session."""
        self._work: deque[tuple[str | None, Work]] = deque()
        """Work to do one after another; with the text of the user that waits for it, if any."""
        self._queued_while_pending: list[tuple[UserKind, str]] = []
        self._deferred: list[Callable[[], object]] = []
        self._arrived, self._opened = asyncio.Event(), asyncio.Event()
        self.warm = asyncio.Event()
        """Set once everything that the model needs is loaded, or has failed to load."""
        self._send_when_over = False
        self.status = self._current_status()
        """The status as published last."""
        if agent is not None:
            self.open(agent, self._bus)

    def open_to(self, bench: "Workbench") -> None:
        """Connect an open session, and do what the user asked for meanwhile."""
        self.open(
            bench.agent,
            bench.events,
            bench.past,
            rewinding=bench.rewind,
            grants=bench.grants,
            left_running=bench.leftovers,
            files=bench.files,
            symbols=bench.symbols,
            prompt_files=bench.attachments,
            commands=bench.commands,
            rules=bench.rules,
            jobs=bench.jobs,
            definitions=bench.definitions,
            servers=bench.servers,
            hooks=bench.hooks,
        )

    def open(
        self,
        agent: "AgentLoop",
        bus: EventBus,
        past: Iterable[Envelope] = (),
        *,
        rewinding: "Rewinder | None" = None,
        grants: "RuleImpact | None" = None,
        left_running: "LeftoverCommands | None" = None,
        files: "WorkspaceFiles | None" = None,
        prompt_files: "PromptFiles | None" = None,
        symbols: "WorkspaceSymbols | None" = None,
        commands: "SessionCommands | None" = None,
        rules: "SessionRules | None" = None,
        jobs: "SessionJobs | None" = None,
        definitions: "TypedDefinitions | None" = None,
        servers: "SessionServers | None" = None,
        hooks: "SessionHooks | None" = None,
    ) -> None:
        """Connect the agent, and do what the user asked for meanwhile.

        Args:
            agent: the agent.
            bus: its bus.
            past: events of a resumed session; iterated once and in pieces, because a long past takes much memory.
            rewinding: plans and carries out rewinds; None: the session is not stored.
            grants: knows where rules are kept; None: rules apply to the session only.
            left_running: commands that an earlier tui-agent left running; None: it left none.
            files, symbols: find files, functions and classes by a part of their name; None: none are completed.
            prompt_files: reads files that the user names in a prompt; None: none are shown or attached.
            commands: commands that need the whole program; None: they are refused.
            rules: lists and changes the rules of the session; None: pages show none.
            jobs: the background commands of the session; None: there are none.
            definitions: skills and command files that the user can type; None: there are none.
            servers, hooks: the tool servers and the hooks of the session; None: there are none.
        """
        self._agent = agent
        self._bus = bus
        self._past = iter(past)
        self._rewinds = RewindQueries(rewinding)
        self.attachments = PromptAttachments(prompt_files)
        self.messages = MessageEdits(self.attachments, agent)
        self._leftovers = left_running
        self.files = FileQueries(agent, files, prompt_files, symbols)
        self.commands = SessionQueries(commands, refusal="This program does not have this command.")
        self.sub_agents = SubAgentQueries(agent)
        self.grants = GrantQueries(grants)
        self.rules = RuleQueries(rules)
        self.jobs, self.hooks = JobQueries(jobs), HookQueries(hooks)
        self._definitions = definitions
        self.servers = ServerQueries(servers)
        self._restored = tuple(sorted(message.id for message in agent.waiting_messages))
        self._opened.set()
        deferred, self._deferred = self._deferred, []
        for do in deferred:
            do()
        queued, self._queued_while_pending = self._queued_while_pending, []
        for kind, text in queued:
            self._queue_typed(kind, text)
        self._publish_status()

    # --- status -------------------------------------------------------------------------------------------------------

    def show_status(self, status: AgentStatus) -> None:
        """Publish a status if it differs from the last one."""
        if status != self.status:
            self.status = status
            if self._post is not None:
                self._post(StatusPublished(status))

    def _publish_status(self) -> None:
        self.show_status(self._current_status())

    def _current_status(self) -> AgentStatus:
        agent = self._agent
        return AgentStatus(
            pending=agent is None,
            running=self._is_busy,
            mode=self._mode if agent is None else agent.policy.mode,
            unsent=(*self._unsent, *(text for _, text in self._queued_while_pending)),
            restored_messages=self._restored,
            can_rewind=self._rewinds.service is not None,
            has_leftovers=self._leftovers is not None,
            commands=(
                *(self._definitions.commands if self._definitions is not None else ()),
                *self.servers.commands,
                *self.commands.model_choices,
            ),
        )

    @property
    def _unsent(self) -> tuple[str, ...]:
        return tuple(text for text, _ in self._work if text is not None)

    @property
    def _agent_runs(self) -> bool:
        return self._agent is not None and self._agent.running

    @property
    def _is_busy(self) -> bool:
        return self._agent_runs or self._compaction is not None or bool(self._work)

    # --- messages and commands ----------------------------------------------------------------------------------------

    def submit(self, text: str) -> None:
        """Start a run with `text`, or steer the current run with it."""
        self._send("steer", text)

    def follow_up(self, text: str) -> None:
        """Give `text` a turn of its own once the current run ends."""
        self._send("follow_up", text)

    def requeue(self, kind: UserKind, text: str) -> None:
        """Queue a message without starting a run: one that was queued when the session ended."""
        if self._agent is not None:
            queue = self._agent.follow_up if kind == "follow_up" else self._agent.steer
            queue(self.attachments.message(text))

    def must_wait(self, text: str) -> bool:
        """Return True if a text runs a command file that needs a run of its own, and the agent is working."""
        return self._agent_runs and self._definitions is not None and self._definitions.needs_own_run(text)

    def definitions(self) -> tuple[DefinitionFact, ...]:
        """Return all skills, command files and sub-agents, and those that are not used."""
        return self._definitions.facts() if self._definitions is not None else ()

    def run_shell(self, command: str, said: str, *, shared: bool) -> bool:
        """Run a shell command of the user. False, and nothing happens, while the agent works.

        Args:
            command: the command for bash.
            said: the command as the user typed it, with its marks.
            shared: True if the model reads the output.
        """
        if self._is_busy:
            return False
        self._enqueue(partial(self._run_command, command, said, shared=shared), said)
        return True

    async def keep_prompt(self, text: str) -> None:
        """Add a prompt to those of the project, once its session is known."""
        await self._opened.wait()
        await self.earlier.add(text)

    @property
    def prompts(self) -> "PromptStore | None":
        """Keeps prompts and drafts; None: they are not kept."""
        return self.earlier.memory

    def cancel_call(self, call_id: str, reason: str) -> bool:
        """Cancel one call; the run continues, and the model reads the reason. False if the call has ended."""
        return self._agent is not None and self._agent.cancel_call(call_id, reason)

    def extend_call(self, call_id: str, seconds: float) -> float | None:
        """Give a running call more time; return its new limit in seconds, or None if it has none or does not run."""
        return self._agent.extend_call(call_id, seconds) if self._agent is not None else None

    def recall_all_messages(self) -> str:
        """Remove everything that is queued for a pending agent, and return its text."""
        texts = "\n\n".join(self._current_status().unsent)
        self._queued_while_pending.clear()
        self._work.clear()
        self._publish_status()
        return texts

    def compact(self, focus: str) -> bool:
        """Compact the conversation with a summary by the model. False, and nothing happens, while the agent works.

        Args:
            focus: what the summary must keep.
        """
        if self._is_busy:
            return False
        self._enqueue(partial(self._compact, focus))
        return True

    def undo_compaction(self) -> str:
        """Undo the last compaction. Return the reason if that is impossible, else an empty text."""
        if self._agent is None:
            return NOT_READY
        try:
            self._agent.undo_compaction()
        except TuiAgentError as error:
            return str(error)
        return ""

    def context_breakdown(self) -> "ContextBreakdown | None":
        """Return the parts that fill the model's context window; None while the agent is pending."""
        return self._agent.context_breakdown() if self._agent is not None else None

    def rename(self, title: str) -> None:
        """Rename the session; the title is put on one line."""
        if self._agent is None:
            self._deferred.append(partial(self.rename, title))
        else:
            self._bus.publish(SessionRenamed(id=self._bus.origin.session_id, title=" ".join(title.split())))

    def send_now(self) -> None:
        """Deliver queued messages now. If a run is in progress, it is cancelled first, and its partial output kept."""
        if self._agent is None:
            self._deferred.append(self.send_now)
        elif self._agent.running:
            self._send_when_over = True
            self._agent.abort("the user sent a message")
        else:
            self._run_queued()

    def refusal(self, action: str) -> str:
        """Return why something is impossible in this session, in words for the user; empty if it is possible.

        Args:
            action: the id of a command, or `send`, `shell`, `target` (a message to one call or sub-agent), `queue` (a
                change to a queued message), `call` (cancelling or extending one call).
        """
        return ""

    # --- interrupting -------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """End the run after this step."""
        if self._agent is not None:
            self._agent.stop()

    def cancel(self) -> None:
        """End the run or compaction now. The conversation stays complete, and queued messages stay queued."""
        self._send_when_over = False
        if self._agent is not None and self._agent.running:
            self._agent.abort("cancelled by the user")
        elif self._compaction is not None:
            self._compaction.cancel()

    def leave(self) -> None:
        """End the run because the program ends; a call that waits for approval waits again after a resume."""
        if self._agent is not None:
            self._agent.abort(PROGRAM_QUIT)

    def detach(self) -> None:
        """Leave the agent because the screen shows another session; what it has not begun stays queued in its own."""
        self.is_detached = True
        unsent = self._unsent
        self._work.clear()
        for text in unsent:
            self.requeue("steer", text)
        self.leave()

    @property
    def session_id(self) -> str:
        """Id of the session; empty while it is still being read."""
        return self._bus.origin.session_id if self._agent is not None else ""

    # --- permissions --------------------------------------------------------------------------------------------------

    def decide(self, request_id: str, decision: ApprovalDecision) -> bool:
        """Answer an approval request. False if it is no longer open."""
        return self._agent is not None and self._agent.resolve_approval(request_id, decision)

    def set_mode(self, mode: PermissionMode) -> None:
        """Set the permission mode, also for open approval requests. Publishes a warning if the agent refuses it."""
        if self._agent is None:
            self._mode = mode
            self._deferred.append(partial(self.set_mode, mode))
        else:
            try:
                self._agent.set_mode(mode, "user")
            except TuiAgentError as error:
                self._bus.publish(Warned(code="mode_refused", text=str(error)))
        self._publish_status()

    def cycle_mode(self) -> None:
        """Set the next of `CYCLED_MODES`; after any other mode, the first."""
        mode = self.status.mode
        position = CYCLED_MODES.index(mode) + 1 if mode in CYCLED_MODES else 0
        self.set_mode(CYCLED_MODES[position % len(CYCLED_MODES)])

    # --- services -----------------------------------------------------------------------------------------------------

    @property
    def rewinding(self) -> RewindQueries | None:
        """Plans and carries out rewinds; None if the session is not stored or still being read."""
        return self._rewinds if self.status.can_rewind else None

    async def report_leftovers(self) -> None:
        """Publish which commands of an earlier tui-agent still run."""
        if self._leftovers is not None:
            await self._leftovers.report()

    async def end_leftovers(self, pid: int | None) -> None:
        """End the command of an earlier tui-agent that has a process with this id; None: all of them."""
        if self._leftovers is not None:
            await self._leftovers.end(pid)

    # --- workers ------------------------------------------------------------------------------------------------------

    async def serve(self) -> None:
        """Run prompts one after another, forever. A run that fails is published, and the next prompt is served.

        Calls that waited for approval when the program ended come first.
        """
        await self._opened.wait()
        if self._agent is not None and self._agent.pending_calls:
            self._work.appendleft((None, partial(self._run, None)))
        while True:
            while not self._work:
                self._arrived.clear()
                await self._arrived.wait()
            # A task of its own: a run that is cancelled must not end the service.
            async with asyncio.TaskGroup() as group:
                group.create_task(self._run_work(self._work.popleft()[1]))
            if self._send_when_over:
                self._send_when_over = False
                self._run_queued()
            self._publish_status()

    async def relay(self, post: Post) -> None:
        """Post status and events to the screen, a batch at a time, until the bus closes. The past comes first, once.

        Args:
            post: posts a message; the next batch follows when the screen has set `applied` of the last one.
        """
        self._post = post
        post(StatusPublished(self.status))
        await self._opened.wait()
        with self._bus.subscribe(since=0) as subscription:
            if await self._relay_past():
                await self.hand_over(AgentEvents(subscription.drain()))
            async for batch in subscription.batches(pace=DELTA_INTERVAL):
                for part in _parts(batch, _MAX_BATCH):
                    await self.hand_over(AgentEvents(part))

    async def hand_over(self, message: AgentEvents) -> None:
        """Post a batch of events and wait until the screen shows them."""
        if self._post is not None:
            self._publish_status()
            self._post(message)
            await message.applied.wait()
            self._publish_status()

    async def warm_up(self) -> None:
        """Load and connect what the model needs, so that the first prompt does not wait for it."""
        await self._opened.wait()
        try:
            for model in unbuilt_models():
                model.model_rebuild()
                # Keys come first.
                await asyncio.sleep(0)
            if self._agent is not None:
                await self._agent.provider.prepare()
        except TuiAgentError as error:
            self._bus.publish(Warned(code="provider_not_ready", text=str(error)))
        finally:
            self.warm.set()

    def report_crash(self, error: BaseException) -> None:
        """Publish that a worker failed unexpectedly; the conversation continues."""
        text = f"internal error: {type(error).__name__}: {error}. The conversation was kept; send your message again."
        self._bus.publish(Failed(code="internal_error", text=text))

    # --- inside -------------------------------------------------------------------------------------------------------

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

    def _send(self, kind: UserKind, text: str) -> None:
        if self._agent_runs:
            self._queue_typed(kind, text)
        elif self._agent is None and self._unsent:
            # Behind the first prompt it becomes what it would be while that one ran.
            self._queued_while_pending.append((kind, text))
        else:
            self._enqueue(partial(self._run_typed, text, self.attachments.message(text)), text)
        self._publish_status()

    def _queue_typed(self, kind: UserKind, text: str) -> None:
        """Queue what the user typed during a run; a command file that needs a run of its own gets one afterwards."""
        if self._definitions is None:
            self.requeue(kind, text)
        elif self._definitions.needs_own_run(text):
            self._enqueue(partial(self._run_typed, text, text), text)
        else:
            self.requeue(kind, self._definitions.expanded(text))

    def _enqueue(self, work: Work, text: str | None = None) -> None:
        self._work.append((text, work))
        self._arrived.set()
        self._publish_status()

    async def _run_work(self, work: Work) -> None:
        try:
            await work()
        except TuiAgentError as error:
            self._bus.publish(Failed(code="run_failed", text=str(error)))

    async def _run(self, prompt: str | UserMessage | None) -> None:
        if self._agent is None:
            return
        try:
            await self._agent.run(prompt)
        except AlreadyRunningError:
            # Another run began meanwhile; the message must not be lost.
            if prompt is not None:
                self._agent.steer(prompt)

    async def _run_typed(self, text: str, message: str | UserMessage) -> None:
        """Run what the user typed. Known only now: it may have been typed before the agent was there."""
        if self._definitions is not None and self._definitions.knows(text):
            await self._definitions.run(text, self.attachments.message)
        else:
            await self._run(message)

    async def _run_command(self, command: str, said: str, *, shared: bool) -> None:
        # Messages that were sent while the command ran follow it, unless `cancel` says otherwise.
        self._send_when_over = True
        if self._agent is not None:
            outside: JsonObject = {"command": command, "sandbox": False}
            await self._agent.run_command("bash", outside, said, shared=shared, typed=True)

    async def _compact(self, focus: str) -> None:
        self._compaction = asyncio.current_task()
        try:
            if self._agent is not None:
                await self._agent.compact(focus)
        finally:
            self._compaction = None

    def _run_queued(self) -> None:
        """Start a run with the queued messages of the user; a run without input takes them."""
        if self._agent is not None and any(message.is_from_user for message in self._agent.waiting_messages):
            self._enqueue(partial(self._run, None))


_MAX_BATCH = 1_500
"""Events handed over at once: few enough that the screen answers keys in between."""
_MAX_HISTORY_BATCH = 500
"""The same for the past, whose events take longer."""


def _parts(events: Sequence[Envelope], most: int) -> Iterator[Sequence[Envelope]]:
    return (events[start : start + most] for start in range(0, len(events), most))
