"""An app that asks one thing before the agent starts: in the chosen theme, left and put to sleep as everywhere."""

from typing import ClassVar, TypeVar

from textual.binding import BindingType

from tui_agent.ui.base.commands import COMMANDS, bindings_for

from .base_app import BaseApp
from .themes import DEFAULT_THEME, ThemeCatalogue, shipped_themes

Result = TypeVar("Result")

_KEYS = tuple(one for one in COMMANDS if one.id in ("app.quit", "app.suspend_process"))


class QuestionApp(BaseApp[Result]):
    """Returns the answer."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("everywhere", _KEYS)]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, theme: str) -> None:
        """Makes the app; `theme` is a name, and where there is none of it the usual one is taken."""
        super().__init__()
        shelf = ThemeCatalogue((shipped_themes(),))
        chosen = shelf.find(theme) or shelf.find(DEFAULT_THEME)
        if chosen is not None:
            self.register_theme(chosen)
            self.theme = chosen.name
