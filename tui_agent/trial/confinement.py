"""Facts that all commands of a session in a trial have in common."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from .layer_limits import LayerLimits
from .layer_storage import SessionStorage
from .sorting import PathSorter

CACHE = "/var/cache/tui-agent"
"""Path at which a command under bubblewrap sees the project's cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """Directories, and what a command may see."""

    workspace: Path
    """The working directory, links followed."""
    held: SessionStorage
    """The session's own directories, such as its /tmp."""
    network: bool
    hidden: tuple[Path, ...]
    """Directories of tui-agent, which are empty for commands."""
    shown: tuple[Path, ...]
    """Directories inside hidden ones that commands may read."""
    unreadable: Callable[[], Iterable[Path]]
    """Returns the paths that a rule denies to read, which are empty for commands."""
    limits: LayerLimits
    sorter: PathSorter
    stored: Path | None
    """The stored session, without which no answer comes any more; None if that is not known."""
    on_failure: Callable[[], None]
    """Called when the walls could not be set up, so that they are tested again."""
