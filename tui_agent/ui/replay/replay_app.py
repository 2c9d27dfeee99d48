"""`--replay`: the app that replays one session and exits."""

from collections.abc import Callable, Sequence
from pathlib import Path, PurePath
from typing import ClassVar

from tui_agent.ui.app.themes import DEFAULT_THEME
from tui_agent.ui.app.tui_agent_app import TuiAgentApp
from tui_agent.ui.base.app_type import AnyScreen
from tui_agent.ui.base.terminal_environment import TerminalEnvironment
from tui_agent.ui.bridge.agent_bridge import AgentBridge
from tui_agent.ui.chat.chat_options import ChatOptions

from .replay_screen import ReplayScreen

_STYLES = Path(__file__).parents[1] / "chat" / "chat.tcss"


class ReplayApp(TuiAgentApp):
    """The app of one replay. `run()` returns once the user closes it."""

    CSS_PATH: ClassVar[list[str | PurePath] | str | PurePath | None] = [_STYLES]

    def __init__(
        self,
        open_screen: Callable[[ChatOptions], ReplayScreen],
        *,
        theme: str = DEFAULT_THEME,
        themes_dirs: Sequence[Path] = (),
        surroundings: TerminalEnvironment | None = None,
        log_file: Path | None = None,
    ) -> None:
        """Create the app.

        Args:
            open_screen: returns the screen of the replay.
            theme: name of the theme.
            themes_dirs: more folders of theme files.
            surroundings: colours and motion; None: as the environment asks.
            log_file: log of failed widgets; None: a widget that fails ends the app.
        """
        # No one sees this chat, which has no agent.
        super().__init__(
            AgentBridge(), theme=theme, themes_dirs=themes_dirs, surroundings=surroundings, log_file=log_file
        )
        self.replay = open_screen(self.chat.options)
        """The screen of the replay."""

    def get_default_screen(self) -> AnyScreen:
        """Return an empty screen below that of the replay."""
        return AnyScreen()

    def on_mount(self) -> None:
        """Show the replay."""
        self.show_replay(self.replay)

    def replay_closed(self) -> None:
        """Exit."""
        self.exit()
