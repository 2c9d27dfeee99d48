"""The queued messages, one line each, with the time of their delivery."""

from dataclasses import dataclass

from rich.cells import cell_len
from textual.content import Content
from textual.events import Click
from textual.message import Message

from tui_agent.protocol.events import Status
from tui_agent.ui.base.coalesced_refresh import CoalescedRefresh
from tui_agent.ui.base.commands import hint
from tui_agent.ui.state.queued_messages import WaitingMessage, WaitingMessages
from tui_agent.ui.state.session_status import SessionStatus
from tui_agent.ui.text.sanitiser import clip, one_line

MAX_ROWS = 4
"""Messages that are shown; others are only counted."""
_LONGEST = 400
"""Cells of a message that are considered."""


class QueueStrip(CoalescedRefresh):
    """A rule and a line for each queued message; hidden while none is queued."""

    DEFAULT_CSS = """
    QueueStrip {
        height: auto;
        display: none;
        color: $text-muted;
    }
    """

    @dataclass
    class Changed(Message):
        """The number of queued messages has changed."""

        count: int

    @dataclass
    class EditRequested(Message):
        """The user clicked a queued message to edit it."""

        message_id: str

    def __init__(self, queue: WaitingMessages, status: SessionStatus, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._queue = queue
        self._status = status
        self._drawn: tuple[object, ...] = ()

    @property
    def last(self) -> WaitingMessage | None:
        """The message sent last, or None."""
        return self._queue.all[-1] if self._queue.all else None

    @property
    def messages(self) -> tuple[WaitingMessage, ...]:
        """Every queued message, in the order of delivery."""
        return self._queue.all

    def find(self, message_id: str) -> WaitingMessage | None:
        """Return the queued message with this id, or None."""
        return next((message for message in self._queue.all if message.message_id == message_id), None)

    def show(self, queue: WaitingMessages, status: SessionStatus) -> None:
        """Show another queue and status."""
        self._queue, self._status = queue, status
        self.changed()

    def settle(self) -> None:
        """Draw the queue if it or the status has changed, and post the number of messages."""
        messages, before = self._queue.all, self._drawn
        self._drawn = (*messages, self._status.status)
        if self._drawn == before:
            return
        self.display = bool(messages)
        self.refresh(layout=len(self._drawn) != len(before))
        self.post_message(self.Changed(len(messages)))

    def render(self) -> Content:
        """Return the rule and the lines; with room for one line only, the newest message and their number."""
        width = self.size.width
        waiting = self._queue.all
        if self.size.height == 1 and waiting:
            return _row(len(waiting), waiting[-1], _landing(waiting[-1], self._status.status), width, with_keys=True)
        rows = [_rule(width)]
        for number, message in enumerate(waiting[:MAX_ROWS], 1):
            newest = message is waiting[-1]
            rows.append(_row(number, message, _landing(message, self._status.status), width, with_keys=newest))
        if len(waiting) > MAX_ROWS:
            rows.append(Content(f"   … and {len(waiting) - MAX_ROWS} more"))
        return Content("\n").join(rows)

    def on_click(self, event: Click) -> None:
        """Request the clicked message for editing."""
        row = event.y - 1 if self.size.height > 1 else len(self._queue.all) - 1
        if 0 <= row < min(MAX_ROWS, len(self._queue.all)):
            self.post_message(self.EditRequested(self._queue.all[row].message_id))


def _rule(width: int) -> Content:
    return Content.assemble(("─ ", "$border-blurred"), "queue", (" " + "─" * max(0, width - 8), "$border-blurred"))


def _landing(message: WaitingMessage, status: Status) -> str:
    """Return the time of a message's delivery in words."""
    if status == "idle":
        return "waits for you to send it"
    if message.follows_up:
        return "a turn of its own after this one"
    if status == "waiting_approval":
        # A question that a message withdraws is gone by now; this one is answered first.
        return "waits for your answer"
    return "lands after the running calls" if status == "running_tools" else "lands after this step"


def _row(number: int, message: WaitingMessage, landing: str, width: int, *, with_keys: bool) -> Content:
    """Return one line: number, kind, text, delivery, and keys for the newest message; the keys are dropped first."""
    kind = "follow-up" if message.follows_up else "steer"
    head = Content.assemble(f" {number} ", (kind, "$accent"), "  ")
    keys = f"   {hint('composer.earlier', 'edit')} · {hint('queue.drop')} "
    room = width - head.cell_length
    text = one_line(message.text, _LONGEST)
    offers = (f"{landing}{keys if with_keys else ' ' * len(keys)}", f"{landing} ", "")
    # Drop the keys before cutting the text, but cut a long text before dropping the delivery.
    least = (cell_len(text) + 5, min(cell_len(text) + 5, room // 2), 0)
    tail = next(offer for offer, needed in zip(offers, least, strict=True) if len(offer) + needed <= room or not offer)
    quoted = Content.styled(f"“{clip(text, max(1, room - len(tail) - 5))}”", "$text")
    gap = max(1, room - quoted.cell_length - len(tail))
    return Content("").join([head, quoted, Content(" " * gap), Content(tail)])
