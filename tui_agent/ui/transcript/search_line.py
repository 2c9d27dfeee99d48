"""The line in which a person says what to look for in the conversation; it stands as long as matches are marked."""

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


class SearchCount(Widget):
    """How many matches there are, and the keys that lead through them."""

    DEFAULT_CSS = """
    SearchCount {
        width: auto;
        height: 1;
        padding-left: 1;
        color: $text-muted;
    }
    """

    query_text = reactive("", layout=True)
    """What is looked for."""
    matches = reactive(0, layout=True)
    """How often it is there."""
    typing = reactive(True, layout=True)
    """Whether keys are letters of it; else they are the conversation's."""

    def render(self) -> Content:
        """The words."""
        close = hint("search.close")
        if not self.query_text:
            return Content(f"{close} ")
        if not self.matches:
            return Content.assemble(("not found", "$warning"), f" · {close} ")
        place = "search" if self.typing else "conversation"
        keys = f"{hint(f'{place}.next_match')} · {hint(f'{place}.previous_match')} · {close}"
        return Content.assemble((f"{self.matches} found", "$text"), f" · {keys} ")


class SearchMarker(Widget):
    """The sign in front of what is looked for."""

    def render(self) -> Content:
        """The sign."""
        return Content(" / ")


class SearchLine(Horizontal):
    """Opens with the search key, searches with each letter, and goes with the last mark."""

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
        """Something else is looked for; nothing: no marks."""

        query: str

    @dataclass
    class Stepped(Message):
        """A person wants another match."""

        backwards: bool

    @dataclass
    class Confirmed(Message):
        """The text is right; the keys go to the conversation."""

    @dataclass
    class Closed(Message):
        """Enough looked."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._input = LineInput(placeholder="find in the conversation", compact=True)
        # A blinking cursor wakes an idle program twice a second.
        self._input.cursor_blink = False
        self._count = SearchCount()

    def compose(self) -> ComposeResult:
        """Sign, text, count."""
        yield SearchMarker(classes="search-sign")
        yield self._input
        yield self._count

    @property
    def is_open(self) -> bool:
        """Whether it is there."""
        return bool(self.display)

    def open(self) -> None:
        """Shows it, to be typed into; a text that is there is replaced by the first letter."""
        self.display = True
        self._input.focus()
        self._input.select_all()

    def close(self) -> None:
        """Hides it."""
        self.display = False
        with self.prevent(Input.Changed):
            self._input.value = ""
        self.show_matches(0)

    def show_matches(self, count: int) -> None:
        """Says how many there are."""
        self._count.query_text, self._count.matches = self._input.value, count

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Changed(event.value))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.post_message(self.Confirmed() if event.value else self.Closed())

    def on_descendant_focus(self) -> None:
        """Keys are letters now."""
        self._count.typing = True

    def on_descendant_blur(self) -> None:
        """Keys are the conversation's now."""
        self._count.typing = False

    def action_next_match(self) -> None:
        """The next match."""
        self.post_message(self.Stepped(backwards=False))

    def action_previous_match(self) -> None:
        """The match before."""
        self.post_message(self.Stepped(backwards=True))

    def action_close(self) -> None:
        """Enough looked."""
        self.post_message(self.Closed())
