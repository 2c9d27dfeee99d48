"""The end of a journal is read without the rest."""

from pathlib import Path

import pytest

from tui_agent.protocol.envelope import Envelope, Origin
from tui_agent.protocol.events import AgentEvent, Noticed, RunStarted, SessionRewound, ToolQueued
from tui_agent.protocol.permissions import PermissionMode
from tui_agent.session import journal_reader
from tui_agent.session.journal_reader import read_tail

RUN = RunStarted(input="go", trigger="prompt", model="m", mode=PermissionMode.ASK)
CALL = ToolQueued(call_id="c", name="read", args_raw={"text": '{"type":"tool.queued"}'}, index=0)


@pytest.fixture(autouse=True)
def short_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_reader, "FIRST_READ_SIZE", 4_000)
    monkeypatch.setattr(journal_reader, "MAX_READ_SIZE", 40_000)


def journal(path: Path, *events: AgentEvent, depth: int = 0) -> Path:
    lines = [
        Envelope(event, seq, 0, 0.0, Origin("s", "r", depth=depth, step=0)).to_json()
        for seq, event in enumerate(events, 1)
    ]
    file = path / "s.jsonl"
    file.write_text("\n".join(lines) + "\n")
    return file


def test_the_tail_begins_with_a_run_and_counts_earlier_events(tmp_path: Path) -> None:
    run = [RUN, CALL, CALL, *[Noticed(code="c", text="x" * 100)] * 7]

    tail = read_tail(journal(tmp_path, *run * 20))

    assert tail is not None
    assert isinstance(tail.envelopes[0].event, RunStarted)
    assert tail.envelopes[-1].seq == 200
    assert tail.envelopes[0].seq == tail.events_before + 1 > 1
    assert tail.calls_before == 2 * tail.events_before // 10


def test_a_longer_run_is_read_up_to_a_limit(tmp_path: Path) -> None:
    note = Noticed(code="c", text="x" * 1_000)

    whole = read_tail(journal(tmp_path, RUN, *[note] * 12))
    cut = read_tail(journal(tmp_path, RUN, *[note] * 100))

    assert whole is not None
    assert (len(whole.envelopes), whole.events_before) == (13, 0)
    assert cut is not None
    assert 20 < len(cut.envelopes) < 60
    assert cut.events_before == 101 - len(cut.envelopes)


def test_the_tail_does_not_begin_with_a_run_of_a_sub_agent(tmp_path: Path) -> None:
    tail = read_tail(journal(tmp_path, CALL, RUN, depth=1))

    assert tail is not None
    assert [envelope.type for envelope in tail.envelopes] == ["tool.queued", "run.started"]


def test_a_missing_empty_or_rewound_journal_has_no_tail(tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.touch()

    assert read_tail(tmp_path / "none.jsonl") is None
    assert read_tail(empty) is None
    assert (
        read_tail(journal(tmp_path, RUN, CALL, SessionRewound(to_seq=1, from_seq=2, text="", conversation=True)))
        is None
    )


def test_calls_are_counted_alike_with_and_without_their_ids(tmp_path: Path) -> None:
    """Lines are longer than the pieces in which a file is read, and some text looks like a call."""
    long = Noticed(code="c", text='x"type":"tool.queued","data":{"call_id":"' * 40_000)
    run = [RUN, CALL, long, CALL, CALL, *[Noticed(code="c", text="x" * 1_000)] * 200]
    file = journal(tmp_path, *run * 3)

    counted = read_tail(file)
    with file.open("a") as out:
        again = Envelope(CALL, 1_000, 0, 0.0, Origin("s", "r")).to_json()
        out.write(f"{again}\n")
    named = read_tail(file)

    assert counted is not None
    assert named is not None
    assert counted.calls_before == named.calls_before == 9
    assert (counted.events_before, dict(counted.numbers)) == (named.events_before, {})
    assert set(named.numbers) == {CALL.call_id}
