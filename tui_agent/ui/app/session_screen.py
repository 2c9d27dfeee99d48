"""The list of sessions: search, preview, resume, rename, copy, delete. One screen, before the app and in it."""

import time
from collections.abc import Callable, Coroutine, Iterable, Sequence

from tui_agent.protocol.amounts import bytes_text
from tui_agent.protocol.background import run_service
from tui_agent.protocol.messages import now_ms
from tui_agent.ui.base.commands import command, hint
from tui_agent.ui.dialogs.confirm_screen import ConfirmScreen
from tui_agent.ui.dialogs.list_page import ListPage
from tui_agent.ui.text.line import Line, Run
from tui_agent.workbench.sessions.session_catalogue import Preview, SessionCatalogue, SessionEntry

from .session_rows import entry_row, heading_row, preview_rows, title_of

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
        key = (entry.summary.id, entry.summary.size) if entry is not None else None
        if not self.is_attached or (key is not None and key == self._previewed):
            return
        self._previewed, self._preview, self._is_previewing = key, None, True
        self._detail.redraw(anew=True)
        if entry is not None:
            self.set_timer(PREVIEW_DELAY, lambda: self._begin_preview(entry, key))

    def _begin_preview(self, entry: SessionEntry, key: object) -> None:
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
