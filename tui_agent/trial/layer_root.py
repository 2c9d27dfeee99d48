"""One directory that a layer covers, and where its changes are stored."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class LayerRoot:
    """One directory that a layer covers: the workspace, or a repository outside of it."""

    place: Path
    """The directory, links followed."""
    upper: Path
    """Directory of the changed files, as overlayfs stores them."""
    work: Path
    """Directory that overlayfs needs beside it."""
