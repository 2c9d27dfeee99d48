"""The list of sessions: search, preview, resume, rename, copy, delete. One screen, before the app and in it."""

import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.cells import cell_len

from tui_agent.protocol.amounts import age_text, bytes_text, count_text, money_text
from tui_agent.protocol.background import run_service
from tui_agent.protocol.messages import now_ms
from tui_agent.ui.base.commands import command, hint
from tui_agent.ui.dialogs.confirm_screen import ConfirmScreen
from tui_agent.ui.dialogs.list_page import ListPage
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.sanitiser import clip, one_line, sanitise, visible, with_controls
from tui_agent.ui.text.styled_lines import clipped, wrapped
from tui_agent.workbench.sessions.session_catalogue import Preview, SessionCatalogue, SessionEntry

MINUTE, DAY = 60_000, 86_400_000
AGE_WIDTH = 9
_WIDE = 100
"""Cells of a row from which branch and folder have twice the room."""
LEAST_TITLE = 30
"""Cells that the columns right of the title leave to it."""
MAX_FILES = 12
"""Changed files that a preview names."""
_LONGEST = 400
_MAX_ROWS = 8
"""Rows of each text of a preview."""


def ago_text(time: int, now: int) -> str:
    """Return how long ago a moment was: `now`, `5 min ago`, `on 4 Nov`, `in Nov 2024`; both in milliseconds."""
    age, text = max(0, now - time), age_text(time, now)
    if age < MINUTE:
        return text
    if age < 14 * DAY:
        return f"{text} ago"
    return f"{'on' if age < 300 * DAY else 'in'} {text}"


def title_of(entry: SessionEntry, width: int) -> str:
    """Return the title of a session in one row."""
    if entry.summary.title:
        return one_line(with_controls(entry.summary.title), width)
    return clip("(damaged: nothing can be read)" if entry.summary.damaged else "(no message yet)", width)


def folder_of(entry: SessionEntry, width: int) -> str:
    """Return the folder of a session, with `~` for the home directory; of a long one the end."""
    folder = Path(entry.summary.cwd or "unknown folder")
    if folder.is_relative_to(Path.home()):
        folder = Path("~") / folder.relative_to(Path.home())
    text = one_line(visible(str(folder)), _LONGEST)
    if cell_len(text) <= width:
        return text
    while text and cell_len(text) >= width:
        text = text[1:]
    return f"…{text}"


@dataclass(frozen=True, slots=True)
class _Column:
    """A column right of the title."""

    heading: str
    width: int
    """Cells with the two spaces before it."""
    text: Callable[[SessionEntry, int], str]
    """Returns the text of a session for a width."""
    is_number: bool = True


_BRANCH = _Column("branch", 12, lambda entry, width: one_line(visible(entry.summary.branch), width), is_number=False)
_FOLDER = _Column("folder", 22, folder_of, is_number=False)
_NUMBERS = (
    _Column("msgs", 6, lambda entry, _: "" if entry.summary.messages is None else f"{entry.summary.messages:,}"),
    _Column("cost", 8, lambda entry, _: money_text(entry.summary.cost)),
    _Column("size", 9, lambda entry, _: bytes_text(entry.summary.size)),
)


def _columns(width: int, *, folders: bool) -> list[_Column]:
    """Return the columns for which there is room, the most important ones first."""
    room = width - 2 - AGE_WIDTH - LEAST_TITLE
    found: list[_Column] = []
    place = _FOLDER if folders else _BRANCH
    if width >= _WIDE:
        place = replace(place, width=2 * place.width)
    for column in (place, *_NUMBERS):
        room -= column.width
        if room < 0:
            break
        found.append(column)
    return found


def _cell(column: _Column, text: str) -> str:
    padding = " " * max(0, column.width - 2 - cell_len(text))
    return f"  {padding}{text}" if column.is_number else f"  {text}{padding}"


def heading_row(width: int, *, folders: bool) -> Line:
    """Return the headings of the columns."""
    columns = _columns(width, folders=folders)
    room = max(1, width - 2 - AGE_WIDTH - sum(column.width for column in columns))
    texts = ("  ", f"{'age':<{AGE_WIDTH}}", f"{'session':<{room}}", *(_cell(one, one.heading) for one in columns))
    return Line(clipped([("".join(texts), "muted")], width))


def entry_row(entry: SessionEntry, width: int, now: int, *, chosen: bool, current: str, folders: bool) -> Line:
    """Return one row of the list, `now` in milliseconds since the epoch; `folders` shows the folder, not the branch."""
    one = entry.summary
    columns = _columns(width, folders=folders)
    badge = "  here" if one.id == current else "  open" if entry.is_open else ""
    room = max(1, width - 2 - AGE_WIDTH - sum(column.width for column in columns) - len(badge))
    title = title_of(entry, room)
    row: list[Run] = [
        ("› " if chosen else "  ", "key"),
        (f"{age_text(one.last_message, now):<{AGE_WIDTH}}", "muted"),
        (title, "strong" if chosen else "" if one.title else "muted"),
        (" " * (room - cell_len(title)), ""),
        (badge, "success" if one.id == current else "warning"),
        *((_cell(column, column.text(entry, column.width - 2)), "muted") for column in columns),
    ]
    return Line(clipped(row, width))


def preview_rows(
    entry: SessionEntry, preview: Preview | None, width: int, now: int, *, current: str, is_loading: bool
) -> list[Line]:
    """Return the preview of a session; `preview` is None if its journal cannot be read, `current` is on the screen."""
    one = entry.summary
    title = title_of(entry, _LONGEST)
    rows = wrapped([(title, "strong")], width)
    amount = "" if one.messages is None else count_text(one.messages, "message")
    facts = (ago_text(one.last_message, now), amount, bytes_text(one.size), money_text(one.cost))
    places = (one_line(visible(one.branch), _LONGEST), folder_of(entry, _LONGEST), one.id)
    for texts in (facts, places):
        rows += wrapped([(" · ".join(text for text in texts if text), "muted")], width)
    if one.id == current:
        rows += wrapped([("this is the session on the screen", "success")], width)
    elif entry.is_open:
        rows += wrapped([("open in another tui-agent", "warning")], width)
    if not entry.is_here and one.cwd:
        rows += wrapped([("from another folder; resumed here, it works in this one", "warning")], width)
    if is_loading:
        return rows
    if preview is None:
        return [*rows, Line(), *wrapped([("Its journal cannot be read.", "error")], width)]
    if preview.prompt and " ".join(preview.prompt.split()) != one.title:
        rows += _section("First message", preview.prompt, width)
    if preview.answer:
        rows += _section("Last answer", preview.answer, width)
    if preview.files:
        rows += _files(preview, width)
    elif preview.is_whole:
        rows += [Line(), *wrapped([("It changed no files.", "muted")], width)]
    if not preview.is_whole:
        rows += [Line(), *wrapped([("A long session: only its beginning and end were read.", "muted")], width)]
    return rows


def _section(heading: str, text: str, width: int) -> list[Line]:
    rows = wrapped([(sanitise(with_controls(text)), "")], width)
    more = [Line((("…", "muted"),))] if len(rows) > _MAX_ROWS else []
    return [Line(), Line(clipped([(heading, "label")], width)), *rows[:_MAX_ROWS], *more]


def _files(preview: Preview, width: int) -> list[Line]:
    files = list(preview.files.values())
    rows = [Line(), Line(clipped([(f"Changed {count_text(len(files), 'file')}", "label")], width))]
    for changed in files[:MAX_FILES]:
        amounts: Sequence[Run] = ((f"+{changed.added} ", "success"), (f"−{changed.removed}  ", "error"))
        rows.append(Line(clipped([*amounts, (one_line(visible(changed.path), _LONGEST), "")], width)))
    if len(files) > MAX_FILES:
        rows.append(Line(((f"and {len(files) - MAX_FILES} more", "muted"),)))
    return rows


QUESTION = "Resume which session?"
PREVIEW_DELAY = 0.06
"""Seconds that the cursor rests on a session before its journal is read."""


class SessionScreen(ListPage[SessionEntry, str | None]):
    """The list. Returns the id of the session to resume, or None if the user goes back."""

    WHERE = "sessions"
    KEYS = ("choose", "rename", "fork", "delete", "close")
    SEARCHES = True
    DETAIL_ROWS = 10

    def __init__(
        self,
        catalogue: SessionCatalogue,
        *,
        current: str = "",
        words: str = "",
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], int] = now_ms,
    ) -> None:
        """Create the list; `current` is the id of the session on the screen, `words` begin the search."""
        super().__init__(QUESTION, key=lambda entry: entry.summary.id, clock=clock, query=words)
        self._catalogue = catalogue
        self._current = current
        self._clock = clock
        self._now = now()
        self._entries: dict[str, SessionEntry] = {}
        self._all_folders = False
        self._empty = self._unreadable = 0
        self.is_reading = True
        """True until all sessions are read."""
        self._previewed: tuple[str, int] | None = None
        self._preview: Preview | None = None
        self._is_previewing = False

    def on_mount(self) -> None:
        """Read the sessions, a part at a time."""
        self.run_worker(self._read(), group="read", exit_on_error=False)

    # --- reading ------------------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        await run_service("listing sessions", self._read_all(), self._warn)
        self.is_reading = False
        if self._entries and not any(entry.is_here for entry in self._entries.values()):
            self._all_folders = True
        self._show_entries()
        await run_service("counting messages", self._count_messages())

    async def _read_all(self) -> None:
        async for entries in self._catalogue.read():
            for entry in entries:
                if entry is None:
                    self._unreadable += 1
                elif entry.is_listed:
                    self._entries[entry.summary.id] = entry
                else:
                    self._empty += 1
            self._show_entries()

    async def _count_messages(self) -> None:
        shown = {entry.summary.id for entry in self.rows.items}
        others = (entry for name, entry in self._entries.items() if name not in shown)
        # Those of this folder first: counting reads journals, and the others are not in sight.
        async for entries in self._catalogue.count([*self.rows.items, *others]):
            self._replace(entries)

    def _replace(self, entries: Iterable[SessionEntry]) -> None:
        """Show sessions as they are now, unless they were removed meanwhile."""
        self._entries.update({entry.summary.id: entry for entry in entries if entry.summary.id in self._entries})
        self._show_entries()

    def _show_entries(self) -> None:
        entries = [entry for entry in self._entries.values() if self._all_folders or entry.is_here]
        entries.sort(key=lambda one: (one.summary.last_message, one.summary.updated, one.summary.id), reverse=True)
        self.use(entries)

    def show(self, *, anew: bool = False) -> None:
        """Show everything as it is now, and read the selected session once the cursor rests on it."""
        super().show(anew=anew)
        entry = self.selected
        # With the size, because a renamed session is read anew.
        key = (entry.summary.id, entry.summary.size) if entry is not None else None
        if not self.is_attached or (key is not None and key == self._previewed):
            return
        self._previewed, self._preview, self._is_previewing = key, None, True
        self._detail.redraw(anew=True)
        if entry is not None:
            self.set_timer(PREVIEW_DELAY, lambda: self._begin_preview(entry, key))

    def _begin_preview(self, entry: SessionEntry, key: object) -> None:
        # The cursor may have moved on.
        if key == self._previewed:
            self.run_worker(self._load_preview(entry, key), group="preview", exclusive=True, exit_on_error=False)

    async def _load_preview(self, entry: SessionEntry, key: object) -> None:
        preview = await run_service("previewing a session", self._catalogue.preview(entry))
        if key == self._previewed:
            self._preview, self._is_previewing = preview, False
            self._detail.redraw(anew=True)

    # --- rows ---------------------------------------------------------------------------------------------------------

    def heading_rows(self, width: int) -> Sequence[Line]:
        return [heading_row(width, folders=self._all_folders)] if self.rows.items else ()

    def item_row(self, item: SessionEntry, place: int, width: int) -> Line:
        chosen, folders = place == self.rows.cursor, self._all_folders
        return entry_row(item, width, self._now, chosen=chosen, current=self._current, folders=folders)

    def detail_rows(self, item: SessionEntry, width: int) -> Sequence[Line]:
        loading = self._is_previewing
        return preview_rows(item, self._preview, width, self._now, current=self._current, is_loading=loading)

    def search_text(self, item: SessionEntry) -> str:
        return item.search_text

    def empty_text(self) -> str:
        if self.is_reading:
            return ""
        if self.query_text:
            other = "" if self._all_folders else f" {hint('sessions.toggle_all', 'searches all folders')}."
            return f"No session matches.{other} {hint('list.close', 'clears the search')}."
        if self._entries:
            return f"No sessions in this folder. {hint('sessions.toggle_all', 'shows those of all folders')}."
        return f"No sessions yet. Your first message begins one; {hint('list.close', 'goes back')}."

    def summary(self) -> Run:
        parts: list[str] = []
        if self._entries:
            parts.append(f"{len(self.rows.items):,} in {'all folders' if self._all_folders else 'this folder'}")
        if self.is_reading:
            parts.append("reading …")
        if self._unreadable:
            parts.append(f"{self._unreadable} cannot be read")
        if self._empty:
            parts.append(f"{self._empty} without a message not listed")
        if self._entries:
            parts.append(hint("sessions.toggle_all", "this folder" if self._all_folders else "all folders"))
        return " · ".join(parts), "muted"

    def counts(self, name: str) -> bool:
        return name == "close" or self.selected is not None

    # --- keys ---------------------------------------------------------------------------------------------------------

    def action_toggle_all(self) -> None:
        """List the sessions of this folder, or of all folders."""
        self._all_folders = not self._all_folders
        self._show_entries()

    def action_choose(self) -> None:
        """Resume the selected session."""
        entry = self.selected
        if entry is None:
            return
        if entry.is_open and entry.summary.id != self._current:
            copies = f"{command('sessions.fork').key_text} resumes a copy"
            self._warn(f"This session is open in another tui-agent; {copies}.")
        else:
            self.dismiss(entry.summary.id)

    def action_rename(self) -> None:
        """Ask for a new name of the selected session."""
        if (entry := self._writable("/rename NAME renames this session.")) is not None:
            self.ask(
                "new name",
                lambda title: self._work(self._rename(entry, title)),
                text=entry.summary.title,
                keys=("rename", "keep the name"),
            )

    def action_fork(self) -> None:
        """Copy the selected session, and resume the copy."""
        entry = self.selected
        if entry is not None and entry.summary.id == self._current:
            self._warn("/fork copies this session.")
        elif entry is not None:
            self._work(self._fork(entry))

    def action_delete(self) -> None:
        """Ask, then delete the selected session."""
        entry = self._writable("This session is on the screen; it cannot be deleted.")
        if entry is None:
            return
        text = (
            f"“{title_of(entry, 60)}”, {bytes_text(entry.summary.size)}: its conversation, and the saved contents of "
            "files that it changed. Files of your workspace stay. This cannot be undone."
        )

        def answered(yes: bool | None) -> None:
            if yes:
                self._work(self._delete(entry))

        self.app.push_screen(
            ConfirmScreen("Delete this session?", text, "delete", clock=self._clock, no="keep"), answered
        )

    def _writable(self, here: str) -> SessionEntry | None:
        """Return the selected session if no program has it open; otherwise say why it cannot be changed."""
        entry = self.selected
        if entry is None:
            return None
        if entry.summary.id == self._current:
            self._warn(here)
        elif entry.is_open:
            self._warn("This session is open in another tui-agent. Close it there first.")
        else:
            return entry
        return None

    async def _rename(self, entry: SessionEntry, title: str) -> None:
        renamed = await self._catalogue.rename(entry, title)
        self.end_asking()
        if renamed is not None:
            self._replace((renamed,))

    async def _fork(self, entry: SessionEntry) -> None:
        self.dismiss(await self._catalogue.fork(entry.summary.id))

    async def _delete(self, entry: SessionEntry) -> None:
        await self._catalogue.delete(entry)
        self._entries.pop(entry.summary.id, None)
        self._show_entries()

    def _work(self, work: Coroutine[object, object, None]) -> None:
        """Change sessions in the background, one change at a time; a failure is shown, and the list stays usable."""
        self._warn("")
        self.run_worker(run_service("changing a session", work, self._warn), group="change", exit_on_error=False)

    def _warn(self, text: str) -> None:
        self.say(text, "warning")
