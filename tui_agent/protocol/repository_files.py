"""Check for links that lead out of a repository.

A link in a clone may lead to any file of the user, such as a private key, which the repository must not read.
"""

import os
from pathlib import Path


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
