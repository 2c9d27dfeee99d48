"""Work of the screen in a late turn, counted; and rows that are kept look like rows that are drawn again."""

import pytest
from textual.widget import Widget

from tests.ui.still import drawn, shown, still_app
from tests.ui.story import Story
from tui_agent.ui.app.tui_agent_app import TuiAgentApp
from tui_agent.ui.panel.call_list import CallList

EARLIER = 60
"""Turns before the counted one: more than fit on the screen."""


def add_turn(story: Story, number: int) -> None:
    story.step(number)
    story.answer(f"I look at file {number}.")
    story.call("read", f"{number}.txt")
    story.end_step(number)


def long_run() -> Story:
    story = Story().run("go on")
    for number in range(EARLIER):
        add_turn(story, number)
    return story


def show_turn(app: TuiAgentApp, story: Story, number: int) -> None:
    seen = len(story.envelopes)
    add_turn(story, number)
    for envelope in story.envelopes[seen:]:
        app.chat.apply(envelope)


def counted(widget: Widget, method: str) -> list[int]:
    """Count the calls of a method of one widget."""
    calls: list[int] = []
    original = getattr(widget, method)

    def call(*args: object, **kwargs: object) -> object:
        calls.append(1)
        return original(*args, **kwargs)

    setattr(widget, method, call)
    return calls


@pytest.mark.slow
async def test_a_late_turn_draws_only_what_is_new() -> None:
    story = long_run()
    app = still_app(story, running=True)
    async with app.run_test(size=(120, 40)) as pilot:
        await shown(pilot)
        chat = app.chat
        layouts = counted(chat, "_refresh_layout")
        rows = chat.query_one(CallList)
        calls = counted(rows, "_draw")
        bars = [counted(view.vertical_scrollbar, "render_line") for view in (chat.body.conversation, rows)]

        show_turn(app, story, EARLIER)
        await drawn(pilot)

        assert layouts == []
        assert len(calls) <= 3
        assert all(len(bar) <= 4 for bar in bars)


@pytest.mark.slow
async def test_kept_rows_look_like_rows_that_are_drawn_again() -> None:
    story = long_run()
    app = still_app(story, running=True)
    async with app.run_test(size=(120, 40)) as pilot:
        await shown(pilot)
        for number in range(EARLIER, EARLIER + 3):
            show_turn(app, story, number)
        await drawn(pilot)
        app.chat.body.conversation.scroll_to(y=7, animate=False)
        app.chat.query_one(CallList).move_to(5)
        await drawn(pilot)
        kept = app.export_screenshot()

        app.theme = "light"
        await drawn(pilot)
        assert app.export_screenshot() != kept
        app.theme = "dark"
        await drawn(pilot)

        assert app.export_screenshot() == kept
