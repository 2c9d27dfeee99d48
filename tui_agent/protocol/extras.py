"""Optional packages of this program, its extras, and how a user installs them."""

import sys
from functools import cache
from pathlib import Path

_COMMANDS = (
    ("uv-receipt.toml", "uv tool install 'tui-agent[{}]'"),
    ("pipx_metadata.json", "pipx install --force 'tui-agent[{}]'"),
)
"""File that an installer leaves in the environment of a program, and its command."""


def install_command(extra: str) -> str:
    """Return the shell command that adds an extra to this installation: of uv or pipx if one of them made it."""
    return _template().format(extra)


@cache
def _template() -> str:
    found = (command for file, command in _COMMANDS if (Path(sys.prefix) / file).is_file())
    return next(found, "pip install 'tui-agent[{}]'")
