"""Changes of the user's settings file by tui-agent; comments and order stay."""

from collections.abc import Callable
from pathlib import Path

import tomlkit
from tomlkit.container import OutOfOrderTableProxy
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Table

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.private_directory import make_private_directories
from tui_agent.protocol.regular_file import read_regular_file
from tui_agent.protocol.toml_text import parse_toml
from tui_agent.tools.atomic_write import write_atomically

from .permission_rules import directory_lock


def store_setting(path: Path, key: str, value: str) -> None:
    """Set a setting outside of any section. Blocks.

    Args:
        path: the settings file; it is created if it does not exist.
        key: the setting, such as `model`.
        value: its new value.

    Raises:
        ConfigurationError: the file cannot be read or written; nothing was changed.
    """
    _change(path, key, lambda text: with_setting(text, key, value))


def store_server(path: Path, name: str, values: JsonObject) -> None:
    """Add a tool server, in place of an earlier one of its name. Blocks.

    Raises:
        ConfigurationError: the file cannot be read or written; nothing was changed.
    """

    def changed(text: str) -> str:
        document = tomlkit.parse(text)
        if "mcp" not in document:
            document["mcp"] = tomlkit.table(is_super_table=True)
        servers = document["mcp"]
        assert isinstance(servers, Table | OutOfOrderTableProxy)
        servers[name] = values
        return tomlkit.dumps(document)

    _change(path, f"mcp.{name}", changed)


def remove_server(path: Path, name: str) -> bool:
    """Remove a tool server; False if there is none of this name. Blocks.

    Raises:
        ConfigurationError: the file cannot be read or written; nothing was changed.
    """
    is_there = False

    def changed(text: str) -> str:
        nonlocal is_there
        document = tomlkit.parse(text)
        if "mcp" not in document:
            return text
        servers = document["mcp"]
        if isinstance(servers, Table | OutOfOrderTableProxy) and name in servers:
            is_there = True
            del servers[name]
        return tomlkit.dumps(document)

    _change(path, f"mcp.{name}", changed)
    return is_there


def _change(path: Path, key: str, changed: Callable[[str], str]) -> None:
    path = path.resolve()
    try:
        make_private_directories(path.parent)
        with directory_lock(path.parent):
            before = read_regular_file(str(path)) if path.exists() else b""
            parse_toml(before)
            after = changed(before.decode("utf-8-sig")).encode("utf-8")
            if after != before:
                write_atomically(path, after)
    except (OSError, ValueError, TOMLKitError) as error:
        raise ConfigurationError(f"{path}: `{key}` was not stored: {error}") from error


def with_setting(text: str, key: str, value: str) -> str:
    """Return the text of a settings file with another value for a setting outside of any section."""
    document = tomlkit.parse(text)
    if key in document or not document:
        document[key] = value
        return tomlkit.dumps(document)
    # Before the first section: what follows a section's heading belongs to the section.
    return f"{tomlkit.dumps({key: value})}{text}"
