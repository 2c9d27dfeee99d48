"""The question whether a call may run: the exact input, what it would change, why it asks, and one key to answer.

Nothing is the default. A key counts only once the question was drawn and a quiet moment passed; a yes only once
everything was read.
"""

import time
from collections.abc import Callable, Sequence
from typing import ClassVar, Literal

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Key, Paste, Resize
from textual.screen import ModalScreen
from textual.widgets import Input

from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest
from tui_agent.ui.amounts import count_text
from tui_agent.ui.approval_rows import ApprovalRows
from tui_agent.ui.commands import bindings_for, command
from tui_agent.ui.hosting import any_app
from tui_agent.ui.styled_lines import NARROWEST, Line, Run, clipped, wrapped
from tui_agent.ui.text import one_line, visible
from tui_agent.ui.widgets.answer_keys import AnswerKeys
from tui_agent.ui.widgets.rows_view import Build, RowsView

from .first_fit import fit_from_the_start

WIDE = 110
"""Columns from which it leaves the tool panel free."""
SHARE = 0.62
"""How much of a wide window it takes; the style sheet says the same."""
ROOMY = 14
"""Rows from which it has a frame."""
TALL = 24
"""Rows from which it leaves the title bar free."""
MOST_KEY_ROWS = 2
"""Rows for the answers; where they need more, their words go."""

_TIED = "\u00a0"
"""Stands for a blank at which a row must not end."""
_Step = Literal["asking", "confirming", "explaining"]
_ANSWERS = ("approve_once", "approve_session", "deny", "deny_with_reason", "skip", "not_now", "why")


class ApprovalScreen(ModalScreen[ApprovalDecision | None]):
    """One question. Gives the decision, or None for not now."""

    app = getters.app(any_app)
    CSS_PATH = "approval.tcss"
    AUTO_FOCUS = ""
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-tiny"), (ROOMY, "-roomy"), (TALL, "-tall")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("approval")]

    def __init__(
        self,
        request: ApprovalRequest,
        position: int = 1,
        total: int = 1,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self.request = request
        """What is asked."""
        self._place = f"{position} of {total}" if total > 1 else ""
        self._rows = ApprovalRows(request)
        self._step: _Step = "asking"
        self._traced = False
        self._reminded = False
        self._head = RowsView(self._head_rows, id="approval-head")
        self._body = RowsView(self._body_rows, id="approval-body")
        self._state = RowsView(self._state_rows, id="approval-state")
        self._reason = Input(id="approval-reason", placeholder="why not")
        self._keys = AnswerKeys(self._key_rows, clock, self._show_state, id="approval-keys")
        self._guard = self._keys.guard

    def compose(self) -> ComposeResult:
        """Who asks and why, the whole input, the answers."""
        fit_from_the_start(self, self.app.size)
        with Vertical(id="approval-dialog") as dialog:
            dialog.border_title = Content(f" ▲ {one_line(self.request.tool, 40)} needs you ")
            dialog.border_subtitle = Content(f" {self._place} ") if self._place else None
            for view in (self._head, self._body, self._state, self._keys):
                view.can_focus = False
            self._reason.display = False
            yield from (self._head, self._body, self._state, self._reason, self._keys)

    def on_mount(self) -> None:
        """Answers count a moment after everything was drawn."""
        self.call_after_refresh(self._guard.drawn)

    def on_resize(self, event: Resize) -> None:
        """Fits the dialog to what it shows."""
        self._arrange()

    def on_key(self, event: Key) -> None:
        """A key that means nothing here belongs to something else that is being typed."""
        if event.key not in self.active_bindings:
            self._guard.disturbed()

    def on_paste(self, event: Paste) -> None:
        """A paste never answers."""
        event.stop()
        self._guard.disturbed()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only what is offered; while a reason is typed, only the way back."""
        if self._step == "explaining":
            return action == "not_now"
        return action not in _ANSWERS or action in self._offered

    @property
    def was_drawn(self) -> bool:
        """Whether the question is on the screen, so that the quiet moment before answers has begun."""
        return self._guard.was_drawn

    # --- answers ------------------------------------------------------------------------------------------------------

    def action_approve_once(self) -> None:
        """Allows this call."""
        if self._step == "asking" and self._guard.accepts() and self._was_read():
            self.dismiss(ApprovalDecision(decision="approve"))

    def action_approve_session(self) -> None:
        """Shows the rule that would be stored; the second time, allows."""
        if not self._guard.accepts() or not self._was_read():
            return
        if self._step == "confirming":
            self.dismiss(ApprovalDecision(decision="approve", scope="session"))
        else:
            self._guard.disturbed()
            self._go_to("confirming")
            self.call_after_refresh(self._guard.drawn)

    def action_deny(self) -> None:
        """Refuses the call."""
        if self._step == "asking" and self._guard.accepts():
            self.dismiss(ApprovalDecision(decision="deny"))

    def action_deny_with_reason(self) -> None:
        """Asks why not; the words go to the agent."""
        if self._step == "asking" and self._guard.accepts():
            self._go_to("explaining")

    @on(Input.Submitted)
    def _explained(self, event: Input.Submitted) -> None:
        self.dismiss(ApprovalDecision(decision="deny", note=event.value.strip()))

    def action_skip(self) -> None:
        """Leaves the call out."""
        if self._step == "asking" and self._guard.accepts():
            self.dismiss(ApprovalDecision(decision="skip"))

    def action_not_now(self) -> None:
        """One step back; from the question itself, away without an answer. Always works (P54)."""
        if self._step == "asking":
            self.dismiss(None)
        else:
            self._go_to("asking")

    # --- reading ------------------------------------------------------------------------------------------------------

    def action_why(self) -> None:
        """Shows or hides every rule that was looked at."""
        self._traced = not self._traced
        self._body.show(self._body_rows)
        self._arrange()
        if self._traced:
            start = self._rows.trace_start(self._body.row_width)
            self.call_after_refresh(self._body.scroll_to, y=start, animate=False)

    def action_line_up(self) -> None:
        """One row up."""
        self._body.scroll_relative(y=-1, animate=False)

    def action_line_down(self) -> None:
        """One row down."""
        self._body.read_on(1)

    def action_page_up(self) -> None:
        """One page up."""
        self._body.scroll_relative(y=1 - self._body.row_count, animate=False)

    def action_page_down(self) -> None:
        """One page down, one row of it twice."""
        self._body.read_on(max(1, self._body.row_count - 1))

    def action_scroll_top(self) -> None:
        """To the top."""
        self._body.scroll_home(animate=False)

    def action_scroll_end(self) -> None:
        """To the end; what is jumped over stays unread."""
        self._body.scroll_end(animate=False)

    @on(RowsView.Moved, "#approval-body")
    def _moved(self) -> None:
        self._reminded = False
        self._arrange()

    # --- what is shown ------------------------------------------------------------------------------------------------

    @property
    def _offered(self) -> tuple[str, ...]:
        """The actions there are for this question, in the order of the table."""
        options = self.request.options
        rule = self.request.session_rule is not None
        offered = {
            "approve_once": "approve" in options,
            "approve_session": "approve" in options and rule,
            "deny": "deny" in options,
            "deny_with_reason": "deny" in options,
            "skip": "skip" in options,
        }
        return tuple(action for action in _ANSWERS if offered.get(action, True))

    def _was_read(self) -> bool:
        """Whether everything was in sight; else says so."""
        if not self._body.read_to_end:
            self._reminded = True
            self._arrange()
        return self._body.read_to_end

    def _go_to(self, step: _Step) -> None:
        self._step = step
        self._reason.display = step == "explaining"
        if step == "explaining":
            self._reason.focus()
        else:
            self.set_focus(None)
        self._arrange()

    def _show_state(self) -> None:
        self._state.show(self._state_rows)

    def show_keys(self) -> None:
        """Shows the answers as they are now: dim as long as they do not count."""
        self._keys.show_now()

    def _arrange(self) -> None:
        """Gives every part its rows, and the dialog no more than it needs."""
        width, height = self.size
        roomy = height >= ROOMY
        inner = max(NARROWEST, (int(width * SHARE) if width >= WIDE else width) - (4 if roomy else 0))
        used = (2 if roomy else 0) + int(self._reason.display)
        for view, build in self._parts:
            rows = len(build(inner))
            view.styles.height = rows
            view.display = rows > 0
            view.show(build)
            used += rows
        wanted = used + max(1, len(self._body_rows(max(NARROWEST, inner - 1))))
        self.query_one("#approval-dialog").styles.height = min(wanted, height - int(height >= TALL))

    def _body_rows(self, width: int) -> Sequence[Line]:
        return self._rows.rows(width, with_trace=self._traced)

    def _head_rows(self, width: int) -> Sequence[Line]:
        """Who asks for what, and why it is a question, one row each."""
        request = self.request
        agent = "The agent" if request.agent == "main" else f"Sub-agent {visible(request.agent)}"
        who: list[Run] = [(f"{agent} wants to run ", ""), (visible(request.tool), "strong")]
        if self.size.height < ROOMY:
            by = "" if request.agent == "main" else f"  by {visible(request.agent)}"
            runs: list[Run] = [("▲ ", "warning"), who[1], (f"  {self._place}{by}", "muted")]
            return [Line(clipped(runs, width))]
        reason = visible(request.reason).replace("\n", " ") or "no rule decides it"
        return [Line(clipped(who, width)), Line(clipped([("why  ", "muted"), (reason, "muted")], width)), Line()]

    def _state_rows(self, width: int) -> Sequence[Line]:
        """What has to be done before, or while, it is answered."""
        roomy = self.size.height >= ROOMY
        gap = [Line()] if roomy else []
        if self._step == "explaining":
            return [*gap, Line(clipped([("Say why not; the agent reads it and goes on.", "muted")], width))]
        if self._step == "confirming":
            rule: list[Run] = [("For this session also allowed:  ", "warning"), (visible(self._rule), "strong")]
            return [*gap, *wrapped(rule, width)]
        if not self._body.read_to_end and self._body.rows_below:
            more = f"▼ {count_text(self._body.rows_below, 'more row')}"
            how = f"{command('approval.page_down').keys[-1]} reads on; yes counts once you saw the end"
            style = "warning strong" if self._reminded else "warning"
            return [*gap, Line(clipped([(f"{more} · {how}", style)], width))]
        return [Line((("That key came too early to count.", "warning"),))] if gap and self._guard.too_early else gap

    def _key_rows(self, width: int) -> Sequence[Line]:
        """The answers, dim as long as they do not count."""
        if self._step == "explaining":
            return wrapped(
                [("enter", "key"), (" no, for this reason · ", "muted"), ("esc", "key"), (" back", "muted")], width
            )
        if self._step == "confirming":
            keys = [("approve_session", "yes, with this rule"), ("not_now", "back")]
        else:
            keys = [(action, "") for action in self._offered]
        rows = wrapped(self._hints(keys, words=True), width)
        if len(rows) > self._most_key_rows:
            rows = wrapped(self._hints(keys, words=False), width)[: self._most_key_rows]
        return [Line(tuple((text.replace(_TIED, " "), style) for text, style in row.runs)) for row in rows]

    def _hints(self, actions: Sequence[tuple[str, str]], *, words: bool) -> list[Run]:
        """Keys with their words from the table, or with others."""
        armed = self._guard.armed
        runs: list[Run] = []
        for action, text in actions:
            entry = command(f"approval.{action}")
            runs.append((entry.key_text, "key" if armed else "muted"))
            if words:
                runs.append((f" {text or entry.text}".replace(" ", _TIED), "" if armed else "muted"))
            runs.append(("   " if words else " ", ""))
        return runs

    @property
    def _parts(self) -> tuple[tuple[RowsView, Build], ...]:
        return (self._head, self._head_rows), (self._state, self._state_rows), (self._keys, self._key_rows)

    @property
    def _most_key_rows(self) -> int:
        return MOST_KEY_ROWS if self.size.height >= ROOMY else 1

    @property
    def _rule(self) -> str:
        return self.request.session_rule or ""
