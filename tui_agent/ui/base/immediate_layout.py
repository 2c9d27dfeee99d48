"""Containers that arrange their children within one frame."""

from textual.widget import Widget


class ImmediateLayout(Widget):
    """A container whose children can change their place in the next frame, not in the one after it."""

    def rearrange(self) -> None:
        """Arrange the children anew in the next frame."""
        # Textual handles a child's request for a new layout only after that frame, which shows the old places.
        self._clear_arrangement_cache()
        self.refresh(layout=True)
        self.screen.refresh(layout=True)
