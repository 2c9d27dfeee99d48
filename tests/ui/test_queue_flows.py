"""Queued messages on the screen: the user walks through them, edits, drops, moves and restores them."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.ui.stage import Stage, StageTool, stage
from tests.ui.story import Story
from tui_agent.agent import AgentTool
from tui_agent.protocol.events import SteeringRequeued
from tui_agent.protocol.permissions import ApprovalDecision, PermissionMode
from tui_agent.providers.scripted_provider import Wait, call, reply
from tui_agent.ui.chat.screen_state import ScreenState
from tui_agent.ui.composer.notice_lines import RefusalLine
from tui_agent.ui.state.queued_messages import WaitingMessages

pytestmark = pytest.mark.slow


@asynccontextmanager
async def queueing(*said: str, follow_ups: tuple[str, ...] = ()) -> AsyncIterator[tuple[Stage, asyncio.Event]]:
    """A model that pauses in its answer, and messages that wait for it."""
    gate, reached = asyncio.Event(), asyncio.Event()
    async with stage([reply("Let me ", Wait(gate, reached), "think."), *(["Fine."] * 6)]) as on:
        await on.say("go")
        await on.until(reached.is_set)
        for text in said:
            await on.say(text)
        for text in follow_ups:
            await on.type(text)
            await on.pilot.press("alt+enter")
        await on.until(lambda: on.chat.entry.composer.waiting == len(said) + len(follow_ups))
        yield on, gate


def texts(on: Stage) -> list[str]:
    """Return the messages that can be delivered, as the screen shows them."""
    return [message.text for message in on.chat.state.waiting.all]


async def press(on: Stage, *keys: str) -> None:
    """Press keys, and wait until the screen shows the effect of each."""
    for key in keys:
        await on.pilot.press(key)
        await on.pilot.pause()
        await on.pilot.pause()


async def told_at_the_end(on: Stage, gate: asyncio.Event) -> list[str]:
    """Let the model answer, and return the user's messages in the order in which it got them."""
    gate.set()
    await on.until(lambda: not on.loop.waiting_messages)
    await on.settled()
    return on.told()[1:]


async def test_up_walks_all_queued_messages_and_puts_each_back_unchanged() -> None:
    async with queueing("one", "two", follow_ups=("later",)) as (on, gate):
        shown = list[str]()
        for _ in range(3):
            await press(on, "up")
            shown.append(on.draft)
        assert shown == ["later", "two", "one"]
        assert texts(on) == ["two", "later"]

        await press(on, "down", "down", "down")
        assert on.draft == ""
        assert texts(on) == ["one", "two", "later"]
        assert await told_at_the_end(on, gate) == ["one", "two", "later"]


async def test_a_boundary_does_not_deliver_a_message_that_is_being_edited() -> None:
    tool, second = StageTool("look", waits=True), StageTool("see", waits=True)
    steps = [reply(call("look", what="a")), reply(call("see", what="b")), "Done."]
    async with stage(steps, [tool, second]) as on:
        on.policy.mode = PermissionMode.ALLOW
        await on.say("go")
        await on.until(lambda: tool.ran)
        await on.say("one")
        await on.say("two")
        await on.until(lambda: on.chat.entry.composer.waiting == 2)
        await press(on, "up", "up")
        assert on.draft == "one"
        tool.gate.set()
        await on.until(lambda: second.ran)

        assert on.told() == ["go", "two"]
        assert on.draft == "one"
        await press(on, "enter")
        second.gate.set()
        await on.settled()

        assert on.told() == ["go", "two", "one"]


async def test_escape_puts_a_message_back_as_it_was_and_interrupts_nothing() -> None:
    async with queueing("one") as (on, gate):
        await press(on, "up")
        await on.type(" and more")
        await press(on, "escape")

        assert (on.draft, texts(on)) == ("", ["one"])
        assert not on.chat.entry.menu.is_open
        assert await told_at_the_end(on, gate) == ["one"]


async def test_ctrl_x_drops_and_ctrl_z_or_a_click_brings_back_in_its_place() -> None:
    async with queueing("one", "two", "three") as (on, gate):
        await press(on, "up", "up", "ctrl+x")
        assert texts(on) == ["one", "three"]
        assert on.draft == ""
        assert "Dropped “two”. ctrl+z brings it back." in on.chat.entry.refusal.render().plain

        await press(on, "ctrl+x")
        assert texts(on) == ["one"]
        assert not on.app.check_action("suspend_process", ())
        await press(on, "ctrl+z")
        assert texts(on) == ["one", "three"]
        await on.pilot.click(RefusalLine, offset=(20, 0))
        await on.until(lambda: texts(on) == ["one", "two", "three"])
        assert not on.chat.entry.refusal.display
        assert await told_at_the_end(on, gate) == ["one", "two", "three"]


async def test_ctrl_z_suspends_again_once_the_user_types() -> None:
    async with queueing("one") as (on, _):
        await press(on, "ctrl+x")
        assert not on.app.check_action("suspend_process", ())
        await on.type("x")
        await on.pilot.pause()

        assert on.app.check_action("suspend_process", ())
        assert not on.chat.entry.refusal.display


async def test_alt_arrows_change_the_order_of_delivery() -> None:
    async with queueing("one", "two", "three") as (on, gate):
        await press(on, "up", "alt+up", "alt+up")
        assert [message.text for message in on.chat.state.waiting.rows] == ["three", "one", "two"]
        await press(on, "alt+down", "enter")

        assert texts(on) == ["one", "three", "two"]
        assert await told_at_the_end(on, gate) == ["one", "three", "two"]


async def test_an_edited_message_starts_a_run_behind_the_older_ones_if_nothing_runs() -> None:
    async with queueing("one", "two") as (on, _):
        await press(on, "escape", "escape")
        await on.settled()
        await press(on, "up")
        await on.type("!")
        await press(on, "enter")
        await on.until(lambda: not on.loop.waiting_messages)
        await on.settled()

        assert on.told() == ["go", "one", "two!"]


async def test_a_message_is_dragged_to_another_place_among_its_kind() -> None:
    async with queueing("one", "two", "three", follow_ups=("later",)) as (on, gate):
        queue = on.chat.entry.queue
        await on.pilot.mouse_down("#queue", offset=(12, 1))
        # Beyond the last steering message: follow-ups come later.
        await on.pilot.hover("#queue", offset=(12, 4))
        assert re.findall("“(.*?)”", queue.render().plain) == ["two", "three", "one", "later"]
        assert texts(on) == ["one", "two", "three", "later"]
        await on.pilot.mouse_up("#queue", offset=(12, 4))
        await on.until(lambda: texts(on) == ["two", "three", "one", "later"])

        assert on.draft == ""
        await on.pilot.click("#queue", offset=(12, 3))
        await on.until(lambda: on.draft == "one")
        assert await told_at_the_end(on, gate) == ["two", "three", "later"]


async def test_an_aimed_message_stays_aimed_and_follows_the_agent_that_ends() -> None:
    slow = StageTool("look", waits=True)
    steps = [reply(call("agent", task="Find it")), reply(call("look", what="a")), "Found.", "Done.", "And done."]
    async with stage(steps, [slow]) as on:
        on.loop.add_tool(AgentTool(on.loop))
        on.policy.mode = PermissionMode.ALLOW
        await on.say("go")
        await on.until(lambda: slow.ran)
        (agent_id,) = on.loop.children
        await on.say(f"@{agent_id} hello")
        await on.until(lambda: on.chat.entry.composer.waiting == 1)
        await press(on, "up")
        await on.type(" there")
        await press(on, "enter")
        child = on.loop.children[agent_id]
        assert [message.text for message in child.waiting_messages] == ["hello there"]
        assert "steer @" in on.chat.entry.queue.render().plain

        await press(on, "up", "tab")
        assert on.draft == "hello there"
        slow.gate.set()
        await on.settled()
        assert on.draft == "hello there"
        await press(on, "enter")
        await on.settled()

        assert on.told()[-1] == "hello there"
        assert texts(on) == []


async def test_the_events_alone_show_the_same_queue() -> None:
    async with queueing("one", "two", "three", follow_ups=("later",)) as (on, _):
        await press(on, "up", "up", "alt+up", "enter", "up", "up", "tab", "enter", "up", "ctrl+x", "ctrl+z", "up")
        replayed = ScreenState(on.chat.options.faults)
        with on.bus.subscribe(since=0) as subscription:
            events = subscription.drain()
        for envelope in events:
            replayed.apply(envelope)

        assert replayed.waiting.rows == on.chat.state.waiting.rows
        assert sum(row.held for row in replayed.waiting.rows) == 1


async def test_a_message_says_that_it_waits_for_the_answer_to_a_sub_agent() -> None:
    risky = StageTool("change", read_only=False)
    steps = [reply(call("agent", task="Change it")), reply(call("change", what="a")), "Changed.", "Done.", "And that."]
    async with stage(steps, [risky]) as on:
        on.policy.granted.append("agent")
        on.loop.add_tool(AgentTool(on.loop))
        await on.say("go")
        await on.until(lambda: on.chat.state.approvals.all)
        await on.pilot.pause()
        await press(on, "escape")
        (agent_id,) = on.loop.children
        await on.say("also this")
        await on.until(lambda: on.chat.entry.composer.waiting == 1)
        name = agent_id.rpartition("-")[0]
        assert f"lands after @{name}, which waits for your answer" in on.chat.entry.queue.render().plain

        on.loop.resolve_approval(on.chat.state.approvals.all[0].request_id, ApprovalDecision(decision="approve"))
        await on.settled()
        assert on.told() == ["go", "also this"]


async def click_key(on: Stage, text: str) -> None:
    """Click a word of the rule above the queue, and wait until the screen shows the effect."""
    rule = on.chat.entry.queue.render().plain.split("\n")[0]
    await on.pilot.click("#queue", offset=(rule.index(text), 0))
    await on.pilot.pause()
    await on.pilot.pause()


async def test_every_key_of_the_queue_can_be_clicked_in_a_narrow_window() -> None:
    async with queueing("one", "two") as (on, gate):
        await on.pilot.resize_terminal(50, 24)
        await on.pilot.click("#queue", offset=(44, 1))
        await on.until(lambda: texts(on) == ["two", "one"])
        assert texts(on) == ["two", "one"]

        await click_key(on, "edit")
        assert on.draft == "one"
        await on.type(" more")
        await click_key(on, "put back")
        assert (on.draft, texts(on)) == ("", ["two", "one more"])

        await click_key(on, "edit")
        await on.type(" again")
        await click_key(on, "leave as it was")
        assert (on.draft, texts(on)) == ("", ["two", "one more"])

        await click_key(on, "drop")
        assert texts(on) == ["two"]
        await press(on, "ctrl+z")
        await on.until(lambda: len(texts(on)) == 2)
        assert await told_at_the_end(on, gate) == ["two", "one more"]


def test_a_requeued_message_comes_first_and_only_once() -> None:
    story, queue = Story(), WaitingMessages()
    first = story.sends("one")
    for message, text in ((first, "one"), ("m0", "zero")):
        story.tell(SteeringRequeued(message_id=message, kind="steer", text=text, reason="the run failed"))
    for envelope in story.envelopes:
        queue.apply(envelope)

    assert [message.text for message in queue.all] == ["zero", "one"]
