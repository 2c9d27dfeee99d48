"""Types of the app and the screen for code that works in any: without them, Textual's `app` property has none."""

from textual import getters
from textual.app import App
from textual.screen import Screen
from textual.widget import Widget

from .frame_pace import FramePace


def any_app() -> type[App[object]]:
    """Return the app's type, for `app = getters.app(any_app)` in a class body."""
    return App


class AnyScreen(Screen[None]):
    """A screen as its controllers see it: they push dialogs, notify and set timers, and know none of its widgets."""

    app = getters.app(any_app)
    pace = FramePace()

    def on_idle(self) -> None:
        """Paint what the user typed without waiting for the timer, whose next turn is up to 17 ms away."""
        if self.focused in self._dirty_widgets:
            self.pace.paint_typed(self._paint_typed)

    def _paint_typed(self) -> None:
        """Paint the widget that has the keyboard; if nothing has moved, the others follow with the timer."""
        others: set[Widget] = set()
        if self.focused is not None and not (self._layout_required or self._scroll_required or self._repaint_required):
            others = self._dirty_widgets - {self.focused}
            self._dirty_widgets -= others
        super()._on_timer_update()
        self._dirty_widgets |= others

    def _on_timer_update(self) -> None:
        # Textual offers no public way to change the rate. Without a terminal, as in tests, no frame waits.
        self.pace.paint(super()._on_timer_update, always=self.app.is_headless)
