"""The recorder saves all events in order, despite failures of disk and process."""

import asyncio
import random
import resource
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.session.failing_disk import FailingDisk
from tests.session.played_sessions import FULL_SESSION, SESSION, PlayedRun, Player, play, played_sessions
from tui_agent.protocol.bus import EventBus, merge_neighbours
from tui_agent.protocol.envelope import Envelope, Origin
from tui_agent.protocol.errors import SessionError
from tui_agent.protocol.events import (
    AgentEvent,
    MessageDelta,
    MessageEnded,
    Noticed,
    SessionSaved,
    SessionSaveFailed,
    ToolData,
    ToolEnded,
    ToolOutput,
    ToolStarted,
)
from tui_agent.protocol.messages import user_message
from tui_agent.session.history_fold import messages_of
from tui_agent.session.journal import JournalFile
from tui_agent.session.journal_reader import read_journal
from tui_agent.session.journal_writer import OUTPUT_KEPT, JournalQueue, JournalWriter


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / f"{SESSION}.jsonl"


@pytest.fixture
async def bus() -> EventBus:
    return EventBus(Origin(session_id=SESSION))


def kept(path: Path) -> tuple[str, ...]:
    """Return the event types in a journal without problems."""
    contents = read_journal(path)
    assert contents.problems == ()
    return tuple(envelope.type for envelope in contents.envelopes)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for another thread or task."""
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.005)


async def test_all_events_are_in_the_journal_after_the_close(bus: EventBus, path: Path) -> None:
    async with JournalWriter(bus, path):
        player = Player(bus)
        player.begin()
        player.play(FULL_SESSION)

    envelopes = read_journal(path).envelopes
    merged = merge_neighbours(play(FULL_SESSION))
    assert [envelope.event for envelope in envelopes] == [envelope.event for envelope in merged]
    assert [envelope.seq for envelope in envelopes] == [envelope.seq for envelope in merged]
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.slow
@given(played_sessions, st.lists(st.integers(1, 30), max_size=4))
def test_the_journal_gives_the_live_conversation_for_any_batching(
    tmp_path_factory: pytest.TempPathFactory, script: tuple[PlayedRun, ...], cuts: list[int]
) -> None:
    path = tmp_path_factory.mktemp("batched") / "one.jsonl"
    live = play(script)

    async def record() -> None:
        bus = EventBus(Origin(session_id=SESSION))
        async with JournalWriter(bus, path) as recorder:
            for place, envelope in enumerate(live):
                bus.publish(envelope.event, envelope.origin)
                if place % 31 in cuts:
                    await recorder.flush()

    asyncio.run(record())

    stored = read_journal(path).envelopes
    assert messages_of(stored) == messages_of(live)
    assert "".join(e.event.delta for e in stored if isinstance(e.event, MessageDelta)) == "".join(
        e.event.delta for e in live if isinstance(e.event, MessageDelta)
    )
    assert [e.event for e in merge_neighbours(stored)] == [e.event for e in merge_neighbours(live)]
    assert [e.seq for e in stored] == sorted({e.seq for e in stored})


async def test_only_outcomes_of_effects_keep_a_request_waiting(bus: EventBus, path: Path) -> None:
    async with JournalWriter(bus, path) as recorder:

        async def synced(*events: AgentEvent) -> bool:
            for event in events:
                bus.publish(event)
            await recorder.flush_outcomes()
            return bool(kept(path)) and kept(path)[-1] == events[-1].type

        def started(call_id: str, *, read_only: bool) -> ToolStarted:
            return ToolStarted(call_id=call_id, name="tool", args={}, read_only=read_only)

        def ended(call_id: str) -> ToolEnded:
            return ToolEnded(call_id=call_id, name="tool", index=0, status="ok", is_error=False, content=())

        # No `await` of these waits for a thread, so the writer has had no turn yet.
        message = user_message("prompt")
        assert not await synced(MessageEnded(message_id=message.id, message=message))
        assert not await synced(started("read", read_only=True), ended("read"))
        assert await synced(started("write", read_only=False))
        assert await synced(ended("write"))
        assert not await synced(started("look", read_only=True), ended("look"), Noticed(code="n", text="later"))

    assert kept(path)[-1] == "notice"


async def test_the_end_of_a_flood_of_output_is_saved(bus: EventBus, path: Path) -> None:
    async with JournalWriter(bus, path):
        Player(bus).play((PlayedRun(),))
        for _ in range(5):
            bus.publish(ToolOutput(call_id="c", stream="stdout", chunk="x" * OUTPUT_KEPT, bytes_total=7))
        bus.publish(ToolOutput(call_id="c", stream="stdout", chunk="end", bytes_total=8))

    output = read_journal(path).envelopes[-1].event
    assert isinstance(output, ToolOutput)
    assert (len(output.chunk), output.chunk[-3:], output.bytes_total) == (OUTPUT_KEPT, "end", 8)


async def test_an_unserialisable_event_is_replaced_with_a_warning(bus: EventBus, path: Path) -> None:
    endless: dict[str, object] = {}
    endless["again"] = endless
    async with JournalWriter(bus, path):
        Player(bus).play((PlayedRun(),))
        bus.publish(ToolData.model_construct(call_id="c", kind="k", data=endless))
        bus.publish(Noticed(code="after", text="still kept"))

    assert kept(path)[-2:] == ("warning", "notice")
    assert "event of type tool.data could not be saved" in path.read_text()


async def test_a_session_without_messages_leaves_no_file(bus: EventBus, path: Path) -> None:
    path.touch()
    async with JournalWriter(bus, path):
        Player(bus).begin()

    assert not path.exists()


async def test_a_resumed_session_without_new_messages_stays(path: Path) -> None:
    path.write_bytes(b"".join(f"{envelope.to_json()}\n".encode() for envelope in play((PlayedRun(),))))
    before = kept(path)
    bus = EventBus(Origin(session_id=SESSION), first_seq=1_000)
    async with JournalWriter(bus, path, expected_size=path.stat().st_size):
        bus.publish(Noticed(code="n", text="looked at"))

    assert kept(path) == (*before, "notice")


async def test_a_bus_that_closes_first_loses_no_event(bus: EventBus, path: Path) -> None:
    async with JournalWriter(bus, path):
        Player(bus).play((PlayedRun(),))
        bus.close()

    assert kept(path)[-1] == "run.ended"


async def test_a_slow_disk_does_not_block_publishers(bus: EventBus, path: Path) -> None:
    disk, gate = FailingDisk(), threading.Event()
    disk.before_write = lambda: gate.wait() and None
    async with JournalWriter(bus, path, disk=disk):
        Player(bus).play((PlayedRun(),))
        for number in range(1_000):
            bus.publish(Noticed(code="n", text=str(number)))
            await asyncio.sleep(0)
        gate.set()

    assert kept(path).count("notice") == 1_000


async def test_cancelling_while_it_closes_still_leaves_a_whole_journal(bus: EventBus, path: Path) -> None:
    disk, writing, gate = FailingDisk(), threading.Event(), threading.Event()

    def wait_for_the_gate() -> None:
        writing.set()
        gate.wait(60)

    disk.before_write = wait_for_the_gate

    async def body() -> None:
        async with JournalWriter(bus, path, disk=disk):
            Player(bus).play(FULL_SESSION)

    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(body())
        await until(writing.is_set)
        running.cancel()
        asyncio.get_running_loop().call_later(0.05, gate.set)
        threading.Timer(0.2, gate.set).start()

    assert running.cancelled()
    assert kept(path)[-1] == "run.ended"


async def recorded_with(
    disk: FailingDisk, path: Path, body: Callable[[EventBus, JournalWriter], Awaitable[None]]
) -> list[Envelope]:
    """Record the events of `body` on `disk`; return all events, the recorder's own included."""
    bus = EventBus(Origin(session_id=SESSION))
    with bus.subscribe(merge=False) as told:
        async with JournalWriter(bus, path, disk=disk) as recorder:
            await body(bus, recorder)
        return told.drain()


@pytest.mark.slow
async def test_a_full_disk_is_reported_once_and_loses_nothing(path: Path) -> None:
    disk = FailingDisk(room=700)

    async def body(bus: EventBus, recorder: JournalWriter) -> None:
        player = Player(bus)
        player.begin()
        for _ in range(5):
            player.play(FULL_SESSION)
            with pytest.raises(SessionError, match=r"cannot be saved now \(No space left on device\)"):
                await recorder.flush()
        assert recorder.error is not None
        disk.room = None
        await until(lambda: recorder.error is None)

    told = await recorded_with(disk, path, body)

    failures = [envelope.event for envelope in told if isinstance(envelope.event, SessionSaveFailed)]
    assert len(failures) == 1
    assert "The conversation continues" in failures[0].error
    assert (failures[0].id, failures[0].path) == (SESSION, str(path))
    assert sum(isinstance(envelope.event, SessionSaved) for envelope in told) == 1
    contents = read_journal(path)
    assert contents.problems == ()
    assert messages_of(contents.envelopes) == messages_of(told)
    assert [envelope.seq for envelope in contents.envelopes if envelope.type == "run.ended"] == [
        envelope.seq for envelope in told if envelope.type == "run.ended"
    ]


@pytest.mark.parametrize("fault", [MemoryError(), RuntimeError("can't start new thread")])
async def test_a_temporary_lack_of_memory_loses_nothing(path: Path, fault: Exception) -> None:
    disk = FailingDisk()
    told: list[str] = []

    def fail() -> None:
        raise fault

    async def body(bus: EventBus, recorder: JournalWriter) -> None:
        disk.before_write = fail
        bus.publish(Noticed(code="x", text="one"))
        with pytest.raises(SessionError, match=r"out of memory|can't start new thread"):
            await recorder.flush()
        disk.before_write = lambda: None
        bus.publish(MessageEnded(message_id="m", message=user_message("two")))
        await recorder.flush()
        told.extend(kept(path))

    await recorded_with(disk, path, body)

    assert told[:3] == ["notice", "session.save_failed", "message.ended"]


async def test_events_lost_at_the_end_are_counted(path: Path) -> None:
    bus = EventBus(Origin(session_id=SESSION))
    async with JournalWriter(bus, path, disk=FailingDisk(room=10)) as recorder:
        Player(bus).play((PlayedRun(),))

    assert recorder.error is not None
    assert recorder.lost > 10
    assert not path.exists()


async def test_a_real_limit_on_the_files_size_is_survived(bus: EventBus, path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        async with JournalWriter(bus, path) as recorder:
            player = Player(bus)
            player.begin()
            while recorder.error is None:
                player.play((PlayedRun(),))
                with suppress(SessionError):
                    await recorder.flush()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    contents = read_journal(path)
    assert recorder.lost > 0
    assert 10_000 < contents.size <= 20_000
    assert len(contents.problems) <= 1


@pytest.mark.slow
async def test_failures_at_random_points_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_agent.session.journal_writer.RETRY_AFTER", 0.001)
    chance = random.Random(7)
    for number in range(30):
        path = tmp_path / f"{number}.jsonl"
        disk = FailingDisk(piece=chance.randint(1, 400))

        async def body(bus: EventBus, recorder: JournalWriter, disk: FailingDisk = disk) -> None:
            player = Player(bus)
            player.begin()
            for _ in range(6):
                disk.room = chance.choice((None, chance.randint(0, 4_000)))
                disk.sync_fails, disk.cut_fails = chance.random() < 0.3, chance.random() < 0.3
                player.play(FULL_SESSION)
                await asyncio.sleep(0)
                if chance.random() < 0.5:
                    await until(lambda: recorder.error is None or disk.room == 0 or disk.sync_fails or disk.cut_fails)
            disk.room, disk.sync_fails, disk.cut_fails = None, False, False

        told = await recorded_with(disk, path, body)

        contents = read_journal(path)
        assert contents.problems == ()
        assert messages_of(contents.envelopes) == messages_of(told)


def test_two_threads_may_add_and_write(path: Path) -> None:
    file = JournalFile(path)
    spool = JournalQueue(file)
    live = play(FULL_SESSION) * 20
    numbered = [Envelope(envelope.event, seq, 1, 1.0, envelope.origin) for seq, envelope in enumerate(live, start=1)]
    done = threading.Event()

    def write() -> None:
        while not done.is_set():
            spool.write_all()

    writers = [threading.Thread(target=write) for _ in range(2)]
    for writer in writers:
        writer.start()
    for envelope in numbered:
        spool.add([envelope])
    done.set()
    for writer in writers:
        writer.join()
    spool.write_all()
    file.close()

    stored = read_journal(path)
    assert stored.problems == ()
    lifecycle = {envelope.seq for envelope in numbered if envelope.type == "message.ended"}
    assert lifecycle <= {envelope.seq for envelope in stored.envelopes}
