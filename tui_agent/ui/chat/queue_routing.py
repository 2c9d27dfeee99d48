"""Changes to the queue: the user walks through it, edits, drops, moves and restores messages."""

from collections.abc import Callable

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
        """
        Args:
            context: the parts of the chat.
            entry: shows the message that is being edited.
            queue: returns the queue as the events show it.
        """
        self._bridge = context.bridge
        self._entry = entry
        self._queue = queue
        self._say = context.say

    @property
    def _composer(self) -> Composer:
        return self._entry.composer

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
