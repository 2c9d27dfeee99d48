"""The foot of the chat where the user types: queued messages, menus, the prompt sign and the composer."""

from collections.abc import Callable
from dataclasses import dataclass

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import TextArea

from tui_agent.ui.base.commands import Command, command, commands_for
from tui_agent.ui.state.queued_messages import WaitingMessages
from tui_agent.ui.state.session_status import SessionStatus
from tui_agent.ui.text.amounts import count_text
from tui_agent.ui.text.joined_parts import joined_parts
from tui_agent.ui.text.sanitiser import one_line

from .composer import Composer
from .queue_strip import QueueStrip

PLACEHOLDER = "Ask for something, or type / for commands"
PLACEHOLDER_BUSY = "Type to steer; alt+enter for a turn of its own"
OPEN_SECONDS = 6.0
"""Seconds until the interrupt menu closes by itself."""
MAX_ROWS = 8
"""Commands the slash menu shows at a time."""

_INTERRUPT_KEYS = frozenset(key for entry in commands_for("interrupt") for key in entry.keys)


class PromptMarker(Widget):
    """The sign in front of the text."""

    DEFAULT_CSS = """
    PromptMarker {
        width: 3;
        height: auto;
        color: $accent;
        text-style: bold;
    }
    """

    def render(self) -> Content:
        """Return the sign."""
        return Content(" › ")


class SlashMenu(Widget):
    """The `/` commands that match the text. It never has the focus: the composer chooses, the menu shows."""

    DEFAULT_CSS = """
    SlashMenu {
        height: auto;
        display: none;
        background: $surface;
        color: $text-muted;
    }
    """

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._commands: tuple[Command, ...] = ()
        self._chosen = 0

    def offer(self, commands: tuple[Command, ...], chosen: int) -> None:
        """Show commands with the one at index `chosen` marked; no commands hide the menu."""
        self._commands, self._chosen = commands, chosen
        self.display = bool(commands)
        self.refresh(layout=True)

    def render(self) -> Content:
        """Return one row for each command: name, argument, help."""
        first = max(0, min(self._chosen - MAX_ROWS // 2, len(self._commands) - MAX_ROWS))
        rows = self._commands[first : first + MAX_ROWS]
        return Content("\n").join([self._row(entry, entry is self._commands[self._chosen]) for entry in rows])

    def _row(self, entry: Command, chosen: bool) -> Content:
        name = f" {'›' if chosen else ' '} /{entry.slash} {entry.argument}"
        text = one_line(entry.help, max(1, self.size.width - 22))
        row = Content.assemble((f"{name:<20}", "$primary bold" if chosen else "$text"), (f" {text}", ""))
        gap = " " * max(0, self.size.width - row.cell_length)
        full = row + Content(gap)
        return full.stylize("$block-cursor-foreground on $block-cursor-background") if chosen else full


class InterruptMenu(Widget):
    """The ways to interrupt, each with its effect. The keys belong to the screen; the menu only shows them."""

    DEFAULT_CSS = """
    InterruptMenu {
        height: 1;
        display: none;
        color: $text;
        background: $panel;
    }
    """

    @dataclass
    class Closed(Message):
        """The menu closed by itself."""

    running = reactive(0)
    """Number of calls that cancelling would end."""
    waiting = reactive(0)
    """Number of queued messages that could be sent at once."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._timer: Timer | None = None

    @property
    def is_open(self) -> bool:
        """True while the keys of the menu count."""
        return bool(self.display)

    def open(self, running: int, waiting: int) -> None:
        """Show the menu until `close` or for `OPEN_SECONDS`."""
        self.running, self.waiting = running, waiting
        self.display = True
        self._stop_timer()
        # A letter that is typed later must be a letter again.
        self._timer = self.set_timer(OPEN_SECONDS, self._expire)

    def close(self) -> None:
        """Hide the menu."""
        self.display = False
        self._stop_timer()

    def _expire(self) -> None:
        self.close()
        self.post_message(self.Closed())

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None

    def render(self) -> Content:
        """Return the choices, as many as fit."""
        what = f"cancel {count_text(self.running, 'tool')} and stop" if self.running else "cancel and stop"
        choices: list[tuple[str, str]] = [(f"{command('interrupt.cancel').key_text} again", what)]
        choices.append((command("interrupt.stop").key_text, command("interrupt.stop").text))
        if self.waiting:
            choices.append((command("interrupt.now").key_text, command("interrupt.now").text))
        return joined_parts(
            [
                Content.assemble((key, "$warning bold"), f": {text}" if number == 0 else f" {text}")
                for number, (key, text) in enumerate(choices)
            ],
            self.size.width,
            start=" ",
        )


class PromptArea(Vertical):
    """The composer, which grows with its text to a third of the screen, and the lines above it."""

    DEFAULT_CSS = """
    PromptArea {
        height: auto;
        & > Horizontal {
            height: auto;
            & > * { border-top: solid $border-blurred; }
        }
        &:focus-within > Horizontal > * {
            border-top: solid $border;
        }
    }
    """

    @dataclass
    class RecallRequested(Message):
        """The user takes a queued message back."""

        message_id: str
        edit: bool
        """True if its text goes back into the composer; False if the message is dropped."""

    def __init__(self, queue: WaitingMessages, status: SessionStatus, notice: Widget, *, id: str | None = None) -> None:  # noqa: A002
        """Create the widgets.

        Args:
            queue: the queued messages.
            status: the session's status.
            notice: a line to be shown below the queue.
        """
        super().__init__(id=id)
        self.queue = QueueStrip(queue, status, id="queue")
        """The queued messages."""
        self.menu = InterruptMenu(id="interrupt")
        """The ways to interrupt."""
        self.composer = Composer(PLACEHOLDER, id="composer")
        """The text area."""
        self._notice = notice
        self._suggestions = SlashMenu()
        self._row = Horizontal()

    def compose(self) -> ComposeResult:
        """Yield the lines from the top, then the sign and the text area."""
        yield self.queue
        yield self._notice
        yield self.menu
        yield self._suggestions
        with self._row:
            yield PromptMarker()
            yield self.composer

    def fit(self, window: Size) -> None:
        """Limit the height of the composer to a third of the window."""
        # `vh` would do, but Textual keeps what it measures while the window changes, and the composer could vanish.
        rows = max(1, window.height // 3)
        # Both need the limit: the height that a row measures for itself ignores the limit of its children.
        for part in (self._row, self.composer):
            part.styles.max_height = rows

    def foot_rows(self, line: Widget) -> tuple[int, int]:
        """Return the rows of queue, composer and the line below it, and those without the queue."""
        short = self.composer.outer_size.height + line.outer_size.height
        return short + (self.queue.outer_size.height if self.queue.display else 0), short

    def set_busy(self, busy: bool) -> None:
        """Show that a text steers the run, or starts one."""
        if busy != self.composer.busy:
            self.composer.busy = busy
            self.composer.placeholder = PLACEHOLDER_BUSY if busy else PLACEHOLDER
        if not busy:
            self.close_menu()

    def after_typed_keys(self, do: Callable[[], object]) -> None:
        """Call a function once every key typed so far has reached the composer."""
        self.composer.call_later(do)

    # --- interrupt menu -----------------------------------------------------------------------------------------------

    def open_menu(self, running: int) -> None:
        """Open the interrupt menu while `running` calls execute; its letters no longer type."""
        self.menu.open(running, len(self.queue.messages))
        self.composer.yielded_keys = _INTERRUPT_KEYS

    @on(InterruptMenu.Closed)
    @on(TextArea.Changed)
    def close_menu(self) -> None:
        """Close the interrupt menu; its keys are letters again."""
        self.composer.yielded_keys = frozenset()
        self.menu.close()

    # --- children -----------------------------------------------------------------------------------------------------

    @on(Composer.Suggested)
    def _suggested(self, event: Composer.Suggested) -> None:
        event.stop()
        self._suggestions.offer(event.commands, event.chosen)

    @on(QueueStrip.Changed)
    def _queue_changed(self, event: QueueStrip.Changed) -> None:
        self.composer.waiting = event.count

    @on(Composer.EditRequested)
    @on(Composer.DropRequested)
    def _recall_last(self, event: Composer.EditRequested | Composer.DropRequested) -> None:
        if (last := self.queue.last) is not None:
            edit = isinstance(event, Composer.EditRequested)
            self.post_message(self.RecallRequested(last.message_id, edit))

    @on(QueueStrip.EditRequested)
    def _recall_one(self, event: QueueStrip.EditRequested) -> None:
        self.post_message(self.RecallRequested(event.message_id, edit=True))
