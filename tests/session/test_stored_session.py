"""The first events of a session: created or loaded, repairs, and closing events."""

from pathlib import Path

from tests.session.played_sessions import FULL_SESSION, PlayedRun, play
from tests.session.test_history_fold import until
from tests.session.test_store import keep
from tui_agent.context import ConversationHistory
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import (
    RunEnded,
    SessionLoaded,
    SessionRepaired,
    ToolEnded,
    ToolStarted,
)
from tui_agent.protocol.messages import user_message
from tui_agent.session.store import SessionStore
from tui_agent.session.stored_session import StoredSession


def announced(session: StoredSession) -> list[Envelope]:
    bus = EventBus(session.origin(), first_seq=session.next_seq)
    with bus.subscribe(merge=False) as subscription:
        session.announce(bus, "1.2")
        return subscription.drain()


def test_open_state_is_closed_under_its_own_origin(tmp_path: Path) -> None:
    store = SessionStore(tmp_path)
    envelopes = until(play(FULL_SESSION), ToolStarted, 2)
    keep(store, "broken", envelopes)

    told = announced(store.load("broken"))

    assert isinstance(told[0].event, SessionLoaded)
    assert isinstance(told[1].event, SessionRepaired)
    assert told[1].event.what == (
        "The last run was interrupted (work outcome unknown, work not started, work not started, work finished)."
    )
    ended = [envelope for envelope in told if isinstance(envelope.event, ToolEnded | RunEnded)]
    assert len(ended) == 4
    assert {envelope.origin.run_id for envelope in ended} == {"run_1"}


def test_damage_is_reported_briefly(tmp_path: Path) -> None:
    store = SessionStore(tmp_path)
    keep(store, "damaged", play((PlayedRun(),)), end="noise\n" * 7)

    repaired = announced(store.load("damaged"))[1].event

    assert isinstance(repaired, SessionRepaired)
    assert repaired.what.count("is not an event") == 5
    assert repaired.what.endswith("2 more lines could not be read.")


def test_loaded_messages_share_their_sets_of_given_fields(tmp_path: Path) -> None:
    store = SessionStore(tmp_path)
    keep(store, "old", play(FULL_SESSION))

    messages = store.load("old").messages
    continued = ConversationHistory([*messages, user_message("more")])

    for kept in (messages, tuple(continued.messages())):
        sets = [one.__pydantic_fields_set__ for one in kept] + [
            block.__pydantic_fields_set__ for one in kept for block in one.content
        ]
        assert len(sets) > len({frozenset(given) for given in sets}) == len({id(given) for given in sets})
