"""Line with the query of a search in the conversation; shown while matches are marked."""

from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Input

from tui_agent.ui.base.commands import bindings_for, hint
from tui_agent.ui.text.input_fields import LineInput

from .transcript_search import Found


class SearchCount(Widget):
    """Number of matches, and the keys that move between them."""

    DEFAULT_CSS = """
    SearchCount {
        width: auto;
        height: 1;
        padding-left: 1;
        color: $text-muted;
    }
    """

    query_text = reactive("", layout=True)
    """Query of the search."""
    found = reactive(Found(), layout=True)
    """Matches so far."""
    typing = reactive(True, layout=True)
    """True if keys are letters of the query; otherwise the conversation gets them."""

    def render(self) -> Content:
        """Return the text."""
        close = hint("search.close")
        if not self.query_text:
            return Content(f"{close} ")
        found = self.found
        if not found.count and not found.is_counted:
            return Content(f"searching · {close} ")
        if not found.count:
            return Content.assemble(("not found", "$warning"), f" · {close} ")
        place = "search" if self.typing else "conversation"
        keys = f"{hint(f'{place}.next_match')} · {hint(f'{place}.previous_match')} · {close}"
        more = "" if found.is_counted else "+"
        count = f"{found.position} of {found.count}" if found.position else f"{found.count}{more} found"
        return Content.assemble((count, "$text"), f" · {keys} ")


class SearchMarker(Widget):
    """Sign before the query."""

    def render(self) -> Content:
        """Return the sign."""
        return Content(" / ")


class SearchLine(Horizontal):
    """Search line: opens with the search key, searches with each letter, and closes with the search."""

    DEFAULT_CSS = """
    SearchLine {
        height: 1;
        display: none;
        background: $panel;
        & > .search-sign { width: auto; height: 1; color: $accent; text-style: bold; }
        & > Input { width: 1fr; background: transparent; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("search")]

    @dataclass
    class Changed(Message):
        """The query has changed; empty: remove the marks."""

        query: str

    @dataclass
    class Stepped(Message):
        """The user moves to another match."""

        backwards: bool

    @dataclass
    class Confirmed(Message):
        """The user confirms the query; the conversation gets the keys."""

    @dataclass
    class Closed(Message):
        """The user ends the search."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._input = LineInput(placeholder="find in the conversation", compact=True)
        # A blinking cursor wakes an idle program twice a second.
        self._input.cursor_blink = False
        self._count = SearchCount()

    def compose(self) -> ComposeResult:
        """Yield sign, query and count."""
        yield SearchMarker(classes="search-sign")
        yield self._input
        yield self._count

    @property
    def is_open(self) -> bool:
        """True if the line is shown."""
        return bool(self.display)

    def open(self) -> None:
        """Show the line for typing; the first letter replaces an old query."""
        self.display = True
        self._input.focus()
        self._input.select_all()

    def close(self) -> None:
        """Hide the line."""
        self.display = False
        with self.prevent(Input.Changed):
            self._input.value = ""
        self.show_matches(Found())

    def show_matches(self, found: Found) -> None:
        """Show the number of matches and the place of the current one among them."""
        self._count.query_text, self._count.found = self._input.value, found

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Changed(event.value))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.post_message(self.Confirmed() if event.value else self.Closed())

    def on_descendant_focus(self) -> None:
        """Send keys to the query."""
        self._count.typing = True

    def on_descendant_blur(self) -> None:
        """Send keys to the conversation."""
        self._count.typing = False

    def action_next_match(self) -> None:
        """Go to the next match."""
        self.post_message(self.Stepped(backwards=False))

    def action_previous_match(self) -> None:
        """Go to the previous match."""
        self.post_message(self.Stepped(backwards=True))

    def action_close(self) -> None:
        """End the search."""
        self.post_message(self.Closed())
