"""A page of text over the chat: help, what fills the window, what a run came to. The keys of reading, and back."""

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.widget import Widget

from tui_agent.ui.base.commands import COMMANDS, bindings_for

_OWN_KEYS = ("close", "line_up", "line_down", "page_up", "page_down", "scroll_top", "scroll_end")


class PageBody(Widget):
    """The text of the page, as high as it has to be."""

    DEFAULT_CSS = """
    PageBody {
        height: auto;
    }
    """

    def __init__(self, text_at: Callable[[int], Content]) -> None:
        super().__init__()
        self.text_at = text_at
        """Its text for a width in cells."""

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Lines at a width."""
        return self.text_at(width).get_height({}, width)

    def render(self) -> Content:
        """The lines."""
        return self.text_at(self.size.width)


class TextPage(ModalScreen[None]):
    """A page to read; esc closes it."""

    DEFAULT_CSS = """
    TextPage {
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

    def __init__(self, heading: str, text_at: Callable[[int], Content]) -> None:
        """
        Args:
            heading: what it is about.
            text_at: its text for a width in cells.
        """
        super().__init__()
        self.heading = heading
        """What it is about."""
        self.text_at = text_at
        """Its text for a width in cells."""

    def compose(self) -> ComposeResult:
        """The page."""
        with VerticalScroll(can_focus=False) as page:
            page.border_title = Content(self.heading)
            page.border_subtitle = "esc closes"
            yield PageBody(self.text_at)

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
