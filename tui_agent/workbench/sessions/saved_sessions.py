"""The saved sessions, for front ends that open one after another."""

import asyncio
import os
from collections.abc import Iterable, Sequence

from tui_agent.protocol.envelope import Envelope
from tui_agent.session import SessionStore
from tui_agent.session.active_branch import active_events
from tui_agent.session.summary import SessionSummary
from tui_agent.settings import Locations


class SavedSessions:
    """Lists, finds and copies sessions. Every method may raise `TuiAgentError`."""

    def __init__(self, locations: Locations) -> None:
        self._store = SessionStore(locations.sessions_dir)

    async def list(self, cwd: str | None) -> Sequence[SessionSummary]:
        """Return the sessions with messages, of one directory or of all, the newest first."""
        here = None if cwd is None else os.path.realpath(cwd)
        found = await asyncio.to_thread(self._store.list)
        return [
            one
            for one in found
            if one.said and os.path.isabs(one.cwd) and (here is None or os.path.realpath(one.cwd) == here)
        ]

    async def find(self, session_id: str) -> bool:
        """True if there is a session of this id."""
        return await asyncio.to_thread(lambda: self._store.journal_path(session_id).is_file())

    async def fork(self, session_id: str) -> str:
        """Copy a session and return the id of the copy."""
        return (await asyncio.to_thread(self._store.fork, session_id)).id


def conversation(past: Iterable[Envelope]) -> Sequence[Envelope]:
    """Return the events of a resumed session without those that a rewind removed."""
    return active_events(past)
