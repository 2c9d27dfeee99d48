"""Tool servers in the form that other agents use (`.mcp.json`), and the variables in their settings."""

import json
import re
from collections.abc import Mapping

from pydantic import ValidationError

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.messages import JsonObject, is_array, is_object
from tui_agent.protocol.tool_server import SERVER_NAME, ToolServer

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_OURS = "ANTHROPIC_"
"""Start of the names of variables with the key, the token, the endpoint and headers of the model's provider."""
_SECRET_NAME = re.compile(r"auth(?!or)|authoriz|key|token|secret|cookie|passw", re.IGNORECASE)
"""Names of headers and variables whose values are secrets."""
_KNOWN = frozenset(ToolServer.model_fields) - {"sampling"}
"""Fields of an entry; only the user's settings let a server ask the model."""


def parse_server_file(content: bytes) -> tuple[dict[str, ToolServer], tuple[str, ...]]:
    """Return the servers of a file such as `.mcp.json`, and a message about each entry that cannot be used.

    Raises:
        ConfigurationError: the file is not JSON, or has no object `mcpServers`.
    """
    try:
        values: object = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"not JSON: {error}") from error
    entries: object = values.get("mcpServers") if is_object(values) else None
    if not is_object(entries):
        raise ConfigurationError("an object `mcpServers` was expected")
    servers: dict[str, ToolServer] = {}
    problems: list[str] = []
    for written, entry in entries.items():
        name = server_name(written)
        try:
            if not name or name in servers:
                raise ConfigurationError("another server has this name" if name else "not a name of a server")
            servers[name] = _server_of(entry)
        except ConfigurationError as error:
            problems.append(f"{written}: {error}")
    return servers, tuple(problems)


def server_name(text: str) -> str:
    """Return a text as a name that fits `SERVER_NAME`; empty if nothing is left."""
    return re.sub(r"__+", "_", re.sub(r"[^A-Za-z0-9_-]", "_", text)).strip("_")


def is_server_name(text: str) -> bool:
    """True if a server can have this name."""
    return SERVER_NAME.fullmatch(text) is not None


def _server_of(entry: object) -> ToolServer:
    """Return a server from an entry of the file; fields of other programs are ignored."""
    if not is_object(entry):
        raise ConfigurationError("an object was expected")
    kind: object = entry.get("type", "http" if "url" in entry else "stdio")
    if kind == "sse":
        raise ConfigurationError("the transport `sse` was replaced by `http`, which is the one supported here")
    if kind not in ("stdio", "http", "streamable-http", "streamableHttp"):
        raise ConfigurationError(f"unknown transport {kind!r}")
    fields: JsonObject = {name: value for name, value in entry.items() if name in _KNOWN}
    if entry.get("disabled") is True:
        fields["enabled"] = False
    if is_array(tools := fields.get("tools")):
        fields["tools"] = {"allow": tools}
    try:
        return ToolServer.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ConfigurationError(f"{place}: {first['msg']}".removeprefix(": ")) from error


def variables_of(server: ToolServer) -> tuple[str, ...]:
    """Return the variables of the environment that a server receives by name, each once."""
    texts = (server.command, server.cwd, server.url, *server.args, *server.env.values(), *server.headers.values())
    return tuple(dict.fromkeys((*_variables_in(*texts), *filter(None, (server.bearer_token_env,)))))


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
