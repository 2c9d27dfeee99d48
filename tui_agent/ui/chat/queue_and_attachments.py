"""Queued messages, which the user edits, drops, moves and restores; and attachments to the next message."""

from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import replace

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.events import MessageEnded, RunEnded, RunStarted
from tui_agent.protocol.messages import UserMessage
from tui_agent.protocol.prompt_references import file_mentions, mention_of
from tui_agent.ui.base.commands import hint
from tui_agent.ui.bridge.agent_bridge import NOT_READY
from tui_agent.ui.composer.composer import Composer
from tui_agent.ui.composer.prompt_area import PromptArea
from tui_agent.ui.composer.queue_strip import QueueRequest
from tui_agent.ui.state.queued_messages import WaitingMessage, WaitingMessages
from tui_agent.ui.text.sanitiser import one_line

from .actions.action_context import ActionContext

_SHOWN = 40
"""Cells of a dropped message that its notice shows."""


class QueueRouter:
    """Carries out the user's changes to the queue. The results are events."""

    def __init__(self, context: ActionContext, entry: PromptArea, queue: Callable[[], WaitingMessages]) -> None:
        self._bridge = context.bridge
        self._entry = entry
        self._queue = queue
        self._sent = ""
        self._say = context.say

    @property
    def _composer(self) -> Composer:
        return self._entry.composer

    def follow(self, envelopes: Iterable[Envelope]) -> None:
        """Return a prompt that did not become part of the conversation to the composer.

        A filter or a hook refused it, or the user ended the run while one of them checked it. Events of sub-agents
        do not count.
        """
        for envelope in envelopes:
            match None if envelope.origin.depth else envelope.event:
                case RunStarted(input=text, trigger=trigger):
                    self._sent = text if trigger == "prompt" else ""
                case MessageEnded(message=UserMessage(kind="prompt")):
                    self._sent = ""
                case RunEnded(reason="input_rejected" | "aborted") if self._sent:
                    self._entry.composer.put_back(self._sent)
                    self._sent = ""
                case _:
                    pass

    def receive(self, request: QueueRequest) -> None:
        """Do what the composer or a row of the queue asks for."""
        # A message that is being edited may have left the queue, such as with a session that ended.
        target = request.message_id or self._composer.editing or self._newest()
        match request.action:
            case "earlier":
                self._walk(-1)
            case "later":
                self._walk(1)
            case "edit":
                self._edit(target, keeps_draft=bool(request.message_id))
            case "put_back":
                self._composer.action_submit()
            case "leave":
                self.leave()
            case "drop":
                self._drop(target)
            case "undo":
                self._undo()
            case "up" | "down" if not target or not (request.message_id or self._composer.editing):
                self._walk(-1)
            case "up":
                self._bridge.messages.move(target, -1)
            case "down":
                self._bridge.messages.move(target, 1)
            case "move":
                self._bridge.messages.move(target, request.rows)
            case "kind":
                self._change_kind(target)

    def put_back(self, event: Composer.Submitted) -> bool:
        """Queue an edited message again, in its place; False if it is not queued any more."""
        if not event.edited or not self._bridge.messages.release(event.edited, event.text):
            return False
        message = self._queue().find(event.edited)
        if event.kind == "follow_up" and message is not None and not message.follows_up:
            self._change_kind(event.edited)
        # Without a run no boundary comes that would deliver it.
        if not self._bridge.status.running:
            self._bridge.send_now()
        return True

    def release(self, event: Composer.Submitted) -> None:
        """Queue the message as it was: the user typed a command in place of its text."""
        if event.edited:
            self._bridge.messages.release(event.edited)

    def forget(self, event: Composer.Submitted) -> None:
        """Drop the edited message: its new text went to another recipient."""
        if event.edited:
            self._bridge.messages.drop(event.edited)

    def leave(self) -> None:
        """End the edit: the message waits again, as it was before."""
        if self._composer.editing:
            self._bridge.messages.release(self._composer.editing)
            self._composer.end_edit()

    def _newest(self) -> str:
        rows = self._queue().all
        return rows[-1].message_id if rows else ""

    def _walk(self, step: int) -> None:
        """Edit the message before or after the one that is being edited; beyond the oldest, recall earlier texts."""
        rows = self._queue().rows
        editing = self._composer.editing
        at = next((place for place, message in enumerate(rows) if message.message_id == editing), len(rows))
        target = at + step
        if 0 <= target < len(rows):
            self._edit(rows[target].message_id, keeps_draft=False)
        else:
            self.leave()
            if step < 0:
                self._composer.recall_earlier()

    def _edit(self, message_id: str, *, keeps_draft: bool) -> None:
        """Take a message out of the queue and into the composer; the one edited before it waits again."""
        if message_id == self._composer.editing:
            return
        # The composer holds one message at a time.
        self.leave()
        text = self._bridge.messages.hold(message_id)
        if text is None:
            self._say_gone()
        else:
            self._composer.begin_edit(message_id, text, keeps_draft=keeps_draft)
            self._composer.focus()

    def _drop(self, message_id: str) -> None:
        text = self._bridge.messages.drop(message_id)
        if message_id == self._composer.editing:
            self._composer.end_edit()
        if text is None:
            self._say_gone()
        else:
            # Named, because a key pressed once too often drops another message.
            dropped = f"Dropped “{one_line(text, _SHOWN)}”. {hint('queue.undo_drop', 'brings it back')}."
            self._entry.offer_undo(dropped)

    def _undo(self) -> None:
        if not self._bridge.messages.undo_drop():
            self._say("No dropped message can be restored.")
        self._entry.undone()

    def _change_kind(self, message_id: str) -> None:
        message: WaitingMessage | None = self._queue().find(message_id)
        if message is not None and message.sub_agent:
            self._say("A message to a sub-agent steers it; it cannot become a follow-up.")
        elif not self._bridge.messages.change_kind(message_id):
            self._say_gone()

    def _say_gone(self) -> None:
        gone = "This message was already delivered."
        self._say(NOT_READY if self._bridge.status.pending else gone, wrong=True)


class AttachmentRouter:
    """Attaches files to the draft and to messages that are sent."""

    def __init__(
        self,
        context: ActionContext,
        entry: PromptArea,
        send: Callable[[Composer.Submitted], None],
        refuse: Callable[[Composer.Submitted, str], None],
    ) -> None:
        self._bridge = context.bridge
        self._entry = entry
        self._send = send
        self._refuse = refuse
        self._say = context.say
        self._waiting = deque[Composer.Submitted]()

    def name(self, event: Composer.FileNamed) -> None:
        """Attach a file to the draft; of lines only check that they can be attached."""
        self._work(self._attach(event))

    def paste(self) -> None:
        """Attach the image of the clipboard to the draft; without one, paste text."""
        self._work(self._paste())

    def submit(self, event: Composer.Submitted) -> None:
        """Send a message once its files, and those of the messages before it, are attached."""
        if not self._waiting and not file_mentions(event.text):
            self._send_checked(event)
            return
        self._waiting.append(event)
        if len(self._waiting) == 1:
            self._work(self._send_waiting())

    async def _attach(self, event: Composer.FileNamed) -> None:
        try:
            label = await self._bridge.attachments.attach(event.path, typed=event.typed)
        except TuiAgentError as error:
            self._entry.refusal.show(str(error), self._entry.composer.text)
        else:
            # Lines are read again when the message is sent, and may still be changed.
            if label and label != mention_of(event.path):
                self._entry.composer.attach(event.mention, label)

    async def _paste(self) -> None:
        try:
            label = await self._bridge.attachments.attach_clipboard()
        except TuiAgentError as error:
            self._entry.refusal.show(str(error), self._entry.composer.text)
            return
        if label:
            self._entry.composer.attach_here(label)
        else:
            self._entry.composer.paste_text()

    async def _send_waiting(self) -> None:
        while self._waiting:
            # It stays in front until it is sent, so that later messages line up behind it.
            event = self._waiting[0]
            try:
                text = await self._with_labels(event)
            except TuiAgentError as error:
                self._refuse(event, str(error))
            else:
                self._send_checked(replace(event, text=text))
            self._waiting.popleft()

    async def _with_labels(self, event: Composer.Submitted) -> str:
        """Return the text with a label in place of each image and PDF that it names."""
        text = event.text
        for mention, path in file_mentions(text).items():
            # Files are read by the session, which is not open yet.
            if self._bridge.status.pending:
                raise TuiAgentError(NOT_READY)
            label = await self._bridge.attachments.attach(path, typed=mention not in event.pasted)
            if label and label != mention_of(path):
                text = text.replace(mention, label)
        return text

    def _send_checked(self, event: Composer.Submitted) -> None:
        try:
            self._bridge.attachments.content(event.text)
        except TuiAgentError as error:
            self._refuse(event, str(error))
        else:
            missing = self._bridge.attachments.unknown_label(event.text)
            if missing is not None and not event.edited:
                # A label that was recalled with an earlier prompt, or typed.
                self._say(f"The message has no file for {missing}. To attach it, name its file with @ again.")
            self._send(event)

    def _work(self, work: Coroutine[None, None, None]) -> None:
        self._entry.screen.run_worker(work, group="attachments", exit_on_error=False)
