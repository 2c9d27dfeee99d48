"""Tool servers in the form that other agents use (`.mcp.json`), and the variables in their settings."""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from pydantic import ValidationError

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.messages import is_array, is_object
from tui_agent.protocol.tool_server import SERVER_NAME, ToolServer

from .foreign_entry import entries_of, fields_of, parsed

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_EDITOR_VARIABLES: Mapping[str, Callable[[Path], str]] = {
    "CLAUDE_PROJECT_DIR": str,
    "workspaceFolder": str,
    "workspaceRoot": str,
    "workspaceFolderBasename": lambda root: root.name,
    "userHome": lambda root: str(Path.home()),
    "pathSeparator": lambda root: os.sep,
}
"""Variables of other programs that no environment has, and their values for a workspace."""
_OURS = "ANTHROPIC_"
"""Start of the names of variables with the key, the token, the endpoint and headers of the model's provider."""
_SECRET_NAME = re.compile(r"auth(?!or)|authoriz|key|token|secret|cookie|passw", re.IGNORECASE)
"""Names of headers and variables whose values are secrets."""


def parse_server_file(content: bytes) -> tuple[dict[str, ToolServer], tuple[str, ...]]:
    """Return the servers of a file such as `.mcp.json`, and a message about each entry that cannot be used as written.

    Raises:
        ConfigurationError: the file is not JSON, or has no servers.
    """
    return parse_servers(entries_of(parsed(content)))


def parse_servers(entries: Mapping[str, object]) -> tuple[dict[str, ToolServer], tuple[str, ...]]:
    """Return the servers of entries by name, and a message about each entry that cannot be used as written."""
    servers: dict[str, ToolServer] = {}
    problems: list[str] = []
    for written, entry in entries.items():
        name = server_name(written)
        try:
            if not name or name in servers:
                raise ConfigurationError("another server has this name" if name else "not a name of a server")
            servers[name], notes = _server_of(entry)
            problems += [f"{written}: {note}" for note in notes]
        except ConfigurationError as error:
            problems.append(f"{written}: not used: {error}")
    return servers, tuple(problems)


def given_servers(given: object) -> tuple[dict[str, ToolServer], tuple[str, ...]]:
    """Return the servers that a program names: entries by name, a list of them, or records; as `parse_servers` does.

    Raises:
        ConfigurationError: they have another form, or an entry cannot be used.
    """
    records: dict[str, ToolServer] = {}
    entries: dict[str, object] = {}
    for one in given if is_array(given) else (given,):
        if not is_object(one):
            raise ConfigurationError(f"mcp takes entries as in .mcp.json, by name or with a `name`, not {one!r}")
        written = {str(one["name"]): one} if isinstance(one.get("name"), str) else one
        records |= {name: server for name, server in written.items() if isinstance(server, ToolServer)}
        rest = {name: server for name, server in written.items() if not isinstance(server, ToolServer)}
        entries |= entries_of(rest) if rest else {}
    servers, problems = parse_servers(entries)
    if len(servers) < len(entries):
        raise ConfigurationError(f"mcp: {'; '.join(problems)}")
    if wrong := next((name for name in records if not is_server_name(name)), None):
        raise ConfigurationError(f"mcp: {wrong!r} is not a name of a server: letters, digits, `-` and single `_`")
    return servers | records, problems


def server_name(text: str) -> str:
    """Return a text as a name that fits `SERVER_NAME`; empty if nothing is left."""
    return re.sub(r"__+", "_", re.sub(r"[^A-Za-z0-9_-]", "_", text)).strip("_")


def is_server_name(text: str) -> bool:
    """True if a server can have this name."""
    return SERVER_NAME.fullmatch(text) is not None


def _server_of(entry: object) -> tuple[ToolServer, tuple[str, ...]]:
    """Return a server from an entry of the file, and what was read in another way than it is written."""
    fields, notes = fields_of(entry)
    try:
        return ToolServer.model_validate(fields), notes
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ConfigurationError(f"{place}: {first['msg']}".removeprefix(": ")) from error


def variables_of(server: ToolServer) -> tuple[str, ...]:
    """Return the variables of the environment that a server receives by name, each once."""
    texts = (server.command, server.cwd, server.url, *server.args, *server.env.values(), *server.headers.values())
    found = dict.fromkeys((*_variables_in(*texts), *filter(None, (server.bearer_token_env,))))
    return tuple(name for name in found if name not in _EDITOR_VARIABLES)


def editor_variables(root: Path) -> dict[str, str]:
    """Return the variables of other programs that no environment has."""
    return {name: value(root) for name, value in _EDITOR_VARIABLES.items()}


def secret_variables(server: ToolServer) -> tuple[str, ...]:
    """Return those whose use says that they are secrets: for a token, a header or variable with such a name."""
    tables = (server.env, server.headers)
    texts = [text for table in tables for name, text in table.items() if _SECRET_NAME.search(name)]
    return (*_variables_in(*texts), *filter(None, (server.bearer_token_env,)))


def key_variable(server: ToolServer) -> str | None:
    """Return the variable of our own credentials or endpoint that a server would receive; None if it gets none."""
    return next((name for name in variables_of(server) if name.startswith(_OURS)), None)


def _variables_in(*texts: str | None) -> list[str]:
    return [match[1] for text in texts if text for match in _VARIABLE.finditer(text)]


def expanded(server: ToolServer, environment: Mapping[str, str]) -> ToolServer:
    """Return a server with the values of its variables.

    Raises:
        ConfigurationError: a variable without a default is not set.
    """

    def value(match: re.Match[str]) -> str:
        given, default = environment.get(match[1]), match[2]
        found = given if given or default is None else default
        if found is None:
            raise ConfigurationError(f"the variable {match[1]} is not set")
        return found

    def texts(table: Mapping[str, str]) -> dict[str, str]:
        return {name: _VARIABLE.sub(value, text) for name, text in table.items()}

    return server.model_copy(
        update={
            "command": None if server.command is None else _VARIABLE.sub(value, server.command),
            "args": tuple(_VARIABLE.sub(value, text) for text in server.args),
            "env": texts(server.env),
            "cwd": None if server.cwd is None else _VARIABLE.sub(value, server.cwd),
            "url": None if server.url is None else _VARIABLE.sub(value, server.url),
            "headers": texts(server.headers),
        }
    )
