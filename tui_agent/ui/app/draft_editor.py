"""Editing the draft, or the input of a call, in the user's own editor."""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tui_agent.protocol.errors import TuiAgentError

VARIABLES = ("VISUAL", "EDITOR")
"""Environment variables that name the editor; the first one that is set counts."""


def editor_command(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the command of the user's editor.

    Raises:
        TuiAgentError: no variable names one, or its quotes are not closed.
    """
    name = next((name for name in VARIABLES if environment.get(name, "").strip()), None)
    if name is None:
        raise TuiAgentError("No editor is set. Set VISUAL or EDITOR, such as EDITOR=nano, and start tui-agent again.")
    try:
        return tuple(shlex.split(environment[name]))
    except ValueError as error:
        raise TuiAgentError(f"{name} is not a command: {error}. Nothing was changed.") from error


def edit_text(command: tuple[str, ...], text: str, file_name: str | None = None) -> str:
    """Let the user edit a text in an editor, which gets the terminal, and return the new text. Blocks.

    Args:
        command: the editor with its arguments.
        text: the text.
        file_name: name of the file in which the editor finds it, and which keeps its last line end; None for a draft.

    Raises:
        TuiAgentError: the editor could not be started or failed, or its file cannot be read.
    """
    what = "draft" if file_name is None else "text"
    try:
        with tempfile.TemporaryDirectory(prefix="tui-agent-") as folder:
            path = Path(folder, file_name or "draft.md")
            path.write_text(text, "utf-8", "surrogateescape", newline="")
            code = subprocess.run([*command, os.fspath(path)], check=False).returncode
            if code != 0:
                raise TuiAgentError(f"{command[0]} ended with exit code {code}. Your {what} was kept.")
            edited = path.read_text("utf-8")
            # Editors end the last line; a file that ended so before still does.
            return edited if file_name is not None and text.endswith("\n") else edited.removesuffix("\n")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise TuiAgentError(f"{command[0]} could not edit the {what}: {reason}. Your {what} was kept.") from error
