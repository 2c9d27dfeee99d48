"""Search in the conversation: opened by key, letter by letter, through the matches, and closed."""

import pytest
from textual.events import Key, Paste
from textual.pilot import Pilot
from textual.widgets import Input

from tests.ui.still import drawn, shown, still_app
from tests.ui.story import Story
from tui_agent.ui.app.tui_agent_app import TuiAgentApp

pytestmark = pytest.mark.slow


def long_story() -> Story:
    story = Story()
    story.run("look")
    story.user("find the needle")
    for number in range(60):
        story.answer(f"straw {number}\n\nmore straw")
    return story.end("nothing")


async def begun(pilot: Pilot[None]) -> TuiAgentApp:
    await shown(pilot)
    assert isinstance(pilot.app, TuiAgentApp)
    return pilot.app


def line_of(app: TuiAgentApp) -> str:
    """Return the search line as it is drawn; empty if it is hidden."""
    line = app.chat.body.search
    if not line.region:
        return ""
    return app.screen._compositor.render_strips()[line.region.y].text.rstrip()


async def test_it_searches_with_each_letter_and_steps_through_the_matches() -> None:
    async with still_app(long_story()).run_test(size=(120, 40)) as pilot:
        app = await begun(pilot)
        await pilot.press("ctrl+f", *"straw 1")
        await drawn(pilot)

        assert line_of(app).startswith(" / straw 1")
        assert "11 of 11" in line_of(app)
        field = app.chat.body.search.query_one(Input)
        # A timer makes a cursor blink, and wakes an idle program; it would be the field's only active one.
        assert [timer for timer in field._timers if timer._active.is_set()] == []
        assert field._cursor_visible

        last = app.chat.body.conversation._found_row
        await pilot.press("up")
        before = app.chat.body.conversation._found_row
        await pilot.press("enter", "f2", "f3", "f3")
        assert (before or 0) < (last or 0)
        assert app.chat.body.conversation._found_row == last
        await pilot.press("f2", "f2", "f2")
        await drawn(pilot)
        assert "8 of 11" in line_of(app)
        assert "f3 next · f2 previous" in line_of(app)

        await pilot.press("ctrl+f")
        search, conversation = app.chat.body.search, app.chat.body.conversation
        with search.prevent(Input.Changed):
            search._input.value = "strawberry"
        conversation.search("straw")  # Its message about the numbers is still on its way …
        search.show_matches(conversation.search("strawberry"))  # … when the next letters are searched.
        await drawn(pilot)
        assert "not found" in line_of(app)


@pytest.mark.parametrize("part", ["conversation", "panel"])
async def test_whatever_is_typed_elsewhere_goes_to_the_composer_in_order_and_is_sent_from_there(part: str) -> None:
    async with still_app(long_story()).run_test(size=(120, 40)) as pilot:
        app = await begun(pilot)
        if part == "panel":
            app.chat.body.panel.focus_list()
        else:
            app.chat.body.conversation.focus()
        await drawn(pilot)
        above = app.chat.body.conversation.scroll_offset.y
        # All at once, as a terminal sends fast typing: none may overtake another.
        typed = "/jkgGnN xuf no?"
        for letter in typed:
            app.post_message(Key("space" if letter == " " else letter, letter))
        app.post_message(Paste(" two words"))
        await drawn(pilot)

        assert app.chat.entry.composer.text == f"{typed} two words"
        assert app.chat.entry.composer.has_focus
        assert app.chat.body.conversation.scroll_offset.y == above
        assert line_of(app) == ""


async def test_escape_returns_to_the_end_and_a_confirmed_match_stays_in_view() -> None:
    async with still_app(long_story()).run_test(size=(80, 24)) as pilot:
        app = await begun(pilot)
        conversation = app.chat.body.conversation
        await pilot.press(*"dra", "ctrl+f", *"needle")
        await drawn(pilot)
        assert not conversation.following

        await pilot.press("escape", *"ft")
        await drawn(pilot)
        assert line_of(app) == ""
        assert conversation.following
        assert app.chat.entry.composer.text == "draft"

        await pilot.press("ctrl+f")
        app.post_message(Paste("begin " + "word " * 40 + "end"))
        await drawn(pilot)
        assert "word end  not found" in line_of(app)
        assert "begin" not in line_of(app)
        await pilot.press("home")
        await drawn(pilot)
        assert line_of(app).startswith(" / begin word")
        assert " not found" in line_of(app)

        await pilot.press("escape", "ctrl+f", *"needle", "enter", "escape")
        await drawn(pilot)
        assert line_of(app) == ""
        assert not conversation.following
        assert conversation.scroll_offset.y < 5
