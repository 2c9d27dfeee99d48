"""Forks, titles, and search by message text."""

from pathlib import Path

import pytest

from tests.session.played_sessions import FULL_SESSION, SESSION, Player
from tests.support.transcript_checks import validate_history
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Origin
from tui_agent.protocol.errors import ConfigurationError, SessionError
from tui_agent.protocol.events import MessageEnded, SessionCreated, SessionForked, ToolEnded
from tui_agent.protocol.messages import TextBlock
from tui_agent.session import JournalWriter, SessionStore


@pytest.fixture
async def store(tmp_path: Path) -> SessionStore:
    """A store with one full session, named `played`."""
    made = SessionStore(tmp_path / "sessions")
    session = made.create(tmp_path, SESSION)
    assert session.path is not None
    bus = EventBus(Origin(session_id=SESSION))
    async with JournalWriter(bus, session.path):
        player = Player(bus)
        player.begin(tmp_path)
        player.play(FULL_SESSION)
    return made


def messages(store: SessionStore, session_id: str) -> list[str]:
    return [message.text for message in store.load(session_id).messages]


async def test_a_fork_is_the_same_conversation_under_another_name(store: SessionStore, tmp_path: Path) -> None:
    before = (store.root / "played.jsonl").read_bytes()

    copy = store.fork(SESSION, new_id="copy")

    assert (copy.id, copy.cwd, copy.problems) == ("copy", tmp_path, ())
    assert copy.messages == store.load(SESSION).messages
    assert {envelope.origin.session_id for envelope in copy.envelopes} == {"copy"}
    assert isinstance(copy.envelopes[0].event, SessionCreated)
    assert copy.envelopes[0].event.id == "copy"
    forked = copy.envelopes[-1].event
    assert isinstance(forked, SessionForked)
    assert (forked.parent, forked.at_seq) == (SESSION, store.load(SESSION).envelopes[-1].seq)
    assert (store.root / "played.jsonl").read_bytes() == before
    assert len(store.list()) == 2


async def test_a_fork_has_its_own_copy_of_the_files(store: SessionStore) -> None:
    kept = store.files_dir(SESSION) / "deep" / 'call "1".txt'
    kept.parent.mkdir()
    kept.write_text("all of it")
    kept.chmod(0o600)
    session = store.load(SESSION)
    bus = EventBus(session.origin(), first_seq=session.next_seq)
    assert session.path is not None
    async with JournalWriter(bus, session.path, expected_size=session.size):
        text = TextBlock(text=f"head and tail; the whole is in {kept}")
        ended = ToolEnded(call_id="c", name="bash", index=0, status="ok", is_error=False, content=(text,))
        bus.publish(ended.model_copy(update={"persisted_path": str(kept)}))

    at_the_end, before = store.fork(SESSION, new_id="copy"), store.fork(SESSION, session.next_seq - 1, "before")
    store.delete(SESSION)

    copied = store.files_path("copy") / "deep" / 'call "1".txt'
    (ended,) = (
        one.event for one in at_the_end.envelopes if isinstance(one.event, ToolEnded) and one.event.persisted_path
    )
    assert ended.persisted_path == str(copied)
    assert ended.content == (TextBlock(text=f"head and tail; the whole is in {copied}"),)
    assert copied.read_text() == "all of it"
    assert (copied.stat().st_mode & 0o777, store.files_path("copy").stat().st_mode & 0o777) == (0o600, 0o700)
    assert (store.files_path(before.id) / "deep" / 'call "1".txt').exists()
    assert SESSION not in "".join(envelope.to_json() for envelope in at_the_end.envelopes[:-1])


async def test_a_fork_whose_files_cannot_be_copied_leaves_nothing(store: SessionStore) -> None:
    store.files_dir(SESSION)
    store.files_path("copy").write_text("something else has the name")

    with pytest.raises(SessionError, match="cannot be copied"):
        store.fork(SESSION, new_id="copy")

    assert [summary.id for summary in store.list()] == [SESSION]


@pytest.mark.slow
async def test_a_fork_at_any_event_can_be_continued(store: SessionStore) -> None:
    original = store.load(SESSION)
    for envelope in original.envelopes[::7]:
        copy = store.fork(SESSION, envelope.seq)
        validate_history(copy.messages)
        assert copy.problems == ()
        assert copy.next_seq == envelope.seq + 2
        wanted = sum(isinstance(one.event, MessageEnded) for one in original.envelopes if one.seq <= envelope.seq)
        told = sum(isinstance(one.event, MessageEnded) for one in copy.envelopes)
        assert told == wanted
        store.delete(copy.id)


@pytest.mark.parametrize(("at_seq", "name", "error"), [(0, None, SessionError), (5, "played", ConfigurationError)])
async def test_an_impossible_fork_is_refused_and_leaves_nothing(
    store: SessionStore, at_seq: int, name: str | None, error: type[Exception]
) -> None:
    with pytest.raises(error):
        store.fork(SESSION, at_seq, name)

    assert [found.id for found in store.list()] == [SESSION]


async def test_a_new_title_is_shown_and_nothing_else_changes(store: SessionStore) -> None:
    before = messages(store, SESSION)

    store.rename(SESSION, "  the broken\n test ")
    store.rename(SESSION, "The broken test")

    assert [found.title for found in store.list()] == ["The broken test"]
    assert messages(store, SESSION) == before
    assert store.load(SESSION).problems == ()
    with pytest.raises(ConfigurationError, match="cannot be empty"):
        store.rename(SESSION, " \n")


@pytest.mark.parametrize(
    ("text", "found"), [("AND NOW?", 1), ("changelog", 1), ("Let me look", 1), ("seq", 0), ("nowhere", 0)]
)
async def test_sessions_are_found_by_message_text(store: SessionStore, text: str, found: int) -> None:
    assert len(store.list(text)) == found
