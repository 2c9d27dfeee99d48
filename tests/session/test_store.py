"""The session store: create, list, find, load and delete, with private file modes."""

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.session.played_sessions import FULL_SESSION, SESSION, PlayedRun, play, played_sessions
from tui_agent.protocol.envelope import Envelope, Origin
from tui_agent.protocol.errors import ConfigurationError, SessionError
from tui_agent.protocol.events import (
    AgentEvent,
    MessageEnded,
    Noticed,
    SessionCreated,
    SessionLoaded,
    SessionRenamed,
)
from tui_agent.protocol.messages import UserMessage, user_message
from tui_agent.session.journal import JournalFile
from tui_agent.session.store import SessionStore, make_private_directory
from tui_agent.session.summary import LONGEST_LINE, SessionSummary, summarise


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    return SessionStore(tmp_path / "state" / "sessions")


def keep(store: SessionStore, session_id: str, envelopes: list[Envelope], end: str = "") -> Path:
    """Put a journal into the store."""
    path = store.create(Path("/somewhere"), session_id).path
    assert path is not None
    path.write_text("".join(f"{envelope.to_json()}\n" for envelope in envelopes) + end, "utf-8")
    return path


def told(event: AgentEvent, ts: int, seq: int = 1) -> Envelope:
    return Envelope(event, seq, ts, 0.0, Origin(session_id=SESSION))


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
def test_all_files_are_private_under_any_umask(store: SessionStore, tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        session = store.create(tmp_path, "mine")
        files = store.files_dir("mine")
    finally:
        os.umask(before)

    assert session.path is not None
    assert session.path.stat().st_mode & 0o777 == 0o600
    for directory in (store.root, store.root.parent, files):
        assert directory.stat().st_mode & 0o777 == 0o700


def test_a_directory_with_a_wider_mode_is_made_private_but_not_its_parent(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "sessions").mkdir(0o755)
    make_private_directory(tmp_path / "sessions")

    assert (tmp_path / "sessions").stat().st_mode & 0o777 == 0o700
    assert tmp_path.stat().st_mode & 0o777 == 0o755


def test_a_taken_name_is_refused_and_the_session_kept(store: SessionStore, tmp_path: Path) -> None:
    path = keep(store, "taken", play(FULL_SESSION))
    content = path.read_bytes()

    with pytest.raises(ConfigurationError, match="A session named taken already exists"):
        store.create(tmp_path, "taken")
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "../a", "-a", ".a", "a b", "a\n", "a\0b", "x" * 65, "ä", "a\\b"]
)
def test_names_that_are_not_plain_file_names_are_refused(store: SessionStore, tmp_path: Path, name: str) -> None:
    for action in (lambda: store.create(tmp_path, name), lambda: store.load(name), lambda: store.delete(name)):
        with pytest.raises(ConfigurationError, match="cannot name a session"):
            action()
    assert not store.root.exists()


def test_an_unwritable_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(SessionError, match=r"No session can be saved in .*file"):
        SessionStore(tmp_path / "file").create(tmp_path)
    with pytest.raises(SessionError, match="cannot be created"):
        SessionStore(tmp_path / "file").files_dir("one")
    with pytest.raises(SessionError, match="cannot be listed"):
        SessionStore(tmp_path / "file").list()


def test_loading_a_damaged_session_reports_the_damage_and_changes_nothing(store: SessionStore) -> None:
    path = keep(store, "torn", play(FULL_SESSION), end='{"v":1,"se')
    before = path.read_bytes()

    session = store.load("torn")

    assert [problem.kind for problem in session.problems] == ["torn"]
    assert session.new_problems == session.problems
    assert path.read_bytes() == before


def test_reported_damage_is_not_reported_again(store: SessionStore) -> None:
    envelopes = play((PlayedRun(),))
    path = keep(store, "mended", envelopes, end='{"v":1,"se\n')
    loaded = told(SessionLoaded(id="mended", cwd="/elsewhere"), 5, envelopes[-1].seq + 1)
    with path.open("a") as file:
        file.write(f"{loaded.to_json()}\nnew damage\n")

    session = store.load("mended")

    assert (len(session.problems), len(session.new_problems)) == (2, 1)
    assert session.new_problems[0].line > session.problems[0].line
    assert session.cwd == Path("/elsewhere")


def test_sessions_are_listed_newest_first(store: SessionStore) -> None:
    envelopes = play(FULL_SESSION)
    path = keep(store, "talk", envelopes)
    renamed = told(SessionRenamed(id="other", title="A  better\nname"), 1)
    keep(store, "other", [told(SessionCreated(id="other", cwd="/other"), 1), renamed])

    first, second = store.list()

    assert (first.id, first.title) == ("talk", "fix the test please now !")
    assert (first.cwd, first.size, first.said) == ("/somewhere", path.stat().st_size, True)
    assert (first.started, first.updated) == (envelopes[0].ts, envelopes[-1].ts)
    assert (second.id, second.title, second.cwd, second.started, second.said) == (
        "other",
        "A better name",
        "/other",
        1,
        False,
    )


def test_a_long_prompt_is_shortened_and_an_endless_one_does_not_hide_the_session(store: SessionStore) -> None:
    keep(store, "long", play((PlayedRun("word " * 100),)))
    keep(store, "endless", play((PlayedRun("x" * (2 * LONGEST_LINE)),)))

    titles = {summary.id: summary.title for summary in store.list()}

    assert len(titles["long"]) == 100
    assert titles["long"].endswith("…")
    assert titles["endless"] == ""


def test_bad_files_do_not_break_the_list(store: SessionStore) -> None:
    keep(store, "good", play((PlayedRun("hello"),)))
    (store.root / "noise.jsonl").write_bytes(b"\0\xff\n[1]\n" + b"{" * 100_000)
    (store.root / "empty.jsonl").write_bytes(b"")
    (store.root / "wrong.jsonl").write_bytes(b'{"type":"session.created","ts":"soon","data":{"cwd":7}}\n')
    (store.root / "bad name!.jsonl").write_bytes(b"")
    (store.root / "notes.txt").write_bytes(b"")
    (store.root / "folder.jsonl").mkdir()
    (store.root / "gone.jsonl").symlink_to(store.root / "nowhere")
    (store.root / "ring.jsonl").symlink_to("ring.jsonl")
    (store.root / "link.jsonl").symlink_to("good.jsonl")
    os.mkfifo(store.root / "pipe.jsonl")
    (store.root / "late.jsonl").write_bytes(b'{"type":"session.created","ts":99999999999999991,"data":{}}\n')

    assert {summary.id: summary.title for summary in store.list()} == {
        "good": "hello",
        "noise": "",
        "empty": "",
        "wrong": "",
        "late": "",
    }
    assert all(datetime.fromtimestamp(summary.updated / 1000, UTC).year < 9999 for summary in store.list())
    for name in ("ring", "link", "pipe", "folder"):
        with pytest.raises(SessionError, match="no session"):
            store.load(name)


def test_a_file_that_vanishes_while_it_is_listed_is_left_out(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(store, "stays", play((PlayedRun(),)))
    vanishing = keep(store, "vanishes", play((PlayedRun(),)))
    monkeypatch.setattr("tui_agent.session.store.summarise", _removing(vanishing))

    assert [summary.id for summary in store.list()] == ["stays"]


def _removing(path: Path) -> Callable[[Path], SessionSummary | None]:
    def summarise_after_removal(other: Path) -> SessionSummary | None:
        path.unlink(missing_ok=True)
        return summarise(other)

    return summarise_after_removal


def test_the_latest_of_a_directory_is_the_one_with_the_latest_message(store: SessionStore, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path)

    def journal(session_id: str, cwd: Path, ts: int, *, said: bool = True) -> None:
        rest = play((PlayedRun(session_id),))[1:] if said else []
        keep(store, session_id, [told(SessionCreated(id=session_id, cwd=str(cwd)), 1)])
        with (store.root / f"{session_id}.jsonl").open("a") as file:
            file.writelines(f"{Envelope(e.event, e.seq, ts, 0.0, e.origin).to_json()}\n" for e in rest)

    journal("older", tmp_path, 10)
    journal("newer", link, 20)
    journal("elsewhere", tmp_path / "sub", 30)
    journal("silent", tmp_path, 40, said=False)

    latest = store.latest(tmp_path)

    assert latest.session is not None
    assert (latest.session.id, latest.open_elsewhere) == ("newer", ())


def test_only_journals_written_after_the_latest_message_are_read_for_it(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1, 10):
        path = keep(store, f"s{number}", _at(play((PlayedRun("hello"),)), number * 1_000))
        os.utime(path, ns=(0, number * 1_000_000_000))
    # Written last, but with an older message.
    os.utime(store.journal_path("s3"), ns=(0, 20_000_000_000))
    read: list[str] = []

    def reading(path: Path) -> SessionSummary | None:
        read.append(path.stem)
        return summarise(path)

    monkeypatch.setattr("tui_agent.session.store.summarise", reading)

    latest = store.latest(Path("/somewhere"))

    assert latest.session is not None
    assert (latest.session.id, read) == ("s9", ["s3", "s9"])


HOUSEKEEPING: list[AgentEvent] = [
    SessionLoaded(id="older", cwd="/somewhere"),
    SessionRenamed(id="older", title="new title"),
    Noticed(code="settings_changed", text="settings changed"),
    MessageEnded(message_id="n", message=user_message("The budget is nearly used up.", "notice")),
]


@pytest.mark.parametrize("event", HOUSEKEEPING, ids=lambda event: event.type)
def test_a_line_of_housekeeping_does_not_make_a_session_the_newest(store: SessionStore, event: AgentEvent) -> None:
    older, newer = play((PlayedRun("first"),)), play((PlayedRun("second"),))
    keep(store, "older", [*_at(older, 10), told(event, 99, older[-1].seq + 1)])
    keep(store, "newer", _at(newer, 20))

    assert [(summary.id, summary.last_message) for summary in store.list()] == [("newer", 20), ("older", 10)]
    assert store.latest(Path("/somewhere")).session == store.list()[0]


@given(played_sessions, st.integers(1, 700))
def test_the_last_message_is_that_of_the_whole_journal(session: tuple[PlayedRun, ...], piece: int) -> None:
    envelopes = [replace(envelope, ts=envelope.seq) for envelope in play(session)]
    own = [
        one.ts
        for one in envelopes
        if isinstance(one.event, MessageEnded)
        and isinstance(one.event.message, UserMessage)
        and one.event.message.kind != "notice"
        and not one.origin.depth
    ]
    with TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr("tui_agent.session.summary._PIECE", piece)
        store = SessionStore(Path(directory))
        keep(store, "one", envelopes)
        (summary,) = store.list()

    assert summary.last_message == (own[-1] if own else summary.started)


def _at(envelopes: list[Envelope], ts: int) -> list[Envelope]:
    """Return the events with another time."""
    return [replace(envelope, ts=ts) for envelope in envelopes]


def test_a_session_that_is_open_elsewhere_is_passed_over(store: SessionStore) -> None:
    for ts, name in enumerate(("free", "open", "also-open")):
        keep(store, name, _at(play((PlayedRun(name),)), ts))
    journals = [JournalFile(store.journal_path(name)) for name in ("open", "also-open")]

    latest = store.latest(Path("/somewhere"))
    for journal in journals:
        journal.close()
    later = store.latest(Path("/somewhere"))

    assert latest.session is not None
    assert later.session is not None
    assert (latest.session.id, [one.id for one in latest.open_elsewhere]) == ("free", ["also-open", "open"])
    assert (later.session.id, later.open_elsewhere) == ("also-open", ())


def test_an_id_is_found_by_its_beginning(store: SessionStore) -> None:
    for name in ("abc", "abcdef", "abx", "zz"):
        keep(store, name, [])

    assert [store.find(text) for text in ("abcd", "abc", "z", "abx")] == ["abcdef", "abc", "zz", "abx"]
    with pytest.raises(SessionError, match="3 sessions begin with 'ab': abc, abcdef, abx"):
        store.find("ab")
    for text in ("", "q", "../abc", "*"):
        with pytest.raises(SessionError, match="There is no session"):
            store.find(text)


def test_a_deleted_session_is_gone_with_its_files(store: SessionStore) -> None:
    path = keep(store, "old", play((PlayedRun(),)))
    (store.files_dir("old") / "result.txt").write_text("large")
    keep(store, "other", [])

    store.delete("old")

    assert not path.exists()
    assert not store.files_path("old").exists()
    assert [summary.id for summary in store.list()] == ["other"]


def test_an_open_session_is_not_deleted(store: SessionStore) -> None:
    path = keep(store, "open", play((PlayedRun(),)))
    journal = JournalFile(path)

    with pytest.raises(SessionError, match="already open in another tui-agent"):
        store.delete("open")
    journal.close()

    assert path.stat().st_size > 0
