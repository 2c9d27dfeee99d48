"""Apps that show one dialog before the agent starts."""

import os
import time
from collections.abc import Callable
from typing import ClassVar, TypeVar

from textual.binding import BindingType

from tui_agent.ui.base.commands import COMMANDS, bindings_for
from tui_agent.ui.base.terminal_environment import TerminalEnvironment
from tui_agent.ui.dialogs.trust_screen import TrustChoice, TrustPrompt, TrustScreen

from .base_app import BaseApp
from .themes import AUTO_THEME, DEFAULT_THEME, ThemeCatalogue, shipped_themes, theme_for

Result = TypeVar("Result")

_KEYS = tuple(each for each in COMMANDS if each.id in ("app.quit", "app.suspend_process"))


class QuestionApp(BaseApp[Result]):
    """Shows a dialog and returns its answer; quits and suspends with the same keys as the main app."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("app", _KEYS)]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, theme: str) -> None:
        """Create the app with the theme of this name, or with the default one if there is none."""
        super().__init__(light=TerminalEnvironment.of_environment(os.environ).light)
        self._theme_name = theme
        self.show_background()

    @property
    def follows_terminal(self) -> bool:
        """True if the theme depends on the terminal's background."""
        return self._theme_name == AUTO_THEME

    def show_background(self) -> None:
        """Use the theme."""
        catalogue = ThemeCatalogue((shipped_themes(),))
        chosen = catalogue.find(theme_for(self._theme_name, light=self.light)) or catalogue.find(DEFAULT_THEME)
        if chosen is not None:
            self.register_theme(chosen)
            self.theme = chosen.name


class TrustQuestion(QuestionApp[TrustChoice | None]):
    """The question whether the user trusts a folder. Returns the answer, or None if the user quits."""

    def __init__(
        self, prompt: TrustPrompt, *, theme: str = DEFAULT_THEME, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(theme)
        self._question = TrustScreen(prompt, clock=clock)

    def on_mount(self) -> None:
        """Show the question; the answer ends the app."""
        self.push_screen(self._question, self.exit)
