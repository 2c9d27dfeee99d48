"""The question whether a call may run: the exact input, what it would change, why it asks, and one key to answer.

Nothing is the default. A key counts only once the question was drawn and a quiet moment passed; a yes only once
everything was read.
"""

import time
from collections.abc import Callable
from functools import cached_property

from textual import on
from textual.events import Key, Paste
from textual.widgets import Input, TextArea

from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest, GrantScope
from tui_agent.ui.bridge.services import GrantFacts, NoGrantFacts
from tui_agent.ui.text.rows_view import RowsView

from .approval_layout import ApprovalLayout
from .input_edit import InputEdit
from .rule_offer import RuleOffer

_ANSWERS = (
    "approve_once",
    "approve_session",
    "approve_always",
    "edit_input",
    "deny",
    "deny_with_reason",
    "skip",
    "list_all",
    "not_now",
    "why",
)
_STEP_KEYS = {
    "confirming": ("approve_session", "approve_always", "for_user", "narrower", "wider", "not_now"),
    "explaining": ("not_now",),
    "editing": ("run_edited", "not_now"),
}
_READING = ("line_up", "line_down", "page_up", "page_down", "scroll_top", "scroll_end")


class ApprovalScreen(ApprovalLayout):
    """One question. Gives the decision, None for not now, or the wish for the list of all questions."""

    def __init__(
        self,
        request: ApprovalRequest,
        position: int = 1,
        total: int = 1,
        *,
        facts: GrantFacts | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(request, RuleOffer(request, facts or NoGrantFacts()), clock)
        self._position, self.total = position, total

    @cached_property
    def _edit(self) -> InputEdit:
        return InputEdit(self.request)

    def on_key(self, event: Key) -> None:
        """A key that means nothing here belongs to something else that is being typed."""
        if event.key not in self.active_bindings:
            self.guard.disturbed()

    def on_paste(self, event: Paste) -> None:
        """A paste never answers."""
        event.stop()
        self.guard.disturbed()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only what is offered; while something is written, only what ends that."""
        if self.step in _STEP_KEYS:
            return action in _STEP_KEYS[self.step] or (self.step == "confirming" and action in _READING)
        return action in self.offered or action in _READING

    @property
    def was_drawn(self) -> bool:
        """Whether the question is on the screen, so that the quiet moment before answers has begun."""
        return self.guard.was_drawn

    @property
    def offered(self) -> tuple[str, ...]:
        """The actions there are for this question, in the order of the table."""
        options = self.request.options
        approves, denies = "approve" in options, "deny" in options
        offered = {
            "approve_once": approves,
            "approve_session": approves and bool(self.offer),
            "approve_always": approves and bool(self.offer) and bool(self.offer.scopes),
            "edit_input": approves,
            "deny": denies,
            "deny_with_reason": denies,
            "skip": "skip" in options,
            "list_all": self.total > 1,
        }
        return tuple(action for action in _ANSWERS if offered.get(action, True))

    # --- answers ------------------------------------------------------------------------------------------------------

    def action_approve_once(self) -> None:
        """Allows this call."""
        if self._may_approve():
            self.dismiss(ApprovalDecision(decision="approve"))

    def action_approve_session(self) -> None:
        """Shows the rule that would be stored; the second time, allows."""
        if self.step == "confirming" and not self.offer.lasting:
            self._store("session")
        elif self.step == "asking":
            self._confirm(lasting=False)

    def action_approve_always(self) -> None:
        """Shows the rule and the files it could stand in; the second time, allows in this project."""
        if self.step == "confirming" and self.offer.lasting:
            self._store("project")
        elif self.step == "asking":
            self._confirm(lasting=True)

    def action_for_user(self) -> None:
        """Allows with the rule that is shown, in every project."""
        if self.offer.lasting:
            self._store("user")

    def action_narrower(self) -> None:
        """A rule that allows less."""
        self._change_rule(-1)

    def action_wider(self) -> None:
        """A rule that allows more."""
        self._change_rule(+1)

    def action_edit_input(self) -> None:
        """Shows the input to be changed."""
        if self._may_approve():
            self.go_to("editing")
            self.editor.load_text(self._edit.text)
            self.editor.move_cursor(self.editor.document.end)

    def action_run_edited(self) -> None:
        """Allows the call with the input as it was changed; says so where that is none."""
        try:
            changed = self._edit.read(self.editor.text)
        except ValueError as error:
            self.wrong = str(error)
            self.lay_out()
            return
        same = changed == self.request.args
        self.dismiss(ApprovalDecision(decision="approve", input=None if same else changed))

    @on(TextArea.Changed)
    def _edited(self) -> None:
        self.wrong = ""
        self.lay_out()

    def action_deny(self) -> None:
        """Refuses the call."""
        if self.guard.accepts():
            self.dismiss(ApprovalDecision(decision="deny"))

    def action_deny_with_reason(self) -> None:
        """Asks why not; the words go to the agent."""
        if self.guard.accepts():
            self.go_to("explaining")

    @on(Input.Submitted)
    def _deny_with_reason(self, event: Input.Submitted) -> None:
        self.dismiss(ApprovalDecision(decision="deny", note=event.value.strip()))

    def action_skip(self) -> None:
        """Leaves the call out."""
        if self.guard.accepts():
            self.dismiss(ApprovalDecision(decision="skip"))

    def action_list_all(self) -> None:
        """Shows every question that waits."""
        if self.guard.accepts():
            self.dismiss("list")

    def action_not_now(self) -> None:
        """One step back; from the question itself, away without an answer. Always works (P54)."""
        if self.step == "asking":
            self.dismiss(None)
        else:
            self.go_to("asking")

    def _may_approve(self) -> bool:
        return self.guard.accepts() and self.was_read()

    def _confirm(self, *, lasting: bool) -> None:
        """Shows the rule."""
        if self._may_approve():
            self.offer.lasting = lasting
            self.go_to("confirming")

    def _store(self, scope: GrantScope) -> None:
        is_possible = scope == "session" or scope in self.offer.scopes
        if is_possible and self._may_approve():
            rule = None if self.offer.rule == self.request.session_rule else self.offer.rule
            self.dismiss(ApprovalDecision(decision="approve", scope=scope, rule=rule))

    def _change_rule(self, by: int) -> None:
        """Another rule is another question: it has to be read, too."""
        if self.offer.change(by):
            self.rule_view.show(self.offer.rows, anew=True)
            self.lay_out()
            self.restart_question()

    # --- reading ------------------------------------------------------------------------------------------------------

    def action_why(self) -> None:
        """Shows or hides every rule that was looked at."""
        self.traced = not self.traced
        self.show_body()
        if self.traced:
            self.call_after_refresh(self.body.scroll_to, y=self.trace_start(), animate=False)

    @on(RowsView.Moved, "#approval-body")
    @on(RowsView.Moved, "#approval-rule")
    def _moved(self) -> None:
        self.reset_reminder()
