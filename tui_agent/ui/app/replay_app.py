"""The app of `tui-agent --replay`: one replay, without a chat behind it."""

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from tui_agent.settings import Locations, Settings
from tui_agent.ui.base.app_type import AnyScreen
from tui_agent.ui.base.terminal_environment import TerminalEnvironment
from tui_agent.ui.bridge.agent_bridge import AgentBridge
from tui_agent.ui.chat.chat_options import ChatOptions
from tui_agent.ui.replay.replay_screen import ReplayScreen, replay_of
from tui_agent.workbench.sessions.replay_source import ReplaySource

from .screen_settings import apply_input
from .themes import DEFAULT_THEME
from .tui_agent_app import TuiAgentApp


class ReplayApp(TuiAgentApp):
    """The app of one replay. `run()` returns once the user closes it."""

    def __init__(
        self,
        open_screen: Callable[[ChatOptions], ReplayScreen],
        *,
        theme: str = DEFAULT_THEME,
        themes_dirs: Sequence[Path] = (),
        surroundings: TerminalEnvironment | None = None,
        log_file: Path | None = None,
    ) -> None:
        """Create the app; without a `log_file` a widget that fails ends it."""
        terminal = surroundings or TerminalEnvironment.of_environment(os.environ)
        # No one sees this chat, which has no agent.
        options = ChatOptions(surroundings=terminal)
        super().__init__(AgentBridge(), options, theme=theme, themes_dirs=themes_dirs, log_file=log_file)
        self.replay = open_screen(self.chat.options)
        """The screen of the replay."""

    def get_default_screen(self) -> AnyScreen:
        """Return an empty screen below that of the replay."""
        return AnyScreen()

    def on_mount(self) -> None:
        self.show_replay(self.replay)

    def replay_closed(self) -> None:
        self.exit()


def show_replay(source: ReplaySource, locations: Locations, settings: Settings, log_file: Path) -> int:
    """Show a replay with the user's settings and return the exit code."""
    apply_input(settings)
    app = ReplayApp(
        partial(replay_of, source),
        theme=settings.ui.theme,
        themes_dirs=(locations.user_themes_dir,),
        surroundings=TerminalEnvironment.of_environment(os.environ, reduced_motion=settings.ui.reduced_motion),
        log_file=log_file,
    )
    app.run()
    return app.return_code or 0
