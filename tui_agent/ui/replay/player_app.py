"""`--replay`: the app that plays one recording, and the factory of player screens."""

from collections.abc import Sequence
from pathlib import Path

from textual.filter import NoColor

from tui_agent.recording import Recording
from tui_agent.ui.app.base_app import THIN_SCROLLBARS, BaseApp
from tui_agent.ui.app.themes import DEFAULT_THEME, ThemeCatalogue, shipped_themes, theme_for
from tui_agent.ui.base.terminal_environment import TerminalEnvironment

from .player_screen import PlayerScreen, Size
from .replay_stage import Stage


def player_of(
    recording: Recording,
    *,
    surroundings: TerminalEnvironment,
    theme: str | None = None,
    themes_dirs: Sequence[Path] = (),
    log_file: Path | None = None,
) -> PlayerScreen:
    """Return the screen that plays a recording.

    Args:
        recording: the recording.
        surroundings: colours and motion that the terminal asks for.
        theme: replaces the recorded theme.
        themes_dirs: additional folders of theme files.
        log_file: log for failures of the recorded screen; None: they are raised.
    """

    def open_stage(size: Size | None) -> Stage:
        return Stage(
            recording, size=size, theme=theme, themes_dirs=themes_dirs, surroundings=surroundings, log_file=log_file
        )

    return PlayerScreen(recording, open_stage)


class PlayerApp(BaseApp[None]):
    """Plays one recording and exits."""

    CSS = (
        THIN_SCROLLBARS
        + """
    ToastRack {
        dock: top;
        align: right top;
        margin: 1 0 0 0;
    }
    """
    )
    ENABLE_COMMAND_PALETTE = False

    def __init__(
        self, player: PlayerScreen, theme: str, *, themes_dirs: Sequence[Path] = (), surroundings: TerminalEnvironment
    ) -> None:
        super().__init__()
        self.player = player
        """The only screen."""
        shelf = ThemeCatalogue((shipped_themes(), *themes_dirs))
        chosen = shelf.find(theme_for(theme, light=surroundings.light)) or shelf.find(DEFAULT_THEME)
        if chosen is not None:
            self.register_theme(chosen)
            self.theme = chosen.name
        if surroundings.no_color:
            self.no_color = True
            self._filters.append(NoColor())

    def on_mount(self) -> None:
        """Show the player; the app exits when it closes."""
        self.push_screen(self.player, lambda _: self.exit())
