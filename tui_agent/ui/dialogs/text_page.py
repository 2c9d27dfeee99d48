"""Pages of text over the chat: one to read, whole diffs, and help with every command and key."""

from collections.abc import Callable, Mapping, Sequence
from textwrap import wrap
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.widget import Widget

from tui_agent.protocol.diffs import Diff
from tui_agent.protocol.prompt_references import PromptCommand
from tui_agent.ui.base.command_type import Command, Where, key_label
from tui_agent.ui.base.commands import COMMANDS, all_commands, bindings_for, command, first_keys, slash_commands
from tui_agent.ui.text.diff_rows import diff_rows
from tui_agent.ui.text.rows_view import RowsPage, RowsView
from tui_agent.ui.text.sanitiser import visible

# --- a page to read ---------------------------------------------------------------------------------------------------

_OWN_KEYS = ("close", "line_up", "line_down", "page_up", "page_down", "scroll_top", "scroll_end")


def page_keys() -> list[Command]:
    """Return the commands of a page to read: to close and to scroll it."""
    return [command for command in COMMANDS if command.action_name in _OWN_KEYS]


POLL_SECONDS = 1.0
"""Seconds between two updates of a text that changes."""


class PageBody(Widget):
    """The text of the page, as high as it needs."""

    DEFAULT_CSS = """
    PageBody {
        height: auto;
    }
    """

    def __init__(self, text_at: Callable[[int], Content]) -> None:
        super().__init__()
        self.text_at = text_at
        """Returns the text for a width in cells."""
        self._shown = Content()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return self.text_at(width).get_height({}, width)

    def render(self) -> Content:
        self._shown = self.text_at(self.size.width)
        return self._shown

    def update(self) -> None:
        """Show the text again if it has changed."""
        # Most looks at a log find what they found before, and a layout of it takes a moment.
        if self.text_at(self.size.width) != self._shown:
            self.refresh(layout=True)


class TextPage(ModalScreen[None]):
    """A page to read; esc closes it."""

    DEFAULT_CSS = """
    TextPage {
        align: center middle;
        & > VerticalScroll {
            width: 60%;
            min-width: 86;
            max-width: 100%;
            height: auto;
            max-height: 90%;
            background: $surface;
            border: round $border;
            border-title-color: $text;
            border-subtitle-color: $text-muted;
            padding: 0 2;
            scrollbar-size-vertical: 1;
        }
        /* The frame would leave no row for the text. */
        &.-tiny > VerticalScroll {
            height: 100%;
            max-height: 100%;
            border: none;
            padding: 0;
        }
    }
    """

    VERTICAL_BREAKPOINTS = [(0, "-tiny"), (10, "-roomy")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("detail", page_keys())]

    def __init__(self, heading: str, text_at: Callable[[int], Content], *, follows: bool = False) -> None:
        """Create the page; with `follows` the text changes while it is open."""
        super().__init__()
        self._follows = follows
        self._heading = heading
        self.text_at = text_at
        """Returns the text for a width in cells."""

    def compose(self) -> ComposeResult:
        with VerticalScroll(can_focus=False) as page:
            page.border_title = Content(self._heading)
            page.border_subtitle = f"{command('detail.close').key_text} closes"
            yield PageBody(self.text_at)

    def on_mount(self) -> None:
        if self._follows:
            self.set_interval(POLL_SECONDS, self.query_one(PageBody).update)

    @property
    def _page(self) -> VerticalScroll:
        return self.query_one(VerticalScroll)

    def action_close(self) -> None:
        self.dismiss(None)

    def action_line_up(self) -> None:
        """Scroll one line up."""
        self._page.scroll_up(animate=False)

    def action_line_down(self) -> None:
        """Scroll one line down."""
        self._page.scroll_down(animate=False)

    def action_page_up(self) -> None:
        self._page.scroll_page_up(animate=False)

    def action_page_down(self) -> None:
        self._page.scroll_page_down(animate=False)

    def action_scroll_top(self) -> None:
        """Scroll to the top."""
        self._page.scroll_home(animate=False)

    def action_scroll_end(self) -> None:
        """Scroll to the end."""
        self._page.scroll_end(animate=False)


class WholeDiffsPage(RowsPage[None]):
    """Whole diffs that a question cuts; esc goes back to the question."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("detail", page_keys())]

    def __init__(self, diff: Diff) -> None:
        super().__init__()
        self._rows = RowsView(lambda width: diff_rows(diff.files, width, clean=visible, named=True))

    def compose(self) -> ComposeResult:
        with Vertical() as page:
            page.border_title = Content(" Whole diffs ")
            page.border_subtitle = f" {command('detail.close').key_text} back "
            self._rows.can_focus = False
            yield self._rows

    @property
    def paged(self) -> RowsView:
        return self._rows

    def action_close(self) -> None:
        self.dismiss(None)


# --- help -------------------------------------------------------------------------------------------------------------

TITLES: dict[Where, str] = {
    "composer": "While typing",
    "chat": "At any time",
    "queue": "Queued messages",
    "interrupt": "After {interrupt}",
    "panel": "In the tool panel",
    "conversation": "In the conversation",
    "search": "While searching",
    "approval": "When a call needs your answer",
    "questions": "When several calls need your answer",
    "parts": "When you choose parts of a change",
    "detail": "On a page about a call",
    "list": "On every page with a list",
    "rewind": "While rewinding",
    "diff": "On the page of changes",
    "hunks": "On the changes of a file",
    "findings": "On the findings of a review",
    "source": "On the code of a finding",
    "sessions": "In the list of sessions",
    "permissions": "On the permissions page",
    "settings": "On the page of settings",
    "jobs": "On the page of background commands",
    "tasks": "In the list of tasks",
    "servers": "On the page of tool servers",
    "welcome": "On the first page",
    "report": "On the report of a run",
    "timeline": "On the timeline page",
    "player": "In a replay",
    "app": "Everywhere",
}
"""Headings of the parts of the screen, in the order of the page."""

_FLEET_TITLES: dict[Where, str] = {
    "fleet": "In the list of units",
    "timeline": "On the timeline of the workers",
    **{where: TITLES[where] for where in ("approval", "questions", "app")},
}
"""Parts of the screen of a fleet. A unit's conversation has a help page of its own."""

_COLUMN, _NARROW_COLUMN = 24, 15
"""Cells in front of the help texts."""
_WIDE = 70
"""Columns from which names have a wide column."""


def help_text(
    width: int, own: Sequence[PromptCommand] = (), offers: Callable[[Command], bool] = lambda _: True
) -> Content:
    """Return the page for a width, with the keys that one needs first at the top; `own` are the commands of files."""
    parts = [_heading("The keys you need first")]
    parts += [_row(_keys(entry), entry, width) for entry in first_keys() if offers(entry)]
    parts += [Content(""), _heading("Commands")]
    parts += [_row(f"/{entry.slash} {entry.argument}", entry, width) for entry in slash_commands() if offers(entry)]
    inputs = [entry for entry in all_commands() if entry.argument and not entry.slash and offers(entry)]
    parts += [_row(entry.argument, entry, width) for entry in inputs]
    if own:
        parts += [Content(""), _heading("Your commands and skills")]
        parts += [_row(visible(f"/{entry.slash} {entry.argument}"), entry, width) for entry in own]
    return Content("\n").join([*parts, *_key_rows(TITLES, width, offers)])


def fleet_help_text(width: int) -> Content:
    """Return the page of the screen of a fleet, wrapped to a width."""
    # The first row is the blank one above a heading.
    return Content("\n").join(_key_rows(_FLEET_TITLES, width)[1:])


def _key_rows(
    titles: Mapping[Where, str], width: int, offers: Callable[[Command], bool] = lambda _: True
) -> list[Content]:
    rows: list[Content] = []
    for where, title in titles.items():
        entries = [entry for entry in all_commands() if entry.where == where and entry.keys and offers(entry)]
        if not entries:
            continue
        heading = _heading(title.format(interrupt=command("chat.interrupt").key_text))
        rows += [Content(""), heading, *[_row(_keys(entry), entry, width) for entry in entries]]
    return rows


def _heading(title: str) -> Content:
    return Content.styled(title, "$primary bold")


def _row(name: str, entry: Command | PromptCommand, width: int) -> Content:
    column = _COLUMN if width >= _WIDE else _NARROW_COLUMN
    lines = wrap(visible(entry.help), max(20, width - column)) or [""]
    if len(name) > column - 3:
        lines.insert(0, "")
    text = f"\n{' ' * column}".join(lines)
    return Content.assemble((f"  {name:<{column - 3}} ", "$text bold"), (text, "$text-muted"))


def _keys(entry: Command) -> str:
    return ", ".join(key_label(key) for key in entry.keys)
