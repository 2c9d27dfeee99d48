"""One line of parts with dots between them."""

from collections.abc import Sequence

from textual.content import Content


def joined_parts(parts: Sequence[Content], width: int, start: str = "") -> Content:
    """Return `start` and the parts, joined by dots: the first part and as many more as fit into `width` cells."""
    line = Content(start)
    for number, part in enumerate(parts):
        longer = line + (Content.styled(" · ", "$text-muted") if number else Content("")) + part
        if number and longer.cell_length > width:
            break
        line = longer
    return line
