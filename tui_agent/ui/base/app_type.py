"""Types of the app and the screen for code that works in any: without them, Textual's `app` property has none."""

from collections.abc import Callable
from functools import partial
from typing import Any

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
        """Paint what the user typed at once: the timer's next turn is up to 17 ms away."""
        if self.focused in self._dirty_widgets:
            self.pace.paint_typed(partial(_paint_typed, self, super()._on_timer_update))

    def _on_timer_update(self) -> None:
        self.pace.paint(super()._on_timer_update, always=self.app.is_headless)


def _paint_typed(screen: AnyScreen, frame: Callable[[], object]) -> None:
    """Paint the widget that has the keyboard; if nothing has moved, the others follow with the timer."""
    private: Any = screen
    others: set[Widget] = set()
    if not (private._layout_required or private._scroll_required or private._repaint_required):
        others = private._dirty_widgets - {screen.focused}
        private._dirty_widgets -= others
    frame()
    private._dirty_widgets |= others
