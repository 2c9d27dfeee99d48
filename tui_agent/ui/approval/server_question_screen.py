"""The dialog of a tool server's question: a form to fill in, a page to open, or a sign-in.

It begins like an approval: letters answer, any other text goes to the composer. Only `y` opens the fields, or the page.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Resize
from textual.widget import Widget
from textual.widgets import Input

from tui_agent.protocol.amounts import count_text
from tui_agent.protocol.permissions import ApprovalDecision
from tui_agent.protocol.server_question import ServerQuestion
from tui_agent.ui.base.commands import bindings_for, command
from tui_agent.ui.base.immediate_layout import apply_initial_breakpoints
from tui_agent.ui.dialogs.question_screen import AnswerRow, QuestionScreen, TypedKeys
from tui_agent.ui.text.clipboard import copy_text
from tui_agent.ui.text.line import NARROWEST, Line
from tui_agent.ui.text.rows_view import Paging, RowsView
from tui_agent.ui.text.sanitiser import visible
from tui_agent.ui.text.styled_lines import wrapped

from .approval_answers import MAX_ANSWER_ROWS, Choice, answer_rows
from .approval_dialog import FOOTED, ROOMY, SHARE, TALL, WIDE, Cover, FootRows
from .server_question_rows import ChoiceField, FormRow, question_rows, question_title

if TYPE_CHECKING:
    from tui_agent.workbench.session_servers import SessionServers

LEAST_OF_FIELDS = 3
"""Rows for the fields in any window."""
_READING = ("line_up", "line_down", "page_up", "page_down", "scroll_top", "scroll_end")
_SHOWN = (
    *("accept", "copy_address", "type_address", "decline", "skip"),
    *("send", "next_field", "next_choice", "mark_choice", "not_now"),
)
"""Answers in the row of keys."""
_OPENED = "The page is open in your browser."
_WAITING = "Waiting for the sign-in in your browser. If it cannot return here, paste the address it ends at."


class ServerQuestionScreen(Paging, QuestionScreen[ApprovalDecision | None]):
    """One question. Returns the decision, or None for "not now"."""

    CSS_PATH = "approval.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-tiny"), (ROOMY, "-roomy")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("server")]
    WHERE = "server"
    CLICKED = frozenset(("accept", "copy_address", "type_address", "decline", "skip", "not_now"))

    def __init__(
        self,
        question: ServerQuestion,
        position: int = 1,
        total: int = 1,
        *,
        browser: "SessionServers | None" = None,
        keys: TypedKeys,
        at_once: bool = False,
        foot: FootRows = lambda: (0, 0),
        cover: Cover = lambda _: None,
    ) -> None:
        """Create the screen.

        Args:
            question: the question to answer.
            position: its number among all requests, from 1.
            total: number of all requests.
            browser: opens pages; None: nothing can open one here.
            keys: keys typed over this question and those before.
            at_once: True if answers count as soon as the question is drawn.
            foot: returns the rows to leave free below the dialog.
            cover: keeps what is behind the dialog above it.
        """
        self._question = question
        self._browser = browser
        self._foot, self._keep_above = foot, cover
        self._position, self._total = position, total
        self._fills = False
        self._opened = ""
        self._error = ""
        self._body = RowsView(self._body_rows, end_counts=True, id="server-body")
        self._state = RowsView(self._state_rows, id="server-state")
        self._keys = AnswerRow(self._key_rows, keys.clock, self.lay_out, at_once=at_once, id="server-keys")
        self._rows: list[FormRow] = []
        self._fields = Vertical(id="server-fields")
        self._box = Vertical(id="server-question")
        super().__init__(self._keys, keys)

    def compose(self) -> ComposeResult:
        """Yield the parts from the top."""
        apply_initial_breakpoints(self, self.app.size)
        self._box.border_title = Content(f" ▲ {question_title(self._question)} ")
        self._fields.can_focus = self._fields.display = False
        for view in (self._body, self._state, self._keys):
            view.can_focus = False
        self._rows = [FormRow(field) for field in self._question.fields]
        # The first frame has everything in its place.
        self.lay_out()
        with self._box:
            yield self._body
            with self._fields:
                yield from self._rows
            yield from (self._state, self._keys)

    def on_mount(self) -> None:
        """Lay out, and let answers count a moment after everything was drawn."""
        super().on_mount()
        self.count(self._position, self._total)

    def on_resize(self, event: Resize) -> None:
        """Fit the dialog to the window."""
        self.lay_out()

    def count(self, position: int, total: int) -> None:
        """Show which of how many requests this is."""
        self._box.border_subtitle = Content(f" {position} of {total} ") if total > 1 else None
        self.call_after_refresh(self.lay_out)

    @property
    def paged(self) -> RowsView:
        """The rows that the paging keys move."""
        return self._body

    @property
    def text_field(self) -> Widget | None:
        """The field in which the user types."""
        if not self._fills:
            return None
        return self.focused or self._rows[0].entry

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the answers of this step."""
        kind, is_choice = self._question.kind, isinstance(self.focused, ChoiceField)
        enabled = {
            "accept": not self._fills,
            "copy_address": bool(self._question.url) and not self._fills,
            "type_address": kind == "sign_in" and not self._fills,
            "decline": not self._fills,
            "skip": not self._fills and kind != "sign_in",
            "send": self._fills,
            "previous_field": self._fills,
            "next_field": self._fills,
            "previous_choice": not self._fills or is_choice,
            "next_choice": not self._fills or is_choice,
            "mark_choice": self._fills and is_choice,
            "not_now": True,
            "previous_answer": not self._fills,
            "next_answer": not self._fills,
            "choose_answer": not self._fills,
        }
        return enabled.get(action, action in _READING and not self._fills)

    # --- answers ------------------------------------------------------------------------------------------------------

    def ends(self, action: str) -> bool:
        """Return True if an answer ends the question."""
        return action in ("decline", "skip")

    def refusal(self, action: str) -> str:
        """Return why an answer is impossible."""
        if action == "accept" and not self._body.read_to_end:
            return "Scroll to the end before a yes counts."
        return ""

    @property
    def answers(self) -> Sequence[str]:
        """The answers on the screen."""
        only_in_forms = () if self._fills else ("next_choice",)
        return [action for action in _SHOWN if self.check_action(action, ()) and action not in only_in_forms]

    def action_accept(self) -> None:
        """Fill in the form, or open the page."""
        if self._question.kind == "form":
            self._fill_in()
        elif self._error and self._question.kind == "url":
            # No browser can be opened here, which the user read: the yes says that they open the page themselves.
            self.dismiss(ApprovalDecision(decision="approve"))
        else:
            self.run_worker(self._open_page(), exclusive=True)

    def action_copy_address(self) -> None:
        """Copy the address of the page."""
        copy_text(self.app, self._question.url)

    def action_type_address(self) -> None:
        """Show the field for the address that the sign-in ends at."""
        self._fill_in()

    def action_decline(self) -> None:
        """Decline."""
        self.dismiss(ApprovalDecision(decision="deny"))

    def action_skip(self) -> None:
        """Dismiss the question without a choice."""
        self.dismiss(ApprovalDecision(decision="skip"))

    def action_not_now(self) -> None:
        """Go back from the fields to the question; from there, close without an answer."""
        if not self._fills:
            self.dismiss(None)
            return
        self._fills, self._error = False, ""
        self._fields.display = False
        self.set_focus(None)
        self.lay_out()
        self.guard.withdrawn()
        self.call_after_refresh(self.guard.drawn)

    def action_send(self) -> None:
        """Send the values; show the first one that is wrong."""
        values: dict[str, object] = {}
        for row in self._rows:
            try:
                values[row.field.name] = row.value()
                if values[row.field.name] is not None or row.field.required:
                    only = self._question.model_copy(update={"fields": (row.field,)})
                    only.content({row.field.name: values[row.field.name]})
            except ValueError as error:
                text = str(error)
                label = f"{row.field.label}: "
                self.set_focus(row.entry)
                self._show_error(text if text.startswith(label) else f"{label}{text}")
                return
        self.dismiss(ApprovalDecision(decision="approve", input=values))

    @on(Input.Submitted)
    def _submitted(self) -> None:
        """Go to the next field; from the last one, send."""
        if self.focused is self._rows[-1].entry:
            self.action_send()
        else:
            self.action_next_field()

    def action_next_field(self) -> None:
        """Go to the next field."""
        self._step(1)

    def action_previous_field(self) -> None:
        """Go to the previous field."""
        self._step(-1)

    def action_previous_choice(self) -> None:
        """Go to the previous choice, or to the answer before."""
        if not self._fills:
            self.action_previous_answer()
        elif isinstance(self.focused, ChoiceField):
            self.focused.move(-1)

    def action_next_choice(self) -> None:
        """Go to the next choice, or to the next answer."""
        if not self._fills:
            self.action_next_answer()
        elif isinstance(self.focused, ChoiceField):
            self.focused.move(1)

    def action_mark_choice(self) -> None:
        """Mark the choice."""
        if isinstance(self.focused, ChoiceField):
            self.focused.mark()

    def _step(self, by: int) -> None:
        entries = [row.entry for row in self._rows]
        place = next((number for number, entry in enumerate(entries) if entry is self.focused), 0)
        self.set_focus(entries[(place + by) % len(entries)])

    def _fill_in(self) -> None:
        if not self._rows:
            self.dismiss(ApprovalDecision(decision="approve", input={}))
            return
        self._fills, self._error = True, ""
        self._fields.display = True
        self.set_focus(self._rows[0].entry)
        self.lay_out()

    async def _open_page(self) -> None:
        browser = self._browser
        refused = "No browser can be opened here." if browser is None else await browser.open_page(self._question.url)
        if refused:
            self._show_error(f"{refused} Copy the address ({command('server.copy_address').key_text}) and open it.")
        elif self._question.kind == "url":
            self.dismiss(ApprovalDecision(decision="approve"))
        else:
            self._opened, self._error = _OPENED, ""
            self.lay_out()

    def _show_error(self, text: str) -> None:
        self._error = text
        self.lay_out()

    # --- layout -------------------------------------------------------------------------------------------------------

    def lay_out(self) -> None:
        """Give each part its rows, and the dialog no more than it needs."""
        if not self.is_attached:
            return
        # The screen has no size before its first layout.
        width, height = self.size or self.app.size
        is_roomy = height >= ROOMY
        frame = 2 if is_roomy else 0
        inner = max(NARROWEST, (int(width * SHARE) if width >= WIDE else width) - (4 if is_roomy else 0))
        foot = self._foot()[1] if height >= FOOTED else 0
        available = height - int(height >= TALL) - foot - frame
        keys, state = len(self._key_rows(inner)), len(self._state_rows(inner))
        body = max(1, len(self._body_rows(inner)))
        fields = sum(row.lay_out(inner - 1) for row in self._rows) if self._fills else 0
        rest = max(1, available - keys - state)
        if self._fills:
            body = max(0, min(body, rest - min(fields, max(LEAST_OF_FIELDS, rest - body))))
            fields = min(fields, rest - body)
        else:
            body = min(body, rest)
        for view, rows in ((self._body, body), (self._fields, fields), (self._state, state), (self._keys, keys)):
            view.styles.height = rows
            view.display = rows > 0
        self._body.show(self._body_rows)
        self._state.show(self._state_rows)
        self._keys.redraw()
        used = body + fields + state + keys + frame
        self._box.styles.height = used
        self._box.styles.margin = (0, 0, foot, 0)
        self._keep_above(used + foot)

    def _body_rows(self, width: int) -> Sequence[Line]:
        question = self._question
        if self._fills and question.kind == "form":
            question = question.model_copy(update={"kind": "url"})
        return [*question_rows(question, width), *([Line()] if (self.size or self.app.size).height >= ROOMY else [])]

    def _state_rows(self, width: int) -> Sequence[Line]:
        if reason := self.guard.reason:
            return wrapped([(reason, "warning strong")], width)
        if self._error:
            return wrapped([(visible(self._error), "error")], width)
        if self._question.kind == "sign_in" and (self._opened or self._fills):
            return wrapped([(_WAITING, "muted")], width)
        if not self._fills and (below := self._body.rows_below) and not self._body.read_to_end:
            return wrapped([(f"▼ {count_text(below, 'more row')} before a yes counts", "warning")], width)
        return []

    def _key_rows(self, width: int) -> Sequence[Line]:
        yes = {"form": "answer", "url": "open the page", "sign_in": "open the page"}.get(self._question.kind, "")
        texts = {"accept": "I open it myself" if self._error and self._question.kind == "url" else yes}
        back = {"not_now": "back" if self._fills else "later"}
        counts = self.guard.armed or self._fills
        choices = [
            Choice(
                action,
                command(f"server.{action}").key_text,
                (texts | back).get(action) or command(f"server.{action}").text,
                counts or action == "not_now",
                action == self._keys.at_cursor,
            )
            for action in self.answers
        ]
        return answer_rows(choices, width, MAX_ANSWER_ROWS)
