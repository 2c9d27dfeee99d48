"""Runs what the user types, one after another. What is typed before the agent is there waits for it, and is shown."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.cancellation import PROGRAM_QUIT
from tui_agent.protocol.errors import AlreadyRunningError, TuiAgentError
from tui_agent.protocol.events import Failed
from tui_agent.protocol.messages import JsonObject, UserKind, UserMessage

from .user_messages import PromptAttachments

if TYPE_CHECKING:
    # The first screen must not wait until the engine is loaded.
    from tui_agent.workbench.workbench import AgentLoop, Workbench

Work = Callable[[], Awaitable[object]]


class PromptQueue:
    """Prompts, commands and compactions of one session, in order. Their effects are events."""

    bench: "Workbench | None" = None
    """The open session; None while it is still being read, and where another program made the agent."""
    agent: "AgentLoop | None" = None
    """The agent; None while its session is still being read, and where it runs in another process."""
    is_detached = False
    """True once the screen shows another session."""
    _compaction: asyncio.Task[object] | None = None
    _send_when_over = False

    def __init__(self, bus: EventBus | None = None) -> None:
        self._bus = bus if bus is not None else EventBus()
        self.attachments = PromptAttachments()
        """Files that the user attaches to messages."""
        self._work: deque[tuple[str | None, Work]] = deque()
        """Work to do one after another; with the text of the user that waits for it, if any."""
        self._queued_while_pending: list[tuple[UserKind, str]] = []
        self._arrived, self._opened = asyncio.Event(), asyncio.Event()

    def publish_status(self) -> None:
        """Let the screen know that the work has changed."""
        raise NotImplementedError

    @property
    def unsent(self) -> tuple[str, ...]:
        """Prompts and commands that have not started, in order."""
        texts = (text for text, _ in self._work if text is not None)
        return (*texts, *(text for _, text in self._queued_while_pending))

    @property
    def is_busy(self) -> bool:
        """True while a run, a command or a compaction runs or is about to."""
        return self._agent_runs or self._compaction is not None or bool(self._work)

    @property
    def _agent_runs(self) -> bool:
        return self.agent is not None and self.agent.running

    # --- messages and commands ----------------------------------------------------------------------------------------

    def submit(self, text: str) -> None:
        """Start a run with `text`, or steer the current run with it."""
        self._send("steer", text)

    def follow_up(self, text: str) -> None:
        """Give `text` a turn of its own once the current run ends."""
        self._send("follow_up", text)

    def requeue(self, kind: UserKind, text: str) -> None:
        """Queue a message without starting a run: one that was queued when the session ended."""
        if self.agent is not None:
            queue = self.agent.follow_up if kind == "follow_up" else self.agent.steer
            queue(self.attachments.message(text))

    def must_wait(self, text: str) -> bool:
        """Return True if a text runs a command file that needs a run of its own, and the agent is working."""
        defined = self.bench.definitions if self.bench is not None else None
        return self._agent_runs and defined is not None and defined.needs_own_run(text)

    def run_shell(self, command: str, said: str, *, shared: bool) -> bool:
        """Run a shell command, typed as `said`; the model reads the output if `shared`. False while the agent works."""
        if self.is_busy:
            return False
        self._enqueue(partial(self._run_command, command, said, shared=shared), said)
        return True

    def compact(self, focus: str) -> bool:
        """Compact the conversation; the summary keeps `focus`. False, and nothing happens, while the agent works."""
        if self.is_busy:
            return False
        self._enqueue(partial(self._compact, focus))
        return True

    def recall_all_messages(self) -> str:
        """Remove everything that is queued for a pending agent, and return its text."""
        texts = "\n\n".join(self.unsent)
        self._queued_while_pending.clear()
        self._work.clear()
        self.publish_status()
        return texts

    def send_now(self) -> None:
        """Deliver queued messages now. If a run is in progress, it is cancelled first, and its partial output kept."""
        if self.agent is not None and self.agent.running:
            self._send_when_over = True
            self.agent.abort("the user sent a message")
        else:
            self._run_queued()

    def stop(self) -> None:
        """End the run after this step."""
        if self.agent is not None:
            self.agent.stop()

    def cancel(self) -> None:
        """End the run or compaction now. The conversation stays complete, and queued messages stay queued."""
        self._send_when_over = False
        if self.agent is not None and self.agent.running:
            self.agent.abort("cancelled by the user")
        elif self._compaction is not None:
            self._compaction.cancel()

    def leave(self) -> None:
        """End the run because the program ends; a call that waits for approval waits again after a resume."""
        if self.agent is not None:
            self.agent.abort(PROGRAM_QUIT)

    def detach(self) -> None:
        """Leave the agent because the screen shows another session; what it has not begun stays queued in its own."""
        self.is_detached = True
        unsent = [text for text, _ in self._work if text is not None]
        self._work.clear()
        for text in unsent:
            self.requeue("steer", text)
        self.leave()

    # --- the worker ---------------------------------------------------------------------------------------------------

    async def serve(self) -> None:
        """Run prompts one after another, forever. A run that fails is published, and the next prompt is served.

        Calls that waited for approval when the program ended come first.
        """
        await self._opened.wait()
        if self.agent is not None and self.agent.pending_calls:
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
            self.publish_status()

    def _send(self, kind: UserKind, text: str) -> None:
        if self._agent_runs:
            self._queue_typed(kind, text)
        elif self.agent is None and any(waiting is not None for waiting, _ in self._work):
            # Behind the first prompt it becomes what it would be while that one ran.
            self._queued_while_pending.append((kind, text))
        else:
            self._enqueue(partial(self._run_typed, text, self.attachments.message(text)), text)
        self.publish_status()

    def _queue_waiting(self) -> None:
        """Queue what was typed behind the first prompt to a pending agent."""
        queued, self._queued_while_pending = self._queued_while_pending, []
        for kind, text in queued:
            self._queue_typed(kind, text)

    def _queue_typed(self, kind: UserKind, text: str) -> None:
        """Queue what the user typed during a run; a command file that needs a run of its own gets one afterwards."""
        defined = self.bench.definitions if self.bench is not None else None
        if defined is None:
            self.requeue(kind, text)
        elif defined.needs_own_run(text):
            self._enqueue(partial(self._run_typed, text, text), text)
        else:
            self.requeue(kind, defined.expanded(text))

    def _enqueue(self, work: Work, text: str | None = None) -> None:
        self._work.append((text, work))
        self._arrived.set()
        self.publish_status()

    async def _run_work(self, work: Work) -> None:
        try:
            await work()
        except TuiAgentError as error:
            self._bus.publish(Failed(code="run_failed", text=str(error)))

    async def _run(self, prompt: str | UserMessage | None) -> None:
        if self.agent is None:
            return
        try:
            await self.agent.run(prompt)
        except AlreadyRunningError:
            # Another run began meanwhile; the message must not be lost.
            if prompt is not None:
                self.agent.steer(prompt)

    async def _run_typed(self, text: str, message: str | UserMessage) -> None:
        """Run what the user typed. Known only now: it may have been typed before the agent was there."""
        defined = self.bench.definitions if self.bench is not None else None
        if defined is not None and defined.knows(text):
            await defined.run(text, self.attachments.message)
        else:
            await self._run(message)

    async def _run_command(self, command: str, said: str, *, shared: bool) -> None:
        # Messages that were sent while the command ran follow it, unless `cancel` says otherwise.
        self._send_when_over = True
        if self.agent is not None:
            outside: JsonObject = {"command": command, "sandbox": False}
            await self.agent.run_command("bash", outside, said, shared=shared, typed=True)

    async def _compact(self, focus: str) -> None:
        self._compaction = asyncio.current_task()
        try:
            if self.agent is not None:
                await self.agent.compact(focus)
        finally:
            self._compaction = None

    def _run_queued(self) -> None:
        """Start a run with the queued messages of the user; a run without input takes them."""
        if self.agent is not None and any(message.is_from_user for message in self.agent.waiting_messages):
            self._enqueue(partial(self._run, None))
