"""Real recorded agents: the journal gives exactly the agent's conversation."""

import asyncio
import os
from collections import Counter
from pathlib import Path

import pytest

from tests.session.folded import stored
from tests.session.real_agents import agent_for, bus_for, recorded
from tests.support.table import table
from tui_agent.execution import ExecutionOptions
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.errors import CompactionError
from tui_agent.protocol.events import StepEnded, ToolEnded, ToolStarted
from tui_agent.protocol.messages import AssistantMessage, ToolResultMessage, UserMessage
from tui_agent.protocol.provider import ModelRequest
from tui_agent.providers import ScriptedProvider
from tui_agent.providers.scripted_provider import Reply, Step, Wait, call, fail, reply
from tui_agent.session import Disk, JournalWriter, SessionStore, parse_journal
from tui_agent.session.history_fold import NOT_STARTED, messages_of


async def heard(bus: EventBus, kind: type) -> None:
    """Wait for an event of this kind."""
    with bus.subscribe(merge=False, since=0) as events:
        async with asyncio.timeout(60):
            async for batch in events.batches():
                if any(isinstance(envelope.event, kind) for envelope in batch):
                    return


ENDINGS: dict[str, tuple[Step, ...]] = {
    "no call": ("All done.", "I know."),
    "another call": (reply(call("leave", trace="y")), "All done."),
    "the same call": (reply(call("leave", trace="x")), "All done."),
}


@table("ending", ENDINGS)
@table("stays", [True, False])
async def test_an_effect_of_a_lost_response_is_known_wherever_the_journal_ends(
    tmp_path: Path, ending: str, stays: bool
) -> None:
    """With `stays`, the effect still runs when the next response ends."""
    store = SessionStore(tmp_path / "sessions")
    session = store.create(tmp_path)
    bus = bus_for(session)
    breaks, answered = asyncio.Event(), asyncio.Event()
    lost = reply(call("leave", trace="x"), Wait(breaks), fail("stream_cut"))

    async def slowly() -> None:
        if stays:
            await answered.wait()

    async with recorded(session, bus), asyncio.TaskGroup() as tasks:
        session.announce(bus, "0")
        options = ExecutionOptions(stream_tools="allowed")
        agent = agent_for(
            session,
            bus,
            ScriptedProvider([lost, *ENDINGS[ending]]),
            tmp_path / "effects",
            options=options,
            before_effects=slowly,
        )
        tasks.create_task(agent.run("do it"))
        await heard(bus, ToolStarted if stays else ToolEnded)
        breaks.set()
        await heard(bus, StepEnded)
        answered.set()

    lines = (tmp_path / "sessions" / f"{session.id}.jsonl").read_bytes().splitlines(keepends=True)
    begun = next(place for place, line in enumerate(lines) if b'"type":"tool.started"' in line)
    for end in range(begun + 1, len(lines) + 1):
        envelopes = parse_journal(b"".join(lines[:end])).envelopes
        told = [*messages_of(envelopes), *stored(envelopes).waiting]
        calls = [made.arguments for one in told if isinstance(one, AssistantMessage) for made in one.tool_calls]
        notices = [one for one in told if isinstance(one, UserMessage) and "trace='x'" in one.text]
        results = [one.text for one in told if isinstance(one, ToolResultMessage)]
        # The call has a result that does not deny it, or one notice names it.
        repeated = {"trace": "x"} in calls and NOT_STARTED not in results
        assert len(notices) == (0 if repeated else 1), lines[end - 1]
    assert all(count == 1 for count in Counter((tmp_path / "effects").read_text().split()).values())


async def test_a_compaction_can_be_undone_after_a_restart(tmp_path: Path) -> None:
    store = SessionStore(tmp_path / "sessions")
    words = [f"answer {number} {'word ' * 400}" for number in range(6)]
    session = store.create(tmp_path)
    bus = bus_for(session)
    async with recorded(session, bus):
        session.announce(bus, "0")
        agent = agent_for(session, bus, ScriptedProvider([*words, "A summary."]), tmp_path / "effects")
        for number in range(len(words)):
            await agent.run(f"question {number}")
        before = tuple(agent.history.messages())
        assert await agent.compact()

    again = store.load(session.id)
    assert len(again.messages) < len(before)
    bus = bus_for(again)
    async with recorded(again, bus):
        again.announce(bus, "0")
        provider = ScriptedProvider(["Since then."])
        agent = agent_for(again, bus, provider, tmp_path / "effects", compactions=again.compactions)
        await agent.run("go on")
        agent.undo_compaction()
        with pytest.raises(CompactionError, match="No compaction"):
            agent.undo_compaction()

    assert tuple(agent.history.messages()[:-2]) == before
    last = store.load(session.id)
    assert (last.messages, last.compactions) == (tuple(agent.history.messages()), ())


class SyncedDisk(Disk):
    """A disk that records how much of the file is synced."""

    synced = 0

    def sync(self, descriptor: int) -> None:
        size = os.fstat(descriptor).st_size
        super().sync(descriptor)
        self.synced = size


async def test_outcomes_of_effects_are_on_the_disk_before_a_request_sends_them(tmp_path: Path) -> None:
    session = SessionStore(tmp_path / "sessions").create(tmp_path)
    assert session.path is not None
    journal, bus, disk = session.path, bus_for(session), SyncedDisk()
    kept: list[bool] = []

    def answer(request: ModelRequest) -> Reply:
        on_disk = messages_of(parse_journal(journal.read_bytes()[: disk.synced]).envelopes)
        kept.append([message.id for message in on_disk] == [message.id for message in request.messages])
        number = str(len(kept))
        return (
            reply("On.", call("leave", trace=number), call("look", what=number)) if len(kept) < 12 else reply("Done.")
        )

    async with JournalWriter(bus, journal, disk=disk) as recorder:
        session.announce(bus, "0")
        provider = ScriptedProvider([answer] * 12)
        agent = agent_for(session, bus, provider, tmp_path / "effects", before_requests=recorder.flush_outcomes)
        await agent.run("go")

    assert kept[1:] == [True] * 11
