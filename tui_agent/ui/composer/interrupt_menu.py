"""The line that offers the ways to interrupt a run."""

from dataclasses import dataclass

from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.timer import Timer
from textual.widget import Widget

from tui_agent.ui.base.commands import command
from tui_agent.ui.text.amounts import count_text
from tui_agent.ui.text.joined_parts import joined_parts

OPEN_SECONDS = 6.0
"""Seconds until the menu closes by itself."""


class InterruptMenu(Widget):
    """The ways to interrupt, each with its effect. The keys belong to the screen; the menu only shows them."""

    DEFAULT_CSS = """
    InterruptMenu {
        height: 1;
        display: none;
        color: $text;
        background: $panel;
    }
    """

    @dataclass
    class Closed(Message):
        """The menu closed by itself."""

    running = reactive(0)
    """Number of calls that cancelling would end."""
    waiting = reactive(0)
    """Number of queued messages that could be sent at once."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._timer: Timer | None = None

    @property
    def is_open(self) -> bool:
        """True while the keys of the menu count."""
        return bool(self.display)

    def open(self, running: int, waiting: int) -> None:
        """Show the menu until `close` or for `OPEN_SECONDS`."""
        self.running, self.waiting = running, waiting
        self.display = True
        self._stop_timer()
        # A letter that is typed later must be a letter again.
        self._timer = self.set_timer(OPEN_SECONDS, self._expire)

    def close(self) -> None:
        """Hide the menu."""
        self.display = False
        self._stop_timer()

    def _expire(self) -> None:
        self.close()
        self.post_message(self.Closed())

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None

    def render(self) -> Content:
        """Return the choices, as many as fit."""
        what = f"cancel {count_text(self.running, 'tool')} and stop" if self.running else "cancel and stop"
        choices: list[tuple[str, str]] = [(f"{command('interrupt.cancel').key_text} again", what)]
        choices.append((command("interrupt.stop").key_text, command("interrupt.stop").text))
        if self.waiting:
            choices.append((command("interrupt.now").key_text, command("interrupt.now").text))
        return joined_parts(
            [
                Content.assemble((key, "$warning bold"), f": {text}" if number == 0 else f" {text}")
                for number, (key, text) in enumerate(choices)
            ],
            self.size.width,
            start=" ",
        )
