"""A resumed session asks again about calls that waited for approval, and no call runs twice."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.agent.fakes import FakePolicy
from tests.session.folded import same_conversation, stored
from tests.session.played_sessions import PlayedRun, play, played_sessions
from tests.session.real_agents import agent_for, bus_for, recorded, said
from tests.support.transcript_checks import validate_events, validate_history
from tui_agent.agent import AgentLoop
from tui_agent.context import ConversationHistory
from tui_agent.execution import ApprovalGate, ExecutionOptions, Parallel
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.cancellation import PROGRAM_QUIT
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import ApprovalRequested, ToolEnded, ToolStarted
from tui_agent.protocol.messages import JsonObject, TextBlock, ToolResultMessage
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest, PermissionDecision
from tui_agent.protocol.tool import Tool
from tui_agent.providers import ScriptedProvider, Wait, fail
from tui_agent.providers.scripted_provider import Step, call, reply
from tui_agent.session import SessionStore, StoredSession, unfinished

APPROVE, DENY = ApprovalDecision(decision="approve"), ApprovalDecision(decision="deny", note="not any more")

LOOK = call("look", what="a.py")
LEAVE = call("leave", trace="first")
LEAVE_TOO = call("leave", trace="second")


class Desk:
    """Sessions that are killed and resumed."""

    def __init__(self, root: Path) -> None:
        self.store = SessionStore(root / "sessions")
        self.effects = root / "effects"
        self.effects.touch()
        self.killed = 0

    @property
    def left(self) -> list[str]:
        """The effects so far."""
        return self.effects.read_text().split()

    async def work(
        self,
        session: StoredSession,
        steps: Sequence[Step],
        until: Callable[[AgentLoop], Awaitable[None]],
        *,
        is_killed: bool = True,
        **config: object,
    ) -> StoredSession:
        """Run an agent until `until` returns; return the session as a kill or an orderly exit then leaves it."""
        bus = bus_for(session)
        async with recorded(session, bus) as recorder:
            session.announce(bus, "0", resume_pending_calls=True)
            agent = self.agent(session, bus, steps, **config)
            async with asyncio.TaskGroup() as tasks:
                run = tasks.create_task(agent.run(None if session.resumable_conversation else "do it"))
                await until(agent)
                if not is_killed:
                    agent.abort(f"{PROGRAM_QUIT} (SIGTERM)")
                else:
                    await recorder.flush()
                    self.killed += 1
                    shutil.copy(recorder.path, self.store.root / f"killed{self.killed}.jsonl")
                    run.cancel()
        return self.store.load(f"killed{self.killed}" if is_killed else session.id)

    async def end(
        self, session: StoredSession, steps: Sequence[Step], *answers: ApprovalDecision, **config: object
    ) -> list[object]:
        """Resume a session, answer the requests in order, and run to the end; return all events."""
        bus = bus_for(session)
        with bus.subscribe(merge=False) as heard:
            async with recorded(session, bus) as recorder:
                session.announce(bus, "0", resume_pending_calls=True)
                agent = self.agent(session, bus, steps, **config)
                async with asyncio.TaskGroup() as tasks:
                    run = tasks.create_task(agent.run())
                    for answer in answers:
                        while not agent.resolve_approval((await asked(agent))[0].request_id, answer):
                            await asyncio.sleep(0)
                assert run.result().reason == "done"
                await recorder.flush()
            told = heard.drain()
        open_calls = session.resumable_conversation.calls if session.resumable_conversation else ()
        validate_events([*session.envelopes, *told], unanswered=[each.call_id for each in open_calls])
        same_conversation(self.store.load(session.id).envelopes, agent.history.messages())
        return [envelope.event for envelope in told]

    def agent(self, session: StoredSession, bus: EventBus, steps: Sequence[Step], **config: object) -> AgentLoop:
        left = session.resumable_conversation
        history = ConversationHistory(session.messages if left is None else left.messages)
        made = {
            "policy": FakePolicy(),
            "gate": ApprovalGate(interactive=True),
            "open_calls": left.calls if left else (),
        }
        return agent_for(session, bus, ScriptedProvider(steps), self.effects, **{**made, "history": history, **config})


async def asked(agent: AgentLoop, count: int = 1) -> Sequence[ApprovalRequest]:
    """Wait until this number of calls wait for approval."""
    async with asyncio.timeout(60):
        while len(agent.pending_calls) < count or not agent.running:
            await asyncio.sleep(0)
    return agent.pending_calls


def until_asked(count: int = 1) -> Callable[[AgentLoop], Awaitable[None]]:
    async def wait(agent: AgentLoop) -> None:
        await asked(agent, count)
        await asyncio.sleep(0.05)

    return wait


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def fresh(desk: Desk) -> StoredSession:
    return desk.store.create(desk.store.root.parent, "talk")


@pytest.mark.parametrize("is_killed", [True, False])
async def test_the_session_asks_again_and_an_approval_runs_the_call(desk: Desk, is_killed: bool) -> None:
    left = await desk.work(fresh(desk), [reply("Leaving.", LEAVE)], until_asked(), is_killed=is_killed)
    assert left.resumable_conversation is not None
    before = left.resumable_conversation.calls[0].request
    assert before is not None
    for _ in range(2):
        left = await desk.work(left, [], until_asked(), is_killed=is_killed)

    told = await desk.end(left, ["Done."], APPROVE)

    (request,) = (event for event in told if isinstance(event, ApprovalRequested))
    assert (request.tool, request.args, request.digest) == (before.tool, before.args, before.digest)
    assert desk.left == ["first"]
    assert said(desk.store.load(left.id).messages) == [
        ("user", "do it"),
        ("assistant", "Leaving."),
        ("tool_result", "left first"),
        ("assistant", "Done."),
    ]


async def test_a_read_that_ended_meanwhile_keeps_its_result(desk: Desk) -> None:
    at_once = ExecutionOptions(strategy=Parallel())
    killed = await desk.work(fresh(desk), [reply(LEAVE, LOOK)], until_asked(), options=at_once)
    assert killed.resumable_conversation is not None
    assert [(each.fate, each.request is not None) for each in killed.resumable_conversation.calls] == [
        ("not_started", True),
        ("finished", False),
    ]

    told = await desk.end(killed, ["Done."], APPROVE)

    assert [event.name for event in told if isinstance(event, ToolStarted)] == ["leave"]
    statuses = {event.name: event.status for event in told if isinstance(event, ToolEnded) and event.error_kind is None}
    assert statuses == {"leave": "ok", "look": "overridden"}


async def test_a_sibling_with_unknown_outcome_is_not_repeated(desk: Desk) -> None:
    async def first_approved_second_asked(agent: AgentLoop) -> None:
        requests = await asked(agent, 2)
        agent.resolve_approval(requests[0].request_id, APPROVE)
        async with asyncio.timeout(60):
            while not any("hang" in call.name for call in agent.history.open_calls) or len(agent.pending_calls) > 1:
                await asyncio.sleep(0)
        await asyncio.sleep(0.05)

    options = ExecutionOptions.preset("sdk_loop", grace=0.0)
    killed = await desk.work(fresh(desk), [reply(call("hang"), LEAVE)], first_approved_second_asked, options=options)
    assert killed.resumable_conversation is not None
    assert [each.fate for each in killed.resumable_conversation.calls] == ["outcome_unknown", "not_started"]

    told = await desk.end(killed, ["Done."], APPROVE)

    assert [event.name for event in told if isinstance(event, ToolStarted)] == ["leave"]
    results = [message for message in desk.store.load(killed.id).messages if message.role == "tool_result"]
    assert results[0].is_error
    assert desk.left == ["first"]


async def test_a_request_that_the_user_cancelled_is_not_repeated(desk: Desk) -> None:
    bus = bus_for(session := fresh(desk))
    async with recorded(session, bus):
        session.announce(bus, "0")
        agent = desk.agent(session, bus, [reply(LEAVE)])
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(agent.run("do it"))
            await until_asked()(agent)
            agent.abort("cancelled by the user")

    assert desk.store.load(session.id).resumable_conversation is None


async def test_a_call_that_is_not_resumed_keeps_its_result(desk: Desk) -> None:
    left = await desk.work(fresh(desk), [reply(LEAVE)], until_asked(), is_killed=False)

    assert [message.text for message in left.messages][-1] == (
        "Cancelled: the program exited (SIGTERM). The call was not run."
    )
    bus = bus_for(left)
    async with recorded(left, bus):
        left.announce(bus, "0")
        agent = agent_for(left, bus, ScriptedProvider(["Something else."]), desk.effects, history=left.messages)
        await agent.run("Do something else")
    again = desk.store.load(left.id)
    assert (again.resumable_conversation, again.unfinished.closing) == (None, ())
    assert again.messages == tuple(agent.history.messages())


@pytest.mark.slow
@given(played_sessions, st.data())
def test_the_open_end_of_any_interrupted_session_has_exactly_its_waiting_calls(
    script: tuple[PlayedRun, ...], data: st.DataObject
) -> None:
    told = play(script)
    asking = [place for place, envelope in enumerate(told, 1) if isinstance(envelope.event, ApprovalRequested)]
    part = told[: data.draw(st.sampled_from(asking or [len(told)]))]

    end = stored(part).resumable_conversation

    if end is None:
        return
    history = ConversationHistory(end.messages)
    assert [call.id for call in history.open_calls] == [call.call_id for call in end.calls]
    assert any(call.request is not None and call.fate == "not_started" for call in end.calls)
    for opened in history.open_calls:
        history.append(ToolResultMessage(call_id=opened.id, tool_name=opened.name, content=(TextBlock(text="done"),)))
    validate_history(history.messages())
    closing = unfinished(part, {call.call_id for call in end.calls}).closing
    closed = [*part, *(Envelope(each.event, part[-1].seq + 1, 0, 0.0, each.origin) for each in closing)]
    again = stored(closed).resumable_conversation
    assert again is not None
    assert [(call.call_id, call.request is not None) for call in again.calls] == [
        (call.call_id, call.request is not None) for call in end.calls
    ]


class FirstAsks(FakePolicy):
    """Asks about the first trace only."""

    def check(self, tool: Tool, arguments: JsonObject) -> PermissionDecision:
        verdict = "ask" if arguments.get("trace") == "first" else "allow"
        return PermissionDecision(decision=verdict, source="mode", reason="nobody decided yet")


@pytest.mark.parametrize("is_killed", [True, False])
async def test_an_effect_of_a_broken_response_does_not_run_again_after_a_resume(desk: Desk, is_killed: bool) -> None:
    settings = {"policy": FirstAsks(), "options": ExecutionOptions(stream_tools="allowed")}
    gate = asyncio.Event()

    async def until(agent: AgentLoop) -> None:
        while not desk.left:
            await asyncio.sleep(0.01)
        gate.set()
        # The repeated call waits for the first one, about which the user is asked.
        await until_asked()(agent)

    steps = [reply("Leaving.", LEAVE_TOO, Wait(gate), fail("stream_cut")), reply("Leaving.", LEAVE, LEAVE_TOO)]
    left = await desk.work(fresh(desk), steps, until, is_killed=is_killed, **settings)
    assert desk.left == ["second"]

    await desk.end(left, ["Done.", "Done."], APPROVE, **{**settings, "policy": FirstAsks()})

    assert desk.left == ["second", "first"]
    texts = [message.text for message in desk.store.load(left.id).messages]
    assert any("may have taken effect" in text or "unknown" in text for text in texts), texts
