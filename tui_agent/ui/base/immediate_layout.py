"""Layout of a screen within one frame, at its first paint, and without a lost `Resize`."""

from typing import Any, TypeVar, cast

from textual._compositor import Compositor, ReflowResult
from textual.geometry import Size
from textual.screen import Screen
from textual.widget import Widget


class ImmediateLayout(Widget):
    """A container whose children can change their place in the next frame, not in the one after it."""

    def rearrange(self) -> None:
        """Arrange the children anew in the next frame."""
        # Textual handles a child's request for a new layout only after that frame, which shows the old places.
        self._clear_arrangement_cache()
        self.refresh(layout=True)
        self.screen.refresh(layout=True)


Answer = TypeVar("Answer")


def apply_initial_breakpoints(screen: Screen[Answer], window: Size) -> None:
    """Set the breakpoint classes of a screen that is being composed, for a window of this size."""
    tables = (screen.HORIZONTAL_BREAKPOINTS, screen.VERTICAL_BREAKPOINTS)
    for size, breakpoints in zip(window, tables, strict=True):
        reached = [entry for entry in breakpoints or () if entry[0] <= size]
        if reached:
            screen.add_class(max(reached)[1])


def report_each_layout(screen: Screen[Any]) -> None:
    """Give a new screen a compositor from which no widget misses a `Resize`."""
    cast(Any, screen)._compositor = _LayoutCompositor()


class _LayoutCompositor(Compositor):
    """Compositor that compares each layout with the one before."""

    def __init__(self) -> None:
        super().__init__()
        self._sizes: dict[Widget, Size] = {}

    def clear(self) -> None:
        """Forget all widgets."""
        super().clear()
        self._sizes.clear()

    def reflow(self, parent: Widget, size: Size) -> ReflowResult:
        """Lay out all widgets and return those that were hidden, shown or resized since the last call."""
        before, result = self._sizes, super().reflow(parent, size)
        self._sizes = now = {widget: geometry.region.size for widget, geometry in self._full_map.items()}
        return ReflowResult(
            hidden=result.hidden,
            shown=result.shown | (now.keys() - before.keys()),
            resized=result.resized | {widget for widget, its in now.items() if before.get(widget, its) != its},
        )
