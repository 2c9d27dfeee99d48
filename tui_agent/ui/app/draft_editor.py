"""Editing the draft in the user's own editor."""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tui_agent.protocol.errors import TuiAgentError

VARIABLES = ("VISUAL", "EDITOR")
"""Environment variables that name the editor; the first one that is set counts."""
_KEPT = "Your draft was kept."


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
        raise TuiAgentError(f"{name} is not a command: {error}. {_KEPT}") from error


def edit_text(command: tuple[str, ...], text: str) -> str:
    """Let the user edit a text in an editor, which gets the terminal, and return the new text. Blocks.

    Raises:
        TuiAgentError: the editor could not be started or failed, or its file cannot be read.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="tui-agent-") as folder:
            path = Path(folder, "draft.md")
            path.write_text(text, "utf-8", "surrogateescape")
            code = subprocess.run([*command, os.fspath(path)], check=False).returncode
            if code != 0:
                raise TuiAgentError(f"{command[0]} ended with exit code {code}. {_KEPT}")
            return path.read_text("utf-8").removesuffix("\n")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise TuiAgentError(f"{command[0]} could not edit the draft: {reason}. {_KEPT}") from error
