"""`--replay`: the app that plays one recording."""

from collections.abc import Sequence
from pathlib import Path

from textual.filter import NoColor

from tui_agent.ui.app.base_app import THIN_SCROLLBARS, BaseApp
from tui_agent.ui.app.themes import DEFAULT_THEME, ThemeCatalogue, shipped_themes, theme_for
from tui_agent.ui.base.terminal_environment import TerminalEnvironment

from .player_screen import PlayerScreen


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
