"""Opens approval dialogs and passes their answers to the agent.

A dialog opens by itself only after the user has stopped typing, and never over a page; until then a line announces the
request. An open dialog is never replaced; if its request is resolved elsewhere, it closes. If the user types a text
instead of an answer, it folds to that line until the user opens it or sends the message. The answer carries the id of
the request that was drawn, and reaches the agent once no text can continue it (`ui/dialogs/answer_rules.py`).
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from textual.events import Key, Paste
from textual.geometry import Region
from textual.timer import Timer

from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest
from tui_agent.ui.base.app_type import AnyScreen
from tui_agent.ui.base.commands import command
from tui_agent.ui.composer.prompt_area import PromptArea
from tui_agent.ui.dialogs.answer_screen import TAKES_BACK, QuestionScreen, Typed, TypedKeys
from tui_agent.ui.state.approval_folds import PendingApprovals

from .approval_dialog import Cover, FootRows
from .approval_screen import ApprovalScreen, PageRequested
from .approval_summary import request_title
from .attention_line import AttentionLine, announce_on_page
from .change_parts import ChangedText, keep_all, proposed_parts

if TYPE_CHECKING:
    # The first screen must not wait until the engine is loaded.
    from tui_agent.workbench.workbench import Workbench

    from .approval_pages import Answer, ApprovalListScreen, ChangePartsScreen
    from .server_question_screen import ServerQuestionScreen

_INTERRUPTS = "ctrl+c"
_ROUNDING = 1e-6
"""Tolerance for differences between times."""
_WORDS = {"approve": "✔ yes", "deny": "⊘ no", "skip": "⤼ skip"}
QUIET_SECONDS = 0.5
"""Seconds without typing before a dialog opens by itself."""


class AnswerTaker(Protocol):
    """Takes the answers; the bridge to an agent, or the units of a fleet."""

    shares_rules: bool
    """True if one stored rule applies to all requests."""

    @property
    def bench(self) -> "Workbench | None":
        """Knows the effects of rules, and opens pages for the questions of tool servers; None: nothing does."""
        ...

    def decide(self, request_id: str, decision: ApprovalDecision) -> bool:
        """Answer a request. False if it is no longer open."""
        ...


class ApprovalController(TypedKeys):
    """Shows the open approval requests of one chat screen, one at a time."""

    def __init__(
        self,
        screen: AnyScreen,
        bridge: AnswerTaker,
        clock: Callable[[], float],
        pending: PendingApprovals,
        entry: Callable[[], PromptArea | None],
        foot: FootRows = lambda: (0, 0),
        cover: Cover = lambda _: None,
        root: Callable[[], str] = str,
        named: Callable[[ApprovalRequest], ApprovalRequest] = lambda request: request,
        answered: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Create the controller of a screen; without an `entry` it drops text. `answered` shows recallable answers."""
        super().__init__(clock, screen)
        self.line = AttentionLine(id="attention")
        """Announces requests whose dialog is not open."""
        self._screen = screen
        self._bridge = bridge
        self._pending = pending
        self._foot = foot
        self._cover = cover
        self._root = root
        self._named, self._show_answers = named, answered
        self._dialog: ApprovalScreen | ServerQuestionScreen | None = None
        self._drawn: ApprovalRequest | None = None
        self._page: ApprovalListScreen | ChangePartsScreen | None = None
        self._typed_at = float("-inf")
        self._folded = False
        self._entry = entry
        self._answers: dict[str, tuple[ApprovalDecision, Key | None]] = {}
        """Answers that may still be recalled, by request, with the key that gave each."""
        self._gone: set[Key | None] = set()
        """Keys of the run for questions that are gone."""
        self._seen: set[str] = set()
        """Requests whose dialog was on the screen long enough for an answer."""
        self._first_key = 0
        """Place in the run of the first key pressed over the open dialog."""
        self._look_timer: Timer | None = None

    # --- keys ---------------------------------------------------------------------------------------------------------

    def note_key(self, event: Key | Paste) -> bool:
        """Note a key press or paste, before it is passed on; return True if it is not to be passed on.

        It delays the next dialog. If no dialog takes it, it is the end of the answers before, or text behind them.
        """
        if self._dialog is None and self._page is None:
            self._typed_at = self.clock()
        if not self.run.keys:
            return False
        name = "" if isinstance(event, Paste) or event.is_printable else event.key
        if self.run.is_over(self.time_of(event)):
            self.settle()
        elif name == _INTERRUPTS:
            # The app takes it before a dialog could.
            return self.take_back()
        elif isinstance(self._screen.app.screen, QuestionScreen):
            return False
        elif not name:
            self.type_text(self.run.end())
        elif name in TAKES_BACK:
            return self.take_back()
        else:
            had_answers = bool(self._answers)
            self.settle()
            # Enter hastens an answer; it must not send a draft, too.
            return had_answers and name == "enter"
        return False

    def composer_region(self) -> Region:
        entry = self._entry()
        return Region() if entry is None else entry.composer.region

    def type_text(self, typed: Sequence[Typed]) -> None:
        """Keep all requests closed while the user types a message; answers among its letters are none."""
        self._reopen()
        self._folded = True
        self._typed_at = self.clock()
        self._type(typed)
        self._announce()

    def _type(self, typed: Sequence[Typed]) -> None:
        if (entry := self._entry()) is not None:
            entry.type_text(typed)

    def take_back(self) -> bool:
        """Ask again what was answered since the last pause; return True if there was an answer."""
        self.run.end()
        if not self._answers:
            return False
        shown = self._dialog or self._page
        self._reopen()
        if shown is not None and shown.is_current:
            shown.dismiss(None)
        # The user waits for the question, so it need not wait for a pause.
        self._typed_at = float("-inf")
        self._screen.call_after_refresh(self.look, returns=True)
        return True

    def settle(self) -> None:
        """Give the answers to the agent: no text continues them. Keys for questions that are gone are text."""
        answers, self._answers = self._answers, {}
        self._show_answers("")
        gone, self._gone = self._gone | {key for _, key in answers.values()}, set()
        for request_id, (decision, key) in answers.items():
            # A rule or another front end may have settled it during the pause.
            if self._pending.is_known(request_id):
                gone.discard(key)
                if not self._bridge.decide(request_id, decision):
                    self._screen.notify("This question was already answered.", severity="warning", markup=False)
                self._pending.settle(request_id)
        if text := [key for key in self.run.end() if key in gone]:
            self._type(text)
        if answers:
            self._screen.call_after_refresh(self.look)

    def _answer(self, request_id: str, decision: ApprovalDecision, key: Key | None) -> None:
        """Note an answer; one that no key of the present run gave takes effect at once."""
        self._answers[request_id] = (decision, key)
        self._pending.note_answer(request_id)
        if not self.run.keys:
            self.settle()
            return
        count, back = len(self._answers), command("approval.not_now").key_text
        given = (
            f"{_WORDS[decision.decision]} · {back} takes it" if count == 1 else f"{count} answers · {back} takes them"
        )
        self._show_answers(f"{given} back")

    def _reopen(self) -> None:
        """Let no answer of the run count, and no dialog be open."""
        self._answers, self._gone = {}, set()
        self._show_answers("")
        self._pending.take_back()
        self._forget_dialog()

    def _forget_dialog(self) -> "ApprovalScreen | ServerQuestionScreen | None":
        dialog = self._dialog
        if dialog is not None and self._drawn is not None and dialog.guard.armed:
            # The user who returns to it need not wait again.
            self._seen.add(self._drawn.request_id)
        self._dialog, self._drawn, self._page = None, None, None
        return dialog

    # --- dialogs ------------------------------------------------------------------------------------------------------

    def changed(self) -> None:
        """Close the dialog if its request was resolved, else update its count."""
        if self._answers and not any(map(self._pending.is_known, self._answers)):
            self.settle()
        if self._page is not None:
            self._page.keep_only({request.request_id for request in self._pending.all})
        if self._dialog is None or self._drawn is None:
            return
        if self._drawn.request_id in self._pending:
            # Requests come in batches; the dialog is laid out once for all of them.
            self._dialog.call_after_refresh(self._count)
        else:
            self._close()

    def message_sent(self) -> None:
        """Let dialogs open again after the text that folded them was sent."""
        self._folded = False
        self.look()

    def show(self, pending: PendingApprovals) -> None:
        """Show other requests, before a dialog is opened."""
        self._pending = pending

    def look(self, *, follows: bool = False, returns: bool = False) -> None:
        """Open the next request if it may open now; otherwise announce it.

        Args:
            follows: True right after an answer: the next question takes its own at once.
            returns: True if the user returns to a question, which takes its answer at once if it was seen.
        """
        # A text folds the questions of its time; later ones may open.
        if not len(self._pending):
            self._folded = False
        request = None if self._folded else self._pending.next_to_open
        if request is not None and self._dialog is None and self._page is None:
            rest = self._typed_at + QUIET_SECONDS - self.clock()
            if rest > _ROUNDING:
                self._schedule_check(rest)
            elif self._screen.app.screen is self._screen:
                self._open(request, at_once=follows or (returns and request.request_id in self._seen))
        self._announce()

    def open_next(self) -> None:
        """Open the oldest request at the user's wish."""
        if self._dialog is None and self._page is None and (request := self._pending.first) is not None:
            self._folded = False
            self._open(request, at_once=request.request_id in self._seen)
            self._announce()

    def _open(self, request: ApprovalRequest, edit: ChangedText | None = None, *, at_once: bool = False) -> None:
        position, total = self._pending.position_of(request)
        question, bench = request.question, self._bridge.bench
        self._drawn, self._first_key = request, len(self.run.keys)
        if question is not None and question.kind not in ("sampling", "plan"):
            # Most sessions ask nothing of this kind.
            from .server_question_screen import ServerQuestionScreen

            form = self._dialog = ServerQuestionScreen(
                question,
                position,
                total,
                open_page=bench.servers.open_page if bench is not None else None,
                keys=self,
                at_once=at_once,
                foot=self._foot,
                cover=self._cover,
                title=request_title(self._named(request)),
            )
            self._screen.app.push_screen(form, partial(self._answered, form))
            return
        dialog = self._dialog = ApprovalScreen(
            self._named(request),
            position,
            total,
            facts=bench.grants if bench is not None else None,
            keys=self,
            at_once=at_once,
            foot=self._foot,
            cover=self._cover,
            root=self._root(),
            edit=edit,
        )
        self._count_alike(dialog)
        self._screen.app.push_screen(dialog, partial(self._answered, dialog))

    def _answered(
        self, dialog: "ApprovalScreen | ServerQuestionScreen", decision: ApprovalDecision | PageRequested | None
    ) -> None:
        if dialog is not self._dialog:
            # It was closed from here, and another one may be open already.
            self._screen.call_after_refresh(self.look)
            return
        request = self._drawn
        self._forget_dialog()
        if decision == "list":
            self._open_list()
            return
        if decision == "parts" and isinstance(dialog, ApprovalScreen):
            self._open_parts(dialog)
            return
        if request is not None and request.request_id in self._pending:
            if decision is None or isinstance(decision, str):
                self._pending.postpone()
            else:
                self._answer(request.request_id, decision, dialog.answered_by)
                self.look(follows=True)
                return
        self._screen.call_after_refresh(self.look)

    def _open_list(self) -> None:
        from .approval_pages import ApprovalListScreen

        # A form or a plan needs its own dialog to be read.
        calls = tuple(self._named(request) for request in self._pending.all if request.question is None)
        facts = self._bridge.bench.grants if self._bridge.bench is not None else None
        page = ApprovalListScreen(calls, facts=facts, keys=self, root=self._root())
        self._page = page
        self._screen.app.push_screen(page, partial(self._several_answered, page))

    def _open_parts(self, dialog: ApprovalScreen) -> None:
        from .approval_pages import ChangePartsScreen

        parts, request = dialog.dialog.parts, dialog.dialog.request
        if request.changes is not None:
            parts = proposed_parts(request.changes, dialog.texts)
        if parts is None or request.request_id not in self._pending:
            self._screen.call_after_refresh(self.look)
            return
        page = ChangePartsScreen(request, parts, keys=self)
        self._page = page
        self._screen.app.push_screen(page, partial(self._parts_chosen, page))

    def _parts_chosen(self, page: "ChangePartsScreen", decision: ApprovalDecision | ChangedText | None) -> None:
        returns = page is self._page
        decision = decision if returns else None
        self._page = None if returns else self._page
        if isinstance(decision, ChangedText):
            if page.request.request_id in self._pending and self._dialog is None:
                self._open(page.request, decision)
        elif decision is not None and page.request.request_id in self._pending:
            self._answer(page.request.request_id, decision, page.answered_by)
            self.look(follows=True)
            return
        self._screen.call_after_refresh(self.look, returns=returns)

    def _several_answered(self, page: "ApprovalListScreen", answer: "Answer | None") -> None:
        returns = page is self._page
        answer = answer if returns else None
        self._page = None if returns else self._page
        if answer is not None and not isinstance(answer, tuple):
            verdict, ids, scope = "approve", answer.request_ids, "session"
        else:
            (verdict, ids), scope = answer or ("deny", ()), "once"
        for request_id in [key for key in ids if key in self._pending]:
            changes = next(one.changes for one in self._pending.all if one.request_id == request_id)
            kept = keep_all(changes) if changes is not None and verdict == "approve" else None
            self._answer(request_id, ApprovalDecision(decision=verdict, scope=scope, input=kept), page.answered_by)
            if self._bridge.shares_rules:
                # One request carries the rule.
                scope = "once"
        self.look(follows=answer is not None, returns=returns)

    def _count(self) -> None:
        if self._dialog is not None and self._drawn is not None:
            self._count_alike(self._dialog)
            shown = self._dialog.dialog if isinstance(self._dialog, ApprovalScreen) else self._dialog
            shown.count(*self._pending.position_of(self._drawn))

    def _count_alike(self, dialog: "ApprovalScreen | ServerQuestionScreen") -> None:
        """Name the number of requests with the same rule where each belongs to a session of its own."""
        if not self._bridge.shares_rules and isinstance(dialog, ApprovalScreen):
            dialog.dialog.alike = self._pending.alike(dialog.dialog.request)

    def _close(self) -> None:
        keys = self.run.keys[self._first_key :]
        dialog = self._forget_dialog()
        if dialog is not None and dialog.is_current:
            dialog.dismiss(None)
        # Keys for a question that is gone answer no other one.
        self._gone |= set(keys)
        if keys and not self._answers:
            self.settle()

    def _announce(self) -> None:
        if self._dialog is None:
            self._cover(0)
        first = self._pending.first if self._dialog is None else None
        shown = self._named(first) if first is not None else None
        announce_on_page(self._screen, shown, len(self._pending))
        has_moved, entry = self.line.announce(shown, len(self._pending)), self._entry()
        if has_moved and entry is not None:
            # In the frame in which the dialog goes, so that the conversation moves only once.
            entry.rearrange()

    def _schedule_check(self, seconds: float) -> None:
        if self._look_timer is not None:
            self._look_timer.stop()
        self._look_timer = self._screen.set_timer(seconds, self.look)
