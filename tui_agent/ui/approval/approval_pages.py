"""Pages of several questions, or of the parts of one change: the user marks some and answers them together."""

from abc import abstractmethod
from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Generic, Literal, TypeAlias, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ScreenResultType

from tui_agent.protocol.amounts import count_text
from tui_agent.protocol.diffs import FileDiff
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest
from tui_agent.ui.base.commands import command
from tui_agent.ui.dialogs.answer_screen import AnswerRow, QuestionScreen, TypedKeys
from tui_agent.ui.text.diff_rows import diff_rows
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.rows_view import CursorKeys, ItemRows, Layout, RowsView
from tui_agent.ui.text.sanitiser import joined_lines, one_line, visible, visible_summary
from tui_agent.ui.text.styled_lines import clipped, key_rows, prefixed_lines, width_of_runs, wrapped

from .approval_answers import RuleOffer
from .approval_rows import ApprovalRows
from .approval_summary import danger_marks, line_counts, request_title
from .change_parts import ChangedText, ChangePart, ChangeParts, ProposedParts

if TYPE_CHECKING:
    from tui_agent.workbench.configuration.permission_rules import RuleImpact


_MARGIN = 4
"""Cells before the rows of an item."""
Items = TypeVar("Items")


class MarkedItemsPage(CursorKeys, QuestionScreen[ScreenResultType], Generic[Items, ScreenResultType]):
    """A page of items that the user marks and answers together, once the end of the page was on the screen."""

    CSS_PATH = "approval.tcss"

    KEYS: ClassVar[Sequence[str]]
    """Actions in the row of keys."""

    def __init__(self, rows: ItemRows[Items], marked: Set[object], keys: TypedKeys, title: str) -> None:
        self._body = rows
        self._marked: Set[object] = marked
        self._title_text = title
        self._state = RowsView(self._state_rows, id=f"{self.WHERE}-state")
        # The user opened this page, so an answer needs no pause before it.
        self._keys = AnswerRow(self._key_rows, keys.clock, self._state.redraw, at_once=True, id=f"{self.WHERE}-keys")
        super().__init__(self._keys, keys)

    @abstractmethod
    def _summary(self) -> str:
        """Return what the line of state says unless a reason takes its place."""

    @abstractmethod
    def _answer(self, name: str) -> tuple[str, bool] | None:
        """Return the text of an answer if it is not the one of its command, and True if it counts; None to hide it."""

    @property
    def _read(self) -> Sequence[RowsView]:
        """The views above the line of state."""
        return (self._body,)

    def compose(self) -> ComposeResult:
        with Vertical(id=f"{self.WHERE}-page") as page:
            page.border_title = Content(f" ▲ {self._title_text} ")
            for view in (*self._read, self._state, self._keys):
                view.can_focus = False
                yield view

    @property
    def cursor_rows(self) -> ItemRows[Items]:
        return self._body

    @property
    def _unread(self) -> str:
        """Number of rows that are left to read, and the key for them; empty once the end was on the screen."""
        view, key = self.paged, command(f"{self.WHERE}.page_down").key_text
        below = f"▼ {count_text(view.rows_below, 'more row')} · {key} reads on; yes counts once you saw the end"
        return "" if view.read_to_end else below

    @on(RowsView.Moved)
    def _rows_moved(self, event: RowsView.Moved) -> None:
        # The line of state and the keys post the same message when they are redrawn.
        if event.view in self._read:
            self._moved()

    def _moved(self) -> None:
        self._state.redraw()
        if self._keys.row_width:
            self._keys.styles.height = len(self._key_rows(self._keys.row_width))
        self._keys.redraw()

    def _mark(self, items: Set[object]) -> None:
        """Mark items, or none of them if all are marked."""
        self._marked = self._marked - items if items <= self._marked else self._marked | items
        self._show()

    def _leave(self) -> None:
        """Go back because the questions were answered elsewhere; what the user types goes to the composer."""
        self.leave_to_type() if self.keys.run.keys else self.dismiss(None)

    def _mark_runs(self, item: object, style: str, *, at_cursor: bool) -> list[Run]:
        is_marked = item in self._marked
        box: Run = ("[x] ", style) if is_marked else ("[ ] ", "muted")
        return [("› " if at_cursor else "  ", "key"), box]

    def _show(self) -> None:
        self._body.redraw()
        self._moved()

    def _key_rows(self, width: int) -> Sequence[Line]:
        answers: list[tuple[str, str, bool]] = []
        for name in self.KEYS:
            entry, answer = command(f"{self.WHERE}.{name}"), self._answer(name)
            if answer is not None and self.check_action(name, ()):
                answers.append((entry.key_text, answer[0] or entry.text, answer[1]))
        return key_rows(answers, width)

    def _state_rows(self, width: int) -> Sequence[Line]:
        if text := self.guard.reason or (self._unread if self.paged.rows_below else ""):
            return [Line(clipped([(text, "warning strong" if self.guard.reason else "warning")], width))]
        return [Line(clipped([(self._summary(), "muted")], width))]


# --- several questions ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GroupGrant:
    """The answer that allows a group, and calls like it for this session, by the group's rule."""

    request_ids: tuple[str, ...]
    """The requests that this page showed; the first one carries the rule."""


Answer: TypeAlias = tuple[Literal["approve", "deny"], tuple[str, ...]] | GroupGrant
"""Answer, and ids of the requests it applies to."""


class ApprovalListScreen(MarkedItemsPage[ApprovalRequest, Answer | None]):
    """All waiting requests, grouped by the rule that would answer them, each with its whole input.

    Returns the answer, or None if the user goes back.
    """

    WHERE = "questions"
    KEYS = ("select", "select_all", "select_group", "approve", "deny", "approve_session", "close")
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
        body: ItemRows[ApprovalRequest] = ItemRows(
            self._layout_rows, key=lambda request: request.request_id, is_read=True, id="questions-body"
        )
        body.use(self.requests)
        self._rule = RowsView(id="questions-rule")
        self._rule.display = False
        super().__init__(body, frozenset(), keys, f"{count_text(len(self._rows), 'question')} for you")

    @property
    def _read(self) -> Sequence[RowsView]:
        return self._body, self._rule

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the grant for a group with a rule; while the rule is shown, only that and the way back."""
        if self._offer is not None:
            return action in ("approve_session", "close", "page_up", "page_down")
        return action != "approve_session" or bool(self._group and self._group[0].session_rule)

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
            self._leave()
            return
        group = {request.request_id for request in self._group}
        self._groups = _by_rule(left)
        if self._offer is not None and not group <= {request.request_id for request in left}:
            self._show_requests()
        self._marked &= {request.request_id for request in left}
        self._body.use(self.requests)
        self._renew_guard()
        self._show()

    # --- keys ---------------------------------------------------------------------------------------------------------

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
        self._mark({self.requests[self._body.cursor].request_id})

    def action_select_all(self) -> None:
        """Select all requests, or none if all are selected."""
        self._mark({request.request_id for request in self.requests})

    def action_select_group(self) -> None:
        """Select the requests of the group at the cursor, or none of them if all are selected."""
        self._mark({request.request_id for request in self._group})

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

    @property
    def _group(self) -> Sequence[ApprovalRequest]:
        """The requests of the group at the cursor."""
        at_cursor = self.requests[self._body.cursor]
        return next(group for _, group in self._groups if at_cursor in group)

    @property
    def _shown_of_group(self) -> tuple[str, ...]:
        """Ids of the requests of the group whose input is on this page; the rule answers the others."""
        shown = [request.request_id for request in self._group if not self._rows[request.request_id].is_long]
        # The rule is stored with one of them, even if all are too long for this page.
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
        return tuple(request.request_id for request in self.requests if request.request_id in self._marked)

    @property
    def _approvable(self) -> tuple[str, ...]:
        return tuple(key for key in self._chosen if not self._rows[key].is_long)

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
        runs = self._mark_runs(request.request_id, "warning", at_cursor=at_cursor)
        runs.append((request_title(request) + line_counts(request), "strong"))
        runs += [(f"   ▲ {mark}", "error") for mark in danger_marks(request)]
        return Line(clipped(runs, width))

    def _summary(self) -> str:
        stored = "The rule is stored for this session only."
        return stored if self._offer is not None else f"{len(self._marked)} selected"

    def _answer(self, name: str) -> tuple[str, bool] | None:
        counts = self.guard.armed and self.paged.read_to_end
        if self._offer is not None:
            texts = {"approve_session": ("yes, with this rule", counts), "close": ("back", True)}
            return texts.get(name)
        answers = {
            "approve": counts and bool(self._approvable),
            "deny": self.guard.armed and bool(self._chosen),
            "approve_session": counts,
        }
        return "", answers.get(name, True)


def _by_rule(requests: Sequence[ApprovalRequest]) -> list[tuple[str, list[ApprovalRequest]]]:
    """Return the requests by the rule that would answer them, in order of arrival."""
    groups: dict[str, list[ApprovalRequest]] = {}
    for request in requests:
        groups.setdefault(request.session_rule or "", []).append(request)
    return list(groups.items())


# --- parts of a change ------------------------------------------------------------------------------------------------

_LEFT_OUT = "The agent reads which parts you left out."
Chosen: TypeAlias = ApprovalDecision | ChangedText | None
"""The decision, a text to edit first, or None if the user goes back to the whole change."""


class ChangePartsScreen(MarkedItemsPage[ChangePart, Chosen]):
    """The parts of one change, to accept some and leave out the others. Returns what the user has chosen."""

    WHERE = "parts"
    KEYS = ("toggle_part", "toggle_all", "approve", "deny", "edit_text", "close")
    SELECTS = frozenset(("toggle_part", "toggle_all", "cursor_up", "cursor_down"))

    def __init__(
        self,
        request: ApprovalRequest,
        parts: ChangeParts | ProposedParts,
        *,
        keys: TypedKeys,
    ) -> None:
        """Create the page with every part accepted, except conflicts."""
        self.request = request
        """The request."""
        self._parts = parts
        body: ItemRows[ChangePart] = ItemRows(self._layout_rows, end_counts=True, is_read=True, id="parts-body")
        body.use(parts.parts)
        super().__init__(body, parts.initial, keys, request_title(request))

    @property
    def _accepted(self) -> frozenset[int]:
        return frozenset(place for place in range(len(self._parts.parts)) if place in self._marked)

    def keep_only(self, open_ids: Collection[str]) -> None:
        """Go back if the request was answered elsewhere."""
        if self.request.request_id not in open_ids and self.is_current:
            self._leave()

    # --- keys ---------------------------------------------------------------------------------------------------------

    def ends(self, action: str) -> bool:
        return action in ("approve", "deny")

    def refusal(self, action: str) -> str:
        """Return why an answer is impossible: the end of the page was not on the screen, or there is no text."""
        if action == "edit_text" and self._edit is None:
            return "The text of this part cannot be edited."
        if action in ("approve", "edit_text") and self._unread:
            return self._unread
        return ""

    def action_approve(self) -> None:
        """Allow the accepted parts; without any, deny the call."""
        self.dismiss(self._parts.decision(self._accepted))

    def action_deny(self) -> None:
        """Deny the whole change."""
        self.dismiss(self._parts.decision(()))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the editor for the text of the part at the cursor."""
        return action != "edit_text" or self._edit is not None

    @property
    def _edit(self) -> ChangedText | None:
        return self._parts.edit(self._body.cursor, self._accepted) if isinstance(self._parts, ProposedParts) else None

    def action_edit_text(self) -> None:
        """Edit the text of the file at the cursor, to keep it with the accepted parts."""
        if (edit := self._edit) is not None:
            self.dismiss(edit)

    def action_toggle_part(self) -> None:
        """Accept the part at the cursor or leave it out."""
        self._mark({self._body.cursor})

    def action_toggle_all(self) -> None:
        """Accept all parts; if all are accepted, none."""
        self._mark(set(range(len(self._parts.parts))))

    def action_close(self) -> None:
        """Go back to the whole change without an answer."""
        self.dismiss(None)

    # --- rows ---------------------------------------------------------------------------------------------------------

    @property
    def _is_trial(self) -> bool:
        return self.request.changes is not None

    def _layout_rows(self, width: int) -> Layout:
        rows: list[Line] = []
        starts: list[int] = []
        for index, part in enumerate(self._parts.parts):
            if rows:
                rows.append(Line())
            starts.append(len(rows))
            rows.extend(self._title_rows(index, part, width))
            rows.extend(row.prefixed((" " * _MARGIN, "")) for row in _diff_rows(part, width - _MARGIN))
        return rows, starts

    def _title_rows(self, index: int, part: ChangePart, width: int) -> list[Line]:
        kinds = [line.kind for hunk in part.hunks for line in hunk.lines]
        name = part.name or f"part {index + 1} of {len(self._parts.parts)}"
        counts: list[Run] = [(f"  +{kinds.count('added')}", "success"), (f" −{kinds.count('removed')}", "error")]
        first = self._mark_runs(index, "success", at_cursor=index == self._body.cursor)
        runs: list[Run] = [
            (name, "strong"),
            *(part.facts or counts),
            ("" if index in self._marked else "  left out", "warning"),
        ]
        margin = width_of_runs(first)
        return prefixed_lines(wrapped(runs, width - margin), first, ((" " * margin, ""),))

    def _summary(self) -> str:
        return "What you leave out is discarded; the agent reads it." if self._is_trial else _LEFT_OUT

    def _answer(self, name: str) -> tuple[str, bool] | None:
        count, chosen = len(self._parts.parts), len(self._accepted)
        yes, no = ("keep", "discard all") if self._is_trial else ("yes to", "no to all")
        yes = f"{yes} {chosen} of {count}" if 0 < chosen < count else f"{yes} all {count}" if chosen else no
        if name == "deny" and not chosen:
            # Without any part, the yes says no as well.
            return None
        waits = name in ("approve", "edit_text")
        counts = not waits or (self.guard.armed and self._body.read_to_end)
        return {"approve": yes, "deny": "discard" if self._is_trial else "no"}.get(name, ""), counts


# Each move of the cursor draws all parts again.
@lru_cache(maxsize=256)
def _diff_rows(part: ChangePart, width: int) -> Sequence[Line]:
    return diff_rows([FileDiff(new_name=part.path, hunks=part.hunks)], width, clean=visible, named=False)
