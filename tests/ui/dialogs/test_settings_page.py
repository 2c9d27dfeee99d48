"""`/settings` as the user sees and drives it, with real files."""

import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.ui.question_page import open_page, rows_of
from tests.ui.stage import Stage, stage
from tests.ui.still import drawn, shown, still_app
from tests.ui.story import Story
from tui_agent.settings import Locations
from tui_agent.ui.app.tui_agent_app import TuiAgentApp
from tui_agent.ui.dialogs.chooser_page import ChooserPage
from tui_agent.ui.dialogs.settings_page import SettingsPage
from tui_agent.workbench.configuration.launch_options import LaunchOptions
from tui_agent.workbench.live_settings import SessionSettings

TEXT = '# mine\nmodel = "claude-opus-5-5" # best\n\n[ui]\ntheme = "dark"\n\n# limits\n[budget]\ntokens = 500000\n'


def user_file(text: str = TEXT) -> Path:
    path = Locations.of_user(os.environ).user_file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def settings_of(folder: Path) -> SessionSettings:
    return SessionSettings(Locations.of_user(os.environ), LaunchOptions.for_command(folder))


@asynccontextmanager
async def page(folder: Path, *, size: tuple[int, int] = (120, 40)) -> AsyncGenerator[tuple[Stage, SettingsPage]]:
    async with stage(size=size) as on:
        screen = await open_page(on, "/settings", SettingsPage, settings=settings_of(folder))
        await on.until(lambda: screen.selected)
        yield on, screen


async def find(on: Stage, screen: SettingsPage, name: str) -> None:
    """Search for the last word of a name."""
    await on.pilot.press(*name.rpartition(".")[2])
    await on.until(lambda: screen.selected is not None and screen.selected.key == name)


def message(screen: SettingsPage) -> str:
    return rows_of(screen, "#settings-state").strip()


async def test_a_switch_is_turned_a_choice_chosen_and_everything_else_of_the_file_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = user_file()
    monkeypatch.setenv("TUI_AGENT_MAX_STEPS", "7")
    async with page(tmp_path) as (on, screen):
        await find(on, screen, "ui.vim_keys")
        await on.pilot.press("enter")
        await on.until(lambda: message(screen) == "ui.vim_keys is saved. It takes effect now.")
        assert path.read_text("utf-8") == TEXT.replace("[ui]\n", "[ui]\nvim_keys = true\n")
        assert screen.selected is not None
        assert (screen.selected.value, screen.selected.source) == ("true", "your file")
        await on.pilot.press("ctrl+x")
        await on.until(lambda: message(screen) == "ui.vim_keys is back at its default. It takes effect now.")
        assert path.read_text("utf-8") == TEXT

        await on.pilot.press("escape")
        await find(on, screen, "max_steps")
        await on.pilot.press("enter")
        await on.until(lambda: message(screen).startswith("TUI_AGENT_MAX_STEPS sets it"))
        assert not screen.is_asking

        await on.pilot.press("escape")
        await find(on, screen, "ui.notifications")
        await on.pilot.press("enter")
        await on.until(lambda: isinstance(on.app.screen, ChooserPage))
        await on.pilot.press(*"osc9", "enter")
        await on.until(lambda: "It takes effect at the next start." in message(screen))
        assert 'notifications = "osc9"' in path.read_text("utf-8")


async def test_a_wrong_number_is_refused_with_the_reason_and_can_be_mended(tmp_path: Path) -> None:
    path = user_file()
    async with page(tmp_path) as (on, screen):
        await find(on, screen, "max_steps")
        await on.pilot.press("enter", *"many", "enter")
        await on.until(lambda: message(screen) == "Nothing was changed.")
        assert screen.is_asking
        assert screen.selected is not None
        assert "valid integer" in screen.detail_rows(screen.selected, 60)[0].plain
        assert path.read_text("utf-8") == TEXT

        await on.pilot.press(*["backspace"] * 4, *"12", "enter")
        await on.until(lambda: message(screen) == "max_steps is saved. It takes effect now.")
        assert path.read_text("utf-8") == f"max_steps = 12\n{TEXT}"


async def test_a_file_that_changed_meanwhile_is_shown_anew_and_not_overwritten(tmp_path: Path) -> None:
    user_file()
    async with page(tmp_path) as (on, screen):
        await find(on, screen, "ui.mouse")
        path = user_file("[ui]\nmouse = false\n")
        await on.pilot.press("enter")
        await on.until(lambda: message(screen) == "Nothing was changed.")
        assert path.read_text("utf-8") == "[ui]\nmouse = false\n"
        assert screen.selected is not None
        assert screen.selected.value == "false"

        await on.pilot.press("enter")
        await on.until(lambda: message(screen) == "ui.mouse is saved. It takes effect now.")
        assert path.read_text("utf-8") == "[ui]\nmouse = true\n"

        user_file("model =\n")
        await on.pilot.press("enter")
        await on.until(lambda: message(screen) == "Nothing was changed.")
        assert str(path)[:40] in screen.detail_rows(screen.selected, 200)[0].plain, "a broken file is named"


def opening(*keys: str) -> Callable[[Pilot[None]], Awaitable[None]]:
    async def before(pilot: Pilot[None]) -> None:
        await shown(pilot)
        app = pilot.app
        assert isinstance(app, TuiAgentApp)
        await pilot.press("slash", *"settings", "enter")
        while not (isinstance(app.screen, SettingsPage) and app.screen.selected):
            await pilot.pause()
        for key in ("", *keys):
            await drawn(pilot)
            await pilot.press(*filter(None, [key]))
        await drawn(pilot)

    return before


@pytest.mark.slow
def test_the_page_looks_as_it_should(snap_compare: Callable[..., Any]) -> None:
    user_file()
    app = still_app(Story().run("x").end("Done."), settings=settings_of(Path("/")))
    assert snap_compare(app, terminal_size=(120, 40), run_before=opening(*["down"] * 3))
