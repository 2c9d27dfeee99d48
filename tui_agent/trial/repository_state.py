"""Changes of a repository's own state in a layer."""

from collections.abc import Callable, Iterable, Sequence

from .layer_root import LayerRoot
from .sorting import Found


def repositories_in(_roots: Sequence[LayerRoot]) -> list[str]:
    """Return the repositories that a layer covers."""
    return []


class RepositoryState:
    """State of one repository."""

    def __init__(self, _repository: str, _found: Sequence[Found], _made_ns: int, _git: Callable[..., object]) -> None:
        self.files: list[Found] = []

    def words(self) -> list[str]:
        """Return the changes in words."""
        return []

    def work_tree_files(self, _rest: Iterable[Found]) -> Iterable[Found]:
        """Return the changed files of the work tree that belong to the repository's change."""
        return []
