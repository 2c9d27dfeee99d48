"""Functions and classes of the workspace."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourceSymbol:
    """A function or class in a file of the workspace."""

    name: str
    kind: str
    """The word that declares it, such as `def` or `class`."""
    path: str
    first: int
    """Number of its first line."""
    last: int
