"""Before the screen of a session that goes on: which one it is, whether it can be had, and a glimpse of its end."""

import time
from dataclasses import replace

from tui_agent import __version__
from tui_agent.protocol.envelope import Envelope, Origin
from tui_agent.protocol.errors import SessionOpenError
from tui_agent.protocol.events import SessionLoaded
from tui_agent.protocol.messages import now_ms
from tui_agent.session.journal import with_journal_lock
from tui_agent.session.journal_tail import read_tail
from tui_agent.session.store import SessionStore
from tui_agent.settings import Locations
from tui_agent.ui.app.session_picker import SessionInUse, SessionPicker
from tui_agent.ui.chat.screen_state import HistoryTail

from .launch_options import PICK_SESSION, LaunchOptions
from .session_choice import find_session_to_resume
from .shutdown import run_dialog


def chosen(options: LaunchOptions, locations: Locations, theme: str) -> LaunchOptions | None:
    """The options with the session's id, asked for where the command line leaves it open; None: the person left.

    Raises:
        ConfigurationError: there is no session to go on with.
        SessionError: there is no such session.
    """
    store = SessionStore(locations.sessions_dir)
    if options.resume != PICK_SESSION:
        session_id: str | None = find_session_to_resume(options, store)[0]
    else:
        session_id = run_dialog(SessionPicker(store, theme=theme))
    return None if session_id is None else replace(options, continue_last=False, resume=session_id)


def resolve_session_in_use(
    error: SessionOpenError, options: LaunchOptions, locations: Locations, theme: str
) -> LaunchOptions | None:
    """The options to go on beside the program that writes the session: with a copy, or without keeping anything."""
    asked = run_dialog(SessionInUse(error.session_id, theme=theme))
    if asked is None:
        return None
    if asked != "fork":
        return replace(options, keep_session=False)
    return replace(options, resume=SessionStore(locations.sessions_dir).fork(error.session_id).id)


def read_glimpse(options: LaunchOptions, locations: Locations) -> HistoryTail | None:
    """The end of the session, as the engine will tell it: whatever it leaves open is over. Blocks, but not for long.

    Raises:
        SessionOpenError: another program has the session open.
    """
    session_id, journal = find_session_to_resume(options, SessionStore(locations.sessions_dir))
    if options.keep_session:
        with_journal_lock(journal, lambda: None)
    tail = read_tail(journal)
    if tail is None:
        return None
    last, events = tail.envelopes[-1], tail.events_before + len(tail.envelopes)
    loaded = SessionLoaded(id=session_id, path=str(journal), cwd=str(options.cwd), version=__version__, events=events)
    goes_on = Envelope(loaded, last.seq + 1, now_ms(), time.monotonic(), Origin(session_id=session_id))
    return HistoryTail((*tail.envelopes, goes_on), tail.calls_before)
