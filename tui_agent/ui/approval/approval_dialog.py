"""The widget that shows one approval request. Every part gets the rows it needs, and none is out of reach.

In a small window empty rows go first, so that everything to be read fits on one page as long as possible.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypeAlias

from textual import getters, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Size
from textual.timer import Timer
from textual.widgets import TextArea

from tui_agent.protocol.amounts import count_text
from tui_agent.protocol.permissions import ApprovalRequest
from tui_agent.ui.base.app_type import any_app
from tui_agent.ui.base.commands import command
from tui_agent.ui.dialogs.answer_screen import AnswerRow
from tui_agent.ui.text.input_fields import InputEditor, LineInput
from tui_agent.ui.text.line import NARROWEST, Line, Run
from tui_agent.ui.text.rows_view import RowsView
from tui_agent.ui.text.sanitiser import visible
from tui_agent.ui.text.styled_lines import clipped, wrapped

from .approval_answers import (
    MAX_ANSWER_ROWS,
    AnswerStep,
    Choice,
    RuleOffer,
    answer_choices,
    answer_rows,
    first_answers,
    offered_answers,
)
from .approval_rows import ApprovalRows
from .approval_summary import TITLE_FRAME, line_counts, request_title, why_rows
from .change_parts import ChangedText, ChangeParts, InputEdit, can_choose, change_parts, editable

WIDE = 110
"""Columns from which the dialog leaves the tool panel free."""
SHARE = 0.62
"""Share of a wide window; `approval.tcss` has the same."""
ROOMY = 14
"""Rows from which the dialog has a frame."""
FOOTED = 9
"""Rows from which the dialog leaves composer and status line free."""
TALL = 24
"""Rows from which the dialog leaves a row above it free."""
FootRows: TypeAlias = Callable[[], tuple[int, int]]
"""Returns the rows of composer and status line with the queue above them, and without it."""
Cover: TypeAlias = Callable[[int], None]
"""Takes the number of rows, from the bottom of the window, that the dialog and the rows below need; 0: none is open."""
MIN_EDITOR = 8
"""Rows of the input editor."""
LEAST_OF_EDITOR = 3
"""Rows of an editor in any window; `approval.tcss` has the same."""
_EDITORS: tuple[AnswerStep, ...] = ("typing", "editing")
PAST_SECONDS = 0.3
"""Seconds without typing after which earlier calls are compared with a typed rule."""
APPROVES = frozenset(
    ("approve_once", "approve_session", "approve_always", "for_user", "approve_with_note", "edit_input")
)
"""Answers that need the end of the input."""
_ALWAYS = frozenset(("not_now", "more", "why"))
"""Keys that count from the beginning, because they answer nothing."""
_PLACEHOLDERS: dict[AnswerStep, str] = {"explaining": "why not", "adding": "yes, and …"}
"""Steps with a line of text, and what it is for."""


class ApprovalDialog(Vertical):
    """One request: who asks and why, the whole input, and the answers."""

    app = getters.app(any_app)
    alike = 0
    """Number of other open requests that the same rule would answer; 0: the dialog does not name it."""

    def __init__(
        self,
        request: ApprovalRequest,
        offer: RuleOffer,
        clock: Callable[[], float],
        position: int,
        total: int,
        foot: FootRows = lambda: (0, 0),
        cover: Cover = lambda _: None,
        *,
        at_once: bool = False,
        root: str = "",
    ) -> None:
        super().__init__(id="approval-dialog")
        self.request = request
        """The request."""
        self.offer = offer
        """The rule that would be stored."""
        self.step: AnswerStep = "asking"
        """The present content."""
        self.body = RowsView(self._body_rows, end_counts=True, id="approval-body")
        """The whole input."""
        self.editor = InputEditor(id="approval-editor")
        """The input, to be edited."""
        self.total = total
        """Number of open requests."""
        self._foot = foot
        self._keep_above = cover
        self._position = position
        self._rows = ApprovalRows(request, root)
        self._traced = self._shows_all = False
        self._error = ""
        self._awaited: int | None = None
        """Width for which a thread lays out the input; until it has finished, no yes counts."""
        self._compact = self._fits = False
        self._edited_subject = ""
        self._with_past = True
        self._past_timer: Timer | None = None
        self._head = RowsView(self._head_rows, id="approval-head")
        self._why = RowsView(self._why_rows, id="approval-why")
        self._rule = RowsView(end_counts=True, id="approval-rule")
        self._state = RowsView(self._state_rows, id="approval-state")
        self._reason = LineInput(id="approval-reason", placeholder="why not")
        # A blinking cursor wakes an idle program twice a second.
        self._reason.cursor_blink = False
        self.row = AnswerRow(self._key_rows, clock, self.lay_out, at_once=at_once, id="approval-keys")
        """The answers."""

    def compose(self) -> ComposeResult:
        self._show_position()
        if self._rows.is_long:
            # Without it the width changes with the scrollbar, and each width is laid out anew, for ever.
            self.body.styles.scrollbar_gutter = "stable"
        for view in (self._head, self.body, self._why, self._rule, self._state, self.row):
            view.can_focus = False
        self._reason.display = self.editor.display = self._rule.display = False
        # The first frame has everything in its place.
        self.lay_out()
        yield from (self._head, self.body, self.editor, self._rule, self._why, self._state, self._reason, self.row)

    def on_mount(self) -> None:
        """Lay out again once the line that announced the request has gone."""
        self.call_after_refresh(self.lay_out)

    @property
    def paged(self) -> RowsView:
        return self._rule if self.step == "confirming" else self.body

    @property
    def field(self) -> LineInput | InputEditor | None:
        """The text field of this step."""
        return {"explaining": self._reason, "adding": self._reason}.get(self.step) or (
            self.editor if self.step in _EDITORS else None
        )

    @property
    def is_plan(self) -> bool:
        """True if the request is about a plan."""
        return self.request.question is not None and self.request.question.kind == "plan"

    def show_plan(self, text: str) -> None:
        """Show a plan that the user edited; an answer is about this one."""
        question = self.request.question
        if question is not None:
            changed = {"question": question.model_copy(update={"message": text}), "args": {"plan": text}}
            self.request = self.request.model_copy(update=changed)
            self._rows = ApprovalRows(self.request)
            self.body.show(self._body_rows, anew=True)
            self.go_to("asking")

    @property
    def offered(self) -> tuple[str, ...]:
        """The actions that answer this request, in the order of the table of commands."""
        return offered_answers(self.request, self.offer, self.total, has_parts=self._has_parts, has_text=self._has_text)

    @cached_property
    def parts(self) -> ChangeParts | None:
        """The parts of the change; None if the user cannot choose some."""
        return change_parts(self.request)

    @cached_property
    def _has_parts(self) -> bool:
        changes = self.request.changes
        return can_choose(changes) if changes is not None else self.parts is not None

    @cached_property
    def _has_text(self) -> bool:
        return self.request.changes is None or bool(editable(self.request.changes))

    # --- changes ------------------------------------------------------------------------------------------------------

    def count(self, position: int, total: int) -> None:
        """Show which of how many requests this is."""
        self._position, self.total = position, total
        self._show_position()
        if self.is_mounted:
            self.lay_out()

    def _show_position(self) -> None:
        self.border_subtitle = Content(f" {self._position_text} ") if self._position_text else None

    def go_to(self, step: AnswerStep) -> None:
        """Show another step."""
        self.step, self._error, self.row.at_cursor = step, "", ""
        self._reason.display = step in _PLACEHOLDERS
        if step in _PLACEHOLDERS and self._reason.placeholder != _PLACEHOLDERS[step]:
            # A reason for a no makes no sense beside a yes.
            self._reason.value, self._reason.placeholder = "", _PLACEHOLDERS[step]
        self.editor.display = step in _EDITORS
        self._rule.display = step in ("confirming", "typing")
        self.body.display = step in ("asking", *_PLACEHOLDERS)
        self.screen.set_focus(self.field)
        if step == "confirming":
            self._rule.show(self.offer.rows, anew=True)
        if step == "typing":
            self.editor.edit_code(self.offer.rule, "")
            self.editor.move_cursor(self.editor.document.end)
            self._show_typed_rule()
        self.lay_out()
        self.restart_guard()

    def edit(self, edit: InputEdit | ChangedText) -> None:
        """Open the editor with the input: a command with the cursor at its end, a file at its beginning."""
        self._edited_subject = edit.subject
        self.go_to("editing")
        self.editor.edit_code(edit.text, edit.language)
        if "\n" not in edit.text:
            self.editor.move_cursor(self.editor.document.end)

    def replace_edited(self, text: str, failure: str) -> None:
        """Take the text of another editor, or show why there is none."""
        if self.step == "editing" and failure:
            self.show_error(failure)
        elif self.step == "editing":
            self.editor.load_escaped(text)

    @property
    def typed_rule(self) -> str:
        """The rule in the editor, one on each line."""
        return "\n".join(line.strip() for line in self.editor.text.split("\n") if line.strip())

    def _show_typed_rule(self, *, with_past: bool = True) -> None:
        if self.step == "typing":
            self._with_past = with_past
            self._rule.show(self._typed_rows, anew=True)
            self.lay_out()

    def _typed_rows(self, width: int) -> Sequence[Line]:
        return self.offer.typed_rows(self.typed_rule, width, with_past=self._with_past)

    def show_error(self, text: str) -> None:
        """Show why the edited input is refused."""
        self._error = text
        self.lay_out()

    def change_rule(self, by: int) -> None:
        """Show a wider (+1) or narrower (-1) rule, if there is one."""
        if self.offer.change(by):
            self._rule.show(self.offer.rows, anew=True)
            self.lay_out()
            # Another rule is another question: the user has to read it, too.
            self.restart_guard()

    def toggle_trace(self) -> None:
        """Show or hide every rule that was checked."""
        self._traced = not self._traced
        self.body.show(self._body_rows)
        self.lay_out()
        if self._traced:
            # Its rows are there only after the layout.
            self.call_after_refresh(self.body.lead_to, self._trace_start())

    def toggle_answers(self) -> None:
        """Show all answers, or only those that fit one row."""
        self._shows_all = not self._shows_all
        self.lay_out()

    def restart_guard(self) -> None:
        """Ignore answers until what is shown now has been drawn and a quiet moment has passed."""
        self.row.guard.withdrawn()
        self.call_after_refresh(self.row.guard.drawn)

    @property
    def unread(self) -> str:
        """Reason why no yes counts yet: the end of the input was not on the screen; empty if it was."""
        if self._awaited is not None:
            return "The input is being prepared; a yes counts once you saw its end."
        return "" if self.paged.read_to_end else self._unread_text()

    @property
    def shown_answers(self) -> Sequence[str]:
        """Actions of the answers in the row of keys."""
        return [choice.action for choice in self._choices(self.row.row_width)]

    @on(TextArea.Changed)
    def _edited(self) -> None:
        self._error = ""
        if self.step != "typing":
            self.lay_out()
            return
        # Comparing earlier calls at each letter would delay the next one.
        self._show_typed_rule(with_past=False)
        if self._past_timer is not None:
            self._past_timer.stop()
        self._past_timer = self.set_timer(PAST_SECONDS, self._show_typed_rule)

    @on(RowsView.Moved, "#approval-body")
    @on(RowsView.Moved, "#approval-rule")
    def _moved(self) -> None:
        self.lay_out()

    # --- layout -------------------------------------------------------------------------------------------------------

    def lay_out(self) -> None:
        """Give each part its rows, and the dialog no more than it needs."""
        if not self.is_attached:
            return  # The question was settled before the dialog was laid out for the first time.
        width, height = self._window
        inner = max(NARROWEST, (int(width * SHARE) if width >= WIDE else width) - (4 if self._is_roomy else 0))
        roomy, short = self._foot() if height >= FOOTED else (0, 0)
        above = height - int(height >= TALL)
        self.border_title = Content(f" ▲ {self._title(inner - TITLE_FRAME)} ")
        # The queue stays visible as long as the dialog does not need its rows.
        foot = roomy if self._rows_used(inner, compact=False) <= above - roomy else short
        available = above - foot
        compact = self._rows_used(inner, compact=False) > available
        if compact != self._compact:
            self._compact = compact
            self.body.show(self._body_rows)
        used = self._rows_used(inner, compact=compact)
        # Known before anything is drawn: a row that says there is more would itself hide one.
        self._fits = used <= available
        for view, build in (
            (self._head, self._head_rows),
            (self._why, self._why_rows),
            (self._state, self._state_rows),
            (self.row, self._key_rows),
        ):
            rows = len(build(inner))
            view.styles.height = rows
            view.display = rows > 0
            view.show(build)
        self.editor.styles.height = self._typed_height() if self.step == "typing" else "1fr"
        self.styles.height = min(used, available)
        self.styles.margin = (0, 0, foot, 0)
        self._keep_above(min(used, available) + foot)

    def _title(self, width: int) -> str:
        return request_title(self.request, width) + line_counts(self.request)

    @property
    def _window(self) -> Size:
        """Size of the window; the screen has none before its first layout."""
        return self.screen.size or self.app.size

    @property
    def _is_roomy(self) -> bool:
        return self._window.height >= ROOMY

    def _rows_used(self, inner: int, *, compact: bool) -> int:
        """Return the rows the dialog needs to show everything at once."""
        room = max(NARROWEST, inner - 1)
        if self.step == "confirming":
            main = len(self.offer.rows(room))
        elif self.step == "typing":
            main = self._typed_height() + len(self._typed_rows(room))
        elif self.step == "editing":
            main = max(MIN_EDITOR, self.editor.wrapped_document.height)
        elif self._rows.is_long:
            main = self._window.height
        else:
            main = len(self._rows.rows(room, with_trace=self._traced, spaced=not compact))
        frame = 2 if self._is_roomy else 0
        gaps = 0 if compact or not frame else 1
        # `_why_rows` reads it, and this only asks how many rows there would be.
        self._compact, was_compact = compact, self._compact
        head = len(self._head_rows(inner)) + len(self._why_rows(inner))
        self._compact = was_compact
        # A reason takes the place of the gap.
        state = len(self._state_text(inner)) or int(bool(self.row.guard.reason) and not gaps)
        return frame + head + gaps + max(1, main) + state + int(self._reason.display) + len(self._key_rows(inner))

    def _typed_height(self) -> int:
        return max(LEAST_OF_EDITOR, min(MIN_EDITOR, self.editor.wrapped_document.height + 1))

    def _lay_out_in_thread(self, width: int) -> None:
        """Lay out a long input in a thread, so that keys are not delayed; then show it, unread."""
        if self._awaited == width:
            return
        self._awaited = width

        async def lay_out() -> None:
            await asyncio.to_thread(self._rows.lay_out, width)
            self._awaited = None
            self.body.show(self._body_rows, anew=True)
            self._moved()

        self.run_worker(lay_out, group="rows", exclusive=True)

    # --- rows ---------------------------------------------------------------------------------------------------------

    def _head_rows(self, width: int) -> Sequence[Line]:
        """Return the question if no frame shows it."""
        if self._is_roomy:
            return []
        position = f"  {self._position_text}" if self._position_text else ""
        runs: list[Run] = [("▲ ", "warning"), (self._title(width), "strong"), (position, "muted")]
        return [Line(clipped(runs, width))]

    def _why_rows(self, width: int) -> Sequence[Line]:
        """Return the dangers of the request and the reason for it."""
        if self._window.height < FOOTED or self.step in ("confirming", *_EDITORS):
            return []
        # The list of all rules begins with the reason, and the title of a question says which server asks.
        with_reason = self._is_roomy and not self._traced and self.request.question is None
        rows = why_rows(self.request, width, with_reason=with_reason)
        if not rows:
            return []
        if not self._is_roomy:
            return rows[:1]
        return rows if self._compact else [Line(), *rows]

    def _body_rows(self, width: int) -> Sequence[Line]:
        if self._rows.is_long and not self._rows.is_laid_out(width):
            self._lay_out_in_thread(width)
            return wrapped([("The input is long: its rows are being prepared …", "muted")], width)
        return self._rows.rows(width, with_trace=self._traced, spaced=not self._compact)

    def _trace_start(self) -> int:
        """Return the row at which the trace begins."""
        if self._awaited is not None:
            return 0
        return self._rows.trace_start(max(NARROWEST, self.body.row_width), spaced=not self._compact)

    def _state_rows(self, width: int) -> Sequence[Line]:
        """Return what the user has to do before or while answering."""
        gap = [Line()] if self._is_roomy and not self._compact else []
        text = self._state_text(width)
        if text:
            return [*gap, *text]
        unread = self._unread_text() if self.step in ("asking", "confirming") and not self._fits else ""
        if reason := self.row.guard.reason:
            row = Line(clipped([(reason, "warning strong")], width))
            return [*gap, row] if unread else [row]
        return [*gap, Line(clipped([(unread, "warning")], width))] if unread else gap

    def _unread_text(self) -> str:
        """Return why no yes counts yet, or how many rows the user skipped."""
        view = self.paged
        if view.read_to_end:
            return f"▲ {count_text(view.skipped, 'row')} above skipped" if view.skipped else ""
        page, end = "".join(command("approval.page_down").keys[-1:]), command("approval.scroll_end").key_text
        if view.rows_below:
            return f"▼ {count_text(view.rows_below, 'more row')} ({page}, {end}) before a yes counts"
        return f"▲ scroll to the end ({end}) before a yes counts"

    def _state_text(self, width: int) -> list[Line]:
        """Return the instructions of the step, or the error in the edited input."""
        if self._error:
            return wrapped([(visible(self._error), "error")], width)
        if self.step == "adding":
            note = "Type what the agent should know; it reads it with the result of the call."
            return [Line(clipped([(note, "muted")], width))]
        if self.step == "explaining" and self.is_plan:
            return [Line(clipped([("Type what to change; the agent presents the plan again.", "muted")], width))]
        if self.step == "explaining":
            return [Line(clipped([("Type the reason; the agent reads it and continues.", "muted")], width))]
        if self.step == "typing":
            note = "Type one rule on each line; it is shown again before it is stored."
            return [Line(clipped([(note, "muted")], width))]
        if self.step == "editing":
            note = f"You edit {self._edited_subject}. The call is checked again; the agent learns what you changed."
            if self.is_plan:
                note = "You edit the plan. It is shown again before you accept it."
            elif self.request.changes is not None:
                note = f"You edit {self._edited_subject}. Your text is kept with the other parts you chose."
            return [Line(clipped([(note, "muted")], width))]
        return []

    def _key_rows(self, width: int) -> Sequence[Line]:
        most = max(1, min(MAX_ANSWER_ROWS, self._window.height // 4))
        return answer_rows(self._choices(width), width, most)

    def _choices(self, width: int) -> list[Choice]:
        choices = answer_choices(
            self.step,
            self.offer,
            self.offered,
            self.total,
            is_trial=self.request.changes is not None,
            is_plan=self.is_plan,
        )
        if self.step == "asking" and not self._shows_all and not self.is_plan:
            choices = first_answers(choices, width)
        # Text does not answer yet, so the keys beside it need no quiet moment.
        counts = self.row.guard.armed or self.field is not None
        unread = self._awaited is not None or not self.paged.read_to_end
        return [
            replace(
                choice,
                counts=choice.action in _ALWAYS or (counts and not (unread and choice.action in APPROVES)),
                is_at_cursor=choice.action == self.row.at_cursor != "",
            )
            for choice in choices
        ]

    @property
    def _position_text(self) -> str:
        place = f"{self._position} of {self.total}" if self.total > 1 else ""
        return f"{place} · {self.alike} more like it: {command('approval.list_all').key_text}" if self.alike else place
