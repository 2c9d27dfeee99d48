"""The branch of a directory, read without git."""

import os
import re
from pathlib import Path

from tui_agent.protocol.regular_file import read_regular_file

_LARGEST_POINTER = 65_536
"""Maximum size in bytes of a file in which git names a branch or a directory."""

_HASH = re.compile("[0-9a-f]{7,64}")


def branch_of(directory: Path) -> str:
    """Return the name of the branch or the start of the commit's hash; empty if neither can be read."""
    for folder in (directory, *directory.parents):
        pointer = folder / ".git"
        try:
            if os.path.isfile(pointer):
                pointer = folder / _small_text(pointer).removeprefix("gitdir:").strip()
            head = _small_text(pointer / "HEAD").strip()
        except (OSError, UnicodeDecodeError):
            continue
        if head.startswith("ref:"):
            return head.removeprefix("ref: refs/heads/")
        # The file may be a link to any other one, such as a key.
        return head[:7] if _HASH.fullmatch(head) else ""
    return ""


def _small_text(path: Path) -> str:
    return read_regular_file(str(path), _LARGEST_POINTER).decode("utf-8")
