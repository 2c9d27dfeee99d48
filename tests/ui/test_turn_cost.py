"""Work of the screen in a late turn, counted; and rows that are kept look like rows that are drawn again."""

import re
from collections import Counter
from typing import Any, cast

import pytest
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode
from textual.geometry import Region
from textual.message import Message
from textual.message_pump import MessagePump
from textual.strip import Strip
from textual.widget import Widget

from tests.ui.still import drawn, shown, still_app
from tests.ui.story import Story
from tui_agent.protocol.events import MessageDelta, MessageStarted
from tui_agent.ui.app.tui_agent_app import TuiAgentApp
from tui_agent.ui.base import app_type
from tui_agent.ui.base.app_type import AnyScreen, FramePace
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
async def test_a_late_turn_draws_only_what_is_new_and_paints_without_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    story = long_run()
    app = still_app(story, running=True)
    async with app.run_test(size=(120, 40)) as pilot:
        await shown(pilot)
        chat = app.chat
        rows = chat.query_one(CallList)
        while not chat.body.conversation.max_scroll_y:  # On a busy machine its first size may come late.
            await drawn(pilot)
        layouts = counted(chat, "_refresh_layout")
        calls = counted(rows, "_draw")
        bar = counted(chat.body.conversation.vertical_scrollbar, "render_line")
        around = counted(chat.body, "render_line")

        show_turn(app, story, EARLIER)
        await drawn(pilot)

        assert layouts == []
        assert len(calls) <= 3
        assert around == []
        assert len(bar) <= 4

        await pilot.press("a")
        await drawn(pilot)
        posted = Counter[str]()
        post = MessagePump.post_message

        def counting(pump: MessagePump, message: Message) -> bool:
            posted[type(message).__name__] += 1
            return post(pump, message)

        monkeypatch.setattr(MessagePump, "post_message", counting)
        await pilot.press("x")
        await drawn(pilot)
        assert (posted["Key"], posted["SelectionChanged"], posted["Update"]) == (2, 1, 0)

        posted.clear()
        show_turn(app, story, EARLIER + 1)
        await drawn(pilot)
        assert posted["Update"] == 0
        assert posted["Prompt"] <= 12


@pytest.mark.slow
async def test_streamed_text_draws_its_own_rows_and_asks_no_other_widget(monkeypatch: pytest.MonkeyPatch) -> None:
    story = long_run()
    app = still_app(story, running=True)
    async with app.run_test(size=(120, 40)) as pilot:
        await shown(pilot)
        chat, conversation, screen = app.chat, app.chat.body.conversation, cast(Any, app.chat)
        story.tell(MessageStarted(message_id="long", role="assistant"))
        chat.apply(story.envelopes[-1])

        def stream(number: int) -> None:
            story.tell(MessageDelta(message_id="long", kind="text", delta=f"Paragraph {number} has *some* words.\n\n"))
            chat.apply(story.envelopes[-1])
            conversation.flush()
            screen._compositor.update_widgets({conversation})
            assert screen._compositor.render_update() is not None

        for number in range(60):
            stream(number)
        await drawn(pilot)
        original, made = Strip.apply_offsets, list[int]()

        def counting(strip: Strip, x: int, y: int) -> Strip:
            made.append(y)
            return original(strip, x, y)

        monkeypatch.setattr(Strip, "apply_offsets", counting)
        layouts, others = counted(chat, "_refresh_layout"), counted(chat.query_one(CallList), "render_lines")
        drawn_rows = counted(conversation, "render_line")
        for number in range(60, 70):
            stream(number)

        assert len(made) <= 10 * 4
        assert len(drawn_rows) <= 10 * 6, "rows that only move are not drawn again"
        assert others == []
        assert layouts == []


@pytest.mark.slow
async def test_rows_that_move_while_text_streams_look_like_rows_that_are_drawn_again() -> None:
    story = long_run()
    app = still_app(story, running=True)
    async with app.run_test(size=(120, 40)) as pilot:
        await shown(pilot)
        conversation = app.chat.body.conversation
        window = Region(0, 0, *conversation.size)

        def differences() -> list[int]:
            kept = [[*strip] for strip in conversation.render_lines(window)]
            conversation._drawn_rows.clear()
            conversation._strips.clear()
            fresh = [[*strip] for strip in conversation.render_lines(window)]
            return [y for y, (one, other) in enumerate(zip(kept, fresh, strict=True)) if one != other]

        story.tell(MessageStarted(message_id="long", role="assistant"))
        text = "Some *words* of a paragraph. " * 5 + "\n\n- one `point`\n- two\n\n"
        text += "A table:\n\n|a|b|\n|-|-|\n|1|2|\n\n"
        text += '```python\ndef area(w):\n    """Text\n\n    """\n    return w\n```\n\n'
        for number, piece in enumerate(re.findall(r"(?s).{1,23}", text * 4)):
            story.tell(MessageDelta(message_id="long", kind="text", delta=piece))
            app.chat.apply(story.envelopes[-1])
            conversation.flush()
            if number == 40:
                conversation.show_thinking(shown=True)
            assert differences() == [], piece


async def test_a_typed_key_is_painted_at_once_and_before_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    story = long_run()
    app = still_app(story, running=True)
    async with app.run_test(size=(120, 40)) as pilot:
        await shown(pilot)
        chat = app.chat
        conversation, timer = chat.body.conversation, chat._update_timer
        await pilot.press("a")
        await drawn(pilot)
        # Time stands still, so that each frame may follow the one before.
        monkeypatch.setattr(AnyScreen, "pace", FramePace(lambda: 0.0))
        monkeypatch.setattr(app_type, "TYPED_SECONDS", 0.0)
        with monkeypatch.context() as without_timer:
            without_timer.setattr(timer, "resume", lambda: None)
            timer.pause()
            show_turn(app, story, EARLIER)
            conversation.flush()
            rows, typed = (counted(widget, "render_line") for widget in (conversation, chat.entry.composer))
            styled = counted(chat.entry.composer, "get_component_styles")
            await pilot.press("x")
            while not typed:
                await pilot.pause()
            assert not rows
            assert not styled, "the styles of the composer are computed once"

        timer.resume()
        while not rows:
            await pilot.pause()


async def test_a_start_styles_parts_once_and_the_first_message_none(monkeypatch: pytest.MonkeyPatch) -> None:
    styled: list[DOMNode] = []
    apply = Stylesheet.apply

    def counting(sheet: Stylesheet, node: DOMNode, **options: Any) -> None:
        styled.append(node)
        apply(sheet, node, **options)

    monkeypatch.setattr(Stylesheet, "apply", counting)
    app = still_app(Story())
    async with app.run_test(size=(120, 40)) as pilot:
        await shown(pilot)
        parts = [node for node in styled if isinstance(node, Widget) and node.is_attached]
        styled.clear()
        app.chat.body.hide_welcome()

        # Some change their classes once they know their size.
        assert len(parts) < 2 * len({*parts})
        assert styled == []
        assert app.chat.body.conversation.display
