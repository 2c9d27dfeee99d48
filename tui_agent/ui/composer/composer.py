"""Where a person types. Always live: while text streams, while tools run, and its draft is never touched by others."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

from textual import on
from textual.binding import BindingType
from textual.events import Key
from textual.message import Message
from textual.widgets import TextArea

from tui_agent.ui.base.commands import Command, bindings_for

from .paste_folding_area import PasteFoldingArea
from .prompt_history import PromptHistory
from .prompt_parser import suggestions

SubmitKind = Literal["submit", "follow_up"]
"""Now (steering a run, if one goes on), or as a turn of its own."""


class Composer(PasteFoldingArea):
    """Sends with Enter, remembers what was sent, and offers the `/` commands that fit."""

    DEFAULT_CSS = """
    Composer {
        height: auto;
        min-height: 1;
        border: none;
        padding: 0;
        background: transparent;
        color: $text;
        scrollbar-size-vertical: 1;

        &:focus {
            border: none;
        }

        & .folding-area--escape {
            color: $warning;
        }

        & .text-area--placeholder {
            color: $text-disabled;
        }

        &:nocolor .text-area--cursor {
            text-style: reverse;
        }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("composer"), *bindings_for("queue")]

    @dataclass
    class Submitted(Message):
        """A person sent a text."""

        text: str
        kind: SubmitKind

    @dataclass
    class EditRequested(Message):
        """A person wants the last waiting message back."""

    @dataclass
    class DropRequested(Message):
        """A person throws the last waiting message away."""

    @dataclass
    class Suggested(Message):
        """Other commands fit what is typed; none: nothing to offer."""

        commands: tuple[Command, ...]
        chosen: int = 0

    def __init__(self, placeholder: str, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(placeholder, id=id)
        self.busy = False
        """Whether the agent works, so that a text can follow it up."""
        self.waiting = 0
        """Messages that wait for delivery."""
        self.yielded_keys: frozenset[str] = frozenset()
        """Letters that mean something else for the moment."""
        self.last_key: Key | None = None
        """The key that was pressed last, so that one which nobody used is not typed again."""
        self._history = PromptHistory()
        self._draft_left = ""
        """The text as shown before the user began to browse the history."""
        self._suggested: tuple[Command, ...] = ()
        self._suggested_for = ""
        self._chosen = 0

    def remember(self, texts: Iterable[str]) -> None:
        """Notes what was sent in earlier lives of the session, oldest first; all of it, each time."""
        self._history.begin_with(texts)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Closing is offered where something is open; elsewhere the key belongs to the screen."""
        if action == "close_suggestions":
            return bool(self._suggested)
        return super().check_action(action, parameters)

    async def on_key(self, event: Key) -> None:
        """Letters that mean something else are left to whoever gave them their meaning."""
        self.last_key = event
        if event.key in self.yielded_keys:
            event.prevent_default()
        # What was typed last may not have been told yet.
        self._suggest()

    def check_consume_key(self, key: str, character: str | None = None) -> bool:
        """Whether a key is text."""
        return key not in self.yielded_keys and super().check_consume_key(key, character)

    def action_submit(self) -> None:
        """Sends the draft, or the command that is chosen; after a backslash begins a new line instead."""
        if self._suggested:
            self._send(f"/{self._suggested[self._chosen].slash}", "submit")
        elif self._ends_in_backslash():
            self.action_new_line()
        else:
            self._send(self.draft, "submit")

    def action_follow_up(self) -> None:
        """Sends the draft as a turn of its own."""
        self._send(self.draft, "follow_up")

    def action_follow_up_or_leave(self) -> None:
        """Completes a command; follows up while the agent works; leaves an empty composer."""
        if self._suggested:
            self.show(f"/{self._suggested[self._chosen].slash} ")
        elif not self.text.strip():
            self.screen.focus_next()
        elif self.busy:
            self.action_follow_up()

    def action_new_line(self) -> None:
        """Begins a new line; a backslash in front of it asked for one and goes."""
        start, end = sorted(self.selection)
        if self._ends_in_backslash():
            start = (start[0], start[1] - 1)
        self._insert("\n", start, end)

    def action_earlier(self) -> None:
        """The row or suggestion above; on the first row what was sent before; empty: the last waiting message."""
        if self._suggested:
            self._choose(self._chosen - 1)
        elif self._row() > 0:
            self.action_cursor_up()
        elif not self.text and self.waiting:
            self.post_message(self.EditRequested())
        else:
            if not self._history.browsing:
                self._draft_left = self.text
            if (text := self._history.earlier(self.text)) is not None:
                self.show(text)

    def action_later(self) -> None:
        """The row or suggestion below; on the last row what was sent after the text shown."""
        if self._suggested:
            self._choose(self._chosen + 1)
        elif self._row() < self.wrapped_document.height - 1:
            self.action_cursor_down()
        elif (text := self._history.later()) is not None:
            if self._history.browsing:
                self.show(text)
            else:
                self._show_as_is(self._draft_left)

    def action_drop(self) -> None:
        """Throws the last waiting message away; with text, cuts what is selected."""
        if self.text:
            self.action_cut()
        elif self.waiting:
            self.post_message(self.DropRequested())

    def action_close_suggestions(self) -> None:
        """Hides the commands; the text stays."""
        self._offer(())

    @on(TextArea.Changed)
    def _text_changed(self) -> None:
        self._suggest()

    def _send(self, text: str, kind: SubmitKind) -> None:
        if text.strip():
            self._history.add(text)
            self.clear()
            self.post_message(self.Submitted(text.strip("\n"), kind))

    def _suggest(self) -> None:
        """Offers what fits the text, once for each text."""
        if self.text != self._suggested_for:
            self._suggested_for = self.text
            self._offer(suggestions(self.text))

    def _offer(self, commands: tuple[Command, ...]) -> None:
        if commands != self._suggested:
            self._suggested, self._chosen = commands, 0
            self.post_message(self.Suggested(commands))

    def _choose(self, place: int) -> None:
        self._chosen = place % len(self._suggested)
        self.post_message(self.Suggested(self._suggested, self._chosen))

    def _ends_in_backslash(self) -> bool:
        """Whether the cursor stands behind a backslash at the end of its line."""
        row, column = self.cursor_location
        line = self.document.get_line(row)
        return self.selection.is_empty and column == len(line) and line.endswith("\\")

    def _row(self) -> int:
        """The row of the cursor, wrapped lines counted as they are seen."""
        return self.wrapped_document.location_to_offset(self.cursor_location).y
