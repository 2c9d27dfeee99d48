"""Optional packages of this program, its extras, and how a user installs and updates them."""

import json
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from .messages import is_object

_INSTALLERS = (
    ("uv-receipt.toml", "uv tool install --force"),
    ("pipx_metadata.json", "pipx install --force"),
)
"""File that an installer leaves in the environment of a program, and its command."""


class Origin(NamedTuple):
    """The source of this installation."""

    requirement: str
    """Requirement for an installer, with `{}` for the extras."""
    directory: str = ""
    """The clone that it was installed from; empty if it was not."""
    is_editable: bool = False


def install_command(extra: str = "") -> str:
    """Return the shell command that installs this program again, with an extra: from where it came, into the same
    environment."""
    found, root = origin(), Path(sys.prefix)
    pip = f"{root / 'bin' / 'pip'} install --upgrade{' -e' * found.is_editable}"
    installer = next((command for file, command in _INSTALLERS if (root / file).is_file()), pip)
    return f"{installer} '{found.requirement.replace('{}', f'[{extra}]' if extra else '')}'"


@cache
def origin() -> Origin:
    """Return the source of this installation; without a record of it, the name that an index may know."""
    from importlib import metadata  # Only messages need it, and its import takes longer than theirs.

    by_name = Origin("tui-agent{}")
    try:
        record: object = json.loads(metadata.distribution("tui-agent").read_text("direct_url.json") or "")
    except (metadata.PackageNotFoundError, OSError, ValueError):
        return by_name
    url = record.get("url") if is_object(record) else None
    if not is_object(record) or not isinstance(url, str):
        return by_name
    vcs, directory = record.get("vcs_info"), record.get("dir_info")
    if is_object(vcs):
        return Origin(f"tui-agent{{}} @ {vcs.get('vcs')}+{url}")
    if is_object(record.get("archive_info")):
        return Origin(f"tui-agent{{}} @ {url}")  # A wheel or a source archive, from a directory or the web.
    if not is_object(directory) or not url.startswith("file:"):
        return by_name
    path = unquote(urlsplit(url).path)
    return Origin(f"{path}{{}}", path, directory.get("editable") is True)
