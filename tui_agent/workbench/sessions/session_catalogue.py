"""The stored sessions, as the list of sessions and editors see them. All reading and writing happens in threads."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TypeAlias, TypeVar

from tui_agent.session.journal import is_journal_open
from tui_agent.session.journal_counts import CountsFile
from tui_agent.session.store import SessionStore, SessionSummary
from tui_agent.session.summary import SessionPreview, read_preview, summarise

Preview: TypeAlias = SessionPreview
T = TypeVar("T")

BATCH = 64
"""Sessions that are read before the list is drawn for the first time. Each further batch has twice as many: drawing the
list and saving the counts take as long as all sessions are many."""


@dataclass(frozen=True, slots=True)
class SessionEntry:
    """A session with its place in the list."""

    summary: SessionSummary
    is_here: bool
    """True if it is of the present folder."""
    is_open: bool
    """True if a program has it open."""
    search_text: str = field(init=False, repr=False, compare=False)
    """Text that a search looks through."""

    def __post_init__(self) -> None:
        one = self.summary
        # Computed once: each key typed into the search looks through all sessions.
        object.__setattr__(self, "search_text", f"{one.title}\n{one.id}\n{one.branch}\n{one.cwd}".casefold())

    @property
    def is_listed(self) -> bool:
        """True if there is something to resume, or damage to see."""
        return self.summary.said or self.summary.damaged


def _real_path(path: str) -> str:
    return os.path.realpath(path)


class SessionCatalogue:
    """The sessions of one store, seen from one folder, which is `/` for an editor."""

    def __init__(self, store: SessionStore, folder: Path) -> None:
        self._store = store
        self._folder = os.path.realpath(folder)
        self._counts: CountsFile | None = None

    @classmethod
    def of_directory(cls, sessions: Path, folder: Path) -> "SessionCatalogue":
        """Return the sessions that are saved in a directory."""
        return cls(SessionStore(sessions), folder)

    async def read(self) -> AsyncIterator[Sequence[SessionEntry | None]]:
        """Yield all sessions, the journals written last first; None for one that cannot be read.

        Raises:
            SessionError: the directory of the sessions cannot be read.
        """
        paths = await asyncio.to_thread(self._store.newest_paths)
        for batch in _batches(paths):
            yield await asyncio.to_thread(self._entries, batch)

    async def latest(self, cwd: str | None) -> Sequence[SessionSummary]:
        """Return the sessions with messages, of one directory or of all, the one with the latest message first.

        Raises:
            SessionError: the directory of the sessions cannot be read.
        """
        here = None if cwd is None else os.path.realpath(cwd)
        found = await asyncio.to_thread(self._store.list)
        return [
            one
            for one in found
            if one.said and os.path.isabs(one.cwd) and (here is None or os.path.realpath(one.cwd) == here)
        ]

    async def has(self, session_id: str) -> bool:
        """True if there is a session of this id.

        Raises:
            ConfigurationError: no session can have this id.
        """
        return await asyncio.to_thread(lambda: self._store.journal_path(session_id).is_file())

    async def count(self, entries: Sequence[SessionEntry]) -> AsyncIterator[Sequence[SessionEntry]]:
        """Yield those whose messages were not counted yet, with their number; None for a journal that cannot be read.

        Reads the new part of each journal, and stores the numbers.
        """
        missing = [entry for entry in entries if entry.summary.messages is None]
        for batch in _batches(missing):
            yield await asyncio.to_thread(self._counted, batch)

    async def preview(self, entry: SessionEntry) -> Preview | None:
        """Return the content of a session in short; None if it cannot be read."""
        return await asyncio.to_thread(read_preview, entry.summary.path)

    async def rename(self, entry: SessionEntry, title: str) -> SessionEntry | None:
        """Rename a session and return it as it is now; None if it cannot be read any more.

        Raises:
            ConfigurationError: the title is empty.
            SessionError: the session is open, or cannot be written.
        """
        return await asyncio.to_thread(self._then_read, entry, lambda: self._store.rename(entry.summary.id, title))

    async def fork(self, session_id: str) -> str:
        """Copy a session and return the id of the copy.

        Raises:
            ConfigurationError: no session can have this id.
            SessionError: the session cannot be copied.
        """
        return (await asyncio.to_thread(self._store.fork, session_id)).id

    async def delete(self, entry: SessionEntry) -> None:
        """Delete a session with all its files.

        Raises:
            SessionError: the session is open, or cannot be deleted.
        """
        await asyncio.to_thread(self._store.delete, entry.summary.id)

    def _then_read(self, entry: SessionEntry, change: Callable[[], object]) -> SessionEntry | None:
        change()
        read = self._entry(entry.summary.path)
        return next(iter(self._counted([read])), None) if read is not None else None

    def _known_counts(self) -> CountsFile:
        if self._counts is None:
            self._counts = CountsFile(self._store.root)
        return self._counts

    def _counted(self, entries: Sequence[SessionEntry]) -> list[SessionEntry]:
        counts = self._known_counts()
        found = [counts.count(entry.summary.path) for entry in entries]
        counts.save()
        return [
            replace(entry, summary=replace(entry.summary, messages=one and one.messages))
            for entry, one in zip(entries, found, strict=True)
        ]

    def _entries(self, paths: Sequence[Path]) -> list[SessionEntry | None]:
        real_path = cache(_real_path)
        return [self._entry(path, real_path) for path in paths]

    def _entry(self, path: Path, real_path: Callable[[str], str] = _real_path) -> SessionEntry | None:
        summary = summarise(path)
        if summary is None:
            return None
        if (counts := self._known_counts().known(path)) is not None:
            summary = replace(summary, messages=counts.messages)
        is_here = bool(summary.cwd) and real_path(summary.cwd) == self._folder
        return SessionEntry(summary, is_here, is_journal_open(path))


def _batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    start, size = 0, BATCH
    while start < len(items):
        yield items[start : start + size]
        start, size = start + size, 2 * size
