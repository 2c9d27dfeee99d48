"""Applies the settings of the screen: at the start, and when their files change."""

from tui_agent.settings import Settings
from tui_agent.ui.app.terminal_driver import TerminalDriver
from tui_agent.ui.app.tui_agent_app import TuiAgentApp
from tui_agent.ui.base.commands import use_keys
from tui_agent.ui.base.key_settings import check_keys


def apply_input(settings: Settings) -> None:
    """Use the user's keys and mouse in every app of this process; keys that cannot be applied stay the default ones."""
    TerminalDriver.takes_mouse = settings.ui.mouse
    if settings.keys:
        use_keys(check_keys(settings.keys).keys)


def use_on_screen(app: TuiAgentApp, before: Settings, after: Settings) -> None:
    """Apply to a running app what changed in its settings."""
    if after.ui.theme != before.ui.theme:
        app.show_theme(after.ui.theme)
    if after.keys != before.keys:
        app.use_keys(check_keys(after.keys).keys)
    app.use_vim_keys(after.ui.vim_keys)
    if after.ui.mouse != before.ui.mouse:
        app.use_mouse(after.ui.mouse)
