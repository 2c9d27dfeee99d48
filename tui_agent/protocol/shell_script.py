"""Shell text that bash reads from a descriptor, and the directory that it starts in.

Among bash's arguments, `pkill -f` and `pgrep -f` would find the shell that runs them by the words of its own text.
"""

import os
from pathlib import Path
from tempfile import TemporaryFile

_READER = 'IFS= read -rd "" -u "$1" BASH_EXECUTION_STRING; eval "exec $1<&-"; shift; eval -- "$BASH_EXECUTION_STRING"'
"""Script that reads the text from the descriptor in its argument, and runs it as `bash -c` does."""


def script_argv(bash: str) -> tuple[str, ...]:
    """Return the command line of a clean shell for a text; the number of the text's descriptor must follow it."""
    return (bash, "--noprofile", "--norc", "-c", _READER, bash)


def open_script(text: str) -> int:
    """Return a descriptor from which a shell reads `text`; the caller closes it once the shell has started.

    Raises:
        OSError: there is no room for the text.
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
