"""A long session is shown before it is read: its end first, then all of it; input typed meanwhile is queued."""

import pytest
from textual.pilot import Pilot

from tests.ui.open_bench import bench_of
from tests.ui.still import FakeAgent, bridge_to, drawn, notes
from tests.ui.story import Story
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.events import Noticed, SessionLoaded
from tui_agent.protocol.facts.screen_facts import HistoryTail
from tui_agent.protocol.permissions import PermissionMode
from tui_agent.ui.app.tui_agent_app import TuiAgentApp
from tui_agent.ui.base.terminal_environment import TerminalEnvironment
from tui_agent.ui.bridge.agent_bridge import AgentBridge
from tui_agent.ui.chat.chat_options import ChatOptions

RUNS = 30


def long_story() -> tuple[Story, int]:
    """Return a story of many runs with one call each, and the index at which its last five begin."""
    story, tail = Story(), 0
    for number in range(RUNS):
        if number == RUNS - 5:
            tail = len(story.envelopes)
        story.run(f"question {number}", f"r{number}").step(0)
        story.call("read", f"file {number}")
        story.answer(f"answer {number}\n\nwith two paragraphs").end_step(0).end()
    return story, tail


def app_with(bridge: AgentBridge, glimpse: HistoryTail | None) -> TuiAgentApp:
    return TuiAgentApp(bridge, ChatOptions(surroundings=TerminalEnvironment(reduced_motion=True), glimpse=glimpse))


def rows(app: TuiAgentApp) -> list[str]:
    """Return the visible rows of the conversation."""
    view = app.chat.body.conversation
    top = view.scroll_offset.y
    lines = [view.line_at(row) for row in range(top, top + view.row_count)]
    return [line.plain if line is not None else "" for line in lines]


async def all_there(app: TuiAgentApp, pilot: Pilot[None], parts_before: int) -> None:
    while len(app.chat.body.conversation.transcript.parts) <= parts_before:
        await pilot.pause()
    await drawn(pilot)


@pytest.mark.slow
async def test_the_end_is_shown_before_the_agent_is_there_and_looks_the_same_afterwards() -> None:
    story, tail = long_story()
    bridge = AgentBridge(mode=PermissionMode.PLAN)
    app = app_with(bridge, HistoryTail(story.envelopes[tail:], RUNS - 5))

    async with app.run_test(size=(120, 40)) as pilot:
        await drawn(pilot)
        before, parts = rows(app), len(app.chat.body.conversation.transcript.parts)
        assert any("answer 29" in row for row in before)
        assert app.chat.state.ledger.total == RUNS
        assert [call.number for call in app.chat.state.ledger.calls] == [26, 27, 28, 29, 30]

        bridge.open(bench_of(FakeAgent(), EventBus(), story.envelopes))
        await all_there(app, pilot, parts)
        assert rows(app) == before
        assert [call.number for call in app.chat.state.ledger.calls] == list(range(1, RUNS + 1))
        assert app.chat.body.conversation.search("question 3").count == 1
        await pilot.press("up")
        assert app.chat.entry.composer.text == "question 29"


@pytest.mark.slow
async def test_a_user_who_scrolled_up_or_searched_meanwhile_keeps_the_position() -> None:
    story, tail = long_story()
    bridge = AgentBridge(mode=PermissionMode.ASK)
    app = app_with(bridge, HistoryTail(story.envelopes[tail:], RUNS - 5))

    async with app.run_test(size=(120, 24)) as pilot:
        await drawn(pilot)
        parts = len(app.chat.body.conversation.transcript.parts)
        assert app.chat.body.conversation.search("answer").count == 5
        await pilot.press("pageup")
        await drawn(pilot)
        before = rows(app)
        assert not app.chat.body.conversation.following

        bridge.open(bench_of(FakeAgent(), EventBus(), story.envelopes))
        await all_there(app, pilot, parts)
        assert rows(app) == before
        assert app.chat.body.conversation.news == ""
        app.chat.body.conversation.next_match()
        assert any("answer" in row for row in rows(app))
        assert sum("answer" in part.text for part in app.chat.body.conversation.transcript.parts) == RUNS


@pytest.mark.slow
async def test_what_is_typed_before_the_agent_is_there_is_sent_when_it_is() -> None:
    bridge, agent = AgentBridge(mode=PermissionMode.ASK), FakeAgent()
    app = app_with(bridge, None)

    async with app.run_test() as pilot:
        await pilot.press(*"hello", "enter", "shift+tab")
        await pilot.press(*"/context", "enter")
        await drawn(pilot)
        assert any("still being read" in note for note in notes(app))
        assert app.chat.entry.composer.text == "/context"
        line = app.chat.bars.line
        line._created_at = line._surroundings.clock()
        assert "◌ opening · 1 message to be sent" in line.render().plain
        line._created_at -= 60.0
        assert "◌ opening 1:0" in line.render().plain
        assert bridge.status.unsent == ("hello",)

        bridge.open(bench_of(agent, bus := EventBus()))
        bus.publish(Noticed(code="x", text="it is there"))
        while ("run", "hello") not in agent.asked:
            await pilot.pause()
        assert bridge.status.mode is PermissionMode.ACCEPT_EDITS
        assert bridge.status.unsent == ()
        while "opening" in app.chat.bars.line.render().plain:
            await pilot.pause()


@pytest.mark.slow
async def test_ctrl_c_recalls_messages_for_a_pending_agent_and_then_quits() -> None:
    bridge, agent = AgentBridge(mode=PermissionMode.ASK), FakeAgent()
    app = app_with(bridge, None)

    async with app.run_test() as pilot:
        await pilot.press(*"!ls", "enter", *"one", "enter", "ctrl+c")
        await drawn(pilot)
        assert app.chat.entry.composer.text == "!ls\n\none"
        assert "to be sent" not in app.chat.bars.line.render().plain
        assert not bridge.status.running
        await pilot.press("ctrl+c", "ctrl+c")
        await drawn(pilot)
        assert any("again quits" in note for note in notes(app))

        bridge.open(bench_of(agent, EventBus()))
        await drawn(pilot)
        assert agent.asked == []


@pytest.mark.slow
async def test_a_message_that_waited_in_one_life_and_was_delivered_in_the_next_is_not_sent_again() -> None:
    story = Story().run("go")
    waits = story.sends("and the tests")
    story.tell(SessionLoaded(id="s1"))
    story.delivered(waits, "and the tests", "after step 1").end()
    agent = FakeAgent()
    app = app_with(bridge_to(agent, past=story.envelopes), None)

    async with app.run_test() as pilot:
        await all_there(app, pilot, 0)
        assert agent.waiting_messages == []
        assert app.chat.entry.queue.messages == ()
