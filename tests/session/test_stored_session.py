"""The first events of a session: created or loaded, repairs, and closing events."""

from pathlib import Path

from tests.session.played_sessions import FULL_SESSION, PlayedRun, play
from tests.session.test_store import keep
from tui_agent.context import ConversationHistory
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import (
    SessionRepaired,
)
from tui_agent.protocol.messages import user_message
from tui_agent.session.store import SessionStore
from tui_agent.session.stored_session import StoredSession


def announced(session: StoredSession) -> list[Envelope]:
    bus = EventBus(session.origin(), first_seq=session.next_seq)
    with bus.subscribe(merge=False) as subscription:
        session.announce(bus, "1.2")
        return subscription.drain()


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
