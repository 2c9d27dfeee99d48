"""A page of all waiting approval requests, grouped by the rule that would answer them, to answer several at once.

Each is shown with its whole input; a yes counts only after the user saw the end of the page.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content

from tui_agent.protocol.amounts import count_text
from tui_agent.protocol.permissions import ApprovalRequest
from tui_agent.ui.base.commands import command
from tui_agent.ui.dialogs.question_screen import AnswerRow, QuestionScreen, TypedKeys, unread_text
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.rows_view import CursorKeys, ItemRows, Layout, RowsView
from tui_agent.ui.text.sanitiser import joined_lines, one_line, visible, visible_summary
from tui_agent.ui.text.styled_lines import clipped, key_rows, wrapped

from .approval_answers import RuleOffer
from .approval_reasons import danger_marks
from .approval_rows import ApprovalRows, line_counts, request_title

if TYPE_CHECKING:
    from tui_agent.workbench.configuration.permission_rules import RuleImpact


@dataclass(frozen=True, slots=True)
class GroupGrant:
    """The answer that allows a group, and calls like it for this session, by the group's rule."""

    request_ids: tuple[str, ...]
    """The requests that this page showed; the first one carries the rule."""


Answer: TypeAlias = tuple[Literal["approve", "deny"], tuple[str, ...]] | GroupGrant
"""Answer, and ids of the requests it applies to."""

_MARGIN = 4


class ApprovalListScreen(CursorKeys, QuestionScreen[Answer | None]):
    """The page. Returns the answer, or None if the user goes back."""

    CSS_PATH = "approval.tcss"
    WHERE = "questions"
    SELECTS = frozenset(("select", "select_all", "select_group", "cursor_up", "cursor_down"))

    def __init__(
        self,
        requests: Sequence[ApprovalRequest],
        *,
        facts: "RuleImpact | None",
        keys: TypedKeys,
        root: str = "",
    ) -> None:
        """Create the page; without `facts` no rule is stored."""
        self._facts = facts
        self._offer: RuleOffer | None = None
        """The rule that is shown before it is stored; None while the requests are."""
        self._groups = _by_rule(requests)
        self._rows = {request.request_id: ApprovalRows(request, root) for request in requests}
        self._selected: set[str] = set()
        self._body: ItemRows[ApprovalRequest] = ItemRows(
            self._layout_rows, key=lambda request: request.request_id, is_read=True, id="questions-body"
        )
        self._body.use(self.requests)
        self._rule = RowsView(id="questions-rule")
        self._state = RowsView(self._state_rows, id="questions-state")
        # The user opened this page, so an answer needs no pause before it.
        self._keys = AnswerRow(self._key_rows, keys.clock, self._state.redraw, at_once=True, id="questions-keys")
        super().__init__(self._keys, keys)

    def compose(self) -> ComposeResult:
        with Vertical(id="questions-page") as page:
            page.border_title = Content(f" ▲ {count_text(len(self._rows), 'question')} for you ")
            for view in (self._body, self._rule, self._state, self._keys):
                view.can_focus = False
                yield view
            self._rule.display = False

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the grant for a group with a rule; while the rule is shown, only that and the way back."""
        if self._offer is not None:
            return action in ("approve_session", "close", "page_up", "page_down")
        return action != "approve_session" or bool(self._group and self._group[0].session_rule)

    @property
    def cursor_rows(self) -> ItemRows[ApprovalRequest]:
        return self._body

    @property
    def paged(self) -> RowsView:
        return self._body if self._offer is None else self._rule

    @property
    def requests(self) -> tuple[ApprovalRequest, ...]:
        """The requests in the order in which they are shown."""
        return tuple(request for _, group in self._groups for request in group)

    def keep_only(self, open_ids: Collection[str]) -> None:
        """Remove requests that were answered elsewhere; go back if none is left."""
        left = [request for request in self.requests if request.request_id in open_ids]
        if len(left) == len(self.requests) or not self.is_current:
            return
        if not left:
            # What is drawn until the page has gone is the last request.
            self.leave_to_type() if self.keys.run.keys else self.dismiss(None)
            return
        group = {request.request_id for request in self._group}
        self._groups = _by_rule(left)
        if self._offer is not None and not group <= {request.request_id for request in left}:
            self._show_requests()
        self._selected &= {request.request_id for request in left}
        self._body.use(self.requests)
        self._renew_guard()
        self._show()

    # --- keys ---------------------------------------------------------------------------------------------------------

    @property
    def _unread(self) -> str:
        return unread_text(self.paged, command("questions.page_down").key_text)

    def ends(self, action: str) -> bool:
        return action in ("approve", "deny") or (action == "approve_session" and self._offer is not None)

    def refusal(self, action: str) -> str:
        """Return why an answer is impossible: nothing is selected, or the end of the page was not on the screen."""
        if action == "approve_session" and not self.check_action(action, ()):
            return "No rule would answer this group."
        if action in ("approve", "approve_session") and self._unread:
            return self._unread
        chosen = {"approve": self._approvable, "deny": self._chosen}.get(action, ("",))
        return "" if chosen else f"Select questions first: {command('questions.select').key_text}."

    def action_approve(self) -> None:
        """Allow the selected calls, except those whose input is too long for this page."""
        self.dismiss(("approve", self._approvable))

    def action_deny(self) -> None:
        """Deny the selected calls."""
        self.dismiss(("deny", self._chosen))

    def action_select(self) -> None:
        """Select or deselect the request at the cursor."""
        self._selected ^= {self.requests[self._body.cursor].request_id}
        self._show()

    def action_select_all(self) -> None:
        """Select all requests, or none if all are selected."""
        everything = {request.request_id for request in self.requests}
        self._selected = set() if self._selected == everything else everything
        self._show()

    def action_select_group(self) -> None:
        """Select the requests of the group at the cursor, or none of them if all are selected."""
        group = {request.request_id for request in self._group}
        self._selected = self._selected - group if group <= self._selected else self._selected | group
        self._show()

    def action_approve_session(self) -> None:
        """Show the rule of the group at the cursor; the second time, allow the group with it."""
        if self._offer is None:
            self._show_rule()
        else:
            self.dismiss(GroupGrant(self._shown_of_group))

    def action_close(self) -> None:
        """Go back from the rule to the requests, and from these without an answer."""
        if self._offer is None:
            self.dismiss(None)
        else:
            self._show_requests()

    # --- what is shown ------------------------------------------------------------------------------------------------

    @on(RowsView.Moved, "#questions-rule")
    @on(RowsView.Moved, "#questions-body")
    def _moved(self) -> None:
        self._state.redraw()
        if self._keys.row_width:
            self._keys.styles.height = len(self._key_rows(self._keys.row_width))
        self._keys.redraw()

    @property
    def _group(self) -> Sequence[ApprovalRequest]:
        """The requests of the group at the cursor."""
        at_cursor = self.requests[self._body.cursor]
        return next(group for _, group in self._groups if at_cursor in group)

    @property
    def _shown_of_group(self) -> tuple[str, ...]:
        """Ids of the requests of the group whose input is on this page; the rule answers the others."""
        shown = [request.request_id for request in self._group if not self._rows[request.request_id].is_long]
        return tuple(shown or [self._group[0].request_id])

    def _show_rule(self) -> None:
        self._offer = RuleOffer(self._group[0], self._facts)
        self._rule.show(self._rule_rows, anew=True)
        self._switch()

    def _show_requests(self) -> None:
        self._offer = None
        self._switch()

    def _switch(self) -> None:
        """Show the rule or the requests; either is a question of its own."""
        self._rule.display, self._body.display = self._offer is not None, self._offer is None
        self._renew_guard()
        self._moved()

    def _renew_guard(self) -> None:
        """Let answers count again once what is shown now was seen."""
        self.guard.withdrawn()
        self.call_after_refresh(self.guard.drawn)

    def _rule_rows(self, width: int) -> Sequence[Line]:
        if self._offer is None:
            return ()
        count = len(self._group)
        rows = [Line(), *wrapped([(f"It allows {count_text(count, 'question')} of this page:", "muted")], width)]
        about = (visible_summary(joined_lines(request.summary) or request.tool) for request in self._group)
        rows.extend(Line((("  ", ""), (one_line(text, width - 2), ""))) for text in about)
        return [*self._offer.rows(width, fixed=True), *rows]

    @property
    def _chosen(self) -> tuple[str, ...]:
        return tuple(request.request_id for request in self.requests if request.request_id in self._selected)

    @property
    def _approvable(self) -> tuple[str, ...]:
        return tuple(key for key in self._chosen if not self._rows[key].is_long)

    def _show(self) -> None:
        self._body.redraw()
        self._moved()

    def _layout_rows(self, width: int) -> Layout:
        rows: list[Line] = []
        starts: list[int] = []
        for rule, group in self._groups:
            verb = "keep" if all(request.changes is not None for request in group) else "allow"
            heading = f"{rule.replace(chr(10), ', ') or 'no rule'} would {verb}"
            rows.extend([*([Line()] if rows else []), *wrapped([(visible(heading), "muted")], width)])
            for request in group:
                at_cursor = len(starts) == self._body.cursor
                starts.append(len(rows))
                rows.append(self._title_row(request, width, at_cursor=at_cursor))
                rows.extend(row.prefixed((" " * _MARGIN, "")) for row in self._input_rows(request, width - _MARGIN))
        return rows, starts

    def _input_rows(self, request: ApprovalRequest, width: int) -> Sequence[Line]:
        rows = self._rows[request.request_id]
        if rows.is_long:
            return wrapped([("Its input is long. To allow it, answer it in its own dialog.", "warning")], width)
        return rows.rows(width, spaced=False)

    def _title_row(self, request: ApprovalRequest, width: int, *, at_cursor: bool) -> Line:
        box = "[x]" if request.request_id in self._selected else "[ ]"
        runs: list[Run] = [("› " if at_cursor else "  ", "key"), (f"{box} ", "warning" if "x" in box else "muted")]
        runs.append((request_title(request) + line_counts(request), "strong"))
        runs += [(f"   ▲ {mark}", "error") for mark in danger_marks(request)]
        return Line(clipped(runs, width))

    def _state_rows(self, width: int) -> Sequence[Line]:
        if text := self.guard.reason or (self._unread if self.paged.rows_below else ""):
            return [Line(clipped([(text, "warning strong" if self.guard.reason else "warning")], width))]
        if self._offer is not None:
            return [Line(clipped([("The rule is stored for this session only.", "muted")], width))]
        return [Line(clipped([(f"{len(self._selected)} selected", "muted")], width))]

    def _key_rows(self, width: int) -> Sequence[Line]:
        if self._offer is not None:
            grants = self.guard.armed and self._rule.read_to_end
            keys = [command(f"questions.{name}").key_text for name in ("approve_session", "close")]
            return key_rows([(keys[0], "yes, with this rule", grants), (keys[1], "back", True)], width)
        approves = self.guard.armed and bool(self._approvable) and self._body.read_to_end
        grants = self.guard.armed and self._body.read_to_end
        denies = self.guard.armed and bool(self._chosen)
        answers: list[tuple[str, str, bool]] = []
        counts = {"approve": approves, "deny": denies, "approve_session": grants}
        for name in ("select", "select_all", "select_group", "approve", "deny", "approve_session", "close"):
            entry = command(f"questions.{name}")
            if self.check_action(name, ()):
                answers.append((entry.key_text, entry.text, counts.get(name, True)))
        return key_rows(answers, width)


def _by_rule(requests: Sequence[ApprovalRequest]) -> list[tuple[str, list[ApprovalRequest]]]:
    """Return the requests by the rule that would answer them, in order of arrival."""
    groups: dict[str, list[ApprovalRequest]] = {}
    for request in requests:
        groups.setdefault(request.session_rule or "", []).append(request)
    return list(groups.items())
