"""Error messages about files that tell the model what to do next."""

import difflib
import os
from collections.abc import Generator
from contextlib import contextmanager
from errno import EDQUOT, ELOOP, ENAMETOOLONG, ENOSPC, ENOTDIR, EROFS
from itertools import islice
from pathlib import Path

from tui_agent.protocol.errors import ToolError

from .pinned_directory import names_in
from .text_format import printable
from .text_match import code_points, hidden_difference, plain_form

_NAMES_READ = 5_000
_NAMES_SHOWN = 30

_WORDS = {
    ENAMETOOLONG: "the name is too long",
    ELOOP: "its symbolic links form a loop",
    ENOTDIR: "a part of the path is a file or a symbolic link, not a directory",
    ENOSPC: "the disk is full",
    EDQUOT: "the disk quota is used up",
    EROFS: "the file system is read-only",
}


@contextmanager
def os_errors_as(what_failed: str) -> Generator[None, None, None]:
    """Turn an `OSError` inside into a `ToolError` that begins with `what_failed`, such as `cannot read src/a.py`."""
    try:
        yield
    except PermissionError as error:
        raise ToolError(f"{what_failed}: permission denied") from error
    except OSError as error:
        words = _WORDS.get(error.errno or 0) or error.strerror or str(error)
        raise ToolError(f"{what_failed}: {words}") from error


def existing_name(directory: str, name: str) -> str | None:
    """Return `name` if it exists in a directory, else the only name there that looks equal to it, or None. Blocks."""
    try:
        if os.path.lexists(os.path.join(directory, name)):
            return name
        # Two names in ASCII that differ never look equal, which spares the comparison of most.
        names = [one for one in islice(os.listdir(directory), _NAMES_READ) if not (one + name).isascii()]
    except (OSError, ValueError):
        return None
    found = [one for one in names if plain_form(one) == plain_form(name)]
    return found[0] if len(found) == 1 else None


def missing_file_error(path: Path, shown: str) -> ToolError:
    """Return an error that `path` does not exist, with similar names that do. Blocks."""
    directory = path.parent
    # The first part that is missing is the mistake.
    while not os.path.isdir(directory):
        directory = directory.parent
    if directory != path.parent:
        missing = path.relative_to(directory).parts[0]
        where = f"{printable(str(directory))} has no entry {printable(missing)!r}"
        return ToolError(f"{shown} does not exist: {where}{_hint(missing, directory)}")
    return ToolError(f"{shown} does not exist{_hint(path.name, directory)}")


def is_directory_error(path: Path, shown: str) -> ToolError:
    """Return an error that `path` is a directory, with a list of its entries. Blocks."""
    names = _names(path)
    more = f", and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    holds = f"it contains: {', '.join(names[:_NAMES_SHOWN])}{more}" if names else "it is empty"
    return ToolError(f"{shown} is a directory; {holds} (use glob to list files)")


def _hint(name: str, directory: Path) -> str:
    names = _names(directory)
    folded = [other for other in names if other.rstrip("/").casefold() == name.casefold()]
    equal = [other for other in names if plain_form(other.rstrip("/")) == plain_form(name)]
    if equal:
        shown = " or ".join(f"{other} ({code_points(other.rstrip('/'), name)})" for other in equal)
        return f"; names that look equal: {shown}"
    near = folded or difflib.get_close_matches(printable(name), names, n=3, cutoff=0.5)
    points = {other: hidden_difference(other.rstrip("/"), name) for other in near}
    shown = [f"{other} ({points[other]})" if points[other] else other for other in near]
    return f"; did you mean {' or '.join(shown)}?" if near else ""


def _names(directory: Path) -> list[str]:
    return [printable(name) for name in names_in(directory, _NAMES_READ)]
