"""Whatever the screen is told through the bridge is recorded, and told again without an agent."""

import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from tests.ui.still import FakeAgent
from tui_agent.agent import ContextBreakdown
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.messages import JsonObject, user_message
from tui_agent.protocol.permissions import ApprovalDecision, PermissionMode
from tui_agent.rewind.rewind_plan import FileStep, RewindOutcome, RewindPlan, RewindPoint
from tui_agent.ui.bridge import queries
from tui_agent.ui.bridge.agent_bridge import AgentBridge
from tui_agent.ui.bridge.queries import Query, QueryRecorder, RecordedAnswers
from tui_agent.ui.bridge.recording_bridge import RecordedRewindService, RecordingBridge
from tui_agent.ui.bridge.replay_bridge import ReplayBridge, ReplayedRewindService


class FakeRecordingSink:
    """Keeps notes as a file would."""

    def __init__(self) -> None:
        self.notes: list[JsonObject] = []

    def events(self, envelopes: object, *, past: bool = False) -> None:
        pass

    def note(self, kind: str, data: JsonObject) -> None:
        self.notes.append(json.loads(json.dumps(data)))


def public_members() -> dict[str, Any]:
    """All but ways to make a bridge."""
    members = vars(AgentBridge).items()
    return {name: member for name, member in members if not name.startswith("_") and type(member) is not classmethod}


def test_no_door_leads_to_an_agent_in_a_replay() -> None:
    assert set(public_members()) <= set(vars(ReplayBridge))


def test_every_door_that_tells_something_is_noted() -> None:
    telling: set[str] = set()
    for name, member in public_members().items():
        function = member.fget if isinstance(member, property) else member
        if function.__annotations__["return"] is not None and not inspect.iscoroutinefunction(function):
            telling.add(name)

    # The mode that the key steps to is told by an event, and nobody looks at what the door gives.
    assert telling - {"cycle_mode"} <= set(vars(RecordingBridge))


@pytest.mark.parametrize(
    ("door", "value"),
    [
        (queries.RUNNING, True),
        (queries.MODE, PermissionMode.PLAN),
        (queries.WAITING, (user_message("later", "follow_up"),)),
        (queries.CONTEXT, ContextBreakdown((("system", 5),), (), 1, 2, 3, ())),
        (queries.RECALL_MESSAGE, None),
        (queries.RECALL_MESSAGE, "text"),
        (queries.POINTS, (RewindPoint(3, 4, "said", files=2),)),
        (queries.PLAN, RewindPlan(3, "said", (FileStep(Path("/a"), "a", "delete", None, None),), notes=("x",))),
        (queries.CARRY_OUT, RewindOutcome(done=("a",), draft="said")),
    ],
    ids=lambda value: value.name if isinstance(value, Query) else "",
)
def test_what_was_told_is_told_again(door: Query[Any], value: object) -> None:
    sink = FakeRecordingSink()
    QueryRecorder(sink).answer(door, value)

    answers = RecordedAnswers(sink.notes)

    assert answers.answer(door) == value
    assert answers.answer(door) == door.missing
    assert RecordedAnswers([{**sink.notes[0], "value": {"no": "such"}}]).answer(door) == door.missing


def test_what_is_read_is_noted_when_it_changed_and_holds_until_it_does_again() -> None:
    sink = FakeRecordingSink()
    notes = QueryRecorder(sink)
    for value in (False, False, True, True, False):
        notes.read(queries.RUNNING, value)
    answers = RecordedAnswers(sink.notes)

    seen = [answers.read(queries.RUNNING)]
    for note in sink.notes[1:]:
        answers.heard(note)
        seen += [answers.read(queries.RUNNING), answers.read(queries.RUNNING)]

    assert seen == [False, True, True, False, False]


async def test_a_bridge_is_answered_as_it_was(tmp_path: Path) -> None:
    sink, agent = FakeRecordingSink(), FakeAgent(running=True, mode=PermissionMode.ACCEPT_EDITS)
    recording = RecordingBridge(agent, EventBus(), sink)

    def asked(bridge: AgentBridge) -> list[object]:
        decision = ApprovalDecision(decision="approve")
        return [
            *(bridge.running, bridge.mode, bridge.waiting, bridge.run_shell("ls", "!ls", shared=True)),
            *(bridge.steer_child("a", "b"), bridge.cancel_call("c1", "why"), bridge.decide("r1", decision)),
            *(bridge.recall_message("m1"), bridge.compact("")),
        ]

    live = asked(recording)

    assert asked(ReplayBridge(RecordedAnswers(sink.notes))) == live


async def test_what_was_left_running_is_ended_by_no_replay() -> None:
    class LeftoverCommands:
        """Has something to end."""

        async def report(self) -> None:
            raise AssertionError("nothing is to be reported")

        async def end(self, pid: int | None) -> None:
            raise AssertionError("nothing is to be ended")

    sink = FakeRecordingSink()
    recording = RecordingBridge.on_tape(sink, PermissionMode.ASK)
    recording.open(FakeAgent(), EventBus(), left_running=LeftoverCommands())
    left = ReplayBridge(RecordedAnswers(sink.notes)).left_running

    assert left is not None
    await left.report()
    await left.end(None)
    assert ReplayBridge(RecordedAnswers(())).left_running is None


async def test_an_error_of_going_back_comes_again() -> None:
    class FailingRewinding:
        """Cannot."""

        async def points(self) -> list[RewindPoint]:
            raise TuiAgentError("the journal cannot be read")

    sink = FakeRecordingSink()
    rewinding: Any = FailingRewinding()
    with pytest.raises(TuiAgentError):
        await RecordedRewindService(rewinding, sink).points()

    with pytest.raises(TuiAgentError, match="the journal cannot be read"):
        await ReplayedRewindService(RecordedAnswers(sink.notes)).points()
