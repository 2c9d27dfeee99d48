"""The right column: there from the first message on, closed by a key until it is opened, moved with mouse and keys."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from textual.events import MouseDown, MouseMove, MouseUp
from textual.pilot import Pilot

from tests.ui.still import drawn, still_app
from tests.ui.still import shown as all_shown
from tests.ui.story import Story, working
from tui_agent.protocol.events import FileChanged, TodoItem, TodoUpdated
from tui_agent.ui.app.tui_agent_app import TuiAgentApp
from tui_agent.ui.chat.chat_body import ChatBody
from tui_agent.ui.chat.chat_screen import ChatScreen


@asynccontextmanager
async def shown(story: Story, size: tuple[int, int] = (120, 40)) -> AsyncGenerator[tuple[ChatBody, Pilot[None]]]:
    app: TuiAgentApp = still_app(story, running=True)
    async with app.run_test(size=size) as pilot:
        await all_shown(pilot)
        yield app.chat.body, pilot


def chat_of(pilot: Pilot[None]) -> ChatScreen:
    assert isinstance(pilot.app, TuiAgentApp)
    return pilot.app.chat


def is_shown(body: ChatBody) -> bool:
    return body.side.display and body.side.region.width > 0


def planned(story: Story, *states: str) -> Story:
    items = tuple(TodoItem.model_validate({"text": f"item {state}", "status": state}) for state in states)
    story.tell(TodoUpdated(items=items))
    return story


async def test_nothing_that_comes_into_the_column_wraps_the_conversation_anew() -> None:
    async with shown(Story()) as (body, pilot):
        assert not is_shown(body)
        story = Story()
        widths: set[int] = set()
        for tell in (
            lambda: story.run("hello").step(0).answer("A table follows."),
            lambda: story.call("read", "a.py"),
            lambda: planned(story, "in_progress"),
            lambda: story.tell(FileChanged(path="a.py", change="modified", call_id="c1", added=1)),
            lambda: planned(story, "done").end_step(0).end(),
        ):
            seen = len(story.envelopes)
            tell()
            for envelope in story.envelopes[seen:]:
                chat_of(pilot).apply(envelope)
            await drawn(pilot)
            assert is_shown(body)
            widths.add(body.conversation.region.width)

        assert widths == {75}


async def test_closed_by_a_key_it_stays_closed_until_it_is_opened() -> None:
    story = working()
    async with shown(story) as (body, pilot):
        await pilot.press("alt+t")
        assert not is_shown(body)
        assert body.strip.display

        seen = len(story.envelopes)
        story.call("read", "a.py")
        for envelope in story.envelopes[seen:]:
            chat_of(pilot).apply(envelope)
        await drawn(pilot)
        assert not is_shown(body)

        await pilot.press("ctrl+t")
        await drawn(pilot)
        assert is_shown(body)
        assert body.panel.has_focus_within


async def test_the_mouse_and_keys_move_the_border_for_the_session() -> None:
    async with shown(working()) as (body, pilot):
        side = body.side
        border, row = side.region.x, 10

        def mouse(kind: type[MouseDown | MouseMove | MouseUp], x: int) -> None:
            side.post_message(kind(side, x - side.region.x, row, 0, 0, 1, False, False, False, x, row))

        mouse(MouseDown, border)
        mouse(MouseMove, border - 10)
        await drawn(pilot)
        mouse(MouseUp, border - 10)
        await drawn(pilot)
        assert side.region.x == border - 10

        await pilot.resize_terminal(90, 40)
        await drawn(pilot)
        await pilot.resize_terminal(120, 40)
        await drawn(pilot)
        assert side.region.x == border - 10

        width = side.region.width
        await pilot.press("ctrl+t", "ctrl+left")
        await drawn(pilot)
        assert side.region.width == width + 4
        await pilot.press(*["ctrl+left"] * 20)
        await drawn(pilot)
        assert body.conversation.region.width == 50, "as far as the conversation allows"
        await pilot.press(*["ctrl+right"] * 30)
        await drawn(pilot)
        assert side.region.width == 30


async def test_the_conversation_has_the_plan_only_where_the_column_does_not_show_it() -> None:
    story = planned(working(), "in_progress")
    async with shown(story) as (body, pilot):

        def shows_items() -> bool:
            while body.conversation.transcript and chat_of(pilot).state.transcript.flush():
                pass
            rows = [row.plain for part in body.conversation.transcript.parts for row in part.layout(60)]
            return any("item in_progress" in row for row in rows)

        assert not shows_items()
        await pilot.press("alt+t")
        assert shows_items()
        await pilot.press("alt+t")
        assert not shows_items()
        await pilot.resize_terminal(100, 40)
        await drawn(pilot)
        assert shows_items()
        assert "plan  0 of 1 done" in body.strip.render().plain
