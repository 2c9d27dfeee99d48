"""Asks whether a folder is trusted, before the app starts and before anything of the folder is applied."""

import time
from collections.abc import Callable

from .plain_app import PlainApp
from .screens.trust import TrustChoice, TrustMatter, TrustScreen
from .themes import DEFAULT_THEME, ThemeShelf, shipped_themes


class TrustQuestion(PlainApp[TrustChoice | None]):
    """Returns the answer, or None if the person left instead."""

    ENABLE_COMMAND_PALETTE = False

    def __init__(
        self, matter: TrustMatter, *, theme: str = DEFAULT_THEME, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self._question = TrustScreen(matter, clock=clock)
        shelf = ThemeShelf((shipped_themes(),))
        chosen = shelf.find(theme) or shelf.find(DEFAULT_THEME)
        if chosen is not None:
            self.register_theme(chosen)
            self.theme = chosen.name

    def on_mount(self) -> None:
        """Puts the question; the program goes on with the answer."""
        self.push_screen(self._question, self.exit)
