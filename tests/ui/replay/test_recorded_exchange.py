"""A recording notes every answer and status of the bridge; a replay returns them without an agent."""

import json
from pathlib import Path
from typing import Any

import pytest
from textual.message import Message

from tests.support.table import table
from tests.ui.still import FakeAgent
from tui_agent.agent import ContextBreakdown
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.facts.rule_facts import RuleFact, RulesInForce, ToolFact
from tui_agent.protocol.messages import JsonObject, user_message
from tui_agent.protocol.permissions import ApprovalDecision, PermissionMode
from tui_agent.rewind.rewind_plan import FileStep, RewindOutcome, RewindPlan, RewindPoint
from tui_agent.ui.bridge.agent_bridge import AgentBridge
from tui_agent.ui.bridge.bridge_messages import AgentStatus, StatusPublished
from tui_agent.ui.bridge.exchange import Query
from tui_agent.ui.bridge.message_edits import MessageEdits
from tui_agent.ui.bridge.queries import HIDDEN_PROMPT, GrantQueries, PromptQueries, RewindQueries
from tui_agent.ui.bridge.rule_queries import RuleQueries
from tui_agent.ui.replay.recorded_exchange import RecordingExchange, ReplayExchange


class FakeRecordingSink:
    """Keeps notes as a file would."""

    def __init__(self) -> None:
        self.notes: list[JsonObject] = []

    def events(self, envelopes: object, *, past: bool = False) -> None:
        pass

    def note(self, kind: str, data: JsonObject) -> None:
        self.notes.append(json.loads(json.dumps(data)))


def query_of(method: Any) -> Query:
    return method.query


def replay_bridge(notes: list[JsonObject]) -> AgentBridge:
    exchange = ReplayExchange(notes)
    return AgentBridge(exchange=exchange)


async def test_no_method_reaches_an_agent_or_changes_the_status_in_a_replay() -> None:
    sink = FakeRecordingSink()
    AgentBridge(FakeAgent(running=True), EventBus(), exchange=RecordingExchange(sink))
    bridge = replay_bridge(sink.notes)
    before = bridge.status
    posted: list[Message] = []
    bridge._post = posted.append

    bridge.submit("one")
    bridge.submit("two")
    bridge.follow_up("three")
    bridge.requeue("steer", "four")
    bridge.rename("title")
    bridge.send_now()
    bridge.stop()
    bridge.cancel()
    bridge.leave()
    bridge.set_mode(PermissionMode.PLAN)
    bridge.cycle_mode()

    assert bridge.status == before
    assert before.running
    assert posted == []


@table(
    ("method", "value", "missing"),
    [
        (AgentBridge.context_breakdown, ContextBreakdown((("system", 5),), (), 1, 2, 3, ()), None),
        (AgentBridge.decide, False, True),
        (MessageEdits.drop, None, None),
        (MessageEdits.drop, "text", None),
        (AgentBridge.extend_call, 180.0, None),
        (GrantQueries.file_of, "/a/file", None),
        (GrantQueries.answered, ("bash  ls", "bash  pwd"), ()),
        (RewindQueries.points, (RewindPoint(3, 4, "said", files=2),), ()),
        (
            RewindQueries.plan,
            RewindPlan(3, "said", (FileStep(Path("/a"), "a", "delete", None, None),), notes=("x",)),
            RewindPlan(0, "", ()),
        ),
        (
            RuleQueries.in_force,
            RulesInForce((RuleFact("deny", "bash(rm:*)", "x:1", True),), True, "bwrap"),
            RulesInForce(),
        ),
        (RuleQueries.add, "refused", ""),
        (RuleQueries.remove, False, True),
        (RuleQueries.tools, (ToolFact("read", "Read a file.", True, True, ("ask read(x)",)),), ()),
        (RewindQueries.carry_out, RewindOutcome(done=("a",), draft="said"), RewindOutcome()),
    ],
)
def test_a_replay_returns_the_recorded_answer(method: Any, value: object, missing: object) -> None:
    asked, sink = query_of(method), FakeRecordingSink()
    RecordingExchange(sink).ask(asked, "", lambda: value)

    def refuse() -> object:
        raise AssertionError("a replay must not call the agent")

    assert ReplayExchange(sink.notes).ask(asked, "", refuse) == value
    assert ReplayExchange(()).ask(asked, "", refuse) == missing
    assert ReplayExchange([{**sink.notes[0], "value": {"no": "such"}}]).ask(asked, "", refuse) == missing


def test_an_answer_is_returned_once() -> None:
    asked, sink = query_of(MessageEdits.drop), FakeRecordingSink()
    RecordingExchange(sink).ask(asked, "m1", lambda: "text")
    replay = ReplayExchange(sink.notes)

    assert [replay.ask(asked, "m1", lambda: "") for _ in range(2)] == ["text", None]


def test_a_lasting_answer_is_recorded_when_it_changes_and_holds_until_the_next() -> None:
    sink = FakeRecordingSink()
    recording, asked = RecordingExchange(sink), query_of(GrantQueries.file_of)
    for value in ("a", "a", "b", "b", "a"):
        recording.ask(asked, "user", lambda value=value: value)
    replay = ReplayExchange(sink.notes)

    seen = [replay.ask(asked, "user", lambda: "")]
    for note in sink.notes[1:]:
        replay.receive(note)
        seen += [replay.ask(asked, "user", lambda: ""), replay.ask(asked, "user", lambda: "")]

    assert seen == ["a", "b", "b", "a", "a"]


async def test_a_replay_has_the_recorded_status_and_answers() -> None:
    sink, agent = FakeRecordingSink(), FakeAgent(running=True, mode=PermissionMode.ACCEPT_EDITS)
    agent.queue.put(user_message("later", "follow_up"))
    recording = AgentBridge(agent, EventBus(), exchange=RecordingExchange(sink))

    def asked(bridge: AgentBridge) -> list[object]:
        decision = ApprovalDecision(decision="approve")
        return [
            *(bridge.status, bridge.run_shell("ls", "!ls", shared=True)),
            *(bridge.sub_agents.steer("a", "b"), bridge.cancel_call("c1", "why"), bridge.decide("r1", decision)),
            *(bridge.messages.drop("m1"), bridge.compact("")),
        ]

    live = asked(recording)

    assert asked(replay_bridge(sink.notes)) == live
    assert live[0] == AgentStatus(
        running=True, mode=PermissionMode.ACCEPT_EDITS, restored_messages=(agent.waiting_messages[0].id,)
    )


async def test_each_status_is_recorded_and_published_in_a_replay() -> None:
    sink, posted = FakeRecordingSink(), list[Message]()
    live = AgentBridge(mode=PermissionMode.ASK, exchange=RecordingExchange(sink))
    live.submit("first")
    live.open(FakeAgent(), EventBus())
    exchange = ReplayExchange(sink.notes)
    bridge = AgentBridge(exchange=exchange)
    bridge._post = posted.append
    assert bridge.status == AgentStatus(pending=True)

    for note in sink.notes:
        exchange.receive(note)
        bridge.show_status(exchange.status)

    assert bridge.status == live.status
    assert [message.status for message in posted if isinstance(message, StatusPublished)] == [
        AgentStatus(pending=True, running=True, unsent=("first",)),
        AgentStatus(running=True, unsent=("first",)),
    ]


def test_the_status_of_an_older_recording_is_read_field_by_field() -> None:
    notes: list[JsonObject] = [
        {"door": "rewinds", "about": "", "value": False},
        {"door": "coming", "about": "", "value": True},
        {"door": "mode", "about": "", "value": "plan"},
        {"door": "rewinds", "about": "", "value": True},
        {"door": "waited", "about": "", "value": ["m1"]},
        {"door": "coming", "about": "", "value": False},
        {"door": "running", "about": "", "value": "damaged"},
        {"door": "unsent", "about": "", "value": ["words"]},
    ]
    exchange = ReplayExchange(notes)
    first = exchange.status
    for note in notes:
        exchange.receive(note)

    known = AgentStatus(mode=PermissionMode.PLAN, unsent=("words",), restored_messages=("m1",), can_rewind=True)
    assert exchange.status == known
    assert first.pending
    assert first.can_rewind


async def test_what_was_left_running_is_ended_by_no_replay() -> None:
    class LeftoverCommands:
        """Has something to end."""

        async def report(self) -> None:
            raise AssertionError("nothing is to be reported")

        async def end(self, pid: int | None) -> None:
            raise AssertionError("nothing is to be ended")

    sink = FakeRecordingSink()
    recording = AgentBridge(mode=PermissionMode.ASK, exchange=RecordingExchange(sink))
    recording.open(FakeAgent(), EventBus(), left_running=LeftoverCommands())
    exchange = ReplayExchange(sink.notes)
    bridge = AgentBridge(exchange=exchange)
    exchange.receive(sink.notes[-1])

    assert exchange.status.has_leftovers
    await bridge.report_leftovers()
    await bridge.end_leftovers(None)
    assert not ReplayExchange(()).status.has_leftovers


async def test_a_replay_raises_the_recorded_error() -> None:
    class FailingRewinding:
        """Cannot."""

        async def points(self) -> list[RewindPoint]:
            raise TuiAgentError("the journal cannot be read")

    sink = FakeRecordingSink()
    rewinding: Any = FailingRewinding()
    with pytest.raises(TuiAgentError):
        await RewindQueries(RecordingExchange(sink), rewinding).points()

    with pytest.raises(TuiAgentError, match="the journal cannot be read"):
        await RewindQueries(ReplayExchange(sink.notes)).points()


class ProjectPrompts:
    """Prompts of two sessions of a project."""

    async def find(self, text: str) -> tuple[str, ...]:
        return ("my prompt", "of another session")

    async def all(self) -> tuple[str, ...]:
        return ("of another session", "my prompt")

    def texts_of(self, session_id: str) -> frozenset[str]:
        return frozenset({"my prompt"})

    async def add(self, text: str, session_id: str) -> None: ...

    async def earlier_draft(self) -> str:
        return "a draft"

    async def save_draft(self, text: str) -> None: ...

    def forget_draft(self) -> None: ...


async def test_a_recording_has_no_prompts_of_other_sessions() -> None:
    sink = FakeRecordingSink()
    live = PromptQueries(RecordingExchange(sink), ProjectPrompts(), lambda: "s1")

    assert await live.find("") == ("my prompt", "of another session")
    assert await live.all() == ("of another session", "my prompt")
    assert await live.earlier_draft() == "a draft"
    assert "of another" not in str(sink.notes).replace(HIDDEN_PROMPT, "")
    assert "a draft" not in str(sink.notes)

    replay = PromptQueries(ReplayExchange(sink.notes), None, lambda: "s1")
    assert await replay.find("") == ("my prompt", HIDDEN_PROMPT)
    assert await replay.all() == (HIDDEN_PROMPT, "my prompt")
    assert await replay.earlier_draft() == HIDDEN_PROMPT
