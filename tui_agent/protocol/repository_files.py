"""Check for links that lead out of a repository, and its branch, read without git.

A link in a clone may lead to any file of the user, such as a private key, which the repository must not read.
"""

import os
import re
from pathlib import Path

from .regular_file import read_regular_file


def repository_root(folder: Path) -> Path:
    """Return the resolved root of the repository around `folder`; without one, `folder` itself. Blocks."""
    here = Path(os.path.realpath(folder))
    return next((place for place in (here, *here.parents) if os.path.lexists(place / ".git")), here)


def target_outside(path: Path, folder: Path) -> Path | None:
    """Return the target of `path` if it is outside the repository around `folder`, else None. Blocks.

    All links are followed, also those of directories. If the repository root is the user's home or `/`, `folder` counts
    as the root. Git's own directory counts as outside.
    """
    here, target = Path(os.path.realpath(folder)), Path(os.path.realpath(path))
    root = repository_root(here)
    if root in (Path("/"), Path(os.path.realpath(os.path.expanduser("~")))):
        root = here
    if not target.is_relative_to(root) or target.relative_to(root).parts[:1] == (".git",):
        return target
    return None


def refusal(path: Path, target: Path) -> str:
    """Return the message for a file that is not used because it leads out of the repository."""
    return f"{path} is a link to {target}, outside this repository: not used"


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
