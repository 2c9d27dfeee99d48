"""The sessions of the list: which are shown, and in which order."""

from collections.abc import Iterable, Sequence

from tui_agent.ui.base.commands import hint
from tui_agent.workbench.sessions.session_catalogue import SessionEntry


class SessionList:
    """All sessions read so far, and those that match folder and search."""

    def __init__(self) -> None:
        self.all_folders = False
        """True to show the sessions of all folders."""
        self.shown: Sequence[SessionEntry] = ()
        """Sessions that match, the one with the latest message of the user first."""
        self._entries: dict[str, SessionEntry] = {}
        self._words: tuple[str, ...] = ()
        self._empty = 0
        self._unreadable = 0

    @property
    def entries(self) -> Sequence[SessionEntry]:
        """All sessions, the shown ones first, and among those the first one first."""
        shown = {entry.summary.id for entry in self.shown}
        return [*self.shown, *(entry for name, entry in self._entries.items() if name not in shown)]

    # --- changes ------------------------------------------------------------------------------------------------------

    def add(self, entries: Iterable[SessionEntry | None]) -> None:
        """Add sessions; None for one that cannot be read."""
        for entry in entries:
            if entry is None:
                self._unreadable += 1
            elif entry.is_listed:
                self._entries[entry.summary.id] = entry
            else:
                self._empty += 1
        self._select()

    def finish(self) -> None:
        """All sessions are read: if none is of this folder, show those of all folders."""
        if self._entries and not any(entry.is_here for entry in self._entries.values()):
            self.all_folders = True
            self._select()

    def replace(self, entries: Iterable[SessionEntry]) -> None:
        """Show sessions as they are now, unless they were removed meanwhile."""
        self._entries.update({entry.summary.id: entry for entry in entries if entry.summary.id in self._entries})
        self._select()

    def remove(self, entry: SessionEntry) -> None:
        """Remove a session."""
        self._entries.pop(entry.summary.id, None)
        self._select()

    def search(self, text: str) -> None:
        """Show only sessions that have all of these words in title, id, branch or folder."""
        self._words = tuple(text.casefold().split())
        self._select()

    def toggle_all(self) -> None:
        """Show the sessions of all folders, or of this one only."""
        self.all_folders = not self.all_folders
        self._select()

    def _select(self) -> None:
        """Find the sessions that match."""
        matching = [
            entry
            for entry in self._entries.values()
            if (self.all_folders or entry.is_here) and all(word in entry.search_text for word in self._words)
        ]
        matching.sort(key=lambda one: (one.summary.last_message, one.summary.updated, one.summary.id), reverse=True)
        self.shown = matching

    # --- texts --------------------------------------------------------------------------------------------------------

    def empty_text(self) -> str:
        """Return why no session is shown."""
        if self._words:
            other = "" if self.all_folders else f" {hint('sessions.toggle_all', 'searches all folders')}."
            return f"No session matches.{other} {hint('sessions.back', 'clears the search')}."
        if self._entries:
            return f"No sessions in this folder. {hint('sessions.toggle_all', 'shows those of all folders')}."
        return f"No sessions yet. Your first message begins one; {hint('sessions.back', 'goes back')}."

    def state_text(self, toggle: str, *, is_reading: bool) -> str:
        """Return how many sessions are shown, how many are not, and the key `toggle` that shows others."""
        others = f"{toggle} {'this folder' if self.all_folders else 'all folders'}" if self._entries else ""
        place = "all folders" if self.all_folders else "this folder"
        parts = [f"{len(self.shown):,} in {place}"] if self._entries else []
        if is_reading:
            parts.append("reading …")
        if self._unreadable:
            parts.append(f"{self._unreadable} cannot be read")
        if self._empty:
            parts.append(f"{self._empty} without a message not listed")
        return " · ".join(part for part in (*parts, others) if part)
