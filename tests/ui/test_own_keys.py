"""Keys that the user has changed in the settings: they act, and every hint names them."""

from collections.abc import Iterator

import pytest
from textual.containers import VerticalScroll

from tests.ui.stage import StageTool, stage
from tests.ui.test_chat_flows import dialog_of
from tui_agent.providers.scripted_provider import call, reply
from tui_agent.ui.base.commands import command, use_keys
from tui_agent.ui.chat.actions.command_actions import CommandProvider
from tui_agent.ui.dialogs.text_page import help_text


@pytest.fixture(autouse=True)
def default_keys_afterwards() -> Iterator[None]:
    yield
    use_keys({})


async def test_a_command_has_its_new_keys_and_an_old_one_acts_as_if_it_had_never_been_its_own() -> None:
    async with stage() as on:
        search = on.chat.body.search
        on.app.use_keys({"chat.search": ("f5", "ctrl+k")})
        await on.pilot.press("ctrl+f")
        assert not search.is_open
        for key in ("f5", "ctrl+k"):
            await on.pilot.press(key)
            assert search.is_open
            await on.pilot.press("escape")
            assert not search.is_open

        on.app.use_keys({"chat.search": (), "composer.new_line": ()})
        await on.pilot.press("ctrl+f", "ctrl+j")
        assert not search.is_open
        assert on.draft == ""

        on.app.use_keys({"composer.earlier": ("ctrl+p",), "app.command_palette": ("f9",)})
        await on.type("one")
        await on.pilot.press("ctrl+j")
        await on.type("two")
        assert on.draft == "one\ntwo", "keys that were removed return with the default keys"
        await on.pilot.press("up")
        assert on.chat.entry.composer.cursor_location[0] == 0
        await on.pilot.press("ctrl+f")
        assert search.is_open


async def test_keys_that_were_in_force_before_the_app_started_act_in_it() -> None:
    use_keys({"chat.search": ("f5",), "app.quit": ("ctrl+d",)})
    async with stage() as on:
        await on.pilot.press("f5")
        assert on.chat.body.search.is_open
        await on.pilot.press("ctrl+q")
        assert on.app.is_running
        await on.pilot.press("ctrl+d")
        await on.until(lambda: not on.app.is_running)


async def test_an_answer_key_can_be_another_letter_and_the_old_one_is_text() -> None:
    tool = StageTool("make", read_only=False)
    async with stage([reply(call("make", what="all")), "Made."], [tool]) as on:
        on.app.use_keys({"approval.approve_once": ("j",)})
        await on.say("make all")
        on.clock.now += 5
        await dialog_of(on)
        await on.type("y")
        await on.until(lambda: on.draft == "y")
        assert tool.ran == []
        await on.pilot.press("backspace", "ctrl+y")
        dialog = await dialog_of(on)
        await on.type("j")
        dialog.settle()
        await on.settled()
        assert tool.ran == ["all"]


async def test_hints_help_and_palette_name_the_keys_in_force() -> None:
    async with stage(size=(100, 30)) as on:
        on.app.use_keys({"chat.help": ("f5",), "chat.search": ("ctrl+k",), "composer.follow_up": ("f8",)})
        await on.pilot.pause()
        assert "f5 help" in str(on.chat.bars.line.render())
        lines = [line for line in str(help_text(80)).splitlines() if command("chat.search").help in line]
        assert lines
        assert all("ctrl+k" in line for line in lines if "+" in line)
        assert not any("ctrl+f" in line for line in lines)
        on.chat.entry.set_busy(True)
        assert on.chat.entry.composer.placeholder == "Type to steer; f8 for a turn of its own"
        provider = CommandProvider(on.chat)
        assert {entry.text: entry.key for entry in provider._entries()}["search"] == "ctrl+k"


async def test_pages_name_the_key_that_closes_them_and_are_readable_in_the_smallest_window() -> None:
    async with stage(size=(20, 4)) as on:
        on.app.use_keys({"detail.close": ("f9",)})
        await on.pilot.press("f1")
        await on.until(lambda: on.app.screen is not on.chat)
        page = on.app.screen.query_one(VerticalScroll)
        assert page.border_subtitle == "f9 closes"
        assert page.size.height == 4
        await on.pilot.press("f9")
        assert on.app.screen is on.chat
