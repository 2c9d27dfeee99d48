"""Recordings can be read back; damaged entries are skipped; other files are refused in one line."""

import asyncio
import errno
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import MessageDelta, Noticed
from tui_agent.recording import Recording, RecordingHeader, RecordingWriter, parse_recording, read_recording, record_bus


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 500.0

    def __call__(self) -> float:
        return self.now


class FakeDisk:
    """A disk that is full after a number of bytes."""

    def __init__(self, room: int) -> None:
        self.room = room

    def __call__(self, descriptor: int, content: bytes) -> int:
        taken = min(self.room, len(content))
        if not taken:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.room -= taken
        return os.write(descriptor, content[:taken])


def published(*texts: str) -> list[Envelope]:
    bus = EventBus()
    with bus.subscribe(merge=False) as subscription:
        for text in texts:
            bus.publish(Noticed(code="x", text=text))
        return subscription.drain()


async def recorded(path: Path) -> list[Envelope]:
    """Write a recording with every kind of entry; return its events."""
    clock, events = Clock(), published("one", "two")
    async with RecordingWriter(path, clock=clock) as tape:
        tape.events(published("before"), past=True)
        clock.now += 0.25
        tape.events(events)
        clock.now += 1
        tape.note("input", {"kind": "paste", "text": "half a \ud83d character\n"})
        tape.note("answer", {"door": "running", "about": "", "value": True})
        clock.now += 1
        tape.note("input", {"kind": "resize", "width": 130, "height": 20})
        tape.note("mark", {"name": "end"})
        tape.begin(RecordingHeader(size=(100, 30), theme="light", label="a demo"), print)
    return events


async def test_a_recording_can_be_read_back(tmp_path: Path) -> None:
    events = await recorded(tmp_path / "r.jsonl")

    recording = read_recording(tmp_path / "r.jsonl")

    assert [(entry.at, entry.kind) for entry in recording.entries] == [
        (0.0, "past"),
        (0.25, "event"),
        (0.25, "event"),
        (1.25, "input"),
        (1.25, "answer"),
        (2.25, "input"),
        (2.25, "mark"),
    ]
    read = [entry.value for entry in recording.entries if entry.kind == "event"]
    assert [event.to_json() for event in read if isinstance(event, Envelope)] == [event.to_json() for event in events]
    assert recording.data_of("input")[0] == {"kind": "paste", "text": "half a ? character\n"}
    assert (recording.head.size, recording.head.theme, recording.head.mono) == ((100, 30), "light", 500.0)
    assert (recording.length, recording.largest, recording.marks) == (2.25, (130, 30), {"end": 2.25})
    assert recording.notices == ()


async def test_only_the_owner_may_read_it_and_no_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    before = os.umask(0)
    try:
        await recorded(path)
    finally:
        os.umask(before)

    assert path.stat().st_mode & 0o777 == 0o600
    for refused in (path, tmp_path / "missing" / "r.jsonl", tmp_path):
        with pytest.raises(ConfigurationError) as caught:
            await RecordingWriter(refused).__aenter__()
        assert "\n" not in str(caught.value)


async def test_a_recording_that_never_began_leaves_no_file(tmp_path: Path) -> None:
    async with RecordingWriter(tmp_path / "r.jsonl") as tape:
        tape.note("input", {"kind": "focus"})
        assert [path.name for path in tmp_path.iterdir()] == ["r.jsonl"]

    assert list(tmp_path.iterdir()) == []


async def test_a_forgotten_recording_leaves_no_file(tmp_path: Path) -> None:
    async with RecordingWriter(tmp_path / "r.jsonl") as tape:
        tape.begin(RecordingHeader(), print)
        tape.note("input", {"kind": "focus"})
        tape.forget()

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("room", [0, 10, 400])
async def test_a_full_disk_is_reported_once_and_the_written_part_stays(tmp_path: Path, room: int) -> None:
    path, said = tmp_path / "r.jsonl", list[str]()
    async with RecordingWriter(path, write=FakeDisk(room)) as tape:
        tape.begin(RecordingHeader(), said.append)
        for _ in range(3):
            tape.events(published("a" * 200))
        while not said:
            await asyncio.sleep(0.01)
        tape.events(published("later"))

    (words,) = said
    assert "No space left on device" in words
    assert path.stat().st_size == room
    if room == 400:
        assert read_recording(path).notices != ()


async def test_an_entry_that_cannot_be_written_ends_only_the_recording(tmp_path: Path) -> None:
    path, said = tmp_path / "r.jsonl", list[str]()
    async with RecordingWriter(path) as tape:
        tape.begin(RecordingHeader(), said.append)
        tape.note("mark", {"name": float("nan")})
        while not said:
            await asyncio.sleep(0.01)

    assert "has stopped" in said[0]


async def test_without_a_screen_the_bus_is_recorded(tmp_path: Path) -> None:
    bus = EventBus()

    async def work() -> str:
        bus.publish(Noticed(code="x", text="during"))
        return "done"

    async with RecordingWriter(tmp_path / "r.jsonl") as tape:
        tape.begin(RecordingHeader(), print)
        bus.publish(Noticed(code="x", text="before"))
        assert await record_bus(bus, tape, work) == "done"
        bus.publish(MessageDelta(message_id="m", kind="text", delta="after"))

    recording = read_recording(tmp_path / "r.jsonl")
    events = [entry.value.event for entry in recording.entries if isinstance(entry.value, Envelope)]
    assert [event.text for event in events if isinstance(event, Noticed)] == ["before", "during"]
    assert len(events) == 2


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("tape") / "r.jsonl"
    asyncio.run(recorded(path))
    return path.read_bytes()


def outcome(content: bytes) -> Recording | str:
    """Return the recording, or the error."""
    try:
        return parse_recording(content, "r.jsonl")
    except ConfigurationError as error:
        return str(error)


@given(cut=some.integers(0, 2_000), changes=some.lists(some.tuples(some.integers(0, 2_000), some.binary(max_size=3))))
def test_any_damaged_file_loads_or_is_refused_in_one_line(
    content: bytes, cut: int, changes: list[tuple[int, bytes]]
) -> None:
    damaged = bytearray(content[: max(0, len(content) - cut)])
    for place, new in changes:
        start = place % (len(damaged) + 1)
        damaged[start : start + len(new)] = new

    found = outcome(bytes(damaged))

    if isinstance(found, str):
        assert "\n" not in found
    else:
        assert [entry.at for entry in found.entries] == sorted(entry.at for entry in found.entries)
        assert found.largest >= (1, 1)


def test_a_truncated_end_and_damaged_lines_are_skipped_and_reported(content: bytes) -> None:
    lines = content.splitlines(keepends=True)

    torn = outcome(content[:-5])
    damaged = outcome(b"".join([*lines[:2], b"\x00\xff\n", b'{"at":1e9,"input":{}}\n', *lines[2:]]))

    assert isinstance(torn, Recording)
    assert isinstance(damaged, Recording)
    assert (len(torn.entries), torn.notices) == (
        6,
        ("The recording ends in the middle of a line; it plays up to the last complete line.",),
    )
    assert (len(damaged.entries), damaged.notices) == (7, ("2 damaged lines of the recording skipped.",))


def test_a_time_out_of_order_costs_only_its_own_line(content: bytes) -> None:
    late = outcome(content.replace(b'{"at":0.25,', b'{"at":900.25,', 1))
    early = outcome(content.replace(b'{"at":2.25,"mark"', b'{"at":0.1,"mark"'))

    assert isinstance(late, Recording)
    assert isinstance(early, Recording)
    assert (len(late.entries), late.length) == (6, 2.25)
    assert (len(early.entries), early.length) == (6, 2.25)


@pytest.mark.parametrize(
    ("first", "words"),
    [
        (b"", "r.jsonl is not a recording of tui-agent"),
        (b"\x00\x01", "r.jsonl is not a recording"),
        (b"[" * 100_000, "r.jsonl is not a recording"),
        (b'{"type":"run.started"}', "r.jsonl is not a recording"),
        (b'{"recording":2}', "a recording of version 2; this program reads version 1"),
        (b'{"recording":true}', "a recording of version True"),
        (b'{"recording":1,"size":[0,5]}', "the first line of the recording r.jsonl is damaged: size.0"),
        (b'{"recording":1,"mono":NaN}', "is damaged: mono"),
    ],
)
def test_other_files_are_refused(first: bytes, words: str) -> None:
    found = outcome(first + b"\n")

    assert isinstance(found, str)
    assert words in found


def test_an_event_of_a_later_version_is_skipped(content: bytes) -> None:
    lines = content.splitlines(keepends=True)
    record = json.loads(lines[1])
    record["past"]["type"] = "later.kind"
    later = json.dumps(record).encode() + b"\n"

    found = outcome(b"".join([lines[0], later, *lines[1:]]))

    assert isinstance(found, Recording)
    assert len(found.entries) == 7
