"""The page with the differences of one file: hunks that the user keeps, or undoes one by one or all together."""

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from tui_agent.protocol.amounts import count_text, names_text
from tui_agent.protocol.diffs import DiffHunk, FileDiff
from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.facts.diff_facts import ChangedFile, FileDifference
from tui_agent.ui.text.diff_rows import diff_rows
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.rows_view import Layout
from tui_agent.ui.text.sanitiser import one_line, visible
from tui_agent.ui.text.styled_lines import clipped, wrapped

from .list_page import ListPage

if TYPE_CHECKING:
    from tui_agent.workbench.session_diff import SessionDiff

BUSY = "The agent is working. Undo changes when it is done."
MOST_LINES = 5_000
"""Most lines of the page."""

_MARGIN = 2


class FileDiffScreen(ListPage[int, str]):
    """The page; its items are indexes of hunks. Returns what was undone, in a sentence."""

    WHERE = "hunks"
    KEYS = ("undo_parts", "mark_part", "close")
    DETAIL_ROWS = 0
    # The parts are in full already.
    BESIDE = 100_000
    DEFAULT_CSS = """
    FileDiffScreen .list-search { display: none; }
    """

    def __init__(
        self, changes: "SessionDiff", file: ChangedFile, busy: Callable[[], bool], clock: Callable[[], float]
    ) -> None:
        """Create the page; nothing can be undone while `busy` returns True."""
        super().__init__(one_line(visible(file.shown), 80), clock=clock)
        self._changes = changes
        self._file = file
        self._busy = busy
        self._shown: FileDifference | None = None
        self._marked: set[int] = set()
        self._said = ""
        self._drawn: dict[tuple[int, int], Sequence[Line]] = {}

    def on_mount(self) -> None:
        self.run_worker(self._load(), group="hunks", exclusive=True, exit_on_error=False)

    # --- keys ---------------------------------------------------------------------------------------------------------

    def action_mark_part(self) -> None:
        """Mark the part at the cursor for the undo, or keep it."""
        if self._has_parts:
            # A second press would undo other parts than it has named.
            self._marked ^= {self.rows.cursor}
            self._second_press.forget()
            self.say("")

    def action_undo_parts(self) -> None:
        """Ask whether to undo the marked parts, else the one at the cursor; the second time, undo them."""
        shown = self._shown
        if shown is None:
            return
        if shown.problem or self._busy():
            self.say(BUSY if self._busy() else f"It cannot be undone here: {shown.problem}.", "warning")
            return
        parts = self._chosen
        if self.is_confirmed("undo_parts", self._subject(parts), "undoes"):
            self.run_worker(self._undo(shown, parts), group="hunks", exclusive=True, exit_on_error=False)

    def action_choose_all(self) -> None:
        """Mark all parts, or none."""
        if self._has_parts:
            everything = set(range(len(self.rows.items)))
            self._marked = everything if self._marked != everything else set[int]()
            self._second_press.forget()
            self.say("")

    def leave(self) -> None:
        self.dismiss(self._said)

    def counts(self, name: str) -> bool:
        if name == "undo_parts":
            return self._shown is not None and not self._shown.problem and not self._busy()
        return name != "mark_part" or self._has_parts

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return False for the search, which parts of one file do not need."""
        return action != "search" and super().check_action(action, parameters)

    # --- work ---------------------------------------------------------------------------------------------------------

    async def _load(self) -> None:
        self._shown = await self._changes.difference(self._file)
        self._marked, self._drawn = set(), {}
        self.begin(range(max(1, len(self._shown.diff.hunks)) if self._shown.has_parts else 1))

    async def _undo(self, shown: FileDifference, parts: Collection[int] | None) -> None:
        self._said = await undo_file(self._changes, shown, parts)
        again = await self._changes.difference(self._file)
        if parts is None or not again.diff:
            self.dismiss(self._said)
            return
        await self._load()
        self.say(self._said)

    @property
    def _has_parts(self) -> bool:
        return self._shown is not None and self._shown.has_parts and len(self._shown.diff.hunks) > 1

    @property
    def _chosen(self) -> Collection[int] | None:
        """The parts to undo; None for the whole file."""
        if not self._has_parts:
            return None
        return frozenset(self._marked or {self.rows.cursor})

    def _subject(self, parts: Collection[int] | None) -> str:
        if parts is None or len(parts) == len(self.rows.items):
            return "all changes of this file"
        return f"part {min(parts) + 1}" if len(parts) == 1 else count_text(len(parts), "part")

    # --- rows ---------------------------------------------------------------------------------------------------------

    def layout_rows(self, width: int) -> Layout:
        shown = self._shown
        if shown is None:
            return wrapped([("Comparing …", "muted")], width), ()
        rows = [row for note in shown.notes for row in wrapped([(visible(note), "muted")], width)]
        if shown.problem:
            rows += wrapped([(f"It cannot be undone here: {visible(shown.problem)}.", "warning")], width)
        if not self._has_parts:
            return [*rows, *self._diff_rows(shown.diff.files, 0, width, MOST_LINES)], [0]
        starts: list[int] = []
        path, left = shown.diff.files[0].path, MOST_LINES
        for place, hunk in enumerate(shown.diff.hunks):
            rows += [Line()] if rows else []
            starts.append(len(rows))
            rows.append(self.shown_row(place, place, width))
            part = [FileDiff(new_name=path, hunks=(hunk,))]
            # Beyond the limit each part still has a row, so that it can be marked.
            drawn = self._diff_rows(part, place, width - _MARGIN, max(1, left))
            rows += [row.prefixed((" " * _MARGIN, "")) for row in drawn]
            left -= len(hunk.lines)
        return rows, starts

    def _diff_rows(self, files: Sequence[FileDiff], place: int, width: int, most: int) -> Sequence[Line]:
        """Return the rows of a part, which are laid out once for a width."""
        # Marking one part draws all of them again.
        if (place, width) not in self._drawn:
            self._drawn[place, width] = diff_rows(files, width, clean=visible, named=False, most=most)
        return self._drawn[place, width]

    def item_row(self, item: int, place: int, width: int) -> Line:
        hunks: Sequence[DiffHunk] = self._shown.diff.hunks if self._shown is not None else ()
        if item >= len(hunks):
            return Line()
        kinds = [line.kind for line in hunks[item].lines]
        is_marked = item in self._marked
        runs: list[Run] = [
            self.cursor_sign(place),
            ("↶ undo  " if is_marked else "keep    ", "warning" if is_marked else "muted"),
            (f"part {item + 1} of {len(hunks)}", "strong"),
            ("  ", ""),
            *counts_runs((kinds.count("added"), kinds.count("removed"))),
        ]
        return Line(clipped(runs, width))

    def summary(self) -> Run:
        if self._busy():
            return BUSY, "warning"
        if not self._has_parts:
            return "", ""
        count = len(self.rows.items)
        return f"{count_text(len(self._marked), 'part')} of {count} to undo" if self._marked else "", "muted"

    def key_answers(self) -> list[tuple[str, str, bool]]:
        if not self._has_parts:
            texts = {"undo_parts": "undo"}
        else:
            chosen = self._chosen or ()
            texts = {"undo_parts": f"undo {self._subject(chosen)}"}
            texts["mark_part"] = "keep it" if self.rows.cursor in self._marked else "mark for undo"
        names = [name for name in self.KEYS if name != "mark_part" or self._has_parts]
        return [
            (one.key_text, texts.get(name, one.text), self.counts(name))
            for name, one in ((name, self._command(name)) for name in names)
        ]


async def undo_file(changes: "SessionDiff", shown: FileDifference, parts: Collection[int] | None) -> str:
    """Undo the differences of a file, or some of its hunks, and return what was done, in a sentence."""
    try:
        outcome = await changes.undo(shown, parts)
    except TuiAgentError as error:
        return f"Nothing was undone: {str(error).rstrip('.')}."
    if outcome.failed:
        return f"Not undone: {names_text(outcome.failed)}."
    return f"Undone in {names_text(outcome.done)}. /rewind undoes it." if outcome.done else "It is as it was already."


def counts_runs(counts: tuple[int, int] | None) -> list[Run]:
    """Return lines added and removed; nothing if they are not known."""
    if counts is None:
        return []
    added, removed = counts
    return [(f"+{added}", "success" if added else "muted"), (" ", ""), (f"−{removed}", "error" if removed else "muted")]
