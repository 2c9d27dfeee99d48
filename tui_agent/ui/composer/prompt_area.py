"""The foot of the chat where the user types: queued messages, menus, the prompt sign and the composer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from textual import getters, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.events import Key, Paste
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input, TextArea

from tui_agent.protocol.amounts import count_text
from tui_agent.ui.base.app_type import ImmediateLayout, any_app
from tui_agent.ui.base.commands import command, commands_for, hint
from tui_agent.ui.state.queued_messages import WaitingMessages
from tui_agent.ui.state.session_status import SessionStatus
from tui_agent.ui.text.sanitiser import one_line
from tui_agent.ui.text.styled_lines import joined_parts

from .composer import Composer
from .notice_lines import MentionPreview, NoticeLine, RefusalLine
from .prompt_parser import Suggestion
from .queue_strip import QueueStrip

PLACEHOLDER = "Ask for something, or type / for commands"
OPEN_SECONDS = 6.0
"""Seconds until the interrupt menu closes by itself."""
PREVIEW_HEIGHT = 24
"""Rows of the window from which a preview is shown."""
FRAMED = 10
"""Rows of the window from which the composer has a frame; `-short` begins there."""
MAX_ROWS = 8
"""Suggestions that the menu shows at a time."""
_LABEL = 20
"""Cells of the column of commands."""
_KEY, _KEY_COLUMN = 12, 29
"""Cells of a key, and fewest cells of a key with what it does."""


def placeholder(*, busy: bool, idle_text: str = PLACEHOLDER) -> str:
    """Return the text of an empty composer."""
    follow_up = command("composer.follow_up").key_text
    turn = f"; {follow_up} for a turn of its own" if follow_up else ""
    return f"Type to steer{turn}" if busy else idle_text


class PromptMarker(Widget):
    """The sign in front of the text: `[N]` in the normal mode of vim."""

    DEFAULT_CSS = """
    PromptMarker {
        width: 3;
        height: auto;
        color: $accent;
        text-style: bold;
    }
    """

    normal_mode = reactive(False)
    """True if letters do not type text."""
    searching = reactive(False)
    """True if the text is a search."""

    def render(self) -> Content:
        return Content(" / " if self.searching else "[N]" if self.normal_mode else " › ")


class SlashMenu(Widget):
    """The `/` commands, files and sub-agents that match the text. The composer, which has the focus, chooses one."""

    DEFAULT_CSS = """
    SlashMenu {
        height: auto;
        display: none;
        background: $surface;
        color: $text-muted;
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._entries: tuple[Suggestion, ...] = ()
        self._chosen = 0
        self._column = _LABEL
        self._title: tuple[str, str] = ("", "")

    def offer(self, entries: tuple[Suggestion, ...], chosen: int, title: tuple[str, str] = ("", "")) -> None:
        """Show suggestions with the one at index `chosen` marked, below a title with its keys; none hide the menu."""
        self._entries, self._chosen, self._title = entries, chosen, title
        self.display = bool(entries)
        self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        if self._shows_keys:
            return bool(self._title[0]) + len(self._key_rows(width))
        return bool(self._title[0]) + min(len(self._entries), MAX_ROWS + 1)

    @property
    def _shows_keys(self) -> bool:
        return bool(self._entries) and self._entries[0].kind == "key"

    def _key_rows(self, width: int, most: int = MAX_ROWS + 2) -> list[Content]:
        """Return as many keys as fit into a number of rows, in columns that are read downwards."""
        columns = max(1, min(3, width // _KEY_COLUMN))
        column = width // columns
        count = min(-(-len(self._entries) // columns), most)
        cells = [
            Content.assemble((f"   {entry.label:<{_KEY}}", "$text"), one_line(entry.help, column - _KEY - 4))
            for entry in self._entries[: count * columns]
        ]
        rows: list[Content] = []
        for row in range(count):
            parts = [cell + Content(" " * (column - cell.cell_length)) for cell in cells[row::count]]
            rows.append(Content("").join(parts))
        return rows

    def render(self) -> Content:
        """Return one row for each suggestion, as many as fit, and the number of those above and below."""
        title = [self._title_row()] if self._title[0] and self.size.height > 1 else []
        if self._shows_keys:
            return Content("\n").join([*title, *self._key_rows(self.size.width, max(1, self.size.height - len(title)))])
        count, height = len(self._entries), max(1, self.size.height - len(title))
        widths = [cell_len(entry.label) + 3 for entry in self._entries if entry.help]
        self._column = max((width for width in widths if _LABEL < width <= self.size.width // 4), default=_LABEL)
        shown = count if count <= height else max(1, height - 1)
        first = max(0, min(self._chosen - shown // 2, count - shown))
        rows = [self._row(self._entries[place], chosen=place == self._chosen) for place in range(first, first + shown)]
        if shown < count and height > 1:
            below = count - first - shown
            more = [f"↑ {first} more"] * bool(first) + [f"↓ {below} more"] * bool(below)
            rows.append(Content.styled(f"   {' · '.join(more)}", "$text-muted"))
        return Content("\n").join([*title, *rows])

    def _title_row(self) -> Content:
        name, keys = self._title
        gap = " " * max(3, self.size.width - cell_len(name) - cell_len(keys) - 5)
        fits = self.size.width >= cell_len(name) + cell_len(keys) + 8
        return Content.assemble((f"   {name}", "$text bold"), (f"{gap}{keys}" if fits else "", "$text-muted"))

    def _row(self, entry: Suggestion, *, chosen: bool) -> Content:
        width = max(1, self.size.width - 4)
        label = one_line(entry.label, width)
        name = f" {'›' if chosen else ' '} {label}"
        text = (
            one_line(entry.help, max(1, self.size.width - max(self._column, cell_len(name)) - 2)) if entry.help else ""
        )
        padding = " " * (self._column - cell_len(name))
        row = Content.assemble((f"{name}{padding}", "$primary bold" if chosen else "$text"), (f" {text}", ""))
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

    def __init__(self) -> None:
        super().__init__(id="interrupt")
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


class PromptArea(Vertical, ImmediateLayout):
    """The composer, which grows with its text to a third of the screen, and the lines above it."""

    app = getters.app(any_app)
    DEFAULT_CSS = """
    PromptArea {
        height: auto;
        & > Horizontal { height: auto; }
    }
    """

    @dataclass
    class FileHighlighted(Message):
        """The menu highlights another file: answer with `preview.show`."""

        path: str
        """Its path; empty if no file is highlighted."""
        line: int = 1
        """Number of the first line to show."""

    def __init__(
        self,
        queue: WaitingMessages,
        status: SessionStatus,
        notice: Widget,
        frame: Widget,
    ) -> None:
        super().__init__(id="entry")
        self.queue = QueueStrip(queue, status)
        """The queued messages."""
        self.menu = InterruptMenu()
        """The ways to interrupt."""
        self.composer = Composer(PLACEHOLDER)
        """The text area."""
        self.rows_below = 0
        """Rows of the screen below the line."""
        self.idle_text = PLACEHOLDER
        """Text of the empty composer while nothing runs."""
        self._notice = notice
        self._frame = frame
        self.refusal = RefusalLine()
        """The reason why the text was not sent."""
        self.notices = NoticeLine()
        """Answers to commands and other short messages."""
        self.preview = MentionPreview()
        """The first lines of the file that the menu highlights."""
        self._suggestions = SlashMenu()
        self._marker = PromptMarker()
        self._row = Horizontal()

    def compose(self) -> ComposeResult:
        yield self.queue
        yield self._notice
        yield self.menu
        yield self.preview
        yield self._suggestions
        yield self.notices
        yield self.refusal
        yield self._frame
        with self._row:
            yield self._marker
            yield self.composer

    def fit(self, window: Size) -> None:
        """Limit the height of composer and frame to a third of the window."""
        # `vh` would do, but Textual keeps what it measures while the window changes, and the composer could vanish.
        rows = max(1, window.height // 3 - (window.height >= FRAMED))
        # Both need the limit: the height that a row measures for itself ignores the limit of its children.
        for part in (self._row, self.composer):
            part.styles.max_height = rows

    def foot_rows(self, line: Widget) -> tuple[int, int]:
        """Return the rows from the queue to the end of the screen, and those without the queue."""
        frame = self._frame.outer_size.height if self._frame.display else 0
        short = frame + self.composer.outer_size.height + line.outer_size.height + self.rows_below
        return short + (self.queue.outer_size.height if self.queue.display else 0), short

    def set_busy(self, busy: bool) -> None:
        """Show that a text steers the run, or starts one."""
        if busy != self.composer.busy:
            self.composer.busy = busy
            self._show_placeholder()
        # Nothing is left to interrupt.
        if not busy:
            self.close_menu()

    def direct_typing(self, event: Key | Paste) -> None:
        """Give the focus to the composer if a key or paste is text and no text field has the focus."""
        is_text = isinstance(event, Paste) or event.is_printable
        if is_text and not isinstance(self.screen.focused, Input | TextArea):
            self.screen.set_focus(self.composer)

    def type_text(self, typed: Sequence[Key | Paste]) -> None:
        """Type keys and pastes into the composer, and give it the focus."""
        # The letters of an open interrupt menu, or of vim, would not be text.
        self.close_menu()
        self.composer.type_text()
        self.screen.set_focus(self.composer)
        for event in typed:
            copied = Paste(event.text) if isinstance(event, Paste) else Key(event.key, event.character)
            self.composer._forward_event(copied)

    def after_typed_keys(self, do: Callable[[], object]) -> None:
        """Call a function once every key typed so far has reached the composer."""
        self.composer.call_later(do)

    def offer(self, text: str) -> None:
        """Show an offer above the composer until the user types."""
        if not self.composer.text:
            self.refusal.show(text, "", is_offer=True)

    def offer_undo(self, text: str) -> None:
        """Show that a message was dropped and can be restored, until the user types."""
        self.composer.dropped += 1
        self.refusal.show(text, self.composer.text, is_offer=True)

    def undone(self) -> None:
        """Hide the offer to restore a message, unless another one can be restored."""
        self.composer.dropped = max(0, self.composer.dropped - 1)
        if self.composer.dropped:
            more = f"{count_text(self.composer.dropped, 'more dropped message')}. "
            self.refusal.show(f"{more}{hint('queue.undo_drop', 'brings it back')}.", self.composer.text, is_offer=True)
        else:
            self.refusal.hide()

    @on(RefusalLine.Clicked)
    def _offer_clicked(self) -> None:
        """Do what the offer says: bring a dropped message back."""
        if self.composer.can_undo_drop:
            # A message that this widget sends from within its child would not come back to it and its parents.
            self.composer.call_next(self.composer.action_undo_drop)

    # --- interrupt menu -----------------------------------------------------------------------------------------------

    def open_menu(self, running: int) -> None:
        """Open the interrupt menu while `running` calls execute; its letters no longer type."""
        self.menu.open(running, len(self.queue.messages))
        self.composer.yielded_keys = frozenset(key for entry in commands_for("interrupt") for key in entry.keys)

    @on(InterruptMenu.Closed)
    @on(TextArea.Changed)
    def close_menu(self) -> None:
        """Close the interrupt menu; its keys are letters again."""
        self.composer.yielded_keys = frozenset()
        self.menu.close()

    def _show_placeholder(self) -> None:
        normal = placeholder(busy=self.composer.busy, idle_text=self.idle_text)
        self.composer.placeholder = "search" if self.composer.searching else normal

    def _title_of(self, entries: tuple[Suggestion, ...]) -> tuple[str, str]:
        """Return title and keys of the menu; commands and files need none."""
        if self.composer.searching:
            back = hint("composer.close_suggestions", "back")
            return "Earlier prompts", f"enter takes it · {hint('composer.search_prompts', 'older')} · {back}"
        if entries and entries[0].kind == "key":
            back = hint("composer.close_suggestions", "back")
            return "Keys", f"{hint('composer.submit', 'shows all')} · {back}"
        return "", ""

    # --- children -----------------------------------------------------------------------------------------------------

    @on(Composer.Suggested)
    def _suggested(self, event: Composer.Suggested) -> None:
        event.stop()
        self._suggestions.offer(event.entries, event.chosen, self._title_of(event.entries))
        self._marker.searching = self.composer.searching
        self._show_placeholder()
        # In a low window the preview would cover what the user reads.
        fits = self.screen.size.height >= PREVIEW_HEIGHT
        entry = event.entries[event.chosen] if event.entries and fits else None
        path, line = (entry.path, entry.line) if entry is not None else ("", 1)
        if (path, line) != self.preview.place:
            self.preview.expect(path, line)
            self.post_message(self.FileHighlighted(path, line))

    @on(TextArea.Changed)
    def _text_changed(self) -> None:
        self.refusal.text_changed(self.composer.text)
        if not self.refusal.display:
            self.composer.dropped = 0

    @on(Composer.ModeChanged)
    def _mode_changed(self, event: Composer.ModeChanged) -> None:
        event.stop()
        self._marker.normal_mode = event.mode == "normal"

    @on(QueueStrip.Changed)
    def _queue_changed(self, event: QueueStrip.Changed) -> None:
        self.composer.waiting = 0 if self.queue.is_fixed else event.count
