"""Sections above and below the calls in the right column: the plan while it has open items, and the changed files."""

from collections.abc import Sequence
from itertools import islice

from textual.content import Content
from textual.message import Message

from tui_agent.protocol.amounts import count_text
from tui_agent.protocol.events import TodoItem
from tui_agent.ui.base.coalesced_refresh import CoalescedRefresh
from tui_agent.ui.state.plan_and_files import ChangedFiles, FileTotals, Plan
from tui_agent.ui.text.sanitiser import ELLIPSIS, cut_at, one_line

MOST_ITEMS = 8
"""Most items of a plan shown; others are counted."""
MOST_FILES = 6
"""Most files shown, the newest ones; others are counted."""

_SIGNS = {"pending": ("○", "$text-muted"), "in_progress": ("◐", "$primary"), "done": ("●", "$text-muted")}


class SideSection(CoalescedRefresh):
    """Rows that are as tall as their content, or hidden without any."""

    DEFAULT_CSS = """
    SideSection {
        height: auto;
        max-height: 40%;
        margin-bottom: 1;
        display: none;
    }
    """

    def rows(self, width: int) -> Sequence[Content]:
        """Return the rows; none hides the section."""
        raise NotImplementedError

    def settle(self) -> None:
        """Draw the rows, and lay out the column if their number changes."""
        number = len(self.rows(max(1, self.size.width)))
        if not self.display or number != self.size.height:
            self.styles.height = number
        self.display = number > 0
        self.refresh()

    def render(self) -> Content:
        """Return the rows."""
        return Content("\n").join(self.rows(self.size.width))


class PlanSection(SideSection):
    """The plan, while it has open items."""

    def __init__(self, plan: Plan, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._plan = plan

    def show(self, plan: Plan) -> None:
        """Show another plan."""
        self._plan = plan
        self.changed()

    def rows(self, width: int) -> Sequence[Content]:
        """Return a heading and the items around the first open one."""
        items = self._plan.items
        if not self._plan.is_open:
            return ()
        first = next(place for place, item in enumerate(items) if item.status != "done")
        start = max(0, min(first - 1, len(items) - MOST_ITEMS))
        shown = items[start : start + MOST_ITEMS]
        rows = [_heading("PLAN", Content.styled(self._plan.count_text, "$text-muted"), width)]
        rows += [_item_row(item, width) for item in shown]
        if len(shown) < len(items):
            rows.append(
                Content.styled(f" {ELLIPSIS} {count_text(len(items) - len(shown), 'more item')}", "$text-muted")
            )
        return rows


class FilesSection(SideSection):
    """Files that the session has changed; a click opens the page with all of them."""

    class Opened(Message):
        """The user opens the page."""

    def __init__(self, files: ChangedFiles, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._files = files

    def show(self, files: ChangedFiles) -> None:
        """Show the files of another session."""
        self._files = files
        self.changed()

    def on_click(self) -> None:
        """Open the page."""
        self.post_message(self.Opened())

    def rows(self, width: int) -> Sequence[Content]:
        """Return a heading and the files that changed last, the newest first."""
        files = self._files.files
        if not files:
            return ()
        rows = [_heading("FILES", Content.styled(f"{len(files)} changed", "$text-muted"), width)]
        rows += [_file_row(path, files[path], width) for path in islice(reversed(files), MOST_FILES)]
        if (left := len(files) - MOST_FILES) > 0:
            rows.append(Content.styled(f" {ELLIPSIS} {count_text(left, 'more file')}", "$text-muted"))
        return rows


def _heading(title: str, right: Content, width: int) -> Content:
    left = Content.styled(f" {title}", "$text bold")
    gap = max(1, width - left.cell_length - right.cell_length - 1)
    return Content("").join([left, Content(" " * gap), right]).truncate(max(1, width))


def _item_row(item: TodoItem, width: int) -> Content:
    sign, style = _SIGNS[item.status]
    text = one_line(item.text, max(1, width - 4))
    strength = {"in_progress": "$text bold", "done": "$text-muted"}.get(item.status, "$text")
    return Content.assemble((f" {sign} ", style), (text, strength))


def _file_row(path: str, totals: FileTotals, width: int) -> Content:
    """Return a file with its counts; the end of a long path is shown."""
    counts = Content.assemble((f"+{totals.added} ", "$success"), (f"−{totals.removed}", "$error"))
    room = max(1, width - counts.cell_length - 4)
    shown = one_line(path, 4_096)
    if len(shown) > cut_at(shown, room):
        shown = ELLIPSIS + shown[len(shown) - cut_at(shown[::-1], room - 1) :]
    left = Content.styled(f" {shown}", "$text")
    gap = max(1, width - left.cell_length - counts.cell_length - 1)
    return Content("").join([left, Content(" " * gap), counts]).truncate(max(1, width))
