"""Resuming a session: which one `--continue` selects, a look at its end, and the session that an engine works on."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent import __version__
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Envelope, Origin
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import Noticed, SessionLoaded, UsageUpdated
from tui_agent.protocol.facts.history_tail import HistoryTail
from tui_agent.protocol.messages import Usage, now_ms
from tui_agent.session.journal import with_journal_lock
from tui_agent.session.journal_reader import read_tail
from tui_agent.session.store import SessionStore
from tui_agent.session.stored_session import StoredSession
from tui_agent.session.summary import SessionSummary
from tui_agent.settings import Locations
from tui_agent.workbench.configuration.launch_options import LaunchOptions

if TYPE_CHECKING:
    # The first screen of a session is there before the engine.
    from tui_agent.permissions import PermissionPolicy

_MAX_IDS = 3
"""Maximum number of sessions that a message names."""

# --- before the first screen ------------------------------------------------------------------------------------------


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
    resumed = Envelope(loaded, last.seq + 1, now_ms(), time.monotonic(), Origin(session_id=session_id))
    return HistoryTail((*tail.envelopes, resumed), tail.calls_before, tail.numbers)


def find_session_to_resume(options: LaunchOptions, store: SessionStore) -> tuple[str, Path]:
    """Return the id and journal of the session that `--resume` selects. Blocks on file access.

    Raises:
        SessionError: no session has this id.
    """
    session_id = store.find(options.resume or "")
    return session_id, store.journal_path(session_id)


# --- in the engine ----------------------------------------------------------------------------------------------------


def open_session(options: LaunchOptions, locations: Locations, *, save: bool) -> tuple[StoredSession, Path | None]:
    """Return the new or resumed session, and the directory for its long output if the session is saved. Blocks.

    Raises:
        ConfigurationError: the new session's id is not valid.
        SessionWriteError: no session can be saved.
        SessionError: the session cannot be read.
    """
    store = SessionStore(locations.sessions_dir)
    past = store.load(find_session_to_resume(options, store)[0]) if options.resume is not None else None
    if save:
        session = past or store.create(options.cwd, options.session_id)
    else:
        session = StoredSession.ephemeral(options.cwd) if past is None else replace(past, path=None)
    session.fold()
    return session, store.files_path(session.id) if save else None


def restore_session_rules(
    policy: "PermissionPolicy", grants: Sequence[str], restrictions: Sequence[tuple[str, str]], bus: EventBus
) -> None:
    """Apply the rules that the user granted or added for this session earlier, and publish notices that name them."""
    allowed = _restored(policy, [("allow", rule) for rule in grants])
    if allowed:
        bus.publish(Noticed(code="grants_kept", text=f"Still allowed for this session: {', '.join(allowed)}."))
    restricted = [f"{verdict} {rule}" for verdict, rule in restrictions if _restored(policy, [(verdict, rule)])]
    if restricted:
        text = f"Rules of this session that still apply: {', '.join(restricted)}."
        bus.publish(Noticed(code="restrictions_kept", text=text))


def _restored(policy: "PermissionPolicy", rules: Sequence[tuple[str, str]]) -> list[str]:
    """Add rules to a policy; return those that can be read."""
    restored: list[str] = []
    for verdict, rule in rules:
        try:
            policy.add_session_rule(verdict, rule)
        except ConfigurationError:
            continue  # A call under such a grant needs the user's approval again.
        restored.append(rule)
    return restored


def usage_of(session: StoredSession) -> UsageUpdated:
    """Return usage and cost of the session so far."""
    events = (envelope.event for envelope in reversed(session.envelopes))
    none = UsageUpdated(delta=Usage(), total=Usage())
    return next((event for event in events if isinstance(event, UsageUpdated)), none)
