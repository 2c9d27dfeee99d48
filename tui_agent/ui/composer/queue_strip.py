"""The queued messages, one line each, with the time of their delivery."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rich.cells import cell_len
from textual.content import Content
from textual.events import Click, MouseDown, MouseMove, MouseScrollDown, MouseScrollUp, MouseUp
from textual.message import Message

from tui_agent.ui.base.commands import command, hint
from tui_agent.ui.base.steady_widgets import CoalescedRefresh
from tui_agent.ui.state.queued_messages import WaitingMessage, WaitingMessages
from tui_agent.ui.state.session_status import SessionStatus
from tui_agent.ui.text.sanitiser import clip, one_line
from tui_agent.ui.text.styled_lines import joined_parts

QueueAction: TypeAlias = Literal[
    "edit", "earlier", "later", "put_back", "leave", "drop", "undo", "up", "down", "move", "kind"
]
"""Edit a message, the one before or after it; end the edit with the new or the old text; drop, restore, move it, or
change its kind."""
MAX_ROWS = 4
"""Messages that are shown at a time."""
_LONGEST = 400
"""Cells of a message that are considered."""
_LEAST_TEXT = 16
"""Cells that a long message keeps beside the time of its delivery."""
_NARROW = 41
"""Cells below which the rule shows no keys, and the rows no buttons."""
_BUTTONS: tuple[tuple[str, QueueAction], ...] = (("▴", "up"), ("▾", "down"), ("⇄", "kind"), ("✕", "drop"))
_BUTTON_CELLS = 2 * len(_BUTTONS)


@dataclass
class QueueRequest(Message):
    """The user changes the queue."""

    action: QueueAction
    message_id: str = ""
    """The message; empty: the one that is being edited, else the newest."""
    rows: int = 0
    """Rows to `move` it down; negative: up."""


@dataclass(slots=True)
class _Drag:
    """A message that the user drags."""

    message_id: str
    start: int
    """Its index in the queue."""
    target: int
    """The index at which it would land."""


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

    def __init__(self, queue: WaitingMessages, status: SessionStatus) -> None:
        super().__init__(id="queue")
        self._queue = queue
        self._status = status
        self._drawn: tuple[object, ...] = ()
        self._first = 0
        self._drag: _Drag | None = None
        self._has_dragged = False
        self.is_fixed = False
        """True if a queued message cannot be changed: no key or button for it is shown."""

    @property
    def messages(self) -> tuple[WaitingMessage, ...]:
        """Every message that can be delivered, in this order."""
        return self._queue.all

    @property
    def rows(self) -> tuple[WaitingMessage, ...]:
        """Every message, those that the user edits included."""
        return self._queue.rows

    def show(self, queue: WaitingMessages, status: SessionStatus) -> None:
        self._queue, self._status = queue, status
        self.changed()

    def settle(self) -> None:
        """Draw the queue if it or the status has changed, and post the number of messages."""
        rows, before = self.rows, self._drawn
        self._drawn = tuple((message, _landing(message, self._status)) for message in rows)
        if self._drawn == before:
            return
        # The indexes of a drag belong to the queue as it was.
        self._end_drag()
        held = next((place for place, message in enumerate(rows) if message.held), None)
        self._scroll(self._first if held is None else max(min(self._first, held), held - MAX_ROWS + 1))
        self.display = bool(rows)
        # Another number of rows moves the conversation; the same number must not.
        self.refresh(layout=len(self._drawn) != len(before))
        self.post_message(self.Changed(len(self.messages)))

    def render(self) -> Content:
        """Return the rule and the lines; with room for one line only, the edited or newest message."""
        width, rows, status = self.size.width, self._arranged_rows(), self._status
        dragged = self._drag.message_id if self._drag is not None else ""
        if self.size.height == 1 and rows:
            place = self._only_row()
            return _row(place + 1, rows[place], status, width, with_buttons=False)
        lines = [_rule(width, [] if self.is_fixed else _keys(rows))]
        for number, message in enumerate(rows[self._first : self._first + MAX_ROWS], self._first + 1):
            row = _row(number, message, status, width, with_buttons=self._has_buttons)
            lines.append(row.stylize("reverse") if message.message_id == dragged else row)
        if len(rows) > MAX_ROWS:
            above, below = self._first, len(rows) - MAX_ROWS - self._first
            more = [f"↑ {above} more"] * bool(above) + [f"↓ {below} more"] * bool(below)
            lines.append(Content(f"   {' · '.join(more)}"))
        return Content("\n").join(lines)

    def on_click(self, event: Click) -> None:
        """Edit the clicked message, or end the edit, or do what the clicked button or key says."""
        if self.is_fixed:
            return
        place, button = self._row_at(event.y), self._button_at(event.x)
        # The end of a drag is a click, too.
        if place is not None and not self._has_dragged:
            # A click on the message that is being edited leaves it as it was.
            choose = "leave" if self.rows[place].held else "edit"
            action = choose if button is None else _BUTTONS[button][1]
            self.post_message(QueueRequest(action, self.rows[place].message_id))
        elif event.y == 0 and self.size.height > 1 and (key := _key_at(event.x, self.size.width, self.rows)):
            self.post_message(key)

    def on_mouse_down(self, event: MouseDown) -> None:
        """Take a message, to drag it to another place."""
        place, self._has_dragged = self._row_at(event.y), False
        if place is not None and self._button_at(event.x) is None and self.size.height > 1 and not self.is_fixed:
            self._drag = _Drag(self.rows[place].message_id, place, place)
            self.capture_mouse()

    def on_mouse_move(self, event: MouseMove) -> None:
        """Show the dragged message at its new place, among the messages that the same agent gets in the same way."""
        if self._drag is None:
            return
        rows = self.rows
        if not 1 <= event.y <= MAX_ROWS:
            self._scroll(self._first + (1 if event.y > MAX_ROWS else -1))
        kin = [place for place, message in enumerate(rows) if _is_kin(message, rows[self._drag.start])]
        target = min(max(self._first + min(max(event.y, 1), MAX_ROWS) - 1, kin[0]), kin[-1])
        if target != self._drag.target:
            self._drag.target, self._has_dragged = target, True
            self.refresh()

    def on_mouse_up(self, event: MouseUp) -> None:
        """Move the dragged message."""
        drag = self._drag
        self._end_drag()
        if drag is not None and drag.target != drag.start:
            self.post_message(QueueRequest("move", drag.message_id, drag.target - drag.start))
            self.refresh()

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        """Show later messages."""
        self._scroll_by(1, event)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """Show earlier messages."""
        self._scroll_by(-1, event)

    def _end_drag(self) -> None:
        """Let the dragged message go; the queue has changed, or the user has let the button go."""
        if self._drag is not None:
            self._drag = None
            self.release_mouse()

    def _arranged_rows(self) -> tuple[WaitingMessage, ...]:
        """Return every message, with a dragged one where it would land."""
        rows = list(self.rows)
        if self._drag is not None:
            rows.insert(self._drag.target, rows.pop(self._drag.start))
        return tuple(rows)

    @property
    def _has_buttons(self) -> bool:
        return self.size.width >= _NARROW and not self.is_fixed

    def _row_at(self, y: int) -> int | None:
        """Return the index of the message in a row of the strip; None for any other row."""
        if self.size.height == 1:
            return self._only_row() if self.rows else None
        place = self._first + y - 1
        return place if 1 <= y <= MAX_ROWS and place < len(self.rows) else None

    def _button_at(self, x: int) -> int | None:
        """Return the index of the button in a column; None where there is none."""
        button = (x - (self.size.width - _BUTTON_CELLS)) // 2
        return button if button >= 0 and self._has_buttons and self.size.height > 1 else None

    def _only_row(self) -> int:
        """Return the index of the row for a window with room for one."""
        held = next((place for place, message in enumerate(self.rows) if message.held), None)
        return len(self.rows) - 1 if held is None else held

    def _scroll_by(self, rows: int, event: MouseScrollDown | MouseScrollUp) -> None:
        if len(self.rows) > MAX_ROWS:
            event.stop()
            self._scroll(self._first + rows)
            self.refresh()

    def _scroll(self, first: int) -> None:
        self._first = max(0, min(first, len(self.rows) - MAX_ROWS))


def _is_kin(message: WaitingMessage, other: WaitingMessage) -> bool:
    """True if two messages are in the same queue, so that one can move past the other."""
    return (message.follows_up, message.sub_agent) == (other.follows_up, other.sub_agent)


def _keys(rows: Sequence[WaitingMessage]) -> list[tuple[str, QueueAction]]:
    """Return the keys that change the edited or newest message, each with its word and what it does."""
    held = next((message for message in rows if message.held), None)
    if held is None:
        return [(hint("composer.earlier", "edit"), "edit"), (hint("queue.drop"), "drop")]
    keys: list[tuple[str, QueueAction]] = [(hint("composer.submit", "put back"), "put_back")]
    keys.append((hint("composer.close_suggestions", "leave as it was"), "leave"))
    if not held.sub_agent:
        keys.append((hint("composer.follow_up_or_leave", "steer" if held.follows_up else "follow-up"), "kind"))
    keys.append((hint("queue.drop"), "drop"))
    keys.append((command("queue.move_up").key_text, "up"))
    keys.append((hint("queue.move_down", "move"), "down"))
    return keys


def _key_at(x: int, width: int, rows: Sequence[WaitingMessage]) -> QueueRequest | None:
    """Return what a click on a column of the rule asks for; None beside its keys."""
    rule, start = _rule(width, _keys(rows)).plain, 0
    message_id = next((message.message_id for message in rows if message.held), rows[-1].message_id)
    for text, action in _keys(rows):
        place = rule.find(text, start) if text else -1
        if place >= 0:
            start = place + len(text)
            if cell_len(rule[:place]) <= x < cell_len(rule[:start]):
                return QueueRequest(action, message_id)
    return None


def _rule(width: int, actions: Sequence[tuple[str, QueueAction]]) -> Content:
    """Return the rule with the keys that change the queue; those that do not fit are left out."""
    keys = [text for text, _ in actions]
    if len(keys) > 2:
        # The two keys that move a message share one word.
        keys[-2:] = [" ".join(keys[-2:])]
    start = Content.assemble(("─ ", "$border-blurred"), "queue ")
    if keys and width >= _NARROW:
        start += Content.styled("── ", "$border-blurred")
        start += joined_parts([Content(key) for key in keys], width - start.cell_length - 2) + Content(" ")
    return (start + Content.styled("─" * max(0, width - start.cell_length), "$border-blurred"))[:width]


def _name(agent_id: str) -> str:
    return f"@{agent_id.rpartition('-')[0] or agent_id}"


def _kind(message: WaitingMessage) -> str:
    if message.sub_agent:
        return f"steer {_name(message.sub_agent)}"
    return "follow-up" if message.follows_up else "steer"


def _landing(message: WaitingMessage, session: SessionStatus) -> str:
    """Return the time of a message's delivery in words."""
    status = session.status
    if message.held:
        return "being edited"
    if status == "idle":
        return "waits for you to send it"
    if status == "stopping" and not message.sub_agent:
        # A run that ends delivers nothing more.
        return f"kept; the run ends {session.detail or 'now'}"
    if message.follows_up:
        return "a turn of its own after this one"
    if message.sub_agent:
        return "lands after its step"
    if sub_agent := next(filter(None, session.asking.values()), ""):
        # A sub-agent is a running call: a message withdraws only the questions of the agent that gets it.
        return f"lands after {_name(sub_agent)}, which waits for your answer"
    if status == "waiting_approval":
        # A question that a message withdraws is gone by now; this one is answered first.
        return "waits for your answer"
    return "lands after the running calls" if status == "running_tools" else "lands after this step"


def _row(number: int, message: WaitingMessage, status: SessionStatus, width: int, *, with_buttons: bool) -> Content:
    """Return one line: number, kind, text, delivery and buttons; the delivery is dropped first."""
    sign = "›" if message.held else " "
    head = Content.assemble(f"{sign}{number} ", (one_line(_kind(message), max(1, width // 3)), "$accent"), "  ")
    buttons = "".join(f"{sign} " for sign, _ in _BUTTONS) if with_buttons else ""
    room = width - head.cell_length - len(buttons)
    text, landing = one_line(message.text, _LONGEST), _landing(message, status)
    # Cut a long text before dropping the delivery.
    needed = min(cell_len(text) + 5, _LEAST_TEXT)
    tail = f"{landing} " if len(landing) + 1 + needed <= room else ""
    quoted = Content.styled(f"“{clip(text, max(1, room - len(tail) - 5))}”", "$text-muted" if message.held else "$text")
    gap = max(1, room - quoted.cell_length - len(tail))
    return Content("").join([head, quoted, Content(" " * gap), Content(tail), Content(buttons)])
