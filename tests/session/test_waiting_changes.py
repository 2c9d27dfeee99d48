"""Changes of commands that wait for an answer survive a kill at any event: asked once, kept once, by an answer only."""

import asyncio
import json
import os
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.session.folded import same_conversation
from tests.session.real_agents import TrialPolicy, bus_for, recorded
from tests.support.transcript_checks import validate_events
from tests.support.trial_directories import CopiedLayers, TrialTool
from tui_agent.agent import AgentLoop, AgentLoopConfig
from tui_agent.context import ConversationHistory
from tui_agent.execution import ApprovalGate
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.cancellation import PROGRAM_QUIT
from tui_agent.protocol.envelope import Origin
from tui_agent.protocol.events import (
    AgentEvent,
    ApprovalRequested,
    ApprovalResolved,
    ChangesDiscarded,
    ChangesKept,
    ChangesProposed,
    FileChanged,
    MessageDelta,
    MessageEnded,
    ToolQueued,
    ToolStarted,
)
from tui_agent.protocol.messages import ToolResultMessage
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest
from tui_agent.providers import ScriptedProvider, call, reply
from tui_agent.session import SessionStore, StoredSession

SESSION = "talk"
YES = ApprovalDecision(decision="approve")
ANSWERS = {
    "a": YES,
    "b": ApprovalDecision(decision="approve", input={"paths": ["b"]}),
    "c": ApprovalDecision(decision="deny"),
}
"""Answer about the command that writes each file; that of `b` also writes `x`, which is not kept."""

COMMANDS = (
    call("command", write={"a": "new a"}),
    call("command", write={"b": "new b", "x": "no"}, seconds=0.01),
    call("command", write={"c": "new c"}),
)
KEPT = {"a": "new a", "b": "new b", "c": "old c"}


class Desk:
    """A workspace and its sessions; `snapshots` are copies of everything at each event."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.workspace = root / "workspace"
        self.store = SessionStore(root / "sessions")
        self.tool = TrialTool(CopiedLayers(self.workspace, root / "layers"))

    @classmethod
    def fresh(cls, root: Path) -> "Desk":
        desk = cls(root)
        desk.workspace.mkdir(parents=True)
        for name in "abc":
            (desk.workspace / name).write_text(f"old {name}")
        return desk

    @property
    def files(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in self.workspace.iterdir()}

    def agent(self, session: StoredSession, bus: EventBus, *, steps: Sequence[Any]) -> AgentLoop:
        left = session.resumable_conversation
        return AgentLoop(
            AgentLoopConfig(
                provider=ScriptedProvider(steps),
                tools=[self.tool],
                bus=bus,
                policy=TrialPolicy(),
                gate=ApprovalGate(interactive=True),
                history=ConversationHistory(session.messages if left is None else left.messages),
                open_calls=() if left is None else left.calls,
                session_id=session.id,
            )
        )

    async def work(self, bus: EventBus, session: StoredSession, steps: Sequence[Any]) -> None:
        """Run to the end, and answer each question."""
        async with recorded(session, bus):
            session.announce(bus, "0", resume_pending_calls=True)
            agent = self.agent(session, bus, steps=steps)
            async with asyncio.TaskGroup() as tasks:
                run = tasks.create_task(agent.run(None if session.resumable_conversation else "do it"))
                while not run.done():
                    for request in agent.pending_calls if agent.running else ():
                        agent.resolve_approval(request.request_id, answer_to(request))
                    await asyncio.sleep(0)
            assert run.result().reason == "done", run.result()
        same_conversation(self.store.load(session.id).envelopes, agent.history.messages())

    async def resume(self, bus: EventBus | None = None) -> StoredSession:
        """Resume the session to its end, as a program does that discards abandoned layers first."""
        session = self.store.load(SESSION)
        for call_id in session.abandoned_layers(resume_pending_calls=True):
            if (found := self.tool.layers.waiting(call_id)) is not None:
                shutil.rmtree(found[0].storage)
        answered = any(
            isinstance(event, MessageEnded) and event.message.role == "assistant" for event in events(session)
        )
        steps = ["Done."] if answered else [reply(*COMMANDS), "Done."]
        await self.work(bus or bus_for(session), session, steps)
        return self.store.load(SESSION)


class Photographer(EventBus):
    """Bus that copies workspace and layers at each event, as a kill at that moment leaves them."""

    def __init__(self, desk: Desk, session: StoredSession) -> None:
        super().__init__(session.origin(), first_seq=session.next_seq)
        self.desk = desk
        self.taken: list[int] = []

    def publish(self, event: AgentEvent, origin: Origin | None = None) -> None:
        super().publish(event, origin)
        if isinstance(event, MessageDelta):
            return
        self.taken.append(self._seq)
        for part in ("workspace", "layers"):
            if (self.desk.root / part).exists():
                shutil.copytree(self.desk.root / part, self.desk.root / "shots" / str(self._seq) / part)

    def killed_at(self, number: int, root: Path) -> Desk:
        """Return a desk in the state in which a kill right after an event leaves this one."""
        shutil.copytree(self.desk.root / "shots" / str(number), root)
        journal = (self.desk.root / "sessions" / f"{SESSION}.jsonl").read_bytes().splitlines(keepends=True)
        (root / "sessions").mkdir()
        kept = [line for line in journal if json.loads(line).get("seq", 0) <= number]
        (root / "sessions" / f"{SESSION}.jsonl").write_bytes(b"".join(kept))
        return Desk(root)


def answer_to(request: ApprovalRequest) -> ApprovalDecision:
    assert request.changes is not None
    return ANSWERS[request.changes.files[0].path]


def events(session: StoredSession) -> list[AgentEvent]:
    return [envelope.event for envelope in session.envelopes]


def settled(session: StoredSession, kind: type[ChangesKept | ChangesDiscarded]) -> Counter[str]:
    """Return how often each path was kept, or discarded."""
    return Counter(path for event in events(session) if isinstance(event, kind) for path in event.paths)


def is_between(session: StoredSession) -> bool:
    """Return True if the journal ends between what was kept and the files that follow it."""
    return isinstance(events(session)[-1], ChangesKept | FileChanged)


def check(before: StoredSession, desk: Desk) -> None:
    """Check a session that was killed and then resumed to its end."""
    after = desk.store.load(SESSION)
    queued = Counter(event.call_id for event in events(after) if isinstance(event, ToolQueued))
    validate_events(after.envelopes, unanswered=[call_id for call_id, times in queued.items() if times > 1])
    assert (after.resumable_conversation, after.unfinished.closing, after.abandoned_layers()) == (None, (), ())
    kept, discarded = settled(after, ChangesKept), settled(after, ChangesDiscarded)
    assert max((kept + discarded).values(), default=1) == 1, "a path was decided on twice"
    assert not kept.keys() & {"x", "c"}, "kept against the answer"
    assert desk.files == {name: KEPT[name] if name in kept else f"old {name}" for name in "abc"}
    proposed = [event for event in events(before) if isinstance(event, ChangesProposed)]
    waiting = {file.path for event in proposed for file in event.changes.files} & {"a", "b"}
    root = {event.call_id for event in events(before) if isinstance(event, ToolQueued)}
    assert waiting <= kept.keys() or not root, "an answer was lost"
    answers = Counter(
        event.call_id for event in events(after) if isinstance(event, ApprovalResolved) and event.by == "user"
    )
    assert max(answers.values(), default=1) == 1, "asked again after the answer"
    started = {event.call_id for event in events(before) if isinstance(event, ToolStarted)}
    assert not started & set(desk.tool.ran), "a command ran again"
    results = Counter(one.call_id for one in after.messages if isinstance(one, ToolResultMessage))
    assert set(results.values()) <= {1}
    changed = Counter(Path(event.path).name for event in events(after) if isinstance(event, FileChanged))
    # A kill between `changes.kept` and the files that follow it at once is for the journal of keeping to mend.
    assert changed == Counter(kept.keys()) or is_between(before)
    assert [call_id for call_id in desk.tool.layers.left if desk.tool.layers.waiting(call_id)] == []


async def swept(root: Path, bus: Photographer, *, every: int = 1, again: int = 0) -> int:
    """Kill a session at its events, resume each, and check it; every `again`-th one is killed and resumed twice."""
    count = 0
    for number in bus.taken[::every]:
        desk = bus.killed_at(number, root / str(number))
        if not list(desk.store.list()):
            continue
        before = desk.store.load(SESSION)
        second = Photographer(desk, before)
        await desk.resume(second if again and count % again == 0 else None)
        check(before, desk)
        count += 1
        if again and (count - 1) % again == 0 and not is_between(before):
            count += await swept(root / f"{number}-again", second, every=2)
        shutil.rmtree(root / str(number))
    return count


async def test_a_kill_at_any_event_loses_nothing_and_keeps_nothing_without_an_answer(tmp_path: Path) -> None:
    desk = Desk.fresh(tmp_path / "first")
    session = desk.store.create(desk.workspace, SESSION)
    bus = Photographer(desk, session)
    await desk.work(bus, session, [reply(*COMMANDS), "Done."])
    assert desk.files == KEPT

    again = int(os.environ.get("TRIAL_KILLS", "0"))
    assert await swept(tmp_path, bus, again=again) >= 30


@pytest.mark.parametrize("answered", [True, False])
async def test_an_exit_leaves_the_changes_for_the_next_session(tmp_path: Path, answered: bool) -> None:
    desk = Desk.fresh(tmp_path)
    session = desk.store.create(desk.workspace, SESSION)
    bus = bus_for(session)
    async with recorded(session, bus):
        session.announce(bus, "0")
        agent = desk.agent(session, bus, steps=[reply(*COMMANDS)])
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(agent.run("do it"))
            layers = desk.tool.layers
            while not agent.pending_calls or sum(layers.waiting(call_id) is not None for call_id in layers.left) < 3:
                await asyncio.sleep(0)
            agent.abort(f"{PROGRAM_QUIT} (SIGTERM)")
    left = desk.store.load(SESSION)
    assert len(desk.tool.layers.left) == 3
    assert left.resumable_conversation is not None
    assert [(one.fate, one.request is not None) for one in left.resumable_conversation.calls] == [
        ("in_trial", True),
        ("in_trial", False),
        ("in_trial", False),
    ]
    desk.tool.ran.clear()
    if answered:
        await desk.resume()
        check(left, desk)
        assert desk.files == KEPT
        return
    bus = bus_for(left)
    async with recorded(left, bus):
        left.announce(bus, "0", resume_pending_calls=True)
        await desk.agent(left, bus, steps=["Understood."]).run("Forget it")
    assert desk.files == {name: f"old {name}" for name in "abc"}
    assert desk.tool.layers.left == desk.tool.ran == []
    texts = [message.text for message in desk.store.load(SESSION).messages if message.role == "tool_result"]
    assert all("discarded" in text and "the user sent a message instead of an answer" in text for text in texts)


async def test_a_lost_layer_does_not_run_the_command_again(tmp_path: Path) -> None:
    desk = Desk.fresh(tmp_path / "first")
    session = desk.store.create(desk.workspace, SESSION)
    photographer = Photographer(desk, session)
    await desk.work(photographer, session, [reply(COMMANDS[0]), "Done."])
    asked = next(one.seq for one in desk.store.load(SESSION).envelopes if isinstance(one.event, ApprovalRequested))
    killed = photographer.killed_at(asked, tmp_path / "killed")
    shutil.rmtree(killed.root / "layers")

    after = await killed.resume()

    assert killed.tool.ran == []
    assert [message.text for message in after.messages if message.role == "tool_result"] == [
        "what this command changed is gone; it was not run again"
    ]
    assert killed.files == {name: f"old {name}" for name in "abc"}
