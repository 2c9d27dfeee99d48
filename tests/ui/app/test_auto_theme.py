"""The theme `auto`: light or dark, like the terminal."""

import pytest

from tests.support.table import table
from tests.ui.still import FakeAgent
from tui_agent.protocol.bus import EventBus
from tui_agent.ui.app.terminal_input import BackgroundReported
from tui_agent.ui.app.tui_agent_app import TuiAgentApp
from tui_agent.ui.base.terminal_environment import TerminalEnvironment
from tui_agent.ui.bridge.agent_bridge import AgentBridge
from tui_agent.ui.chat.chat_options import ChatOptions


def app_with(theme: str, *, light: bool = False) -> TuiAgentApp:
    surroundings = TerminalEnvironment(reduced_motion=True, light=light)
    return TuiAgentApp(AgentBridge(FakeAgent(), EventBus()), ChatOptions(surroundings=surroundings), theme=theme)


@pytest.mark.parametrize(("light", "theme"), [(False, "dark"), (True, "light")])
async def test_the_first_screen_has_the_theme_that_the_environment_suggests(light: bool, theme: str) -> None:
    async with app_with("auto", light=light).run_test() as pilot:
        assert pilot.app.theme == theme


async def test_the_answer_of_the_terminal_wins_unless_a_theme_is_chosen() -> None:
    app = app_with("auto")
    async with app.run_test() as pilot:
        for theme, light, shown in (
            ("auto", True, "light"),
            ("auto", False, "dark"),
            ("dark", True, "dark"),
            ("auto", True, "light"),
            ("high-contrast", False, "high-contrast"),
        ):
            app.show_theme(theme)
            app.post_message(BackgroundReported(light=light))
            await pilot.pause()
            assert app.theme == shown


@table(("value", "light"), [("0;15", True), ("0;default;7", True), ("15;0", False), ("", False), ("odd", False)])
def test_the_environment_names_the_colours_of_the_terminal(value: str, light: bool) -> None:
    assert TerminalEnvironment.of_environment({"COLORFGBG": value}).light is light
