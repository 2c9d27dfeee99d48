"""Damaged journals are readable."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.session.played_sessions import FULL_SESSION, play
from tests.support.table import table
from tests.support.transcript_checks import validate_history
from tui_agent.protocol.envelope import LATEST_TIME, Envelope
from tui_agent.protocol.events import MessageEnded
from tui_agent.protocol.past_session import drop_superseded, events_of
from tui_agent.session.history_fold import messages_of
from tui_agent.session.journal_reader import BYTE_ORDER_MARK, parse_journal, scan_journal

EVENTS = play(FULL_SESSION)
LINES = [f"{envelope.to_json()}\n".encode() for envelope in EVENTS]
JOURNAL = b"".join(LINES)


@table(
    "data",
    [
        JOURNAL,
        JOURNAL[:-5],
        JOURNAL.rstrip(),
        BYTE_ORDER_MARK + JOURNAL,
        b"".join(b"\0 \n{}\n \0" + one for one in LINES),
    ],
)
def test_a_journal_kept_as_lines_has_the_same_events(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "s.jsonl").write_bytes(data)
    passed: list[Envelope] = []

    lines = scan_journal(tmp_path / "s.jsonl", passed.append)
    whole = parse_journal(data)

    assert replace(lines, envelopes=tuple(lines.envelopes)) == whole
    assert tuple(passed) == whole.envelopes == (*lines.envelopes[:3], *(lines.envelopes[3:]))
    assert tuple(drop_superseded(lines.envelopes)) == tuple(drop_superseded(whole.envelopes))
    assert list(events_of(lines.envelopes, (MessageEnded,))) == list(events_of(whole.envelopes, (MessageEnded,)))


@pytest.mark.slow
def test_a_journal_cut_at_any_byte_loads_up_to_there() -> None:
    lines = LINES[:12]
    journal = b"".join(lines)
    end = whole = 0
    for size in range(len(journal) + 1):
        if whole < len(lines) and size >= end + len(lines[whole]):
            end += len(lines[whole])
            whole += 1
        contents = parse_journal(journal[:size])
        complete_but_for_its_end = whole < len(lines) and size == end + len(lines[whole]) - 1
        assert len(contents.envelopes) == whole + complete_but_for_its_end, size
        assert bool(contents.problems) == (size > end and not complete_but_for_its_end), size
    assert whole == len(lines)


@given(st.lists(st.tuples(st.integers(0, len(JOURNAL) - 1), st.binary(min_size=1, max_size=40)), max_size=5))
def test_random_damage_loses_only_the_damaged_lines(damage: list[tuple[int, bytes]]) -> None:
    data = bytearray(JOURNAL)
    hit: set[int] = set()
    for place, noise in damage:
        data[place : place + len(noise)] = noise
        first, last = (JOURNAL.count(b"\n", 0, byte) for byte in (place, place + len(noise) - 1))
        hit.update(range(first, last + 2))

    contents = parse_journal(bytes(data))

    validate_history(messages_of(contents.envelopes))
    assert len(contents.envelopes) >= len(LINES) - len(hit)


@given(st.binary(max_size=400))
def test_parsing_any_bytes_never_raises(data: bytes) -> None:
    validate_history(messages_of(parse_journal(data).envelopes))


@table(
    ("line", "kind", "words"),
    [
        (b"not json", "unreadable", "Line 2 is not an event"),
        (b"\xff\xfe\xfd", "unreadable", "Line 2 is not an event"),
        (b"[1, 2]", "unreadable", "expected an object with a `type`"),
        (b'{"type":"run.started","data":{}}', "unreadable", "event run.started cannot be read"),
        (b'{"type":"tool.data","data":' + b"[" * 5_000, "unreadable", "Line 2 is not an event"),
        (b'{"n":' + b"9" * 5_000 + b"}", "unreadable", "Line 2 is not an event"),
        (b"\0" * 512, "unreadable", "has only zero bytes"),
        (b'{"type":"from.tomorrow","data":{}}', "unknown", "1 event has a type that this version does not know"),
    ],
)
def test_a_bad_line_is_reported_and_skipped(line: bytes, kind: str, words: str) -> None:
    contents = parse_journal(LINES[0] + line + b"\n" + LINES[1])

    assert len(contents.envelopes) == 2
    assert [(problem.kind, problem.line) for problem in contents.problems] == [(kind, 2)]
    assert words in contents.problems[0].text


def test_many_unknown_events_are_one_problem() -> None:
    contents = parse_journal(b'{"type":"from.tomorrow"}\n' * 3)

    assert [problem.text for problem in contents.problems] == ["3 events have types that this version does not know."]


def test_byte_order_marks_blank_lines_and_crlf_are_accepted() -> None:
    contents = parse_journal(BYTE_ORDER_MARK + LINES[0].replace(b"\n", b"\r\n") + b"\n \r\n" + LINES[1])

    assert (len(contents.envelopes), contents.problems) == (2, ())


def test_repeated_and_unordered_events_are_reported_and_kept() -> None:
    contents = parse_journal(LINES[1] + LINES[0] + LINES[2] + LINES[2])

    ((kind, line, words),) = ((problem.kind, problem.line, problem.text) for problem in contents.problems)
    assert (kind, line, words) == (
        "order",
        2,
        "Line 2, and 1 more lines: repeated or out of order; their events are used.",
    )
    assert (len(contents.envelopes), contents.last_seq) == (4, 3)


def test_impossible_numbers_and_times_lose_no_event() -> None:
    strange = LINES[0].replace(b'"seq":1,', b'"seq":9999999999999999999999,')
    strange += re.sub(rb'"ts":\d+', b'"ts":99999999999999999999', LINES[1])
    strange += re.sub(rb'"ts":\d+', b'"ts":-5', LINES[2])

    contents = parse_journal(strange)

    assert [envelope.seq for envelope in contents.envelopes] == [0, 2, 3]
    assert [envelope.ts for envelope in contents.envelopes][1:] == [LATEST_TIME, 0]
    assert datetime.fromtimestamp(LATEST_TIME / 1000, UTC).year == 9999
