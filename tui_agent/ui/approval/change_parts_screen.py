"""Pages of one change: its parts, to accept some and leave out the others; and whole diffs that the question cuts."""

from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import ClassVar, TypeAlias

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content

from tui_agent.protocol.diffs import Diff, FileDiff
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest
from tui_agent.protocol.trial import ProposedChanges
from tui_agent.ui.base.commands import bindings_for, command
from tui_agent.ui.dialogs.question_screen import AnswerRow, QuestionScreen, TypedKeys, unread_text
from tui_agent.ui.dialogs.text_page import page_keys
from tui_agent.ui.text.diff_rows import diff_rows
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.rows_view import CursorKeys, ItemRows, Layout, RowsPage, RowsView
from tui_agent.ui.text.sanitiser import visible
from tui_agent.ui.text.styled_lines import clipped, key_rows, prefixed_lines, width_of_runs, wrapped

from .approval_rows import request_title
from .change_parts import ChangedText, ChangePart, ChangeParts, ProposedParts

_MARGIN = 4
MOST_OF_ONE = 2_000_000
"""Most characters of one whole diff."""
_LEFT_OUT = "The agent reads which parts you left out."


Chosen: TypeAlias = ApprovalDecision | ChangedText | None
"""The decision, a text to edit first, or None if the user goes back to the whole change."""


class ChangePartsScreen(CursorKeys, QuestionScreen[Chosen]):
    """The page. Returns what the user has chosen."""

    CSS_PATH = "approval.tcss"
    WHERE = "parts"
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
        self._accepted = set(parts.initial)
        self._body: ItemRows[ChangePart] = ItemRows(self._layout_rows, end_counts=True, is_read=True, id="parts-body")
        self._body.use(parts.parts)
        self._state = RowsView(self._state_rows, id="parts-state")
        # The user opened this page, so an answer needs no pause before it.
        self._keys = AnswerRow(self._key_rows, keys.clock, self._state.redraw, at_once=True, id="parts-keys")
        super().__init__(self._keys, keys)

    def compose(self) -> ComposeResult:
        with Vertical(id="parts-page") as page:
            page.border_title = Content(f" ▲ {request_title(self.request)} ")
            for view in (self._body, self._state, self._keys):
                view.can_focus = False
                yield view

    @property
    def cursor_rows(self) -> ItemRows[ChangePart]:
        return self._body

    def keep_only(self, open_ids: Collection[str]) -> None:
        """Go back if the request was answered elsewhere."""
        if self.request.request_id in open_ids or not self.is_current:
            return
        if self.keys.run.keys:
            self.leave_to_type()
        else:
            self.dismiss(None)

    # --- keys ---------------------------------------------------------------------------------------------------------

    @property
    def _unread(self) -> str:
        return unread_text(self.paged, command("parts.page_down").key_text)

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
        self._accepted ^= {self._body.cursor}
        self._show()

    def action_toggle_all(self) -> None:
        """Accept all parts; if all are accepted, none."""
        everything = set(range(len(self._parts.parts)))
        self._accepted = everything if self._accepted != everything else set[int]()
        self._show()

    def action_close(self) -> None:
        """Go back to the whole change without an answer."""
        self.dismiss(None)

    # --- rows ---------------------------------------------------------------------------------------------------------

    @on(RowsView.Moved, "#parts-body")
    def _moved(self) -> None:
        self._state.redraw()
        if self._keys.row_width:
            self._keys.styles.height = len(self._key_rows(self._keys.row_width))
        self._keys.redraw()

    @property
    def _is_trial(self) -> bool:
        return self.request.changes is not None

    def _show(self) -> None:
        self._body.redraw()
        self._moved()

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
        box = "[x]" if index in self._accepted else "[ ]"
        first: list[Run] = [
            ("› " if index == self._body.cursor else "  ", "key"),
            (f"{box} ", "success" if "x" in box else "muted"),
        ]
        runs: list[Run] = [
            (name, "strong"),
            *(part.facts or counts),
            ("" if index in self._accepted else "  left out", "warning"),
        ]
        margin = width_of_runs(first)
        return prefixed_lines(wrapped(runs, width - margin), first, ((" " * margin, ""),))

    def _state_rows(self, width: int) -> Sequence[Line]:
        if text := self.guard.reason or (self._unread if self.paged.rows_below else ""):
            return [Line(clipped([(text, "warning strong" if self.guard.reason else "warning")], width))]
        words = "What you leave out is discarded; the agent reads it." if self._is_trial else _LEFT_OUT
        return [Line(clipped([(words, "muted")], width))]

    def _key_rows(self, width: int) -> Sequence[Line]:
        count, chosen = len(self._parts.parts), len(self._accepted)
        yes, no = ("keep", "discard all") if self._is_trial else ("yes to", "no to all")
        yes = f"{yes} {chosen} of {count}" if 0 < chosen < count else f"{yes} all {count}" if chosen else no
        counts = self.guard.armed and self._body.read_to_end
        texts = {"approve": yes, "deny": "discard" if self._is_trial else "no"}
        answers: list[tuple[str, str, bool]] = []
        for name in ("toggle_part", "toggle_all", "approve", "deny", "edit_text", "close"):
            entry = command(f"parts.{name}")
            # Without any part, "yes to these" says no as well.
            if self.check_action(name, ()) and (chosen or name != "deny"):
                waits = name in ("approve", "edit_text")
                answers.append((entry.key_text, texts.get(name, entry.text), counts or not waits))
        return key_rows(answers, width)


@lru_cache(maxsize=256)
def _diff_rows(part: ChangePart, width: int) -> Sequence[Line]:
    return diff_rows([FileDiff(new_name=part.path, hunks=part.hunks)], width, clean=visible, named=False)


class WholeDiffsPage(RowsPage[None]):
    """The page; esc goes back to the question."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("detail", page_keys())]

    def __init__(self, diff: Diff) -> None:
        super().__init__()
        self._rows = RowsView(lambda width: diff_rows(diff.files, width, clean=visible, named=True))

    def compose(self) -> ComposeResult:
        with Vertical() as page:
            page.border_title = Content(" Whole diffs ")
            page.border_subtitle = f" {command('detail.close').key_text} back "
            self._rows.can_focus = False
            yield self._rows

    @property
    def paged(self) -> RowsView:
        return self._rows

    def action_close(self) -> None:
        self.dismiss(None)


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
