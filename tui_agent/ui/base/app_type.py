"""Types of the app and the screen for code that works in any: without them, Textual's `app` property has none."""

from textual import getters
from textual.app import App
from textual.screen import Screen

from .frame_pace import FramePace


def any_app() -> type[App[object]]:
    """Return the app's type, for `app = getters.app(any_app)` in a class body."""
    return App


class AnyScreen(Screen[None]):
    """A screen as its controllers see it: they push dialogs, notify and set timers, and know none of its widgets."""

    app = getters.app(any_app)
    pace = FramePace()

    def _on_timer_update(self) -> None:
        # Textual offers no public way to change the rate. Without a terminal, as in tests, no frame waits.
        self.pace.paint(super()._on_timer_update, always=self.app.is_headless)
