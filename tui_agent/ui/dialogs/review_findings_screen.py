"""The page of a review's findings, and the page of a file at the line of one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tui_agent.protocol.amounts import count_text
from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.facts.page_facts import Finding, Severity
from tui_agent.ui.base.app_type import FileEditRequested
from tui_agent.ui.text.code_highlighter import colour_lines, language_of
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.rows_view import Layout, LazyRows
from tui_agent.ui.text.sanitiser import clip, joined_lines, one_line, sanitise, visible
from tui_agent.ui.text.styled_lines import clipped, wrapped

from .list_page import ListPage

if TYPE_CHECKING:
    from tui_agent.workbench.workspace_completion import WorkspaceFiles

_STYLES: dict[Severity, str] = {"high": "error", "medium": "warning", "low": "muted"}
_SEVERITY = 8
_AROUND = 40
"""Lines before and after a line that are highlighted together."""


class FindingsScreen(ListPage[Finding, None]):
    """The page."""

    WHERE = "findings"
    KEYS = ("open_code", "edit_file", "search", "close")
    DETAIL_ROWS = 6

    def __init__(self, findings: Sequence[Finding], files: "WorkspaceFiles") -> None:
        super().__init__("Findings of the review")
        self._findings = findings
        self._files = files

    def on_mount(self) -> None:
        self.use(self._findings)
        self.call_after_refresh(self.rows.reveal)

    def action_open_code(self) -> None:
        """Show the file of the selected finding at its line."""
        if (finding := self.selected) is not None:
            self.run_worker(self._open(finding), group="findings", exclusive=True, exit_on_error=False)

    def action_edit_file(self) -> None:
        """Open the file of the selected finding in the user's editor, at its line."""
        if (finding := self.selected) is not None:
            self.post_message(FileEditRequested(self._files.path(finding.file), finding.line))

    async def _open(self, finding: Finding) -> None:
        try:
            text = await self._files.text(finding.file)
        except TuiAgentError as error:
            self.say(str(error), "warning")
        else:
            self.app.push_screen(SourcePage(finding, text, self._files.path(finding.file)))

    def counts(self, name: str) -> bool:
        return name in ("search", "close") or self.selected is not None

    def item_row(self, item: Finding, place: int, width: int) -> Line:
        here = "strong" if place == self.rows.cursor else ""
        runs: list[Run] = [self.cursor_sign(place), (f"{item.severity:<{_SEVERITY}}", _STYLES[item.severity])]
        runs += [(f"{visible(item.place)}  ", here), (one_line(visible(item.title), 300), "" if here else "muted")]
        return Line(clipped(runs, width))

    def detail_rows(self, item: Finding, width: int) -> Sequence[Line]:
        rows = wrapped([(visible(item.place), "strong"), (f"  {item.severity}", _STYLES[item.severity])], width)
        return [*rows, Line(), *wrapped([(sanitise(item.text.strip()), "")], width)]

    def search_text(self, item: Finding) -> str:
        return item.plain

    def summary(self) -> Run:
        found = self.all_items
        counts = [f"{sum(one.severity == name for one in found)} {name}" for name in _STYLES]
        return (" · ".join([count_text(len(found), "finding"), *counts]) if found else ""), "muted"

    def empty_text(self) -> str:
        return super().empty_text() or "The review found nothing."


class SourcePage(ListPage[int, None]):
    """A file with the cursor on the line of a finding, whose text is on top; items are numbers of lines."""

    WHERE = "source"
    KEYS = ("edit_line", "close")
    DETAIL_ROWS = 0
    # The code needs the width, and its lines have no detail.
    BESIDE = 100_000
    DEFAULT_CSS = """
    SourcePage .list-search { display: none; }
    """

    def __init__(self, finding: Finding, text: str, path: str) -> None:
        super().__init__(one_line(visible(finding.place), 80))
        self._finding = finding
        self._path = path
        # A minified file has its megabytes in one line.
        self._lines = [clip(visible(line), 500) for line in text.removesuffix("\n").split("\n")]
        self._language = language_of(finding.file)

    def on_mount(self) -> None:
        """Show the line of the finding with those around it."""
        line = min(max(1, self._finding.line), len(self._lines))
        self.begin(range(1, len(self._lines) + 1), line - 1)
        # Before the first layout the view has no height.
        self.call_after_refresh(self._centre)

    def _centre(self) -> None:
        rows = self.rows
        rows.scroll_to(y=max(0, rows.cursor - rows.row_count // 2), animate=False, immediate=True)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return False for the search, which this page does not have."""
        return action != "search" and super().check_action(action, parameters)

    def action_edit_line(self) -> None:
        """Open the file in the user's editor, at the line of the cursor."""
        self.post_message(FileEditRequested(self._path, self.rows.cursor + 1))

    def heading_rows(self, width: int) -> Sequence[Line]:
        return [Line(clipped([(joined_lines(visible(self._finding.title)), "warning")], width)), Line()]

    def layout_rows(self, width: int) -> Layout:
        count = len(self._lines)
        return LazyRows(count, lambda place: self.shown_row(place + 1, place, width)), range(count)

    def item_row(self, item: int, place: int, width: int) -> Line:
        digits = len(str(len(self._lines)))
        # Colours depend on where a block begins: at fixed lines, they stay while the page scrolls.
        first = max(0, place - place % _AROUND)
        coloured = colour_lines(self._language, self._lines[first : first + _AROUND])[place - first]
        mark = "warning strong" if item == self._finding.line else "line-number"
        return Line(clipped([self.cursor_sign(place), (f"{item:>{digits}}  ", mark), *coloured], width))

    def summary(self) -> Run:
        return count_text(len(self._lines), "line"), "muted"
