"""Base of all apps: the terminal driver, and the last line of defence against control characters.

Text is sanitised where it enters the screen (`sanitiser.py`). The filter here runs after every widget, also Textual's
own: a missed call of the sanitiser leaves a gap in a line instead of a terminal command (safety promise 17).
"""

import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import TypeVar

from rich.cells import cell_len
from rich.segment import Segment
from textual import on
from textual.color import Color
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.filter import LineFilter
from textual.notifications import SeverityLevel

from tui_agent.ui.text.sanitiser import sanitise

from .remappable_app import RemappableApp
from .terminal_answers import BackgroundReported
from .terminal_driver import TerminalDriver

Result = TypeVar("Result")

THIN_SCROLLBARS = """
* {
    scrollbar-size-vertical: 1;
}
"""
"""Style of every scrollbar; part of each app's `CSS`, because style sheets of apps are not inherited."""

_CONTROL_CHARACTERS = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
"""Controls, characters that hide or reorder others, and lone surrogates, which cannot be encoded."""


class BaseApp(RemappableApp[Result]):
    """An app that no outside text can use to control the terminal (safety promise 17)."""

    CSS = THIN_SCROLLBARS

    def __init__(self, *, light: bool = False) -> None:
        """Create the app; `light` is True if the terminal is believed to have a light background."""
        super().__init__()
        self.light = light
        """True if the terminal has a light background."""
        self._filters.append(ControlCharacterFilter())

    @property
    def follows_terminal(self) -> bool:
        """True if the theme depends on the terminal's background."""
        return False

    def show_background(self) -> None:
        """Use the theme for `light`, which the terminal has reported."""

    def ask_background(self) -> None:
        """Ask the terminal for its background if the theme depends on it."""
        if self.follows_terminal and isinstance(self._driver, TerminalDriver):
            self._driver.ask_background()

    @on(BackgroundReported)
    def _background_reported(self, event: BackgroundReported) -> None:
        self.light = event.light
        self.show_background()

    def get_driver_class(self) -> type[Driver]:
        """Return the driver of the terminal; in a browser and in tests another one."""
        chosen = super().get_driver_class()
        return TerminalDriver if chosen is LinuxDriver else chosen

    @on(Driver.SignalResume)
    def _repaint_after_resume(self) -> None:
        # The terminal is empty after `ctrl+z`, and Textual sees no change that it would have to draw.
        self.refresh(layout=True)

    @contextmanager
    def lend_terminal(self) -> Generator[None]:
        """Give the terminal to another program; the app continues behind it, and redraws everything at the end.

        Raises:
            SuspendNotSupported: the app has no terminal of its own.
        """
        driver = self._driver
        with self.suspend():
            if isinstance(driver, TerminalDriver):
                driver.lent = True
            try:
                yield
            finally:
                if isinstance(driver, TerminalDriver):
                    driver.lent = False

    def abandon_terminal(self) -> None:
        """Leave the terminal alone if the program is suspended: it is resumed only to exit. For signal handlers."""
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
        """Show a short message, sanitised and never as markup."""
        super().notify(sanitise(message), title=sanitise(title), severity=severity, timeout=timeout, markup=False)

    def copy_to_clipboard(self, text: str) -> None:
        """Copy a text; lone surrogates, which no clipboard takes, become question marks."""
        super().copy_to_clipboard(text.encode("utf-8", "replace").decode("utf-8"))


class ControlCharacterFilter(LineFilter):
    """Replaces control characters by blanks of the same width, and removes links."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments of one row without control characters and links."""
        if not any(_needs_filter(segment) for segment in segments):
            return segments
        return [_filtered(segment) if _needs_filter(segment) else segment for segment in segments]


def plain(text: str) -> str:
    """Return the text without control characters, as wide as before."""
    return _CONTROL_CHARACTERS.sub(lambda match: " " * max(0, cell_len(match[0])), text)


def _needs_filter(segment: Segment) -> bool:
    text, style, _ = segment
    if not text.isascii() or not text.isprintable():
        return _CONTROL_CHARACTERS.search(text) is not None or (style is not None and style.link is not None)
    return style is not None and style.link is not None


def _filtered(segment: Segment) -> Segment:
    text, style, control = segment
    if style is not None and style.link is not None:
        style = style.update_link(None)
    return Segment(plain(text), style, control)
