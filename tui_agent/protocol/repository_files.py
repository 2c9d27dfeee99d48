"""Files that belong to a repository, in contrast to links that lead out of it.

A link that a clone brings with it may name any file of the user's, such as a private key: what it leads to is not what
the repository says.
"""

import os
from pathlib import Path


def repository_root(folder: Path) -> Path:
    """Return the resolved root of the repository around `folder`; without one, `folder` itself. Blocks."""
    here = Path(os.path.realpath(folder))
    return next((place for place in (here, *here.parents) if os.path.lexists(place / ".git")), here)


def target_outside(path: Path, folder: Path) -> Path | None:
    """Return where `path` leads if that is no file of the repository around `folder`, else None. Blocks.

    Every link on the way is followed, directories included, and paths are compared by components. A repository that is
    the user's home or `/` does not make everything below a file of it: then `folder` is what counts. Git's own
    directory holds no file of the repository either.
    """
    here, target = Path(os.path.realpath(folder)), Path(os.path.realpath(path))
    root = repository_root(here)
    if root in (Path("/"), Path(os.path.realpath(os.path.expanduser("~")))):
        root = here
    if not target.is_relative_to(root) or target.relative_to(root).parts[:1] == (".git",):
        return target
    return None


def refusal(path: Path, target: Path) -> str:
    """Return the words for a file that is not used because it leads out of the repository."""
    return f"{path} is a link to {target}, outside of this repository: not used"
