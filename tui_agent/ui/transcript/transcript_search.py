"""Search in the conversation, also in closed parts, and the line with its query.

Matches are counted from the newest part to the oldest, one slice of the text at a time, so that a conversation of any
length can be searched.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
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
from tui_agent.ui.text.line import Line
from tui_agent.ui.text.styled_lines import styled_over

from .transcript_layout import Part, Transcript

MAX_MATCHES = 10_000
"""Most matches counted in one part."""
SLICE = 500_000
"""Characters searched in one slice; its last part is searched to the end."""
LONGEST_LAID_OUT = 100_000
"""Most characters of a part that is laid out as a whole to find a match; in a longer one only rows nearby are."""
_LEAST_OF_PART = 400
"""Characters that a part counts at least: getting its text has a price, too."""
_NONE = (0, 0)
_NEARBY = 200
"""Rows above and below the expected row of a match."""


@dataclass(frozen=True, slots=True)
class Found:
    """Result of a search so far."""

    position: int = 0
    """Number of the current match, from 1; 0 while it is not known."""
    count: int = 0
    """Matches counted so far."""
    is_counted: bool = True
    """True if that is all of them."""


class TranscriptSearch:
    """One search: its query, and the current match."""

    def __init__(self, transcript: Transcript, query: str) -> None:
        self.query = query
        """Query of the search."""
        self._transcript = transcript
        self._pattern = re.compile(re.escape(query), re.IGNORECASE)
        self._part: Part | None = None
        self._ordinal = 0
        # A dict gives its newest entry at once: matches near the end are counted first.
        self._uncounted = dict.fromkeys(transcript.parts)
        self._counted: dict[Part, tuple[int, int]] = {}
        self.count = 0
        """Matches counted so far."""
        self.count_on()

    @property
    def is_counted(self) -> bool:
        """True if the whole conversation was counted."""
        return not self._uncounted

    @property
    def position(self) -> int:
        """Number of the current match, from 1 for the oldest; 0 while it is not known."""
        if self._part is None or self._uncounted or not self._transcript.has(self._part):
            return 0
        before = self._transcript.from_part(self._part, backwards=True)
        return sum(self._counted.get(part, _NONE)[1] for part in before) + self._ordinal + 1

    def count_on(self) -> bool:
        """Count in the next slice of the text, new parts included; return False if everything was counted already."""
        # Nearly all new parts are at the end.
        for part in reversed(self._transcript.parts):
            if part in self._counted or part in self._uncounted:
                break
            self._uncounted[part] = None
        if not self._uncounted:
            return False
        looked_at = 0
        while self._uncounted and looked_at < SLICE:
            part, _ = self._uncounted.popitem()
            self._matches(part)
            looked_at += len(part.text) + _LEAST_OF_PART
        return True

    def step(self, *, backwards: bool = False) -> Part | None:
        """Go to the next match, around the end if necessary; return its part, or None if there is no match."""
        within = self._ordinal + (-1 if backwards else 1)
        if self._part is not None and self._transcript.has(self._part) and 0 <= within < self._matches(self._part):
            self._ordinal = within
            return self._part
        for part in self._around(backwards):
            count = self._matches(part)
            if count:
                self._part, self._ordinal = part, count - 1 if backwards else 0
                return part
        return None

    def row(self) -> int:
        """Return the row of the match within its part, which is laid out for that."""
        part, width = self._part, self._transcript.width
        if part is None:
            return 0
        if len(part.text) > LONGEST_LAID_OUT:
            return self._row_nearby(part, width)
        # A match may be broken between rows, so all rows of the part are joined again.
        part.settle(width, 0, 1_000_000)
        ends: list[int] = []
        text = ""
        for number in range(part.height(width)):
            line = part.line(width, number)
            text += ("\n" if line.joint is None else line.joint) + line.plain[line.indent :]
            ends.append(len(text))
        places = [match.start() for match in self._pattern.finditer(text)]
        # The match is in what the layout leaves out, such as the signs of Markdown.
        if not places:
            return int(part.gap)
        place = places[min(self._ordinal, len(places) - 1)]
        return next(number for number, end in enumerate(ends) if place < end)

    def marked(self, line: Line, *, here: bool) -> Line:
        """Return a row with its matches marked; `here` is True for the row of the current match."""
        found = list(self._pattern.finditer(line.plain))
        if not found:
            return line
        # The colours of a diff are worked out when it is drawn, and the marks go over them.
        runs = line.painted
        for match in found:
            runs = styled_over(runs, match.start(), match.end(), "found-here" if here else "found")
        return Line(tuple(runs), line.joint, line.indent, line.fill)

    def _matches(self, part: Part) -> int:
        # Counting it now could take longer than a slice; the search returns to it once it is counted.
        if part in self._uncounted:
            return 0
        text = part.text
        length, count = self._counted.get(part, (-1, 0))
        # A part grows or is replaced; to compare whole texts would cost as much as to count.
        if length != len(text):
            before, count = count, sum(1 for _ in islice(self._pattern.finditer(text), MAX_MATCHES))
            self._counted[part] = len(text), count
            self.count += count - before
        return count

    def _row_nearby(self, part: Part, width: int) -> int:
        """Return the row of the match in a long part: the row with a match that is nearest to the expected one."""
        text = part.text
        match = next(islice(self._pattern.finditer(text), self._ordinal, None), None)
        before, whole = _rows_about(text[: match.start() if match else 0], width), _rows_about(text, width)
        # Rows are about equally long everywhere, so the share of the text is that of the rows.
        row = round(part.height(width) * before / whole)
        first = max(0, row - _NEARBY)
        row += part.settle(width, first, row + _NEARBY)
        rows = range(max(0, row - _NEARBY), min(part.height(width), row + _NEARBY))
        found = [place for place in rows if self._pattern.search(part.line(width, place).plain)]
        return min(found, key=lambda place: abs(place - row), default=min(row, max(0, part.height(width) - 1)))

    def _around(self, backwards: bool) -> Iterator[Part]:
        """Return all parts, from the one after (or before) the current match on."""
        at = self._part if self._transcript.has(self._part) else None
        return chain(
            self._transcript.from_part(at, backwards=backwards), self._transcript.from_part(None, backwards=backwards)
        )


def _rows_about(text: str, width: int) -> float:
    """Return about how many rows a text takes."""
    return text.count("\n") + len(text) / max(1, width)


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
        # An emptied field is not another query.
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
