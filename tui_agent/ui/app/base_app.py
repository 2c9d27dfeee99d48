"""What every app of ours does with the terminal, and with text on its way there, whatever it came through."""

from typing import TypeVar

from textual import on
from textual.app import App
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.notifications import SeverityLevel

from tui_agent.ui.text.sanitiser import sanitise

from .control_character_filter import ControlCharacterFilter
from .terminal_driver import TerminalDriver

Result = TypeVar("Result")


class BaseApp(App[Result]):
    """An app to whose terminal no outside text gives orders (safety promise 17)."""

    def __init__(self) -> None:
        super().__init__()
        self._filters.append(ControlCharacterFilter())

    def get_driver_class(self) -> type[Driver]:
        """The driver for the terminal; in a browser and in tests another one."""
        chosen = super().get_driver_class()
        return TerminalDriver if chosen is LinuxDriver else chosen

    @on(Driver.SignalResume)
    def _repaint_after_resume(self) -> None:
        # The terminal shows an empty screen after `ctrl+z`, and Textual sees nothing that would have to be drawn.
        self.refresh(layout=True)

    def abandon_terminal(self) -> None:
        """Where the program sleeps, it does not take the terminal again: it wakes to end. For signal handlers."""
        if isinstance(self._driver, TerminalDriver):
            self._driver.leaving = True

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
