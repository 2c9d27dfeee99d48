"""Every key and every command on one page, made from the one table."""

from textwrap import wrap
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.widget import Widget

from tui_agent.ui.commands import COMMANDS, Command, Where, bindings_for, key_words, slash_commands

_TITLES: dict[Where, str] = {
    "composer": "While typing",
    "chat": "At any time",
    "queue": "Waiting messages",
    "interrupt": "After esc",
    "panel": "In the tool panel",
    "conversation": "In the conversation",
    "search": "While searching",
    "approval": "When a call needs you",
    "questions": "When several calls need you",
    "detail": "On a page about a call",
    "everywhere": "Everywhere",
}
_OWN_KEYS = ("close", "line_up", "line_down", "page_up", "page_down", "scroll_top", "scroll_end")


_COLUMN = 24
"""Cells before the help texts."""


class HelpBody(Widget):
    """The text of the page, as high as it has to be."""

    DEFAULT_CSS = """
    HelpBody {
        height: auto;
    }
    """

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Lines at a width."""
        return help_text(width).plain.count("\n") + 1

    def render(self) -> Content:
        """The lines."""
        return help_text(self.size.width)


class HelpPage(ModalScreen[None]):
    """A page to read; esc closes it."""

    DEFAULT_CSS = """
    HelpPage {
        align: center middle;
        & > VerticalScroll {
            width: 86;
            max-width: 100%;
            height: 90%;
            background: $surface;
            border: round $border;
            border-title-color: $text;
            border-subtitle-color: $text-muted;
            padding: 0 2;
            scrollbar-size-vertical: 1;
        }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings_for("detail", [command for command in COMMANDS if command.action_name in _OWN_KEYS])
    ]

    def compose(self) -> ComposeResult:
        """The page."""
        with VerticalScroll(can_focus=False) as page:
            page.border_title = "Help"
            page.border_subtitle = "esc closes"
            yield HelpBody()

    @property
    def _page(self) -> VerticalScroll:
        return self.query_one(VerticalScroll)

    def action_close(self) -> None:
        """Back."""
        self.dismiss(None)

    def action_line_up(self) -> None:
        """One line up."""
        self._page.scroll_up(animate=False)

    def action_line_down(self) -> None:
        """One line down."""
        self._page.scroll_down(animate=False)

    def action_page_up(self) -> None:
        """One page up."""
        self._page.scroll_page_up(animate=False)

    def action_page_down(self) -> None:
        """One page down."""
        self._page.scroll_page_down(animate=False)

    def action_scroll_top(self) -> None:
        """To the top."""
        self._page.scroll_home(animate=False)

    def action_scroll_end(self) -> None:
        """To the end."""
        self._page.scroll_end(animate=False)


def help_text(width: int) -> Content:
    """Everything the table says, part by part, wrapped to a width."""
    parts = [_heading("Commands")]
    parts += [_row(f"/{entry.slash} {entry.argument}", entry, width) for entry in slash_commands()]
    parts += [_row(entry.argument, entry, width) for entry in COMMANDS if entry.argument and not entry.slash]
    for where, title in _TITLES.items():
        entries = [entry for entry in COMMANDS if entry.where == where and entry.keys]
        parts += [Content(""), _heading(title), *[_row(_keys(entry), entry, width) for entry in entries]]
    return Content("\n").join(parts)


def _heading(title: str) -> Content:
    return Content.styled(title, "$primary bold")


def _row(name: str, entry: Command, width: int) -> Content:
    """Name and help, the help in a column of its own."""
    lines = wrap(entry.help, max(20, width - _COLUMN)) or [""]
    text = f"\n{' ' * _COLUMN}".join(lines)
    return Content.assemble((f"  {name:<{_COLUMN - 3}} ", "$text bold"), (text, "$text-muted"))


def _keys(entry: Command) -> str:
    return ", ".join(key_words(key) for key in entry.keys)
