"""Files that belong to a repository, in contrast to links that lead out of it.

A link in a clone may lead to any file of the user, such as a private key. Its target is not part of the repository.
"""

import os
from pathlib import Path


def repository_root(folder: Path) -> Path:
    """Return the resolved root of the repository around `folder`; without one, `folder` itself. Blocks."""
    here = Path(os.path.realpath(folder))
    return next((place for place in (here, *here.parents) if os.path.lexists(place / ".git")), here)


def target_outside(path: Path, folder: Path) -> Path | None:
    """Return the target of `path` if that is outside the repository around `folder`, else None. Blocks.

    Every link on the way is followed, directories included, and paths are compared by components. If the repository is
    the user's home or `/`, `folder` counts as its root. Git's own directory is outside, too.
    """
    here, target = Path(os.path.realpath(folder)), Path(os.path.realpath(path))
    root = repository_root(here)
    if root in (Path("/"), Path(os.path.realpath(os.path.expanduser("~")))):
        root = here
    if not target.is_relative_to(root) or target.relative_to(root).parts[:1] == (".git",):
        return target
    return None


def refusal(path: Path, target: Path) -> str:
    """Return the sentence for a file that is not used because it leads out of the repository."""
    return f"{path} is a link to {target}, outside of this repository: not used"
