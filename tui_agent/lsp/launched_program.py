"""The command line of a language server, prepared for one start."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LaunchedProgram:
    """One start of a server."""

    argv: tuple[str, ...]
    """Command line, with walls and marks."""
    environment: Mapping[str, str]
    descriptors: tuple[int, ...]
    started: Callable[[int], object]
    """Called with the id of the first process."""
    end: Callable[[int | None], object]
    """Ends everything that still runs, and removes what the start needed; called with the id of the first process, None
    if it could not be started. Blocks."""
