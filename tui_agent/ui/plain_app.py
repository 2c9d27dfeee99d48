"""What every app of ours does with text on its way to the terminal, whatever widget or message it came through."""

from typing import TypeVar

from textual.app import App
from textual.notifications import SeverityLevel

from .plain_cells import PlainCells
from .text import sanitise

Result = TypeVar("Result")


class PlainApp(App[Result]):
    """An app to whose terminal no outside text gives orders (safety promise 17)."""

    def __init__(self) -> None:
        super().__init__()
        self._filters.append(PlainCells())

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """Shows a short text for a moment, sanitised and never as markup."""
        super().notify(sanitise(message), title=sanitise(title), severity=severity, timeout=timeout, markup=False)

    def copy_to_clipboard(self, text: str) -> None:
        """Copies a text; halves of characters, which no clipboard takes, as question marks."""
        super().copy_to_clipboard(text.encode("utf-8", "replace").decode("utf-8"))
