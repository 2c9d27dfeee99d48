"""The question whether the user trusts a folder, before the app starts and before its settings apply."""

import time
from collections.abc import Callable

from tui_agent.ui.dialogs.trust_screen import TrustChoice, TrustPrompt, TrustScreen

from .question_app import QuestionApp
from .themes import DEFAULT_THEME


class TrustQuestion(QuestionApp[TrustChoice | None]):
    """Returns the answer, or None if the user quits."""

    def __init__(
        self, prompt: TrustPrompt, *, theme: str = DEFAULT_THEME, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(theme)
        self._question = TrustScreen(prompt, clock=clock)

    def on_mount(self) -> None:
        """Show the question; the answer ends the app."""
        self.push_screen(self._question, self.exit)
