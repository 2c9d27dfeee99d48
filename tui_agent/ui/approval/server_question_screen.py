"""The dialog of a tool server's question: a form to fill in, a page to open, or a sign-in; and of the agent's.

It begins like an approval: letters answer, any other text goes to the composer. Only `y` opens the fields, or the page.
Of the agent it shows one question at a time, with its choices open: digits and enter choose, and text is an answer.
"""

from collections.abc import Awaitable, Callable, Sequence

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.events import Key, Resize
from textual.widget import Widget
from textual.widgets import Input

from tui_agent.protocol.amounts import count_text
from tui_agent.protocol.permissions import ApprovalDecision
from tui_agent.protocol.server_question import ServerQuestion
from tui_agent.ui.base.app_type import apply_initial_breakpoints, copy_text
from tui_agent.ui.base.commands import command
from tui_agent.ui.dialogs.answer_screen import EARLY, NOTHING, AnswerRow, QuestionScreen, Typed, TypedKeys
from tui_agent.ui.text.line import NARROWEST, Line
from tui_agent.ui.text.rows_view import Paging, RowsView
from tui_agent.ui.text.sanitiser import visible
from tui_agent.ui.text.styled_lines import wrapped

from .approval_answers import MAX_ANSWER_ROWS, Choice, answer_rows
from .approval_dialog import FOOTED, ROOMY, SHARE, TALL, WIDE, Cover, FootRows
from .approval_rows import question_rows
from .form_fields import ChoiceField, ChoiceList, FormRow

LEAST_OF_FIELDS = 3
"""Rows for the fields in any window."""
_READING = ("line_up", "line_down", "page_up", "page_down", "scroll_top", "scroll_end")
_SHOWN = (
    *("accept", "copy_address", "type_address", "decline", "skip"),
    *("send", "next_field", "next_choice", "mark_choice", "not_now"),
)
_OF_AGENT = ("choose_answer", "mark_choice", "previous_choice", "not_now")
UNSEEN = "This choice was not on the screen; enter again takes it."
"""Reason for an enter that took no choice."""
_OPENED = "The page is open in your browser."
_WAITING = "Waiting for the sign-in in your browser. If it cannot return here, paste the address it ends at."


class ServerQuestionScreen(Paging, QuestionScreen[ApprovalDecision | None]):
    """One question. Returns the decision, or None for "not now"."""

    CSS_PATH = "approval.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-tiny"), (ROOMY, "-roomy")]  # noqa: RUF012
    WHERE = "server"
    CLICKED = frozenset(("accept", "copy_address", "type_address", "decline", "skip", "not_now", "choose_answer"))

    def __init__(
        self,
        question: ServerQuestion,
        position: int = 1,
        total: int = 1,
        *,
        open_page: Callable[[str], Awaitable[str]] | None = None,
        keys: TypedKeys,
        at_once: bool = False,
        foot: FootRows = lambda: (0, 0),
        cover: Cover = lambda _: None,
        title: str,
    ) -> None:
        """Create the screen; `open_page` opens an address in a browser, and returns why it could not."""
        self._question = question
        self._open_address = open_page
        self._foot, self._keep_above = foot, cover
        self._position, self._total = position, total
        self._title = title
        # A question of the agent has its choices open from the start.
        self._fills = not question.server
        self._place = 0
        """Place of the question of the agent that is shown."""
        self._from_top = True
        """True if the question is shown from its beginning while the cursor is on the first choice."""
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
        # Textual sets these classes after the first frame, which would then move.
        apply_initial_breakpoints(self, self.app.size)
        self._fields.can_focus, self._fields.display = False, self._fills
        for view in (self._body, self._state, self._keys):
            view.can_focus = False
        self._rows = [FormRow(field) for field in self._question.fields]
        self._box.border_title = Content(f" ▲ {self._title} ")
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
        self.lay_out()

    def count(self, position: int, total: int) -> None:
        """Show which of how many requests this is."""
        self._box.border_subtitle = Content(f" {position} of {total} ") if total > 1 else None
        self.call_after_refresh(self.lay_out)

    @property
    def paged(self) -> RowsView:
        return self._body

    @property
    def text_field(self) -> Widget | None:
        if not self._fills:
            return None
        return self._own if self._list is not None else self.focused or self._rows[0].entry

    @property
    def _list(self) -> ChoiceList | None:
        """The choices of the agent's question that is shown; None for a question of a server."""
        entry = self._rows[self._place].entry if self._rows else None
        return entry if isinstance(entry, ChoiceList) else None

    @property
    def _own(self) -> Input | None:
        """The open field for an answer in the user's own words."""
        own = self._rows[self._place].own if self._rows else None
        return own if own is not None and own.display else None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the answers of this step."""
        if not self._question.server:
            return self._check_agents(action)
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

    def _check_agents(self, action: str) -> bool:
        chosen = self._list
        if chosen is None or self._own is not None:
            return action in ("send", "previous_field", "next_field", "not_now")
        enabled = {
            "mark_choice": chosen.several,
            "previous_choice": self._place > 0,
            "next_choice": self._place < len(self._rows) - 1,
        }
        return enabled.get(
            action, action in ("pick", "choose_answer", "send", "previous_field", "next_field", "not_now")
        )

    # --- answers ------------------------------------------------------------------------------------------------------

    def ends(self, action: str) -> bool:
        return action in ("decline", "skip", "pick")

    def refusal(self, action: str) -> str:
        if action == "accept" and not self._body.read_to_end:
            return "Scroll to the end before a yes counts."
        return ""

    @property
    def answers(self) -> Sequence[str]:
        if not self._question.server:
            return [action for action in _OF_AGENT if self.check_action(action, ())]
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
        if self._own is not None:
            self._close_own()
            return
        if self._list is not None or not self._fills:
            self.dismiss(None)
            return
        self._fills, self._error = False, ""
        self._fields.display = False
        self.set_focus(None)
        self.lay_out()
        # The question is on the screen again and has to be seen again.
        self.guard.withdrawn()
        self.call_after_refresh(self.guard.drawn)

    def action_send(self) -> None:
        """Send the values; show the first one that is wrong."""
        if not self._question.server and not self.guard.armed:
            self.guard.explain(EARLY)
            return
        if self._own is not None and self._list is not None:
            self._list.say(self._own.value)
        values: dict[str, object] = {}
        for row in self._rows:
            try:
                values[row.field.name] = row.value()
                if values[row.field.name] is not None or row.field.required:
                    # Each value is checked alone, so that the error is about the field that gets the focus.
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
        if self._own is not None and self._list is not None:
            self._list.say(self._own.value)
            is_said = bool(self._list.own)
            self._close_own()
            if is_said:
                self._advance()
            return
        if self.focused is self._rows[-1].entry:
            self.action_send()
        else:
            self.action_next_field()

    def action_next_field(self) -> None:
        """Go to the next field, or choice of the agent's question."""
        self._step(1) if self._list is None else self._move_choice(1)

    def action_previous_field(self) -> None:
        """Go to the previous field, or choice of the agent's question."""
        self._step(-1) if self._list is None else self._move_choice(-1)

    def action_previous_choice(self) -> None:
        """Go to the previous choice, to the answer before, or to the agent's question before."""
        if self._list is not None:
            self._show_question(self._place - 1)
        elif not self._fills:
            self.action_previous_answer()
        elif isinstance(self.focused, ChoiceField):
            self.focused.move(-1)

    def action_next_choice(self) -> None:
        """Go to the next choice, to the next answer, or to the agent's next question."""
        if self._list is not None:
            self._show_question(self._place + 1)
        elif not self._fills:
            self.action_next_answer()
        elif isinstance(self.focused, ChoiceField):
            self.focused.move(1)

    def action_mark_choice(self) -> None:
        """Mark the choice."""
        if self._list is not None:
            self._list.mark()
        elif isinstance(self.focused, ChoiceField):
            self.focused.mark()

    # --- a question of the agent --------------------------------------------------------------------------------------

    def action_choose_answer(self) -> None:
        """Give the answer at the cursor; to a question of the agent, take the choice there."""
        chosen, self.answered_by = self._list, None
        if chosen is None:
            super().action_choose_answer()
        elif not self.guard.armed:
            self.guard.explain(EARLY)
        elif not self._shows_cursor:
            self._from_top = False
            self.guard.explain(UNSEEN)
        elif chosen.is_at_own:
            self._open_own()
        else:
            chosen.take()
            self._advance()

    def action_pick(self) -> None:
        """Take the choice with the number that was pressed; of several, mark it."""
        chosen, keys = self._list, command("server.pick").keys
        if chosen is None or self.answered_by is None or self.answered_by.key not in keys:
            return
        place = keys.index(self.answered_by.key)
        if place >= chosen.count:
            self.guard.explain(NOTHING)
            return
        chosen.move(place - chosen.cursor)
        if chosen.is_at_own:
            self._open_own()
        elif chosen.several:
            chosen.mark()
        else:
            chosen.take()
            self._advance()

    def leave_to_type(self, *typed: Typed) -> None:
        """Take text over the choices as an answer; text from before they were seen goes to the composer."""
        keys = (*self.keys.run.keys, *typed)
        if self._list is None or not keys or not self.guard.armed:
            super().leave_to_type(*typed)
            return
        self.keys.run.end()
        self._open_own()
        if (own := self._own) is not None:
            for event in keys:
                own._forward_event(event)

    def _action_of(self, key: Key) -> str | None:
        """Return the action of a printable key; letters are text over a question of the agent."""
        action = super()._action_of(key)
        return action if self._question.server or action in ("pick", "mark_choice") else None

    def _advance(self) -> None:
        if self._place + 1 < len(self._rows):
            self._show_question(self._place + 1)
        else:
            self.action_send()

    def _show_question(self, place: int) -> None:
        self._place, self._from_top = place, True
        self.lay_out()

    def _move_choice(self, by: int) -> None:
        if self._own is not None:
            self._close_own()
        if self._list is not None:
            self._list.move(by)
            self._from_top = True
            self.lay_out()

    def _open_own(self) -> None:
        row = self._rows[self._place]
        if row.own is not None and self._list is not None:
            self._list.move(self._list.count - 1 - self._list.cursor)
            row.own.value, row.own.display = self._list.own, True
            self.set_focus(row.own)
            self.lay_out()

    def _close_own(self) -> None:
        if (own := self._own) is not None:
            own.display = False
            self.set_focus(None)
            self.lay_out()

    @property
    def _shows_cursor(self) -> bool:
        """True if the first row of the choice at the cursor is on the screen."""
        chosen, at = self._list, self._fields.scroll_offset.y
        return chosen is None or at <= chosen.place_of_cursor(self._row_width)[0] < at + self._fields.size.height

    @property
    def _row_width(self) -> int:
        return NARROWEST if self._list is None else max(NARROWEST, self._list.row_width)

    def _reveal(self) -> None:
        """Scroll to the choice at the cursor; of the first one to the question, until enter asks for it."""
        if (chosen := self._list) is None:
            return
        top, bottom = chosen.place_of_cursor(self._row_width)
        bottom += int(self._own is not None)
        at, height = self._fields.scroll_offset.y, self._fields.size.height
        target = 0 if chosen.cursor == 0 and self._from_top else min(max(at, bottom - height), top)
        if target != at:
            self._fields.scroll_to(y=target, animate=False, immediate=True)

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
        open_page = self._open_address
        refused = "No browser can be opened here." if open_page is None else await open_page(self._question.url)
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
        body = max(int(bool(self._question.server)), len(self._body_rows(inner)))
        if not self._question.server:
            self._show_place()
        fields = sum(row.lay_out(inner - 1) for row in self._rows if row.display) if self._fills else 0
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
        if not self._question.server:
            self.call_after_refresh(self._reveal)

    def _show_place(self) -> None:
        for place, row in enumerate(self._rows):
            row.display = place == self._place
        count = f" · {self._place + 1} of {len(self._rows)}" if len(self._rows) > 1 else ""
        self._box.border_title = Content(f" ▲ {self._title}{count} ")

    def _body_rows(self, width: int) -> Sequence[Line]:
        question = self._question
        if not question.server:
            return []
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
        return [Line()] if not self._question.server and (self.size or self.app.size).height >= ROOMY else []

    def _key_rows(self, width: int) -> Sequence[Line]:
        if not self._question.server:
            return answer_rows(self._agents_choices(), width, MAX_ANSWER_ROWS)
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

    def _agents_choices(self) -> list[Choice]:
        enter, back, counts = command("server.choose_answer"), command("server.not_now"), self.guard.armed
        if self._own is not None:
            return [Choice("", enter.key_text, "answer"), Choice("not_now", back.key_text, "back")]
        several = self._list is not None and self._list.several
        is_last = self._place + 1 == len(self._rows)
        taken = ("send" if is_last else "next") if several else "choose"
        texts = {"choose_answer": taken, "previous_choice": "question before", "not_now": "later"}
        return [
            Choice(action, (key := command(f"server.{action}")).key_text, texts.get(action, key.text), counts)
            for action in self.answers
        ]
