"""How the question about a call is laid out: every part gets the rows it needs, and none is out of reach.

Empty rows are the first to go where the window is small: what has to be read fits on one page as long as it can.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import ClassVar, Literal

from textual import getters
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Resize
from textual.screen import ModalScreen

from tui_agent.protocol.permissions import DECIDED_BY_USER, ApprovalDecision, ApprovalRequest
from tui_agent.ui.base.app_type import any_app
from tui_agent.ui.base.commands import bindings_for, command
from tui_agent.ui.base.initial_breakpoints import apply_initial_breakpoints
from tui_agent.ui.dialogs.answer_keys import AnswerKeys
from tui_agent.ui.text.amounts import count_text
from tui_agent.ui.text.input_fields import InputEditor, LineInput
from tui_agent.ui.text.paging import Paging
from tui_agent.ui.text.rows_view import RowsView
from tui_agent.ui.text.sanitiser import one_line, visible
from tui_agent.ui.text.styled_lines import NARROWEST, Line, Run, clipped, wrapped

from .approval_rows import TITLE_NAME, ApprovalRows
from .rule_offer import RuleOffer

WIDE = 110
"""Columns from which it leaves the tool panel free."""
SHARE = 0.62
"""How much of a wide window it takes; the style sheet says the same."""
ROOMY = 14
"""Rows from which it has a frame."""
TALL = 24
"""Rows from which it leaves the title bar free."""
MAX_KEY_ROWS = 2
"""Rows for the answers; where they need more, their words go."""
MIN_EDITOR = 8
"""Rows in which an input is changed."""

_WANTS = {"main": "The agent wants", DECIDED_BY_USER: "You want"}
"""Who asks, where it is no sub-agent."""

AnswerStep = Literal["asking", "confirming", "explaining", "editing"]
"""What the dialog shows: the question, the rule to store, a line for the reason, or the input to change."""
ListRequested = Literal["list"]
"""In the place of an answer: every question that waits."""

_TIED = "\u00a0"
"""Stands for a blank at which a row must not end."""


class ApprovalLayout(Paging, ModalScreen[ApprovalDecision | ListRequested | None]):
    """The parts of the dialog, and what stands in them."""

    app = getters.app(any_app)
    CSS_PATH = "approval.tcss"
    AUTO_FOCUS = ""
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-tiny"), (ROOMY, "-roomy"), (TALL, "-tall")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("approval")]

    def __init__(self, request: ApprovalRequest, offer: RuleOffer, clock: Callable[[], float]) -> None:
        super().__init__()
        self.request = request
        """What is asked."""
        self.step: AnswerStep = "asking"
        """What is shown."""
        self.traced = False
        """Whether every rule that was looked at is shown."""
        self.wrong = ""
        """Why what was written cannot be taken."""
        self.offer = offer
        """The rule that would be stored."""
        self._rows = ApprovalRows(request)
        self._awaited: int | None = None
        """The width for which a thread lays out the input; meanwhile a row says so, and no yes counts."""
        self._reminded = False
        self._compact = False
        self._fits = False
        self._position, self.total = 1, 1
        self._head = RowsView(self._head_rows, id="approval-head")
        self.body = RowsView(self._body_rows, id="approval-body")
        """The whole input."""
        self.rule_view = RowsView(id="approval-rule")
        """The rule that would be stored."""
        self.editor = InputEditor(id="approval-editor")
        """The input, to be changed."""
        self._state = RowsView(self._state_rows, id="approval-state")
        self.reason = LineInput(id="approval-reason", placeholder="why not")
        """Why not."""
        # A blinking cursor wakes an idle program twice a second.
        self.reason.cursor_blink = False
        self._keys = AnswerKeys(self._key_rows, clock, self._show_state, id="approval-keys")
        self.guard = self._keys.guard
        """Says whether an answer counts."""

    def compose(self) -> ComposeResult:
        """Who asks and why, the whole input, the answers."""
        apply_initial_breakpoints(self, self.app.size)
        with Vertical(id="approval-dialog") as dialog:
            tool, agent = (
                one_line(visible(self.request.tool), TITLE_NAME),
                one_line(visible(self.request.agent), TITLE_NAME),
            )
            who = _WANTS.get(self.request.agent) or f"Sub-agent {agent} wants"
            dialog.border_title = Content(f" ▲ {who} to run {tool} ")
            for view in (self._head, self.body, self.rule_view, self._state, self._keys):
                view.can_focus = False
            self.reason.display = self.editor.display = self.rule_view.display = False
            yield from (self._head, self.body, self.rule_view, self.editor, self._state, self.reason, self._keys)

    def on_mount(self) -> None:
        """Answers count a moment after everything was drawn."""
        self.count(self._position, self.total)
        self.call_after_refresh(self.guard.drawn)

    def on_resize(self, event: Resize) -> None:
        """Fits the dialog to what it shows."""
        self.lay_out()

    @property
    def paged(self) -> RowsView:
        """What has to be read now: the input, or the rule."""
        return self.rule_view if self.step == "confirming" else self.body

    @property
    def offered(self) -> Sequence[str]:
        """The actions there are for this question, in the order of the table."""
        return ()

    def count(self, position: int, total: int) -> None:
        """Says which of how many questions it is."""
        self._position, self.total = position, total
        for frame in self.query("#approval-dialog"):
            frame.border_subtitle = Content(f" {self._position_text} ") if self._position_text else None
        if self.is_mounted:
            self.lay_out()

    def show_keys(self) -> None:
        """Shows the answers as they are now: dim as long as they do not count."""
        self._keys.show_now()

    def was_read(self) -> bool:
        """Whether everything was in sight; else says so."""
        was_read = self._awaited is None and self.paged.read_to_end
        if not was_read:
            self._reminded = True
            self.lay_out()
        return was_read

    def go_to(self, step: AnswerStep) -> None:
        """Shows another step."""
        self.step, self._reminded, self.wrong = step, False, ""
        self.reason.display = step == "explaining"
        self.editor.display = step == "editing"
        self.rule_view.display = step == "confirming"
        self.body.display = step in ("asking", "explaining")
        self.set_focus({"explaining": self.reason, "editing": self.editor}.get(step))
        if step == "confirming":
            self.rule_view.show(self.offer.rows, anew=True)
        self.lay_out()
        self.restart_question()

    def restart_question(self) -> None:
        """Something else is asked: what is pressed before it can have been seen does not answer it."""
        self.guard.withdrawn()
        self.call_after_refresh(self.guard.drawn)

    def reset_reminder(self) -> None:
        """Other rows are in sight."""
        self._reminded = False
        self.lay_out()

    def lay_out(self) -> None:
        """Gives every part its rows, and the dialog no more than it needs."""
        width, height = self.size
        roomy = height >= ROOMY
        inner = max(NARROWEST, (int(width * SHARE) if width >= WIDE else width) - (4 if roomy else 0))
        available = height - int(height >= TALL)
        compact = self._rows_used(inner, compact=False) > available
        if compact != self._compact:
            self._compact = compact
            self.body.show(self._body_rows)
        used = self._rows_used(inner, compact=compact)
        # Known before anything is drawn: a row that says there is more would itself hide one.
        self._fits = used <= available
        for view, build in (
            (self._head, self._head_rows),
            (self._state, self._state_rows),
            (self._keys, self._key_rows),
        ):
            rows = len(build(inner))
            view.styles.height = rows
            view.display = rows > 0
            view.show(build)
        for dialog in self.query("#approval-dialog"):
            dialog.styles.height = min(used, available)

    def _rows_used(self, inner: int, *, compact: bool) -> int:
        """Rows the dialog needs to show everything at once."""
        room = max(NARROWEST, inner - 1)
        if self.step == "confirming":
            main = len(self.offer.rows(room))
        elif self.step == "editing":
            main = max(MIN_EDITOR, self.editor.wrapped_document.height)
        elif self._rows.is_long:
            main = self.size.height
        else:
            main = len(self._rows.rows(room, with_trace=self.traced, spaced=not compact))
        frame = 2 if self.size.height >= ROOMY else 0
        gaps = 0 if compact or not frame else 2
        head = 1
        state = len(self._state_text(inner))
        return frame + head + gaps + max(1, main) + state + int(self.reason.display) + len(self._key_rows(inner))

    def _body_rows(self, width: int) -> Sequence[Line]:
        if self._rows.is_long and not self._rows.is_laid_out(width):
            self._lay_out_in_a_thread(width)
            return wrapped([("The input is long: its rows are being prepared …", "muted")], width)
        return self._rows.rows(width, with_trace=self.traced, spaced=not self._compact)

    def _lay_out_in_a_thread(self, width: int) -> None:
        """Make the rows for a width without holding up keys, and show them, unread, once they are there."""
        if self._awaited == width:
            return
        self._awaited = width

        async def lay_out() -> None:
            await asyncio.to_thread(self._rows.lay_out, width)
            self._awaited = None
            self.body.show(self._body_rows, anew=True)
            self.reset_reminder()

        self.run_worker(lay_out, group="rows", exclusive=True)

    def trace_start(self) -> int:
        """The row at which the trace begins."""
        if self._awaited is not None:
            return 0
        return self._rows.trace_start(max(NARROWEST, self.body.row_width), spaced=not self._compact)

    def show_body(self) -> None:
        """Shows the input and, if wanted, the trace."""
        self.body.show(self._body_rows)
        self.lay_out()

    def _head_rows(self, width: int) -> Sequence[Line]:
        """Why it is a question; where there is no frame, who asks for what."""
        request = self.request
        if self.size.height < ROOMY:
            by = "" if request.agent == "main" else f"  by {visible(request.agent)}"
            runs: list[Run] = [
                ("▲ ", "warning"),
                (visible(request.tool), "strong"),
                (f"  {self._position_text}{by}", "muted"),
            ]
            return [Line(clipped(runs, width))]
        reason = visible(request.reason).replace("\n", " ") or "no rule decides it"
        row = Line(clipped([("why  ", "muted"), (reason, "muted")], width))
        return [row] if self._compact else [row, Line()]

    def _state_rows(self, width: int) -> Sequence[Line]:
        """What has to be done before, or while, it is answered."""
        gap = [Line()] if self.size.height >= ROOMY and not self._compact else []
        text = self._state_text(width)
        if text:
            return [*gap, *text]
        left = self.paged.rows_below
        if self.step in ("asking", "confirming") and not self._fits and not self.paged.read_to_end and left:
            how = f"{command('approval.page_down').keys[-1]} reads on; yes counts once you saw the end"
            style = "warning strong" if self._reminded else "warning"
            return [*gap, Line(clipped([(f"▼ {count_text(left, 'more row')} · {how}", style)], width))]
        if gap and self.guard.too_early:
            return [Line((("That key came too early to count.", "warning"),))]
        return gap

    def _state_text(self, width: int) -> list[Line]:
        """What the step asks for, and what is wrong with what was written."""
        if self.wrong:
            return wrapped([(visible(self.wrong), "error")], width)
        if self.step == "explaining":
            return [Line(clipped([("Say why not; the agent reads it and goes on.", "muted")], width))]
        if self.step == "editing":
            return [
                Line(clipped([("It is checked and judged again; the agent is told what you changed.", "muted")], width))
            ]
        return []

    def _key_rows(self, width: int) -> Sequence[Line]:
        """The answers, dim as long as they do not count."""
        rows = wrapped(self._hints(words=True), width)
        if len(rows) > self._most_key_rows:
            rows = wrapped(self._hints(words=False), width)[: self._most_key_rows]
        return [Line(tuple((text.replace(_TIED, " "), style) for text, style in row.runs)) for row in rows]

    def _hints(self, *, words: bool) -> list[Run]:
        """Keys with their words."""
        counts = self.guard.armed or self.step in ("explaining", "editing")
        runs: list[Run] = []
        for key, text in self._choices():
            runs.append((key, "key" if counts else "muted"))
            if words:
                runs.append((f" {text}".replace(" ", _TIED), "" if counts else "muted"))
            runs.append(("   " if words else " ", ""))
        return runs

    def _choices(self) -> list[tuple[str, str]]:
        """Keys and words of the step, from the table."""
        back = (command("approval.not_now").key_text, "back")
        if self.step == "explaining":
            return [("enter", "no, for this reason"), back]
        if self.step == "editing":
            return [_choice("run_edited"), back]
        if self.step == "confirming" and not self.offer.lasting:
            return [_choice("approve_session", "yes, with this rule"), back]
        if self.step == "confirming":
            keys = {
                "project": _choice("approve_always", "yes, in this project"),
                "user": _choice("for_user", "yes, in every project"),
            }
            return [*(keys[scope] for scope in self.offer.scopes), back]
        words = {"list_all": f"all {self.total}"}
        return [_choice(action, words.get(action, "")) for action in self.offered]

    def _show_state(self) -> None:
        self._state.show(self._state_rows)

    @property
    def _position_text(self) -> str:
        return f"{self._position} of {self.total}" if self.total > 1 else ""

    @property
    def _most_key_rows(self) -> int:
        return MAX_KEY_ROWS if self.size.height >= ROOMY else 1


def _choice(action: str, text: str = "") -> tuple[str, str]:
    entry = command(f"approval.{action}")
    return entry.key_text, text or entry.text
