"""Asks whether a folder is trusted, before the app starts and before anything of the folder is applied."""

import time
from collections.abc import Callable

from tui_agent.ui.dialogs.trust_screen import TrustChoice, TrustPrompt, TrustScreen

from .question_app import QuestionApp
from .themes import DEFAULT_THEME


class TrustQuestion(QuestionApp[TrustChoice | None]):
    """Returns the answer, or None if the person left instead."""

    def __init__(
        self, matter: TrustPrompt, *, theme: str = DEFAULT_THEME, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(theme)
        self._question = TrustScreen(matter, clock=clock)

    def on_mount(self) -> None:
        """Puts the question; the program goes on with the answer."""
        self.push_screen(self._question, self.exit)
