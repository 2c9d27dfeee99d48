"""Widgets for the fields of a form: a line of text, a choice in a row, or the numbered choices of the agent."""

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.events import Click
from textual.widget import Widget

from tui_agent.protocol.server_question import FieldValue, FormField
from tui_agent.ui.text.input_fields import LineInput
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.rows_view import RowsView
from tui_agent.ui.text.sanitiser import one_line, visible
from tui_agent.ui.text.styled_lines import clipped, wrapped

from .approval_rows import field_note

_OWN_WORDS = "type an answer of your own"
_LABEL_CELLS = 1_000
"""Most cells of a choice: the user reads all of what they choose."""
_OWN_CELLS = 60
"""Cells of an answer in the user's words."""
_MOST_DESCRIPTION_ROWS = 3


class ChoiceList(RowsView):
    """The question and its choices. The screen moves the cursor, and has the field for the user's own words."""

    def __init__(self, field: FormField) -> None:
        super().__init__(self.build)
        self.can_focus = False
        self.several = field.kind == "choices"
        """True if more than one choice may be marked."""
        self.own = ""
        """Answer in the user's words; empty for none."""
        self.cursor = 0
        """Place of the cursor; behind the choices is the answer in the user's words."""
        self._field = field
        default = field.default if isinstance(field.default, tuple) else (str(field.default or ""),)
        self._default = {choice.value for choice in field.choices if choice.value in default}
        self.marked: set[str] = set(self._default)
        """The choices that are marked."""
        self.cursor = next((n for n, choice in enumerate(field.choices) if choice.value in self._default), 0)

    @property
    def count(self) -> int:
        """Number of rows that the cursor can be on."""
        return len(self._field.choices) + 1

    @property
    def is_at_own(self) -> bool:
        """True if the cursor is on the answer in the user's words."""
        return self.cursor == self.count - 1

    @property
    def value(self) -> FieldValue:
        """The answer; None if there is none."""
        marked = [choice.value for choice in self._field.choices if choice.value in self.marked]
        if self.several:
            return [*marked, self.own] if self.own else marked or None
        return self.own or next(iter(marked), None)

    def move(self, by: int) -> None:
        """Move the cursor by some rows, around the ends."""
        self.cursor = (self.cursor + by) % self.count
        self.redraw()

    def mark(self) -> None:
        """Mark the choice at the cursor; of several also unmark it."""
        if self.is_at_own:
            return
        value = self._field.choices[self.cursor].value
        self.marked, self.own = (self.marked ^ {value}, self.own) if self.several else ({value}, "")
        self.redraw()

    def take(self) -> None:
        """Take the choice at the cursor; of several only if none is marked."""
        if not self.several or not (self.marked or self.own):
            self.mark()

    def say(self, text: str) -> None:
        """Take an answer in the user's words in place of one choice, or beside several."""
        self.own = text.strip()
        if self.own and not self.several:
            self.marked = set[str]()
        self.redraw()

    def build(self, width: int) -> Sequence[Line]:
        """Return the question and the choices."""
        return [row for _, rows in self._parts(width) for row in rows]

    def place_of_cursor(self, width: int) -> tuple[int, int]:
        """Return the first row of the choice at the cursor, from 0, and the row behind its last one."""
        top = 0
        for place, rows in self._parts(width):
            if place == self.cursor:
                return top, top + len(rows)
            top += len(rows)
        return 0, 0

    def on_click(self, event: Click) -> None:
        """Move the cursor to the choice; a click gives no answer."""
        row, top = event.y + self.scroll_offset.y, 0
        for place, rows in self._parts(self.row_width):
            if place is not None and top <= row < top + len(rows):
                self.cursor = place
                self.redraw()
            top += len(rows)

    def _parts(self, width: int) -> list[tuple[int | None, list[Line]]]:
        note: list[Run] = [("  several answers", "muted")] if self.several else []
        head = wrapped([(visible(self._field.label), "strong"), *note], width)
        parts: list[tuple[int | None, list[Line]]] = [(None, [*head, Line()])]
        for place, choice in enumerate(self._field.choices):
            label: list[Run] = [(one_line(visible(choice.label or choice.value), _LABEL_CELLS), self._style(place))]
            label += [("  default", "muted")] if choice.value in self._default else []
            rows = self._item(place, choice.value in self.marked, label, width)
            if choice.description:
                indent = 9 if self.several else 5
                room = max(8, width - indent)
                described = wrapped([(visible(choice.description), "muted")], room)[:_MOST_DESCRIPTION_ROWS]
                rows += [line.prefixed((" " * indent, "")) for line in described]
            parts.append((place, rows))
        own = one_line(visible(self.own), _OWN_CELLS)
        last = self.count - 1
        text: list[Run] = [(own or _OWN_WORDS, self._style(last) if own else "muted")]
        parts.append((last, self._item(last, bool(own), text, width)))
        return parts

    def _style(self, place: int) -> str:
        return "strong" if place == self.cursor else ""

    def _item(self, place: int, is_marked: bool, text: list[Run], width: int) -> list[Line]:
        box: list[Run] = [("[x] " if is_marked else "[ ] ", "")] if self.several else []
        head: list[Run] = [("› " if place == self.cursor else "  ", "key"), (f"{place + 1}  ", "key"), *box]
        indent = sum(len(part) for part, _ in head)
        first, *others = wrapped(text, max(8, width - indent))
        return [first.prefixed(*head), *(line.prefixed((" " * indent, "")) for line in others)]


_LABEL = 30
"""Cells of a choice."""
_NONE = "no answer"
MOST_DESCRIPTION_ROWS = 2


class ChoiceField(Widget, can_focus=True):
    """A choice in one row: left and right change it, and in a list of several, space marks one."""

    DEFAULT_CSS = """
    ChoiceField { height: 1; padding: 0 1; background: $panel; }
    ChoiceField:focus { text-style: bold; }
    """

    def __init__(self, field: FormField) -> None:
        super().__init__()
        self._several = field.kind == "choices"
        if field.kind == "flag":
            self._values: list[FieldValue] = [True, False]
            self._labels = ["yes", "no"]
        else:
            self._values = [choice.value for choice in field.choices]
            self._labels = [one_line(visible(choice.label or choice.value), _LABEL) for choice in field.choices]
        self._marked = set(field.default) if isinstance(field.default, tuple) else set[str]()
        # A required choice without a default begins with no answer, so that nothing is sent by accident.
        if not self._several and not (field.required and field.default is not None):
            self._values, self._labels = [None, *self._values], [_NONE, *self._labels]
        self._place = self._values.index(field.default) if field.default in self._values else 0

    @property
    def value(self) -> FieldValue:
        """The value; None if none is chosen."""
        if not self._several:
            return self._values[self._place]
        return [str(value) for value in self._values if value in self._marked] or None

    def move(self, by: int) -> None:
        """Go to a choice further right, or left if `by` is negative, around the ends."""
        self._place = (self._place + by) % len(self._values)
        self.refresh()

    def mark(self) -> None:
        """Mark or unmark the choice in a list of several; otherwise go to the next one."""
        if not self._several:
            self.move(1)
        else:
            self._marked ^= {str(self._values[self._place])}
            self.refresh()

    def render(self) -> Content:
        """Return the choice, with what surrounds it as far as it fits."""
        label = self._labels[self._place]
        if self._several:
            pairs = zip(self._values, self._labels, strict=True)
            marks = [f"[{'x' if value in self._marked else ' '}] {text}" for value, text in pairs]
            before, after = "  ".join(marks[: self._place]), "  ".join(marks[self._place + 1 :])
            room = max(0, self.size.width - len(marks[self._place]) - 4)
            before = before if len(before) <= room // 2 else f"…{before[-room // 2 :]}" if room > 2 else ""
            return Content.assemble(
                (f"{before}  " if before else "", "$text-muted"),
                (marks[self._place], "$primary" if self.has_focus else ""),
                (f"  {after}" if after else "", "$text-muted"),
            )
        count = f"  {self._place + 1} of {len(self._values)}"
        return Content.assemble(("‹ ", "$text-muted"), label, (" ›", "$text-muted"), (count, "$text-muted"))


class FormRow(Vertical):
    """One field with its label."""

    DEFAULT_CSS = """
    FormRow { height: auto; }
    FormRow > RowsView { background: $surface; overflow: hidden; }
    FormRow > LineInput, FormRow > LineInput:focus { height: 1; border: none; padding: 0 1; background: $panel; }
    """

    def __init__(self, field: FormField) -> None:
        super().__init__()
        self.field = field
        self.entry: LineInput | ChoiceField | ChoiceList
        """The widget with the value."""
        self.own: LineInput | None = None
        """The field for an answer in the user's own words; hidden until they type one."""
        if field.is_open:
            self.entry = ChoiceList(field)
            self.own = LineInput(placeholder="your answer")
            self.own.cursor_blink = self.own.display = False
        elif field.kind in ("flag", "choice", "choices"):
            self.entry = ChoiceField(field)
        else:
            self.entry = LineInput(value="" if field.default is None else str(field.default), password=field.is_secret)
            # A blinking cursor wakes an idle program twice a second.
            self.entry.cursor_blink = False
        self._label = RowsView(self.label_rows)

    def compose(self) -> ComposeResult:
        self._label.can_focus = False
        if self.own is None:
            yield self._label
        yield self.entry
        if self.own is not None:
            yield self.own

    def lay_out(self, width: int) -> int:
        """Give the label its rows; return the rows of all."""
        if isinstance(self.entry, ChoiceList) and self.own is not None:
            rows = len(self.entry.build(width))
            self.entry.styles.height = rows
            return rows + int(self.own.display)
        rows = len(self.label_rows(width))
        self._label.styles.height = rows
        return rows + 1

    def label_rows(self, width: int) -> Sequence[Line]:
        """Return the label and the description."""
        runs: list[Run] = [(visible(self.field.label), "strong"), (field_note(self.field), "muted")]
        rows = [Line(clipped(runs, width))]
        if self.field.description:
            rows += wrapped([(visible(self.field.description), "muted")], width)[:MOST_DESCRIPTION_ROWS]
        return rows

    def value(self) -> FieldValue:
        """Return the value; None if there is none.

        Raises:
            ValueError: the text is not a value of the field.
        """
        if isinstance(self.entry, LineInput):
            return self.field.read(self.entry.value)
        return self.entry.value
