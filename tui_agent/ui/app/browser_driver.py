"""The driver of the app in a browser: Textual's own, which also ends the app when its server has gone."""

from contextlib import suppress

from textual.drivers.web_driver import WebDriver
from textual.messages import ExitApp


class BrowserDriver(WebDriver):
    """Talks to `textual serve` through pipes."""

    def run_input_thread(self) -> None:
        """Read input until the app ends; if the input ends first, end the app."""
        super().run_input_thread()
        if not self.exit_event.is_set():
            self.send_message(ExitApp())

    def write(self, data: str) -> None:
        """Write terminal sequences; without a server no one reads them."""
        with suppress(BrokenPipeError):
            super().write(data)

    def write_meta(self, data: dict[str, object]) -> None:
        """Write a message for the server; without a server no one reads it."""
        with suppress(BrokenPipeError):
            super().write_meta(data)
