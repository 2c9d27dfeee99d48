"""Lookup of the programs that tools start; a program inside the workspace never passes for one of the system.

Shells read their text from a descriptor: among bash's arguments, `pkill -f` and `pgrep -f` would find the shell that
runs them by the words of its own text.
"""

import os
from pathlib import Path
from tempfile import TemporaryFile


def find_program(name: str, workspace: Path) -> Path | None:
    """Return the first executable `name` on PATH that is, with links followed, outside `workspace`; None if none is.

    Relative entries of PATH are skipped, because they depend on the current directory.
    """
    for directory in os.environ.get("PATH", os.defpath).split(os.pathsep):
        program = os.path.join(directory, name)
        if not os.path.isabs(program) or not os.path.isfile(program) or not os.access(program, os.X_OK):
            continue
        if not _is_in(Path(program), workspace):
            return Path(program)
    return None


def outside_search_path(path: str, workspace: Path) -> str:
    """Return a search path such as PATH without entries that are relative or lead into `workspace`."""
    entries = (Path(entry) for entry in path.split(os.pathsep))
    return os.pathsep.join(str(entry) for entry in entries if entry.is_absolute() and not _is_in(entry, workspace))


def _is_in(path: Path, workspace: Path) -> bool:
    """Return True if a path is in the workspace."""
    if workspace == Path("/"):  # Every program is below it, so the check would leave none.
        return False
    return path.is_relative_to(workspace) or Path(os.path.realpath(path)).is_relative_to(workspace)


_READER = 'IFS= read -rd "" -u "$1" BASH_EXECUTION_STRING; eval "exec $1<&-"; shift; eval -- "$BASH_EXECUTION_STRING"'
"""Script that reads the text from the descriptor in its argument, and runs it as `bash -c` does."""


def script_argv(bash: str) -> tuple[str, ...]:
    """Return the command line of a clean shell for a text; the number of the text's descriptor must follow it."""
    return (bash, "--noprofile", "--norc", "-c", _READER, bash)


def open_script(text: str) -> int:
    """Return a descriptor from which a shell reads `text`; the caller closes it once the shell has started.

    Raises:
        OSError: the file system or the memory is full.
    """
    data = os.fsencode(text)
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("script")
    else:
        with TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    try:
        written = 0
        while written < len(data):
            written += os.write(descriptor, data[written:])
        os.lseek(descriptor, 0, os.SEEK_SET)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def start_directory(workspace: Path) -> Path:
    """Return the directory that commands start in: the workspace, or its nearest parent once it was removed."""
    return next((path for path in (workspace, *workspace.parents) if path.is_dir()), workspace)
