"""Types of the app and the screen for code that works in any: without them, Textual's `app` property has none."""

from typing import Any, cast

from textual import getters
from textual.app import App
from textual.events import Event
from textual.screen import Screen
from textual.widget import Widget

from .frame_pace import FramePace


def any_app() -> type[App[object]]:
    """Return the app's type, for `app = getters.app(any_app)` in a class body."""
    return App


def _paint_typed(screen: "AnyScreen") -> None:
    """Paint what the user typed at once: the timer's next turn is up to 17 ms away."""
    private, base = cast(Any, screen), cast(Any, Screen)

    def frame() -> None:
        # If nothing has moved, the other widgets follow with the timer.
        others: set[Widget] = set()
        if not (private._layout_required or private._scroll_required or private._repaint_required):
            others = private._dirty_widgets - {screen.focused}
            private._dirty_widgets -= others
        base._on_timer_update(screen)
        private._dirty_widgets |= others

    if screen.focused in private._dirty_widgets:
        screen.pace.paint_typed(frame)


class AnyScreen(Screen[None]):
    """A screen as its controllers see it: they push dialogs, notify and set timers, and know none of its widgets."""

    app = getters.app(any_app)
    pace = FramePace()

    on_idle = _paint_typed

    def _on_timer_update(self) -> None:
        self.pace.paint(super()._on_timer_update, always=self.app.is_headless)


class InputTaker(AnyScreen):
    """A screen that takes all input of the user, also while a dialog covers it."""

    async def take(self, event: Event) -> bool:
        """Handle a key, paste or mouse event; return False to leave it to the app."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the screen and its dialogs."""
        raise NotImplementedError
