"""Messages of the user until the agent has them: their files, changes to queued ones, and the queue of what is typed.

`PromptQueue` runs what the user types, one after another. What is typed before the agent is there waits for it, and is
shown.
"""

import asyncio
import re
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.cancellation import PROGRAM_QUIT
from tui_agent.protocol.errors import AlreadyRunningError, TuiAgentError
from tui_agent.protocol.events import Failed
from tui_agent.protocol.facts.screen_facts import Attachment, PromptAttachment, refuse_too_many
from tui_agent.protocol.messages import (
    DocumentBlock,
    ImageBlock,
    JsonObject,
    TextBlock,
    UserBlock,
    UserKind,
    UserMessage,
)
from tui_agent.protocol.prompt_references import file_mentions, mention_of

if TYPE_CHECKING:
    # The first screen must not wait until the engine is loaded.
    from tui_agent.workbench.sessions.prompt_files import PromptFiles
    from tui_agent.workbench.workbench import AgentLoop, SteeringQueue, Workbench


# --- attachments ------------------------------------------------------------------------------------------------------

MAX_KEPT = 40_000_000
"""Characters of attachments that are kept for messages which are not sent yet; the oldest go first."""

_LABEL = re.compile(r"\[(?:image [^\[\]\n]{1,100} \d+×\d+|PDF [^\[\]\n]{1,100} [\d,]+ (?:pages?|bytes))(?: #\d+)?\]")
_NAME_LENGTH = 60


class PromptAttachments:
    """Reads files, and puts them into messages that contain their labels or mentions."""

    def __init__(self, files: "PromptFiles | None" = None) -> None:
        """Begin without attachments; without `files`, which reads them, there will be none."""
        self._files = files
        self._blocks: dict[str, Attachment] = {}

    async def attach(self, path: str, *, typed: bool) -> str:
        """Read a file, and return the text that stands for it: a label, or a mention of lines or of a directory.

        It is empty if the file does not exist, or no open session takes files.

        Args:
            path: its path, as the user gave it, with the lines if there are any.
            typed: True if the user typed the path, so that the file may be outside the workspace.

        Raises:
            TuiAgentError: the file cannot be attached.
        """
        found = await self._files.attachment(path, typed=typed) if self._files is not None else None
        if found is None:
            # The lines that an earlier message had are gone.
            self._blocks.pop(mention_of(path), None)
            return ""
        if isinstance(found.block, DocumentBlock) and found.block.is_text:
            sign = mention_of(path)
            self._keep(sign, found.block)
            return sign
        return self._label(found)

    async def attach_clipboard(self) -> str:
        """Read the image in the clipboard of the desktop, and return the label that stands for it; empty without one.

        Raises:
            TuiAgentError: the image cannot be attached.
        """
        found = await self._files.pasted() if self._files is not None else None
        return "" if found is None else self._label(found)

    def _label(self, found: PromptAttachment) -> str:
        """Keep an image or a PDF under a label of its own, and return the label."""
        name = re.sub(r"[\[\]\s]+", " ", found.name)[-_NAME_LENGTH:].strip()
        kind = "image" if isinstance(found.block, ImageBlock) else "PDF"
        label, number = f"[{kind} {name} {found.size}]", 1
        # Two images may have the same name and size.
        while self._blocks.get(label, found.block) != found.block:
            number += 1
            label = f"[{kind} {name} {found.size} #{number}]"
        self._keep(label, found.block)
        return label

    def message(self, text: str) -> str | UserMessage:
        """Return the message for a text: with the attachments that it stands for, or the text itself.

        Raises:
            TuiAgentError: they are too many or too large.
        """
        content = self.content(text)
        return UserMessage(content=content) if len(content) > 1 else text

    def content(self, text: str, before: UserMessage | None = None) -> tuple[UserBlock, ...]:
        """Return the text and the attachments whose labels and mentions it contains.

        Args:
            text: the text.
            before: the message that this one replaces; its attachments stay if what stands for them does.

        Raises:
            TuiAgentError: they are too many or too large.
        """
        known = dict(self._blocks)
        if before is not None:
            attached = [block for block in before.content if not isinstance(block, TextBlock)]
            media = [block for block in attached if isinstance(block, ImageBlock) or not block.is_text]
            known |= {mention_of(block.name): block for block in attached if isinstance(block, DocumentBlock)}
            known |= dict(zip(_labels(before.text), media, strict=False))
        found = [known[sign] for sign in (*_labels(text), *file_mentions(text)) if sign in known]
        refuse_too_many(found)
        return (TextBlock(text=text), *found)

    def unknown_label(self, text: str) -> str | None:
        """Return a label in the text that stands for no file, such as that of an earlier session; None without one."""
        return next((label for label in _labels(text) if label not in self._blocks), None)

    def _keep(self, sign: str, block: Attachment) -> None:
        # A file that is attached again is the newest one.
        self._blocks.pop(sign, None)
        self._blocks[sign] = block
        while sum(len(block.data) for block in self._blocks.values()) > MAX_KEPT and len(self._blocks) > 1:
            del self._blocks[next(iter(self._blocks))]


def _labels(text: str) -> Iterator[str]:
    """Yield the labels in a text, each once."""
    return iter(dict.fromkeys(_LABEL.findall(text)))


# --- changes to queued messages ---------------------------------------------------------------------------------------

MAX_DROPPED = 20
"""Dropped messages that can be restored."""


class MessageEdits:
    """Changes to the queues of the agent and its sub-agents. Their effects are events."""

    def __init__(self, attachments: PromptAttachments, agent: "AgentLoop | None" = None) -> None:
        """Change the queues of an agent; without one, no message is queued yet."""
        self._attachments = attachments
        self._agent = agent
        self._dropped: list[tuple[SteeringQueue, UserMessage, int]] = []

    def hold(self, message_id: str) -> str | None:
        """Take a message out of the queue for an edit and return its text; None if it is not there, or being edited.

        It keeps its place until `release` or `drop`.
        """
        queue = self._queue_of(message_id)
        message = queue.hold(message_id) if queue is not None else None
        return message.text if message is not None else None

    def release(self, message_id: str, text: str | None = None) -> bool:
        """Queue a message again after an edit, with another text if there is one; False if it is not being edited.

        Raises:
            TuiAgentError: it has too many attachments.
        """
        queue = self._queue_of(message_id)
        message = queue.find(message_id) if queue is not None else None
        if queue is None or message is None:
            return False
        if text is None or text == message.text:
            return queue.release(message_id) is not None
        return queue.release(message_id, self._attachments.content(text, message)) is not None

    def drop(self, message_id: str) -> str | None:
        """Remove a message from the queue and return its text; None if it is not queued, such as a delivered one."""
        queue = self._queue_of(message_id)
        if queue is None:
            return None
        place = next(place for place, one in enumerate(_kin(queue, message_id)) if one.id == message_id)
        message = queue.drop(message_id)
        if message is None:
            return None
        self._dropped = [*self._dropped, (queue, message, place)][-MAX_DROPPED:]
        return message.text

    def undo_drop(self) -> bool:
        """Queue the message that was dropped last, in its old place, then the one before; False if none is left."""
        if not self._dropped or self._agent is None:
            return False
        queue, message, place = self._dropped.pop()
        if queue in self._agent.message_queues:
            queue.insert(message, place)
        else:
            # Its sub-agent has ended: like the messages that it did not read, the agent gets it.
            self._agent.message_queues[0].put(message)
        return True

    def move(self, message_id: str, rows: int) -> bool:
        """Move a message down, or up if `rows` is negative, among those of its kind; False if it cannot move."""
        queue = self._queue_of(message_id)
        return queue is not None and queue.move(message_id, rows)

    def change_kind(self, message_id: str) -> bool:
        """Turn a steering message into a follow-up, or the reverse; False if it is not queued or for a sub-agent."""
        queue = self._queue_of(message_id)
        is_main = self._agent is not None and queue is self._agent.message_queues[0]
        return queue is not None and is_main and queue.change_kind(message_id) is not None

    def _queue_of(self, message_id: str) -> "SteeringQueue | None":
        """Return the queue that has a message, held or waiting."""
        queues = self._agent.message_queues if self._agent is not None else ()
        return next((queue for queue in queues if queue.find(message_id) is not None), None)


def _kin(queue: "SteeringQueue", message_id: str) -> tuple[UserMessage, ...]:
    """Return the messages of a queue that are of the same kind as one of them."""
    message = queue.find(message_id)
    follows = message is not None and message.kind == "follow_up"
    return tuple(one for one in queue.all if (one.kind == "follow_up") == follows)


# --- the queue --------------------------------------------------------------------------------------------------------

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
        """Start a run with `text`, or steer the current run with it; before the agent is loaded, queue it.

        Raises:
            TuiAgentError: its attachments are too many or too large; nothing was sent.
        """
        self._send("steer", text)

    def follow_up(self, text: str) -> None:
        """Give `text` a turn of its own once the current run ends; without a run, start one.

        Raises:
            TuiAgentError: as for `submit`.
        """
        self._send("follow_up", text)

    def requeue(self, kind: UserKind, text: str) -> None:
        """Queue a message that waited when the session ended; starts no run, and does nothing without an agent.

        Raises:
            TuiAgentError: as for `submit`.
        """
        if self.agent is not None:
            queue = self.agent.follow_up if kind == "follow_up" else self.agent.steer
            queue(self.attachments.message(text))

    def must_wait(self, text: str) -> bool:
        """Return True if a text must wait: it runs a command file that needs its own run, and the agent is working."""
        defined = self.bench.definitions if self.bench is not None else None
        return self._agent_runs and defined is not None and defined.needs_own_run(text)

    def run_shell(self, command: str, said: str, *, shared: bool) -> bool:
        """Queue a shell command to run at once; False, and nothing happens, while the agent works.

        Args:
            command: the command line.
            said: the text as typed, with `!`.
            shared: True if the model reads the output.
        """
        if self.is_busy:
            return False
        self._enqueue(partial(self._run_command, command, said, shared=shared), said)
        return True

    def compact(self, focus: str) -> bool:
        """Queue a compaction to run at once; False, and nothing happens, while the agent works.

        Args:
            focus: what the summary must keep; empty for no wish.
        """
        if self.is_busy:
            return False
        self._enqueue(partial(self._compact, focus))
        return True

    def recall_all_messages(self) -> str:
        """Remove all work that has not started, compactions included; return `unsent`, separated by empty lines."""
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
        """End the run after this step, without waiting for that; does nothing without a run."""
        if self.agent is not None:
            self.agent.stop()

    def cancel(self) -> None:
        """Abort the run or compaction, without waiting for its end; does nothing without one.

        The conversation stays complete, and queued messages stay queued.
        """
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
