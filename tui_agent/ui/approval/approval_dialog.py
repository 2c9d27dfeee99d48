"""The content of an approval dialog at each step. Every part gets the rows it needs, and none is out of reach.

In a small window empty rows go first, so that everything to be read fits on one page as long as possible.
"""

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.events import Resize
from textual.geometry import Size
from textual.timer import Timer
from textual.widget import Widget

from tui_agent.protocol.amounts import count_text
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest
from tui_agent.ui.base.app_type import apply_initial_breakpoints
from tui_agent.ui.base.commands import command
from tui_agent.ui.dialogs.answer_screen import AnswerRow, QuestionScreen, TypedKeys
from tui_agent.ui.text.input_fields import InputEditor, LineInput
from tui_agent.ui.text.line import NARROWEST, Line, Run
from tui_agent.ui.text.rows_view import Paging, RowsView
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

if TYPE_CHECKING:
    from tui_agent.workbench.configuration.permission_rules import RuleImpact

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
EDITORS: tuple[AnswerStep, ...] = ("typing", "editing")
"""Steps with an editor."""
PAST_SECONDS = 0.3
"""Seconds without typing after which earlier calls are compared with a typed rule."""
APPROVES = frozenset(
    ("approve_once", "approve_session", "approve_always", "for_user", "approve_with_note", "edit_input")
)
"""Answers that need the end of the input."""
_ALWAYS = frozenset(("not_now", "more", "why"))
"""Keys that count from the beginning, because they answer nothing."""
PLACEHOLDERS: dict[AnswerStep, str] = {"explaining": "why not", "adding": "yes, and …"}
"""Steps with a line of text, and what it is for."""

_NOTES: dict[AnswerStep, str] = {
    "adding": "Type what the agent should know; it reads it with the result of the call.",
    "explaining": "Type the reason; the agent reads it and continues.",
    "typing": "Type one rule on each line; it is shown again before it is stored.",
}
"""Instructions at a step."""
_PLAN_NOTES: dict[AnswerStep, str] = {
    "explaining": "Type what to change; the agent presents the plan again.",
    "editing": "You edit the plan. It is shown again before you accept it.",
}
_CHECKED = "The call is checked again; the agent learns what you changed."
_KEPT = "Your text is kept with the other parts you chose."

PageRequested = Literal["list", "parts"]
"""Result in place of a decision: show every waiting request, or the parts of this change."""

Decided: TypeAlias = ApprovalDecision | PageRequested | None
"""The answer, a page to show, or None for "not now"."""


class RequestDialog(Paging, QuestionScreen[Decided]):
    """A dialog of one request at the foot of the window: its frame, and its place among all requests."""

    CSS_PATH = "approval.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-tiny"), (ROOMY, "-roomy")]  # noqa: RUF012

    def __init__(
        self,
        request: ApprovalRequest,
        row: AnswerRow,
        keys: TypedKeys,
        place: tuple[int, int, int],
        foot: FootRows,
        cover: Cover,
        frame: str,
    ) -> None:
        """Create the dialog; `place` are the arguments of `count`, and `frame` is the id of the widget with it."""
        super().__init__(row, keys)
        self.request = request
        """The request."""
        self.dialog = Vertical(id=frame)
        """The frame with everything that is shown."""
        self._position, self.total, self._alike = place
        self._foot = foot
        self._keep_above = cover
        self._error = ""

    @abstractmethod
    def lay_out(self) -> None:
        """Give each part its rows, and the dialog no more than it needs."""

    @abstractmethod
    def parts_in_order(self) -> Sequence[Widget]:
        """Return what is in the frame, from its top."""

    def compose(self) -> ComposeResult:
        # Textual sets these classes after the first frame, which would then move.
        apply_initial_breakpoints(self, self.app.size)
        self._show_position()
        parts = self.parts_in_order()
        for view in parts:
            if isinstance(view, RowsView):
                view.can_focus = False
        # The first frame has everything in its place.
        self.lay_out()
        with self.dialog:
            yield from parts

    def on_mount(self) -> None:
        """Lay out again once the line that announced the request has gone."""
        self.call_after_refresh(self.lay_out)

    def on_resize(self, event: Resize) -> None:
        self.lay_out()

    def count(self, position: int, total: int, alike: int = 0) -> None:
        """Show which of how many requests this is, and how many others the same rule would answer; 0: unknown."""
        self._position, self.total, self._alike = position, total, alike
        self._show_position()
        self.lay_out()

    def _show_position(self) -> None:
        self.dialog.border_subtitle = Content(f" {self._position_text} ") if self._position_text else None

    @property
    def _position_text(self) -> str:
        place = f"{self._position} of {self.total}" if self.total > 1 else ""
        more = f"{self._alike} more like it: {command('approval.list_all').key_text}"
        return f"{place} · {more}" if self._alike else place

    def show_error(self, text: str) -> None:
        """Show why what the user typed is refused."""
        self._error = text
        self.lay_out()

    @property
    def _window(self) -> Size:
        """Size of the window; the screen has none before its first layout."""
        return self.size or self.app.size

    @property
    def _is_roomy(self) -> bool:
        return self._window.height >= ROOMY

    @property
    def _inner(self) -> int:
        """Cells of a row in the frame."""
        width = self._window.width
        return max(NARROWEST, (int(width * SHARE) if width >= WIDE else width) - (4 if self._is_roomy else 0))

    def _stand(self, rows: int, foot: int) -> None:
        """Take some rows above those of composer and status line."""
        self.dialog.styles.height = rows
        self.dialog.styles.margin = (0, 0, foot, 0)
        self._keep_above(rows + foot)


class ApprovalDialog(RequestDialog):
    """The content at each step: who asks and why, the whole input, and the answers."""

    def __init__(
        self,
        request: ApprovalRequest,
        position: int = 1,
        total: int = 1,
        alike: int = 0,
        *,
        facts: "RuleImpact | None",
        keys: TypedKeys,
        at_once: bool = False,
        foot: FootRows = lambda: (0, 0),
        cover: Cover = lambda _: None,
        root: str = "",
        edit: ChangedText | None = None,
    ) -> None:
        """Create the dialog.

        Args:
            position: its number among all requests, from 1.
            alike: number of other requests that the same rule would answer; 0: the dialog does not name it.
            facts: facts about the rules that an answer may store; None: none is stored.
            at_once: True if answers count as soon as the question is drawn.
            root: the workspace, from which paths are shown, and whose texts a command has changed in its trial.
            edit: a text among these that the user edits first.
        """
        row = AnswerRow(self._key_rows, keys.clock, self.lay_out, at_once=at_once, id="approval-keys")
        super().__init__(request, row, keys, (position, total, alike), foot, cover, "approval-dialog")
        self.texts: Mapping[str, str] = {}
        """New texts of changed files by path, once the user chose to keep parts or to edit."""
        self.offer = RuleOffer(request, facts)
        """The rule that would be stored."""
        self.step: AnswerStep = "asking"
        """The present content."""
        self.body = RowsView(self._body_rows, end_counts=True, id="approval-body")
        """The whole input."""
        self.editor = InputEditor(id="approval-editor")
        """The input, to be edited."""
        self._asked = request
        """The request without the user's edits of its plan."""
        self._root = root
        self._edit: InputEdit | ChangedText | None = edit
        """Subject of the editor, now or at the beginning."""
        self._rows = ApprovalRows(request, root)
        if self._rows.is_long:
            # Without it the width changes with the scrollbar, and each width is laid out anew, for ever.
            self.body.styles.scrollbar_gutter = "stable"
        self._traced = self._shows_all = False
        self._awaited: int | None = None
        """Width for which a thread lays out the input; until it has finished, no yes counts."""
        self._compact = self._fits = False
        self._with_past = True
        self._past_timer: Timer | None = None
        self._head = RowsView(self._head_rows, id="approval-head")
        self._why = RowsView(self._why_rows, id="approval-why")
        self._rule = RowsView(self._rule_rows, end_counts=True, id="approval-rule")
        self._state = RowsView(self._state_rows, id="approval-state")
        self._note = LineInput(id="approval-reason", placeholder="why not")
        # A blinking cursor wakes an idle program twice a second.
        self._note.cursor_blink = False
        self._note.display = self.editor.display = self._rule.display = False

    def parts_in_order(self) -> Sequence[Widget]:
        return (self._head, self.body, self.editor, self._rule, self._why, self._state, self._note, self.row)

    @property
    def paged(self) -> RowsView:
        return self._rule if self.step == "confirming" else self.body

    @property
    def text_field(self) -> Widget | None:
        return self._note if self.step in PLACEHOLDERS else self.editor if self.step in EDITORS else None

    @property
    def is_plan(self) -> bool:
        """True if the request is about a plan."""
        return self.request.question is not None and self.request.question.kind == "plan"

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

    @property
    def typed_rule(self) -> str:
        """The rule in the editor, one on each line."""
        return "\n".join(line.strip() for line in self.editor.text.split("\n") if line.strip())

    def _rule_rows(self, width: int) -> Sequence[Line]:
        if self.step == "typing":
            return self.offer.typed_rows(self.typed_rule, width, with_past=self._with_past)
        return self.offer.rows(width) if self.step == "confirming" else ()

    @property
    def unread(self) -> str:
        """Reason why no yes counts yet: the end of the input was not on the screen; empty if it was."""
        if self._awaited is not None:
            return "The input is being prepared; a yes counts once you saw its end."
        return "" if self.paged.read_to_end else self._unread_text()

    @property
    def answers(self) -> Sequence[str]:
        return [choice.action for choice in self._choices(self.row.row_width)]

    @on(RowsView.Moved, "#approval-body")
    @on(RowsView.Moved, "#approval-rule")
    def _moved(self) -> None:
        self.lay_out()

    # --- layout -------------------------------------------------------------------------------------------------------

    def lay_out(self) -> None:
        """Give each part its rows, and the dialog no more than it needs."""
        if not self.is_attached:
            return  # The question was settled before the dialog was laid out for the first time.
        inner, height = self._inner, self._window.height
        roomy, short = self._foot() if height >= FOOTED else (0, 0)
        above = height - int(height >= TALL)
        self.dialog.border_title = Content(f" ▲ {self._title(inner - TITLE_FRAME)} ")
        # The queue stays visible as long as the dialog does not need its rows.
        foot = roomy if self._rows_used(inner, compact=False) <= above - roomy else short
        available = above - foot
        compact = self._rows_used(inner, compact=False) > available
        if compact != self._compact:
            self._compact = compact
            self.body.redraw()
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
            view.redraw()
        self.editor.styles.height = self._typed_height() if self.step == "typing" else "1fr"
        self._stand(min(used, available), foot)

    def _title(self, width: int) -> str:
        return request_title(self.request, width) + line_counts(self.request)

    def _rows_used(self, inner: int, *, compact: bool) -> int:
        """Return the rows the dialog needs to show everything at once."""
        room = max(NARROWEST, inner - 1)
        if self.step == "confirming":
            main = len(self._rule_rows(room))
        elif self.step == "typing":
            main = self._typed_height() + len(self._rule_rows(room))
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
        return frame + head + gaps + max(1, main) + state + int(self._note.display) + len(self._key_rows(inner))

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
            self.body.redraw(anew=True)
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
        if self._window.height < FOOTED or self.step in ("confirming", *EDITORS):
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
        note = (_PLAN_NOTES if self.is_plan else _NOTES).get(self.step, "")
        if self.step == "editing" and self._edit is not None:
            note = note or f"You edit {self._edit.subject}. {_CHECKED if self.request.changes is None else _KEPT}"
        return [Line(clipped([(note, "muted")], width))] if note else []

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
        counts = self.row.guard.armed or self.text_field is not None
        unread = self._awaited is not None or not self.paged.read_to_end
        return [
            replace(
                choice,
                counts=choice.action in _ALWAYS or (counts and not (unread and choice.action in APPROVES)),
                is_at_cursor=choice.action == self.row.at_cursor != "",
            )
            for choice in choices
        ]
