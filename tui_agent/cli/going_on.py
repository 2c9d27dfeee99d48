"""Before the screen of a session that goes on: which one it is, whether it can be had, and a glimpse of its end."""

import time
from dataclasses import replace

from tui_agent import __version__
from tui_agent.protocol.envelope import Envelope, Origin
from tui_agent.protocol.errors import SessionOpenError
from tui_agent.protocol.events import SessionLoaded
from tui_agent.protocol.messages import now_ms
from tui_agent.session.journal import with_lease
from tui_agent.session.journal_tail import read_tail
from tui_agent.session.store import SessionStore
from tui_agent.settings import Locations
from tui_agent.ui.past_fold import Glimpse
from tui_agent.ui.session_picker import OpenElsewhere, SessionPicker

from .launch_options import PICK, LaunchOptions
from .leaving import answer_to
from .session_choice import session_to_go_on_with


def chosen(options: LaunchOptions, locations: Locations, theme: str) -> LaunchOptions | None:
    """The options with the session's id, asked for where the command line leaves it open; None: the person left.

    Raises:
        ConfigurationError: there is no session to go on with.
        SessionError: there is no such session.
    """
    store = SessionStore(locations.sessions_dir)
    if options.resume != PICK:
        session_id: str | None = session_to_go_on_with(options, store)[0]
    else:
        session_id = answer_to(SessionPicker(store, theme=theme))
    return None if session_id is None else replace(options, continue_last=False, resume=session_id)


def going_on_beside(
    error: SessionOpenError, options: LaunchOptions, locations: Locations, theme: str
) -> LaunchOptions | None:
    """The options to go on beside the program that writes the session: with a copy, or without keeping anything."""
    asked = answer_to(OpenElsewhere(error.session_id, theme=theme))
    if asked is None:
        return None
    if asked != "fork":
        return replace(options, keep_session=False)
    return replace(options, resume=SessionStore(locations.sessions_dir).fork(error.session_id).id)


def glimpse_of(options: LaunchOptions, locations: Locations) -> Glimpse | None:
    """The end of the session, as the engine will tell it: whatever it leaves open is over. Blocks, but not for long.

    Raises:
        SessionOpenError: another program has the session open.
    """
    session_id, journal = session_to_go_on_with(options, SessionStore(locations.sessions_dir))
    if options.keep_session:
        with_lease(journal, lambda: None)
    tail = read_tail(journal)
    if tail is None:
        return None
    last, events = tail.envelopes[-1], tail.events_before + len(tail.envelopes)
    loaded = SessionLoaded(id=session_id, path=str(journal), cwd=str(options.cwd), version=__version__, events=events)
    goes_on = Envelope(loaded, last.seq + 1, now_ms(), time.monotonic(), Origin(session_id=session_id))
    return Glimpse((*tail.envelopes, goes_on), tail.calls_before)
