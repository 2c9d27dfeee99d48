"""Tool servers in the form that other agents use (`.mcp.json`), and the variables in their settings."""

import json
import re
from collections.abc import Mapping
from contextlib import suppress

from pydantic import ValidationError

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.foreign_record import RecordFormat, as_list
from tui_agent.protocol.messages import JsonObject, is_array, is_object
from tui_agent.protocol.tool_server import SERVER_NAME, ToolServer

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
WORKSPACE_VARIABLES = ("CLAUDE_PROJECT_DIR", "workspaceFolder")
"""Names that stand for the workspace."""
_OURS = "ANTHROPIC_"
"""Start of the names of variables with the key, the token, the endpoint and headers of the model's provider."""
_SECRET_NAME = re.compile(r"auth(?!or)|authoriz|key|token|secret|cookie|passw", re.IGNORECASE)
"""Names of headers and variables whose values are secrets."""
_KNOWN = frozenset(ToolServer.model_fields) - {"sampling"}
"""Fields of an entry as our settings have them; only the user's settings let a server ask the model."""
_OTHER_NAMES = {
    "httpUrl": "url",
    "serverUrl": "url",
    "transport": "type",
    "includeTools": "tools",
    "startupTimeout": "startup_timeout",
    "environment": "env",
    "isActive": "enabled",
}
"""Names of the same fields in other programs."""
_DESCRIBING = """
    name title description displayName icon version author homepage repository license tags category gallery note notes
    comment _comment $schema id alwaysAllow autoApprove trust sampling
"""
"""Fields without a use here; those that would spare questions only make the server stricter if they are left out."""
_ENTRY = RecordFormat(
    used=_KNOWN | _OTHER_NAMES.keys() | {"type", "disabled", "excludeTools"},
    harmless=frozenset(_DESCRIBING.split()),
    guards=True,
)
_TRANSPORTS = frozenset(("command", "url", "httpUrl", "serverUrl"))
MOST_SECONDS = 1_000
"""A larger number is a time in milliseconds."""


def parse_server_file(content: bytes) -> tuple[dict[str, ToolServer], tuple[str, ...]]:
    """Return the servers of a file such as `.mcp.json`, and a message about each entry that cannot be used as written.

    Raises:
        ConfigurationError: the file is not JSON, or has no servers.
    """
    try:
        values: object = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"not JSON: {error}") from error
    servers: dict[str, ToolServer] = {}
    problems: list[str] = []
    for written, entry in _entries(values).items():
        name = server_name(written)
        try:
            if not name or name in servers:
                raise ConfigurationError("another server has this name" if name else "not a name of a server")
            servers[name], notes = _server_of(entry)
            problems += [f"{written}: {note}" for note in notes]
        except ConfigurationError as error:
            problems.append(f"{written}: not used: {error}")
    return servers, tuple(problems)


def _entries(values: object) -> JsonObject:
    """Return the entries of a file: below `mcpServers`, another program's key, or without a key above them.

    Raises:
        ConfigurationError: there are none.
    """
    if is_object(values):
        for key in ("mcpServers", "servers", "mcp_servers", "context_servers"):
            entries = values.get(key)
            if is_object(entries):
                return entries
        if is_object(values.get("mcp")):
            return _entries(values["mcp"])
        if values and all(is_object(one) and not _TRANSPORTS.isdisjoint(one) for one in values.values()):
            return values
    raise ConfigurationError("an object `mcpServers` was expected")


def server_name(text: str) -> str:
    """Return a text as a name that fits `SERVER_NAME`; empty if nothing is left."""
    return re.sub(r"__+", "_", re.sub(r"[^A-Za-z0-9_-]", "_", text)).strip("_")


def is_server_name(text: str) -> bool:
    """True if a server can have this name."""
    return SERVER_NAME.fullmatch(text) is not None


def _server_of(entry: object) -> tuple[ToolServer, tuple[str, ...]]:
    """Return a server from an entry of the file, and what was read in another way than it is written.

    Raises:
        ConfigurationError: it cannot be used.
    """
    if not is_object(entry):
        raise ConfigurationError("an object was expected")
    if changing := _ENTRY.changing(entry):
        raise ConfigurationError(f"{as_list(changing)} is not supported and may change what the server does")
    given: JsonObject = {name: value for name, value in entry.items() if value is not None}
    for other, own in _OTHER_NAMES.items():
        if other in given:
            given.setdefault(own, given.pop(other))
    kind = str(given.get("type", "http" if "url" in given else "stdio")).lower().replace("_", "-")
    if kind == "sse":
        address = re.sub(r"/sse/?$", "/mcp", str(given.get("url", "")))
        raise ConfigurationError(
            f"the transport `sse` was replaced by `http`, the one supported here; most servers also offer it: "
            f'"type": "http", "url": {json.dumps(address)}'
        )
    if kind not in ("stdio", "local", "http", "remote", "streamable-http", "streamablehttp"):
        raise ConfigurationError(f"unknown transport {kind!r}")
    fields, notes = _in_our_form({name: value for name, value in given.items() if name in _KNOWN})
    if str(given.get("disabled")).lower() in ("true", "1"):
        fields["enabled"] = False
    tools = {"allow": fields.pop("tools", None), "deny": given.get("excludeTools")}
    fields |= {"tools": {key: names for key, names in tools.items() if names is not None}}
    try:
        return ToolServer.model_validate(fields), notes
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ConfigurationError(f"{place}: {first['msg']}".removeprefix(": ")) from error


def _in_our_form(fields: JsonObject) -> tuple[JsonObject, tuple[str, ...]]:
    """Return fields as our settings write them, and what that changed.

    Raises:
        ConfigurationError: a text has a variable of another program.
    """
    notes: list[str] = []
    for name in ("timeout", "startup_timeout"):
        value = fields.get(name)
        if isinstance(value, str):
            with suppress(ValueError):
                value = float(value)
        if isinstance(value, int | float) and value > MOST_SECONDS:
            fields[name] = value / 1000
            notes.append(f"{name} {value:g} was read as milliseconds ({value / 1000:g} s)")
    args = fields.get("args", [])
    words = [_as_text(word) for word in args] if is_array(args) else [_as_text(args)]
    if is_array(command := fields.get("command")) and command:
        fields["command"], words = command[0], [*map(_as_text, command[1:]), *words]
    if words:
        fields["args"] = words
    for name in ("env", "headers"):
        table = fields.get(name)
        if is_array(table) and all(isinstance(line, str) and "=" in line for line in table):
            table = dict(str(line).split("=", 1) for line in table)
        if is_object(table):
            fields[name] = {key: _as_text(value) for key, value in table.items()}
    named = re.sub(r"\$\{env:(\w+)\}", r"${\1}", json.dumps(fields))
    if foreign := re.search(r"\$\{(?!env:)\w+:(?!-)[^}]*\}", named):
        raise ConfigurationError(f"only variables such as ${{NAME}} can be used here, not {foreign[0]}")
    plain: object = json.loads(named)
    return plain if is_object(plain) else fields, tuple(notes)


def _as_text(value: object) -> object:
    """Return numbers and truth values as text, as they are written in JSON."""
    return json.dumps(value) if isinstance(value, bool | int | float) else value


def variables_of(server: ToolServer) -> tuple[str, ...]:
    """Return the variables of the environment that a server receives by name, each once."""
    texts = (server.command, server.cwd, server.url, *server.args, *server.env.values(), *server.headers.values())
    found = dict.fromkeys((*_variables_in(*texts), *filter(None, (server.bearer_token_env,))))
    return tuple(name for name in found if name not in WORKSPACE_VARIABLES)


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
