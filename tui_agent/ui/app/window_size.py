"""The size of the window as it is, whatever order its changes are told in.

Textual reads the size inside a signal handler. Of changes in quick succession the handlers interrupt one another, the
innermost of them tells the newest size first, and the app would keep the oldest.
"""

import shutil

from textual.events import Resize
from textual.geometry import Size


def with_current_size(event: Resize) -> Resize:
    """The same event with the size of now; one that the terminal sent itself, in order and in pixels too, stays."""
    if event.pixel_size is not None:
        return event
    # Reads it as Textual does: a fixed size in the environment comes first.
    size = Size(*shutil.get_terminal_size((event.size.width, event.size.height)))
    return Resize(size, size)
