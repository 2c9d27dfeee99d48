"""Changes of the user's settings file by tui-agent; comments and order stay.

Only a change imports `tomlkit`: it takes a megabyte, and most sessions change nothing.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.messages import JsonObject, is_object
from tui_agent.protocol.regular_file import make_private_directories, read_regular_file
from tui_agent.protocol.setting_files import parse_toml
from tui_agent.settings import check_content
from tui_agent.tools.atomic_write import write_atomically

from .permission_rules import directory_lock


def store_setting(path: Path, key: str, value: object, *, seen: bytes | None = None) -> None:
    """Set a setting, or remove it so that its default applies. Blocks.

    Args:
        path: the settings file; it is created if it does not exist.
        key: the dotted key, such as `model` or `ui.theme`.
        value: its new value; None removes it.
        seen: the content that the user decided on, empty for no file; None: any.

    Raises:
        ConfigurationError: the file cannot be read or written, the value is wrong, or the file has another content
            than the user saw; nothing was changed.
    """
    _change(path, key, lambda text: with_setting(text, key, value), seen)


def store_server(path: Path, name: str, values: JsonObject) -> None:
    """Add a tool server, in place of an earlier one of its name. Blocks.

    Raises:
        ConfigurationError: the file cannot be read or written; nothing was changed.
    """

    def changed(text: str) -> str:
        import tomlkit

        document = tomlkit.parse(text)
        if "mcp" not in document:
            document["mcp"] = tomlkit.table(is_super_table=True)
        servers: object = document["mcp"]
        if not is_object(servers):
            raise ConfigurationError("`mcp` is not a table")
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
        import tomlkit

        document = tomlkit.parse(text)
        if "mcp" not in document:
            return text
        servers: object = document["mcp"]
        if is_object(servers) and name in servers:
            is_there = True
            del servers[name]
        return tomlkit.dumps(document)

    _change(path, f"mcp.{name}", changed)
    return is_there


def _change(path: Path, key: str, changed: Callable[[str], str], seen: bytes | None = None) -> None:
    from tomlkit.exceptions import TOMLKitError

    path = path.resolve()
    try:
        make_private_directories(path.parent)
        with directory_lock(path.parent):
            before = read_user_file(path)
            if seen is not None and before != seen:
                raise ConfigurationError("the file has changed meanwhile")
            parse_toml(before)
            after = changed(before.decode("utf-8-sig")).encode("utf-8")
            if after == before:
                return
            check_content(path, after)
            if read_user_file(path) != before:
                # An editor does not know the lock.
                raise ConfigurationError("the file has changed meanwhile")
            write_atomically(path, after)
    except (OSError, ValueError, TOMLKitError, ConfigurationError) as error:
        raise ConfigurationError(f"{path}: `{key}` was not stored: {error}") from error


def read_user_file(path: Path) -> bytes:
    """Return the content of a settings file; empty if it does not exist. Blocks.

    Raises:
        OSError: it cannot be read.
    """
    return read_regular_file(str(path)) if path.exists() else b""


def with_setting(text: str, key: str, value: object) -> str:
    """Return the text of a settings file with another value for a setting, or without it if the value is None.

    Raises:
        ConfigurationError: the text has a form in which no single setting can be changed.
    """
    expected = parse_toml(text.encode())
    _put(expected, key.split("."), value)
    if _without_empty(expected) == _without_empty(parse_toml(text.encode())):
        return text
    for candidate in _candidates(text, key, value):
        if _without_empty(parse_toml(candidate.encode())) == _without_empty(expected):
            return candidate
    raise ConfigurationError("its form is too unusual for a change of one setting; edit the file")


def _candidates(text: str, key: str, value: object) -> Iterator[str]:
    """Yield the text with the change, the calmest form first; a form may be wrong for an unusual text."""
    import tomlkit

    *sections, name = key.split(".")
    document = tomlkit.parse(text)
    table: object = document
    for section in sections:
        table = table.get(section) if is_object(table) else None
    has_key = is_object(table) and name in table
    if value is not None and not has_key:
        line = tomlkit.dumps({name: value})
        if not sections and document:
            # Before the first section: what follows a section's heading belongs to the section.
            yield line + text
        if sections and (heading := re.search(rf"^[ \t]*\[ *{re.escape('.'.join(sections))} *\].*\n", text, re.M)):
            # Below the heading: comments at the end of a section are mostly about the next one.
            yield text[: heading.end()] + line + text[heading.end() :]
    if is_object(table):
        if value is not None:
            table[name] = value
        elif has_key:
            del table[name]
        yield tomlkit.dumps(document)
    elif value is not None:
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        yield f"{text}{gap}[{'.'.join(sections)}]\n{tomlkit.dumps({name: value})}"


def _put(values: JsonObject, names: Sequence[str], value: object) -> None:
    for section in names[:-1]:
        values = values.setdefault(section, {})
    if value is None:
        values.pop(names[-1], None)
    else:
        values[names[-1]] = value


def _without_empty(values: JsonObject) -> JsonObject:
    """Return the values without empty tables, which set nothing."""
    found = {key: _without_empty(value) if is_object(value) else value for key, value in values.items()}
    return {key: value for key, value in found.items() if value != {}}
