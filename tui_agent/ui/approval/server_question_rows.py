"""Rows of a question of a tool server, and the widgets for the fields of its form: a line of text, or a choice."""

from collections.abc import Sequence
from urllib.parse import urlsplit

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widget import Widget

from tui_agent.protocol.server_question import FieldValue, FormField, ServerQuestion
from tui_agent.ui.text.input_fields import LineInput
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.rows_view import RowsView
from tui_agent.ui.text.sanitiser import one_line, visible
from tui_agent.ui.text.styled_lines import clipped, folded, wrapped

# --- rows -------------------------------------------------------------------------------------------------------------

_NAME = 40
"""Cells of the name of a server in a title."""


def question_title(question: ServerQuestion) -> str:
    """Return the question as a sentence."""
    server = one_line(visible(question.server), _NAME)
    match question.kind:
        case "form":
            return f"The server {server} asks you"
        case "url":
            return f"Open a page for the server {server}?"
        case "sign_in":
            return f"Sign in to the server {server}?"
        case "sampling":
            return f"Let the server {server} ask the model?"


def question_rows(question: ServerQuestion, width: int) -> list[Line]:
    """Return the question: its words, its page, and the fields of its form."""
    rows = wrapped([(visible(question.message), "")], width) if question.message else []
    if question.url:
        host = urlsplit(question.url).hostname or ""
        rows += [Line(), *folded([(visible(question.url), "strong")], width)]
        rows += wrapped([("a page of ", "muted"), (visible(host), "strong")], width)
    if question.kind == "form":
        rows.append(Line())
        for field in question.fields:
            runs: list[Run] = [("· ", "muted"), (visible(field.label), "strong"), (field_note(field), "muted")]
            rows += wrapped(runs, width)
        rows += wrapped([("The server receives your answer: no secrets of other services.", "muted")], width)
    return rows


def field_note(field: FormField) -> str:
    """Return the kind of a field and its limits, for the end of its label."""
    words = {"number": "number", "integer": "whole number", "flag": "yes or no", "choices": "several choices"}
    notes = [words[field.kind]] if field.kind in words else [field.format] if field.format else []
    if field.kind == "choice":
        notes.append(f"one of {len(field.choices)}")
    if field.kind in ("number", "integer"):
        limits = [f"from {field.least:g}"] if field.least is not None else []
        limits += [f"to {field.most:g}"] if field.most is not None else []
        notes += [" ".join(limits)] if limits else []
    notes += ["required"] if field.required else []
    notes += ["not saved"] if field.is_secret else []
    return f"  {', '.join(notes)}" if notes else ""


def value_text(value: object) -> str:
    """Return the default of a field of text."""
    return "" if value is None else str(value)


# --- fields -----------------------------------------------------------------------------------------------------------

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
        """Go to another choice."""
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
        self.entry: LineInput | ChoiceField
        """The widget with the value."""
        if field.kind in ("flag", "choice", "choices"):
            self.entry = ChoiceField(field)
        else:
            self.entry = LineInput(value=value_text(field.default), password=field.is_secret)
            # A blinking cursor wakes an idle program twice a second.
            self.entry.cursor_blink = False
        self._label = RowsView(self.label_rows)

    def compose(self) -> ComposeResult:
        """Yield label and widget."""
        self._label.can_focus = False
        yield self._label
        yield self.entry

    def lay_out(self, width: int) -> int:
        """Give the label its rows; return the rows of all."""
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
        return self.entry.value if isinstance(self.entry, ChoiceField) else self.field.read(self.entry.value)
