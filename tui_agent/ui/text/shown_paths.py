"""Paths as the screen spells them: relative to the workspace, absolute only outside it. Pure."""

from collections.abc import Mapping

_NAMES = ("path", "file", "directory", "folder", "dir", "notebook")
"""Last words of arguments that are paths, as in `file_path`. Not `command`: a command is shown exactly as it runs."""


def shown_path(path: str, root: str) -> str:
    """Return a path relative to the workspace `root`; unchanged if it is outside, relative already, or `root` is empty.

    A path with `..` is not changed: a link could make it mean another file.
    """
    root = root.rstrip("/")
    if not root or ".." in path.split("/"):
        return path
    if path.rstrip("/") == root:
        return "."
    below = path.removeprefix(f"{root}/").lstrip("/")
    return path if below == path.lstrip("/") else below


def shown_summary(summary: str, arguments: Mapping[str, object], root: str) -> str:
    """Return the summary of a call, in which the arguments that are paths are spelt as `shown_path` does."""
    for name, value in arguments.items():
        if isinstance(value, str) and value.startswith("/") and name.rpartition("_")[2] in _NAMES:
            # The last occurrence: a search pattern comes before the path.
            before, found, after = summary.rpartition(value)
            summary = f"{before}{shown_path(value, root)}{after}" if found else summary
    return summary
