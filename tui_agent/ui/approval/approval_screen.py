"""The dialog that asks whether a call may run: the exact input, what it would change, why it asks, and the answers.

Nothing is preselected. When a key counts is in `ui/dialogs/answer_rules.py`; a yes needs the end of the input, too. A
key that does nothing says why, and any other text goes to the composer.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from textual import on
from textual.message import Message
from textual.widgets import Input, TextArea

from tui_agent.protocol.diffs import Diff
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import ApprovalDecision, GrantScope
from tui_agent.protocol.trial import ProposedChanges
from tui_agent.ui.base.commands import command
from tui_agent.ui.dialogs.text_page import WholeDiffsPage

from .approval_answers import AnswerStep
from .approval_dialog import APPROVES, EDITORS, PAST_SECONDS, PLACEHOLDERS, ApprovalDialog
from .approval_rows import ApprovalRows
from .change_parts import ChangedText, InputEdit, keep_all, new_texts, proposed_parts

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


class ApprovalScreen(ApprovalDialog):
    """One request. Returns the decision, None for "not now", or the page that the user opens."""

    @dataclass
    class EditorRequested(Message):
        """The user wants to edit a text in the own editor."""

        text: str
        file_name: str
        """Name of the file to edit."""
        done: Callable[[str, str], None]
        """Takes the edited text, and why there is none if that failed."""

    WHERE = "approval"
    SELECTS = frozenset(("page_down", "why", "more"))
    CLICKED = frozenset(
        (
            *("approve_once", "approve_with_note", "edit_input", "choose_parts", "deny", "deny_with_reason", "skip"),
            *("list_all", "not_now", "why", "more", "whole_diffs"),
        )
    )

    def on_mount(self) -> None:
        """Begin with the text to edit, if there is one."""
        if self._edit is not None:
            self.call_after_refresh(self.edit, self._edit)

    def _accepted(self, mode: str) -> JsonObject | None:
        """Return the answer that accepts a plan, with the text if it was edited; None: the request is about no plan."""
        if not self.is_plan:
            return None
        plan = self.request.args["plan"]
        return {"mode": mode, "plan": plan} if plan != self._asked.args["plan"] else {"mode": mode}

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the offered answers; while something is typed or confirmed, only what ends that."""
        step = self.step
        if step in _STEP_KEYS:
            return action in _STEP_KEYS[step] or (step == "confirming" and action in _READING)
        if action == "edit_outside" and self.is_plan:
            return True
        return action in self.offered or action in (*_READING, *_CURSOR, "more")

    def ends(self, action: str) -> bool:
        step = self.step
        if step == "asking" and action == "approve_session" and self.is_plan:
            return True
        return (step == "asking" and action in _ENDS) or (step == "confirming" and action in _STORES)

    def refusal(self, action: str) -> str:
        """Return why an answer is impossible: it is not offered, or the end of the input was not on the screen."""
        step = self.step
        if not self.check_action(action, ()):
            back = command("approval.not_now").key_text
            return _MISSING.get(action, "") if step == "asking" else f"This key does nothing here. {back} goes back."
        stores = {"approve_session": not self.offer.lasting, "approve_always": self.offer.lasting}
        if step == "confirming" and not stores.get(action, True):
            return f"{command('approval.not_now').key_text} goes back to the other rule."
        edits_rule = step == "confirming" and action == "edit_input"
        return self.unread if action in APPROVES and not edits_rule else ""

    # --- steps --------------------------------------------------------------------------------------------------------

    def show_plan(self, text: str) -> None:
        """Show a plan that the user edited; an answer is about this one."""
        question = self.request.question
        if question is not None:
            changed = {"question": question.model_copy(update={"message": text}), "args": {"plan": text}}
            self.request = self.request.model_copy(update=changed)
            self._rows = ApprovalRows(self.request)
            self.body.redraw(anew=True)
            self.go_to("asking")

    def go_to(self, step: AnswerStep) -> None:
        """Show another step."""
        self.step, self._error, self.row.at_cursor = step, "", ""
        self._note.display = step in PLACEHOLDERS
        if step in PLACEHOLDERS and self._note.placeholder != PLACEHOLDERS[step]:
            # A reason for a no makes no sense beside a yes.
            self._note.value, self._note.placeholder = "", PLACEHOLDERS[step]
        self.editor.display = step in EDITORS
        self._rule.display = step in ("confirming", "typing")
        self.body.display = step in ("asking", *PLACEHOLDERS)
        self.set_focus(self.text_field)
        if step == "confirming":
            self._rule.redraw(anew=True)
        if step == "typing":
            self.editor.edit_code(self.offer.rule, "")
            self.editor.move_cursor(self.editor.document.end)
            self._show_typed_rule()
        self.lay_out()
        self.ask_anew()

    def edit(self, edit: InputEdit | ChangedText) -> None:
        """Open the editor with the input: a command with the cursor at its end, a file at its beginning."""
        self._edit = edit
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

    def _show_typed_rule(self, *, with_past: bool = True) -> None:
        if self.step == "typing":
            self._with_past = with_past
            self._rule.redraw(anew=True)
            self.lay_out()

    def change_rule(self, by: int) -> None:
        """Show a wider (+1) or narrower (-1) rule, if there is one."""
        if self.offer.change(by):
            self._rule.redraw(anew=True)
            self.lay_out()
            # Another rule is another question: the user has to read it, too.
            self.ask_anew()

    def action_why(self) -> None:
        """Show or hide every rule that was checked."""
        self._traced = not self._traced
        self.body.redraw()
        self.lay_out()
        if self._traced:
            # Its rows are there only after the layout.
            self.call_after_refresh(self.body.lead_to, self._trace_start())

    def action_more(self) -> None:
        """Show all answers, or only those that fit one row."""
        self._shows_all = not self._shows_all
        self.lay_out()

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

    # --- answers ------------------------------------------------------------------------------------------------------

    def action_approve_once(self) -> None:
        """Allow this call."""
        self.dismiss(ApprovalDecision(decision="approve", input=self._accepted("ask") or self._kept))

    def action_approve_session(self) -> None:
        """Show the rule to store for the session, or allow with it the second time; of a plan: accept edits."""
        if (accepted := self._accepted("accept_edits")) is not None:
            self.dismiss(ApprovalDecision(decision="approve", input=accepted))
        else:
            self._confirm("session")

    def action_approve_always(self) -> None:
        """Show the rule and the files that could store it; the second time, allow in this project."""
        self._confirm("project")

    def action_for_user(self) -> None:
        """Allow with the rule that is shown, in every project."""
        if self.offer.lasting:
            self._store("user")

    def action_narrower(self) -> None:
        """Show a rule that allows less; before that, move the cursor to the answer before."""
        self._turn(-1)

    def action_wider(self) -> None:
        """Show a rule that allows more; before that, move the cursor to the next answer."""
        self._turn(+1)

    def _turn(self, by: int) -> None:
        (self.change_rule if self.step == "confirming" else self._move_cursor)(by)

    def action_approve_with_note(self) -> None:
        """Ask for a remark, which the agent reads with the result."""
        self.go_to("adding")

    def action_edit_input(self) -> None:
        """Open the input in the editor, or the rule that is shown."""
        if self.step == "confirming":
            self.go_to("typing")
        elif (changes := self.request.changes) is None:
            self.edit(InputEdit(self.request))
        else:
            self._with_texts(partial(self._edit_changed, changes))

    def _edit_changed(self, changes: ProposedChanges) -> None:
        """Edit the text that the command changed; of several, let the user choose."""
        if len(self.texts) > 1:
            self.dismiss("parts")
        elif (edit := proposed_parts(changes, self.texts).edit_only()) is None:
            self.show_error(_NO_TEXT)
        else:
            self.edit(edit)

    def _with_texts(self, then: Callable[[], object]) -> None:
        """Read the changed texts in a thread, then continue if the question is still open."""
        changes = self.request.changes
        if changes is None:
            then()
            return

        async def read() -> None:
            self.texts = await asyncio.to_thread(new_texts, Path(self._root), changes) if self._root else {}
            if self.is_current and self.step == "asking":
                then()

        self.run_worker(read, group="texts", exclusive=True)

    def action_run_edited(self) -> None:
        """Allow the call with the edited input, or choose the typed rule; show why if that is not possible."""
        if self.step == "typing":
            self._choose_typed_rule()
            return
        if (edit := self._edit) is None:
            return
        try:
            changed = edit.read(self.editor.text)
        except ValueError as error:
            self.show_error(str(error))
            return
        if self.is_plan:
            self.show_plan(str(changed["plan"]))
            return
        # Unchanged input was checked already, so it is a plain yes.
        same = changed == self.request.args
        note = f"I edited {edit.subject} before I kept it." if isinstance(edit, ChangedText) else ""
        self.dismiss(ApprovalDecision(decision="approve", input=None if same else changed, note=note))

    def action_edit_outside(self) -> None:
        """Open the edited text in the user's own editor."""
        if self.step == "asking":
            self.edit(InputEdit(self.request))
        if self._edit is not None:
            self.post_message(self.EditorRequested(self.editor.text, self._edit.file_name, self.replace_edited))

    def _choose_typed_rule(self) -> None:
        rule = self.typed_rule
        if refusal := self.offer.refusal(rule):
            self.show_error(refusal)
        else:
            self.offer.type(rule)
            self.go_to("confirming")

    def action_deny(self) -> None:
        """Deny the call."""
        self.dismiss(ApprovalDecision(decision="deny"))

    def action_deny_with_reason(self) -> None:
        """Ask for the reason, which the agent reads."""
        self.go_to("explaining")

    @on(Input.Submitted)
    def _answer_with_note(self, event: Input.Submitted) -> None:
        adds = self.step == "adding"
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
        changes = self.request.changes
        if changes is None:
            return

        async def read() -> None:
            text = await asyncio.to_thread(whole_diffs, changes)
            if self.is_current and self.step == "asking":
                self.app.push_screen(WholeDiffsPage(text), lambda _: self.ask_anew())

        self.run_worker(read, group="texts", exclusive=True)

    def action_not_now(self) -> None:
        """Go one step back; from the request itself, close without an answer."""
        # Not guarded: leaving answers nothing, so it may never be too early.
        if self.step == "asking":
            self.dismiss(None)
        else:
            self.go_to("confirming" if self.step == "typing" else "asking")

    def _confirm(self, scope: GrantScope) -> None:
        """Show the rule to store; the second time, allow with it."""
        if self.step == "confirming":
            self._store(scope)
        else:
            self.offer.lasting = scope != "session"
            self.go_to("confirming")

    def _store(self, scope: GrantScope) -> None:
        if scope == "session" or scope in self.offer.scopes:
            # The gate knows its own proposal; only another rule has to be passed on.
            rule = None if self.offer.rule == self.request.session_rule else self.offer.rule
            self.dismiss(ApprovalDecision(decision="approve", scope=scope, rule=rule, input=self._kept))

    @property
    def _kept(self) -> JsonObject | None:
        """The changes that a yes keeps; None: all of them, or the question is about a call."""
        return keep_all(self.request.changes) if self.request.changes is not None else None


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
