"""One state behind the screen: live, resumed, replayed, and resumed without superseded events, it ends equal."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.session.played_sessions import FULL_SESSION, PlayedRun, play, played_sessions
from tests.support.examples import examples
from tests.support.protocol_strategies import of_model
from tests.support.table import table
from tests.ui.open_bench import bench_of
from tests.ui.still import FakeAgent, drawn
from tests.ui.story import Story
from tests.ui.test_any_order import TOLD
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Envelope, Origin, event_classes
from tui_agent.protocol.events import MessageDelta
from tui_agent.protocol.messages import user_message
from tui_agent.protocol.past_session import drop_superseded
from tui_agent.ui.app.replay_app import ReplayApp
from tui_agent.ui.app.tui_agent_app import TuiAgentApp
from tui_agent.ui.base.error_boundary import ErrorBoundary
from tui_agent.ui.base.terminal_environment import TerminalEnvironment
from tui_agent.ui.bridge.agent_bridge import AgentBridge
from tui_agent.ui.chat.chat_options import ChatOptions
from tui_agent.ui.chat.screen_state import ScreenState
from tui_agent.ui.replay.replay_screen import ReplayScreen
from tui_agent.ui.replay.replay_timeline import ReplayTimeline
from tui_agent.ui.transcript.transcript_builder import HANDLED_EVENTS

SESSIONS = pytest.mark.parametrize("events", [play(FULL_SESSION), TOLD], ids=["session", "events of all kinds"])
SIZE = (120, 40)
UNTIMED = ("waiting", "approvals", "inputs", "begun")
"""Folds without times."""


def folds_of(state: ScreenState) -> dict[str, Any]:
    """Return everything that the parts of the screen may draw."""
    while state.transcript.flush():
        pass
    parts = state.transcript.transcript.parts
    return {
        "ledger": state.ledger,
        "transcript": [(type(part), part.gap, part.text, part.call_ids, part.layout(60)) for part in parts],
        "times": vars(state.times),
        "status": state.status,
        "waiting": state.waiting.all,
        "approvals": state.approvals.all,
        "inputs": state.inputs,
        "begun": state.begun,
    }


def folded(events: Sequence[Envelope]) -> ScreenState:
    """Return the state after these events, without a screen."""
    state = ScreenState(ErrorBoundary(print, None))
    for envelope in events:
        state.apply(envelope)
    return state


def app_on(bridge: AgentBridge) -> TuiAgentApp:
    return TuiAgentApp(bridge, ChatOptions(surroundings=TerminalEnvironment(reduced_motion=True)))


@pytest.mark.slow
@SESSIONS
async def test_live_resumed_and_replayed_screens_have_equal_states(events: list[Envelope]) -> None:
    bus = EventBus()
    with bus.subscribe(merge=False) as journal:
        live = app_on(AgentBridge(FakeAgent(), bus))
        async with live.run_test(size=SIZE) as pilot:
            for envelope in events:
                bus.publish(envelope.event, envelope.origin)
            await drawn(pilot)
        past = list(journal.drain())
    expected = folds_of(folded(past))
    assert len(past) == len(events)
    assert folds_of(live.chat.state) == expected

    agent = FakeAgent()
    for message in live.chat.state.waiting.all:
        known = user_message(message.text, message.kind)
        agent.queue.put(known.model_copy(update={"id": message.message_id}))
    bridge = AgentBridge()
    bridge.open(bench_of(agent, EventBus(), past))
    resumed = app_on(bridge)
    async with resumed.run_test(size=SIZE) as pilot:
        while not resumed.chat.state.begun:
            await pilot.pause()
        await drawn(pilot)
    assert folds_of(resumed.chat.state) == expected

    timeline = ReplayTimeline(past, [one.ts for one in past])
    watched = ReplayApp(lambda options: ReplayScreen(timeline, options), surroundings=TerminalEnvironment())
    async with watched.run_test(size=SIZE) as pilot:
        watched.replay.seek(timeline.length)
        while watched.replay.play_state.looking:
            await pilot.pause()
        replayed = folds_of(watched.replay.state)
    # A replay has the times of the journal, which counts milliseconds.
    assert replayed == folds_of(folded([timeline.event(place) for place in range(len(past))]))
    assert [replayed[name] for name in UNTIMED] == [expected[name] for name in UNTIMED]


def assert_looks_the_same_without_superseded_events(past: Sequence[Envelope]) -> None:
    short, whole = folded(list(drop_superseded(past))), folded(past)
    # The start of a status is that of its first event, which may be superseded.
    short.status.since = whole.status.since = 0.0

    assert folds_of(short) == folds_of(whole)


@pytest.mark.slow
@settings(max_examples=examples(40))
@given(played_sessions, st.data())
def test_any_past_that_ends_anywhere_looks_the_same(script: tuple[PlayedRun, ...], data: st.DataObject) -> None:
    past = play(script)
    assert_looks_the_same_without_superseded_events(past[: data.draw(st.integers(0, len(past)))])


@given(st.integers(0, len(TOLD)))
def test_a_past_of_all_kinds_of_events_looks_the_same(size: int) -> None:
    assert_looks_the_same_without_superseded_events(TOLD[:size])


@table("kind", sorted(set(event_classes().values()) - HANDLED_EVENTS, key=lambda kind: kind.__name__))
def test_what_the_conversation_does_not_hear_would_change_nothing_in_it(kind: type) -> None:
    @settings(max_examples=5)
    @given(of_model(kind))
    def changes_nothing(event: object) -> None:
        state = folded(TOLD)
        before = folds_of(state)["transcript"]
        state.transcript.apply(Envelope(event, 1_000, 0, 0.0, Origin()))  # pyright: ignore[reportArgumentType]
        assert folds_of(state)["transcript"] == before

    changes_nothing()


def test_a_piece_of_the_answer_ends_the_silence_of_the_model() -> None:
    story = Story().run("x").step(0).status("streaming").wait(30)
    piece = MessageDelta(message_id="m", kind="text", delta="a")
    story.tell(piece)
    state = folded(story.envelopes)

    assert state.status.progress.heard_at == story.now
    assert state.apply(story.wait(5).tell(piece)).status is False
    assert state.status.progress.heard_at == story.now
