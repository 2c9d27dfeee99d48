"""The page of changed files: those of the session, and the work tree against the last commit; their undo.

Files are left and the differences of the selected one right; in a narrow window a key shows them on a page of their
own, where hunks can be undone one by one.
"""

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from tui_agent.protocol.amounts import count_text, names_text
from tui_agent.protocol.background import run_service
from tui_agent.protocol.diffs import DiffHunk, FileDiff
from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.facts.change_facts import (
    ChangedFile,
    ChangedFileList,
    DiffView,
    FileChange,
    FileDifference,
)
from tui_agent.ui.text.diff_rows import diff_rows
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.rows_view import Layout
from tui_agent.ui.text.sanitiser import one_line, visible
from tui_agent.ui.text.styled_lines import clipped, width_of_runs, wrapped

from .list_page import ListPage
from .text_page import POLL_SECONDS

if TYPE_CHECKING:
    from tui_agent.workbench.session_diff import SessionDiff


# --- all changed files ------------------------------------------------------------------------------------------------

VIEWS: tuple[DiffView, ...] = ("session", "tree")
"""The views, in the order of the heading."""
PREVIEW_LINES = 1_000
"""Most lines of the differences beside the list."""

_VIEW_NAMES: dict[DiffView, str] = {"session": "this session", "tree": "work tree against HEAD"}
_SIGNS: dict[FileChange, Run] = {
    "changed": ("M", "warning"),
    "added": ("A", "success"),
    "deleted": ("D", "error"),
    "renamed": ("R", "warning"),
    "untracked": ("?", "muted"),
}
_COMPARING = "Comparing files …"


class DiffScreen(ListPage[ChangedFile, None]):
    """The page."""

    WHERE = "diff"
    KEYS = ("open_file", "other_view", "keep_file", "undo_file", "show_kept", "search", "close")
    # Two rows of a diff below the list would say nothing; a key opens it.
    DETAIL_ROWS = 0
    DEFAULT_CSS = """
    DiffScreen.-beside .list-detail { width: 62%; }
    """

    def __init__(
        self,
        changes: "SessionDiff",
        busy: Callable[[], bool],
        clock: Callable[[], float],
        version: Callable[[], object] = lambda: None,
    ) -> None:
        """Create the page.

        Args:
            changes: lists, compares, keeps and undoes.
            busy: returns True during a run, when nothing can be undone.
            clock: monotonic seconds, for second presses.
            version: returns something else once files may have changed, such as after a call; then they are read again.
        """
        super().__init__("Changes", key=lambda file: file.shown, clock=clock)
        self._changes = changes
        self._busy = busy
        self._clock = clock
        self._version = version
        self._read_at = version()
        self._list = ChangedFileList("session", note=_COMPARING)
        self._shown: FileDifference | None = None
        self._rows: tuple[FileDifference | None, int, Sequence[Line]] = (None, 0, ())

    def on_mount(self) -> None:
        """Read the files of the session; if it has changed none, those of the work tree."""
        self.run_worker(self._begin(), group="diff-list", exclusive=True, exit_on_error=False)
        self.set_interval(POLL_SECONDS, self._follow)

    # --- keys ---------------------------------------------------------------------------------------------------------

    def action_open_file(self) -> None:
        """Show the differences of the selected file on a page of their own."""
        if (file := self.selected) is not None:
            page = FileDiffScreen(self._changes, file, self._busy, self._clock)
            self.app.push_screen(page, lambda said: self._read_again(said or ""))

    def action_other_view(self) -> None:
        """Show the other view."""
        other = VIEWS[1 - VIEWS.index(self._list.view)]
        self._list = ChangedFileList(other, note=_COMPARING)
        self._shown = None
        self.begin(())
        self._read(other)

    def action_undo_file(self) -> None:
        """Ask whether to undo all changes of the selected file; the second time, undo them."""
        shown = self._shown
        # Undo only what is on the screen: the differences of another file may still be compared.
        if shown is None or shown.file is not self.selected:
            return
        if shown.problem or self._busy():
            self.say(BUSY if self._busy() else f"{shown.file.shown} cannot be undone: {shown.problem}.", "warning")
        elif self.is_confirmed("undo_file", shown.file.shown, "undoes all changes of"):
            self.run_worker(self._undo(shown), group="diff-undo", exclusive=True, exit_on_error=False)

    def action_keep_file(self) -> None:
        """Leave the selected file, as it is shown, out of the list."""
        shown = self._shown
        if shown is not None and shown.file is self.selected:
            self._changes.keep(shown)
            self._read_again()

    def action_show_kept(self) -> None:
        """List the kept files again."""
        self._changes.show_kept(self._list.view)
        self._read_again()

    def counts(self, name: str) -> bool:
        if name == "show_kept":
            return self._list.kept > 0
        if name == "undo_file":
            return self._shown is not None and not self._shown.problem and not self._busy()
        return name != "open_file" or self.selected is not None

    def cursor_moved(self) -> None:
        super().cursor_moved()
        self._compare()

    # --- work ---------------------------------------------------------------------------------------------------------

    async def _begin(self) -> None:
        await self._load("session")
        if not self._list.files:
            of_session = self._list
            await self._load("tree")
            if not self._list.files:
                self._list = of_session
        self.show()
        self._compare()

    def _follow(self) -> None:
        """Read the files again if they may have changed meanwhile."""
        if self._version() != self._read_at and self.is_current:
            self._read_again()

    def _read(self, view: DiffView, said: str = "") -> None:
        async def work() -> None:
            await self._load(view)
            self._compare()
            if said:
                self.say(said)

        self.run_worker(work(), group="diff-list", exclusive=True, exit_on_error=False)

    def _read_again(self, said: str = "") -> None:
        self._read(self._list.view, said)

    async def _load(self, view: DiffView) -> None:
        found = ChangedFileList(view, note="")
        self._read_at = self._version()

        async def work() -> None:
            nonlocal found
            found = await self._changes.files(view)

        await run_service("changed files", work(), self._fail)
        self._list = found
        self.use(found.files)

    def _compare(self) -> None:
        # A new reading has new records, also for a path whose differences were shown before.
        if (file := self.selected) is not None and (self._shown is None or self._shown.file is not file):
            self.run_worker(self._compare_file(file), group="diff-file", exclusive=True, exit_on_error=False)

    async def _compare_file(self, file: ChangedFile) -> None:
        self._shown = await self._changes.difference(file)
        self.show()

    async def _undo(self, shown: FileDifference) -> None:
        self._read_again(await undo_file(self._changes, shown, None))

    def _fail(self, reason: str) -> None:
        self.say(reason, "warning")

    # --- rows ---------------------------------------------------------------------------------------------------------

    def heading_rows(self, width: int) -> Sequence[Line]:
        runs: list[Run] = []
        for view in VIEWS:
            is_chosen = view == self._list.view
            name = _VIEW_NAMES[view]
            runs += [(f"[{name}]" if is_chosen else f" {name} ", "key" if is_chosen else "muted"), (" ", "")]
        return [Line(clipped(runs, width)), Line()]

    def item_row(self, item: ChangedFile, place: int, width: int) -> Line:
        counts = counts_runs(item.counts)
        room = max(8, width - width_of_runs(counts) - 5)
        name = path_text(item.shown, room)
        here = "strong" if place == self.rows.cursor else ""
        first: list[Run] = [self.cursor_sign(place), (_SIGNS[item.change][0], _SIGNS[item.change][1]), (" ", "")]
        gap = " " * max(1, room + 1 - width_of_runs([(name, "")]))
        return Line(clipped([*first, (name, here), (gap, ""), *counts], width))

    def search_text(self, item: ChangedFile) -> str:
        return f"{item.shown} {item.old_shown}"

    def detail_rows(self, item: ChangedFile, width: int) -> Sequence[Line]:
        shown = self._shown
        # After a new reading the differences from before stay until the new ones are there.
        if shown is None or (shown.file.view, shown.file.shown) != (item.view, item.shown):
            return [Line(((_COMPARING, "muted"),))]
        # Colouring a large diff takes longer than a frame, and each redraw asks for its rows.
        if self._rows[:2] != (shown, width):
            self._rows = shown, width, difference_rows(shown, width)
        return self._rows[2]

    def empty_text(self) -> str:
        kept = f"All {count_text(self._list.kept, 'change')} are kept." if self._list.kept else ""
        return super().empty_text() or kept or self._list.note or "Nothing differs."

    def summary(self) -> Run:
        files = self._list.files
        counted = [file.counts for file in files if file.counts is not None]
        added, removed = sum(one[0] for one in counted), sum(one[1] for one in counted)
        words = [count_text(len(files), "file")] if files else []
        words += [f"+{added:,} −{removed:,}"] if counted else []
        words += [f"{self._list.kept:,} kept"] if self._list.kept else []
        words += [self._list.note] if files and self._list.note else []
        return " · ".join(words), "muted"


def difference_rows(shown: FileDifference, width: int) -> list[Line]:
    """Return the differences of a file for the page with the list."""
    rows = wrapped([(visible(shown.file.shown), "strong")], width)
    rows += [row for note in shown.notes for row in wrapped([(visible(note), "muted")], width)]
    if shown.problem:
        rows += wrapped([(f"It cannot be undone here: {visible(shown.problem)}.", "warning")], width)
    rows.append(Line())
    return [*rows, *diff_rows(shown.diff.files, width, clean=visible, named=False, most=PREVIEW_LINES)]


def path_text(path: str, width: int) -> str:
    """Return a path in at most `width` cells: its end, which tells files apart."""
    whole = visible(path)
    if width_of_runs([(whole, "")]) <= width:
        return whole
    # `one_line` counts cells and keeps the beginning, so it gets the path reversed.
    return one_line(whole[::-1], width)[::-1]


# --- the changes of one file ------------------------------------------------------------------------------------------

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
    """Undo the differences of a file, and return what was done, or the failure, in a sentence.

    Args:
        parts: indexes of the hunks to undo; None: all.
    """
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
