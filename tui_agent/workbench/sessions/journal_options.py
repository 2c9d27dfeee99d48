"""Options about journals: which session `--continue` selects, and the copy that `--record` writes.

A resumed session shows its end before the first screen.
"""

import asyncio
import os
import shutil
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent import __version__
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Envelope, Origin
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import SessionLoaded
from tui_agent.protocol.facts.screen_facts import HistoryTail
from tui_agent.protocol.messages import now_ms
from tui_agent.session.journal import with_journal_lock
from tui_agent.session.journal_reader import read_tail
from tui_agent.session.store import SessionStore
from tui_agent.session.summary import SessionSummary
from tui_agent.settings import Locations
from tui_agent.workbench.configuration.launch_options import LaunchOptions, refuse_existing

if TYPE_CHECKING:
    # The check before the first screen does not need it.
    from tui_agent.session import StoredSession


_MAX_IDS = 3
"""Maximum number of sessions that a message names."""


def resolve_continue(options: LaunchOptions, locations: Locations) -> LaunchOptions:
    """Return the options with the session that `--continue` selects, and a notice if others are open. Blocks.

    Raises:
        ConfigurationError: this directory has no session to continue.
    """
    if not options.continue_last:
        return options
    latest = SessionStore(locations.sessions_dir).latest(options.cwd)
    others = _open_elsewhere([summary.id for summary in latest.open_elsewhere])
    if latest.session is None:
        why = f": {others}" if others else _renamed(latest.vanished)
        raise ConfigurationError(f"{options.cwd} has no session to continue{why}")
    session_id = latest.session.id
    notice = f"This is session {session_id}, because {others}" if others else ""
    return replace(options, continue_last=False, resume=session_id, notice=notice)


def _open_elsewhere(ids: Sequence[str]) -> str:
    """Return that these sessions are open in other programs, and how to open them here; empty if there are none."""
    if not ids:
        return ""
    if len(ids) == 1:
        (only,) = ids
        return f"session {only} is open in another tui-agent. `tui-agent --resume {only}` opens that one here."
    more = f" and {len(ids) - _MAX_IDS} more" if len(ids) > _MAX_IDS else ""
    listed = f"{', '.join(ids[:_MAX_IDS])}{more}"
    return f"sessions {listed} are open in other programs. `tui-agent --resume ID` opens one of those here."


def _renamed(vanished: Sequence[SessionSummary]) -> str:
    """Return how to open sessions whose directory may have become this one; without any, to start without them."""
    if not vanished:
        return "; start without --continue."
    listed = "; ".join(f"{one.id} of {one.cwd} ({one.title})" for one in vanished[:_MAX_IDS])
    return f". The directory of these no longer exists: {listed}. `tui-agent --resume ID` opens one of them here."


def read_glimpse(options: LaunchOptions, locations: Locations) -> HistoryTail | None:
    """Return the end of the session for the first screen; what it leaves open counts as ended. Blocks for a moment.

    None if the end cannot be shown without the rest: see `read_tail`.

    Raises:
        SessionOpenError: another program has the session open.
        SessionError: no session has this id, or its journal cannot be opened.
    """

    session_id, journal = find_session_to_resume(options, SessionStore(locations.sessions_dir))
    if options.keep_session:
        with_journal_lock(journal, lambda: None)
    tail = read_tail(journal)
    if tail is None:
        return None
    last, events = tail.envelopes[-1], tail.events_before + len(tail.envelopes)
    loaded = SessionLoaded(id=session_id, path=str(journal), cwd=str(options.cwd), version=__version__, events=events)
    resumed = Envelope(loaded, last.seq + 1, now_ms(), time.monotonic(), Origin(session_id=session_id))
    return HistoryTail((*tail.envelopes, resumed), tail.calls_before, tail.numbers)


def find_session_to_resume(options: LaunchOptions, store: SessionStore) -> tuple[str, Path]:
    """Return the id and journal of the session that `--resume` selects. Blocks on file access.

    Raises:
        SessionError: no session has this id.
    """
    session_id = store.find(options.resume or "")
    return session_id, store.journal_path(session_id)


async def record_journal(path: Path, session: "StoredSession", bus: EventBus, stack: AsyncExitStack) -> None:
    """Write a copy of the session's journal, with everything that `stack` sees published, to a new file.

    Raises:
        ConfigurationError: the file exists already, or cannot be created.
    """
    from tui_agent.session import JournalWriter

    await asyncio.to_thread(_begin_copy, path, session)
    await stack.enter_async_context(JournalWriter(bus, path))


def _begin_copy(path: Path, session: "StoredSession") -> None:
    """Create the file, readable only by its owner, with the past of a resumed session."""
    refuse_existing(path)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as copy:
            if session.resumed and session.path is not None:
                with session.path.open("rb") as journal:
                    shutil.copyfileobj(journal, copy)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigurationError(f"--record: {path} cannot be created: {reason}") from error
