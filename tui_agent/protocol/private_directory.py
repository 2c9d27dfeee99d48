"""Directories of tui-agent's own files, which only their owner may enter."""

from pathlib import Path

PRIVATE_MODE = 0o700
"""Mode of such a directory."""


def make_private_directories(path: Path) -> None:
    """Create a directory and its missing parents with mode 0700, under any umask; existing ones stay as they are.

    `Path.mkdir(mode, parents=True)` gives the parents another mode.

    Raises:
        OSError: one cannot be created, or a file has the name.
    """
    missing = [path]
    while not missing[-1].parent.exists():
        missing.append(missing[-1].parent)
    for directory in reversed(missing):
        directory.mkdir(PRIVATE_MODE, exist_ok=True)
        if directory.stat().st_mode & 0o700 != PRIVATE_MODE:
            # A umask that takes the owner's rights, too.
            directory.chmod(PRIVATE_MODE)
