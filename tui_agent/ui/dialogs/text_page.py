"""A page of text over the chat, such as help or the report of a run."""

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.widget import Widget

from tui_agent.ui.base.commands import COMMANDS, Command, bindings_for, command

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
