"""One row of styled text. A style is a name; the widget knows the colours.

A style name is one or more of the component classes of `line_view.LineView`, such as `strong code`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

Run: TypeAlias = tuple[str, str]
"""Text and its style name; the empty name is plain."""

NARROWEST = 8
"""Least cells that layouts assume; a narrower window cuts rows off."""


@dataclass(frozen=True, slots=True)
class Line:
    """One row of the screen."""

    runs: tuple[Run, ...] = ()
    joint: str | None = None
    """Text between it and the row above in the unwrapped line: a blank or nothing. None: it begins a line."""
    indent: int = 0
    """Number of characters at its beginning that are not text and not copied."""
    fill: str = ""
    """Style of the cells after its end."""
    paint: Callable[[Sequence[Run], int], Sequence[Run]] | None = field(default=None, compare=False)
    """Returns its runs with colours that are worked out when it is drawn; called with the index of its text."""

    @property
    def painted(self) -> Sequence[Run]:
        """Its runs as they are drawn."""
        return self.runs if self.paint is None else self.paint(self.runs, self.indent)

    @property
    def plain(self) -> str:
        """Its characters, with those of the margin: the first `indent` ones."""
        return "".join(text for text, _ in self.runs)

    def looks_like(self, other: "Line") -> bool:
        """Return True if it surely is drawn like another row."""
        return self is other or (self.paint is None and other.paint is None and self == other)

    def prefixed(self, *prefix: Run) -> "Line":
        """Return the row after a margin that is not text."""
        return replace(self, runs=(*prefix, *self.runs), indent=self.indent + sum(len(text) for text, _ in prefix))

    def styled(self, style: str) -> "Line":
        """Return the row with a style beneath those of its runs."""
        return replace(self, runs=tuple((text, f"{style} {inner}".strip()) for text, inner in self.runs))
