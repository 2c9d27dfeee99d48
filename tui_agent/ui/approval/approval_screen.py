"""The dialog that asks whether a call may run: the exact input, what it would change, why it asks, and the answers.

Nothing is preselected. When a key counts is in `ui/dialogs/answer_rules.py`; a yes needs the end of the input, too. A
key that does nothing says why, and any other text goes to the composer.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from textual import on
from textual.app import ComposeResult
from textual.events import Resize
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input

from tui_agent.protocol.diffs import Diff
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest, GrantScope
from tui_agent.protocol.trial import ProposedChanges
from tui_agent.ui.base.app_type import apply_initial_breakpoints
from tui_agent.ui.base.commands import command
from tui_agent.ui.dialogs.answer_screen import QuestionScreen, TypedKeys
from tui_agent.ui.dialogs.text_page import WholeDiffsPage
from tui_agent.ui.text.rows_view import Paging, RowsView

from .approval_answers import RuleOffer
from .approval_dialog import APPROVES, ROOMY, TALL, WIDE, ApprovalDialog, Cover, FootRows
from .change_parts import ChangedText, InputEdit, keep_all, new_texts, proposed_parts

if TYPE_CHECKING:
    from tui_agent.workbench.configuration.permission_rules import RuleImpact


PageRequested = Literal["list", "parts"]
"""Result in place of a decision: show every waiting request, or the parts of this change."""

Decided: TypeAlias = ApprovalDecision | PageRequested | None
"""The answer, a page to show, or None for "not now"."""

_STEP_KEYS = {
    "confirming": ("approve_session", "approve_always", "for_user", "narrower", "wider", "edit_input", "not_now"),
    "typing": ("run_edited", "not_now"),
    "explaining": ("not_now",),
    "adding": ("not_now",),
    "editing": ("run_edited", "edit_outside", "not_now"),
}
_CURSOR = ("next_answer", "previous_answer", "choose_answer", "narrower", "wider")
_ENDS = ("approve_once", "deny", "skip")
_STORES = ("approve_session", "approve_always", "for_user")
_MISSING = {
    "choose_parts": "This change has one part: y or n answers it whole.",
    "list_all": "No other question waits.",
    "approve_session": "No rule can be stored for this question.",
    "approve_always": "No rule can be stored for this question.",
    "for_user": "This answer is for a rule that is shown.",
    "edit_input": "There is no text to edit.",
    "whole_diffs": "No diff is cut here.",
}
"""Reason why a key does nothing where its answer is not offered."""
_NO_TEXT = "This text cannot be edited here: it changed meanwhile, or an editor would not keep it as it is."
_READING = ("line_up", "line_down", "page_up", "page_down", "scroll_top", "scroll_end")


class ApprovalScreen(Paging, QuestionScreen[Decided]):
    """One request. Returns the decision, None for "not now", or the page that the user opens."""

    @dataclass
    class EditorRequested(Message):
        """The user wants to edit a text in the own editor."""

        text: str
        file_name: str
        """Name of the file to edit."""
        done: Callable[[str, str], None]
        """Takes the edited text, and why there is none if that failed."""

    CSS_PATH = "approval.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-tiny"), (ROOMY, "-roomy"), (TALL, "-tall")]  # noqa: RUF012
    WHERE = "approval"
    SELECTS = frozenset(("page_down", "why", "more"))
    CLICKED = frozenset(
        (
            *("approve_once", "approve_with_note", "edit_input", "choose_parts", "deny", "deny_with_reason", "skip"),
            *("list_all", "not_now", "why", "more", "whole_diffs"),
        )
    )

    def __init__(
        self,
        request: ApprovalRequest,
        position: int = 1,
        total: int = 1,
        *,
        facts: "RuleImpact | None",
        keys: TypedKeys,
        at_once: bool = False,
        foot: FootRows = lambda: (0, 0),
        cover: Cover = lambda _: None,
        root: str = "",
        edit: ChangedText | None = None,
    ) -> None:
        """Create the screen.

        Args:
            position: its number among all requests, from 1.
            facts: facts about the rules that an answer may store; None: none is stored.
            at_once: True if answers count as soon as the question is drawn.
            root: the workspace, from which paths are shown, and whose texts a command has changed in its trial.
            edit: a text among these that the user edits first.
        """
        self.texts: Mapping[str, str] = {}
        """New texts of changed files by path, once the user chose to keep parts or to edit."""
        self._root = root
        self._changed_text = edit
        self._request = request
        self._offer = RuleOffer(request, facts)
        parts = (request, self._offer, keys.clock, position, total, foot, cover)
        self.dialog = ApprovalDialog(*parts, at_once=at_once, root=root)
        """The widget that shows the request."""
        super().__init__(self.dialog.row, keys)

    @property
    def _input_edit(self) -> InputEdit:
        return InputEdit(self.dialog.request)

    def _accepted(self, mode: str) -> JsonObject | None:
        """Return the answer that accepts a plan, with the text if it was edited; None: the request is about no plan."""
        if not self.dialog.is_plan:
            return None
        plan = self.dialog.request.args["plan"]
        return {"mode": mode, "plan": plan} if plan != self._request.args["plan"] else {"mode": mode}

    @property
    def _edit(self) -> InputEdit | ChangedText:
        return self._changed_text or self._input_edit

    def on_mount(self) -> None:
        """Begin with the text to edit, if there is one."""
        super().on_mount()
        if self._changed_text is not None:
            self.call_after_refresh(self.dialog.edit, self._changed_text)

    def compose(self) -> ComposeResult:
        # Textual sets these classes after the first frame, which would then move.
        apply_initial_breakpoints(self, self.app.size)
        yield self.dialog

    def on_resize(self, event: Resize) -> None:
        self.dialog.lay_out()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the offered answers; while something is typed or confirmed, only what ends that."""
        step = self.dialog.step
        if step in _STEP_KEYS:
            return action in _STEP_KEYS[step] or (step == "confirming" and action in _READING)
        if action == "edit_outside" and self.dialog.is_plan:
            return True
        return action in self.dialog.offered or action in (*_READING, *_CURSOR, "more")

    def ends(self, action: str) -> bool:
        step = self.dialog.step
        if step == "asking" and action == "approve_session" and self.dialog.is_plan:
            return True
        return (step == "asking" and action in _ENDS) or (step == "confirming" and action in _STORES)

    def refusal(self, action: str) -> str:
        """Return why an answer is impossible: it is not offered, or the end of the input was not on the screen."""
        step = self.dialog.step
        if not self.check_action(action, ()):
            back = command("approval.not_now").key_text
            return _MISSING.get(action, "") if step == "asking" else f"This key does nothing here. {back} goes back."
        stores = {"approve_session": not self._offer.lasting, "approve_always": self._offer.lasting}
        if step == "confirming" and not stores.get(action, True):
            return f"{command('approval.not_now').key_text} goes back to the other rule."
        edits_rule = step == "confirming" and action == "edit_input"
        return self.dialog.unread if action in APPROVES and not edits_rule else ""

    @property
    def answers(self) -> Sequence[str]:
        return self.dialog.shown_answers

    @property
    def paged(self) -> RowsView:
        return self.dialog.paged

    @property
    def text_field(self) -> Widget | None:
        return self.dialog.field

    # --- answers ------------------------------------------------------------------------------------------------------

    def action_approve_once(self) -> None:
        """Allow this call."""
        self.dismiss(ApprovalDecision(decision="approve", input=self._accepted("ask") or self._kept))

    def action_approve_session(self) -> None:
        """Show the rule to store for the session, or allow with it the second time; of a plan: accept edits."""
        if (accepted := self._accepted("accept_edits")) is not None:
            self.dismiss(ApprovalDecision(decision="approve", input=accepted))
        elif self.dialog.step == "confirming":
            self._store("session")
        else:
            self._confirm(lasting=False)

    def action_approve_always(self) -> None:
        """Show the rule and the files that could store it; the second time, allow in this project."""
        if self.dialog.step == "confirming":
            self._store("project")
        else:
            self._confirm(lasting=True)

    def action_for_user(self) -> None:
        """Allow with the rule that is shown, in every project."""
        if self._offer.lasting:
            self._store("user")

    def action_narrower(self) -> None:
        """Show a rule that allows less; before that, move the cursor to the answer before."""
        if self.dialog.step == "confirming":
            self.dialog.change_rule(-1)
        else:
            self.action_previous_answer()

    def action_wider(self) -> None:
        """Show a rule that allows more; before that, move the cursor to the next answer."""
        if self.dialog.step == "confirming":
            self.dialog.change_rule(+1)
        else:
            self.action_next_answer()

    def action_approve_with_note(self) -> None:
        """Ask for a remark, which the agent reads with the result."""
        self.dialog.go_to("adding")

    def action_edit_input(self) -> None:
        """Open the input in the editor, or the rule that is shown."""
        if self.dialog.step == "confirming":
            self.dialog.go_to("typing")
        else:
            changes = self._request.changes
            if changes is None:
                self.dialog.edit(self._edit)
            else:
                self._with_texts(partial(self._edit_changed, changes))

    def _edit_changed(self, changes: ProposedChanges) -> None:
        """Edit the text that the command changed; of several, let the user choose."""
        if len(self.texts) > 1:
            self.dismiss("parts")
        elif (edit := proposed_parts(changes, self.texts).edit_only()) is None:
            self.dialog.show_error(_NO_TEXT)
        else:
            self._changed_text = edit
            self.dialog.edit(edit)

    def _with_texts(self, then: Callable[[], object]) -> None:
        """Read the changed texts in a thread, then continue if the question is still open."""
        changes = self._request.changes
        if changes is None:
            then()
            return

        async def read() -> None:
            self.texts = await asyncio.to_thread(new_texts, Path(self._root), changes) if self._root else {}
            if self.is_current and self.dialog.step == "asking":
                then()

        self.run_worker(read, group="texts", exclusive=True)

    def action_run_edited(self) -> None:
        """Allow the call with the edited input, or choose the typed rule; show why if that is not possible."""
        if self.dialog.step == "typing":
            self._choose_typed_rule()
            return
        try:
            changed = self._edit.read(self.dialog.editor.text)
        except ValueError as error:
            self.dialog.show_error(str(error))
            return
        if self.dialog.is_plan:
            self.dialog.show_plan(str(changed["plan"]))
            return
        # Unchanged input was checked already, so it is a plain yes.
        same = changed == self._request.args
        note = f"I edited {self._edit.subject} before I kept it." if self._changed_text is not None else ""
        self.dismiss(ApprovalDecision(decision="approve", input=None if same else changed, note=note))

    def action_edit_outside(self) -> None:
        """Open the edited text in the user's own editor."""
        if self.dialog.step == "asking":
            self.dialog.edit(self._edit)
        self.post_message(
            self.EditorRequested(self.dialog.editor.text, self._edit.file_name, self.dialog.replace_edited)
        )

    def _choose_typed_rule(self) -> None:
        rule = self.dialog.typed_rule
        if refusal := self._offer.refusal(rule):
            self.dialog.show_error(refusal)
        else:
            self._offer.type(rule)
            self.dialog.go_to("confirming")

    def action_deny(self) -> None:
        """Deny the call."""
        self.dismiss(ApprovalDecision(decision="deny"))

    def action_deny_with_reason(self) -> None:
        """Ask for the reason, which the agent reads."""
        self.dialog.go_to("explaining")

    @on(Input.Submitted)
    def _answer_with_note(self, event: Input.Submitted) -> None:
        adds = self.dialog.step == "adding"
        note, kept = event.value.strip(), self._kept if adds else None
        # A no has no input, so an edited plan goes with its words.
        if (edited := (self._accepted("") or {}).get("plan")) is not None:
            note = f"{note}\n\nThe plan as I edited it:\n\n{edited}"
        self.dismiss(ApprovalDecision(decision="approve" if adds else "deny", note=note, input=kept))

    def action_skip(self) -> None:
        """Skip the call."""
        self.dismiss(ApprovalDecision(decision="skip"))

    def action_list_all(self) -> None:
        """Show every waiting request."""
        self.dismiss("list")

    def action_choose_parts(self) -> None:
        """Show the parts of the change, to accept some of them."""
        self._with_texts(lambda: self.dismiss("parts"))

    def action_whole_diffs(self) -> None:
        """Show the whole diffs of the files whose diffs are cut."""
        changes = self._request.changes
        if changes is None:
            return

        async def read() -> None:
            text = await asyncio.to_thread(whole_diffs, changes)
            if self.is_current and self.dialog.step == "asking":
                self.app.push_screen(WholeDiffsPage(text), lambda _: self.dialog.restart_guard())

        self.run_worker(read, group="texts", exclusive=True)

    def action_not_now(self) -> None:
        """Go one step back; from the request itself, close without an answer."""
        # Not guarded: leaving answers nothing, so it may never be too early.
        if self.dialog.step == "asking":
            self.dismiss(None)
        else:
            self.dialog.go_to("confirming" if self.dialog.step == "typing" else "asking")

    def action_why(self) -> None:
        """Show or hide every rule that was checked."""
        self.dialog.toggle_trace()

    def action_more(self) -> None:
        """Show all answers, or only the most used."""
        self.dialog.toggle_answers()

    def _confirm(self, *, lasting: bool) -> None:
        self._offer.lasting = lasting
        self.dialog.go_to("confirming")

    def _store(self, scope: GrantScope) -> None:
        if scope == "session" or scope in self._offer.scopes:
            # The gate knows its own proposal; only another rule has to be passed on.
            rule = None if self._offer.rule == self._request.session_rule else self._offer.rule
            self.dismiss(ApprovalDecision(decision="approve", scope=scope, rule=rule, input=self._kept))

    @property
    def _kept(self) -> JsonObject | None:
        """The changes that a yes keeps; None: all of them, or the question is about a call."""
        return keep_all(self._request.changes) if self._request.changes is not None else None


MOST_OF_ONE = 2_000_000
"""Most characters of one whole diff."""


def whole_diffs(changes: ProposedChanges) -> Diff:
    """Return the whole diffs of the texts whose diff is cut, as far as they are known. Blocks."""
    found: list[Diff] = []
    for file in changes.files:
        if not file.has_more:
            continue
        text = f"--- a/{file.path}\n+++ b/{file.path}\n… It is too large to be compared.\n"
        if file.whole_diff:
            with suppress(OSError), open(file.whole_diff, encoding="utf-8", errors="replace", newline="") as stored:
                text = stored.read(MOST_OF_ONE)
        found.append(Diff(text))
    return Diff.joined(found)
