"""Tool servers from files of other agents (`.mcp.json`), and the variables in their settings."""

import json
import math
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.messages import JsonObject, is_array, is_object
from tui_agent.protocol.server_entries import SERVER_NAME, ToolServer
from tui_agent.protocol.setting_files import RecordFormat, as_list

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
    """Return the values, for a workspace, of variables that only other programs set, such as `workspaceFolder`."""
    return {name: value(root) for name, value in _EDITOR_VARIABLES.items()}


def secret_variables(server: ToolServer) -> tuple[str, ...]:
    """Return the variables of a server whose use marks them as secrets: for a token, a header or variable so named."""
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
        # As in a shell, `${NAME:-default}` takes its default for an empty variable, too.
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


_KNOWN = frozenset(ToolServer.model_fields) - {"sampling"}
"""Fields of an entry as our settings have them; only the user's settings let a server ask the model."""
_OTHER_NAMES = {
    "httpUrl": "url",
    "serverUrl": "url",
    "transport": "type",
    "includeTools": "tools",
    "enabledTools": "tools",
    "enabled_tools": "tools",
    "disabledTools": "excludeTools",
    "disabled_tools": "excludeTools",
    "startupTimeout": "startup_timeout",
    "startup_timeout_sec": "startup_timeout",
    "startup_timeout_ms": "startup_timeout",
    "tool_timeout_sec": "timeout",
    "environment": "env",
    "http_headers": "headers",
    "bearer_token_env_var": "bearer_token_env",
    "workingDirectory": "cwd",
    "working_directory": "cwd",
    "isActive": "enabled",
    "start_on_launch": "enabled",
}
"""Names of the same fields in other programs."""
_DESCRIBING = """
    name title description displayName icon version author homepage repository license tags category gallery note notes
    comment _comment $comment // $schema id metadata scope source alwaysLoad alwaysAllow autoApprove trust dev sampling
"""
"""Fields without a use here; those that would spare questions only make the server stricter if they are left out."""
_ENTRY = RecordFormat(
    used=_KNOWN | _OTHER_NAMES.keys() | {"type", "disabled", "excludeTools"},
    harmless=frozenset(_DESCRIBING.split()),
    guards=True,
)
_TRANSPORTS = frozenset(("command", "url", "httpUrl", "serverUrl"))
_LISTS = ("mcpServers", "servers", "mcp_servers", "context_servers", "mcp.servers", "mcpservers")
_TIMES = ("timeout", "startup_timeout")
_UNITS = {"ms": 0.001, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0}
MOST_SECONDS = 1_000
"""A larger number is a time in milliseconds."""
_REMARK = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', re.DOTALL)


def parsed(content: bytes) -> object:
    """Return the value of a JSON file, which may have comments and commas before a closing bracket.

    Raises:
        ConfigurationError: it is not JSON.
    """
    try:
        text = content.decode("utf-8-sig")
        try:
            return json.loads(text)
        except ValueError as error:
            # Remarks go first, as one can follow the last comma of a list.
            for pattern in (_REMARK, _LAST_COMMA):
                text = pattern.sub(lambda found: found[1] or "", text)
            with suppress(ValueError):
                return json.loads(text)
            # The first error names its place in the file as the user wrote it.
            raise error
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"not JSON: {error}") from error


def entries_of(values: object) -> JsonObject:
    """Return the entries of a file: below `mcpServers`, another program's key, or without a key above them.

    Raises:
        ConfigurationError: there are none.
    """
    if is_object(values):
        found = [entries for key in _LISTS if (entries := _by_name(values.get(key))) is not None]
        if found:
            return next((entries for entries in found if entries), found[0])
        if is_object(values.get("mcp")):
            return entries_of(values["mcp"])
        entries = {name: one for name, one in values.items() if not name.startswith(("$", "_", "//"))}
        objects = [one for one in entries.values() if is_object(one)]
        if len(objects) == len(entries) and any(not _TRANSPORTS.isdisjoint(one) for one in objects):
            return entries
    raise ConfigurationError("an object `mcpServers` was expected")


def _by_name(entries: object) -> JsonObject | None:
    """Return entries by name; in a list, each one names itself. None: there are none."""
    if is_object(entries):
        return entries
    if not is_array(entries):
        return None
    return {str(one.get("name", place) if is_object(one) else place): one for place, one in enumerate(entries, 1)}


def fields_of(entry: object) -> tuple[JsonObject, tuple[str, ...]]:
    """Return the fields of an entry as `ToolServer` has them, and what was read in another way than it is written.

    Raises:
        ConfigurationError: it cannot be used.
    """
    if not is_object(entry):
        raise ConfigurationError("an object was expected")
    given = _flat(entry)
    if changing := _ENTRY.changing(given):
        raise ConfigurationError(f"{as_list(changing)} is not supported and may change what the server does")
    notes: list[str] = []
    for other, own in _OTHER_NAMES.items():
        if other in given:
            value = given.pop(other)
            # The name says the unit, so that a small number is in milliseconds, too.
            given.setdefault(own, f"{value:g}ms" if other.endswith("_ms") and _is_number(value) else value)
    _convert_transport(given)
    fields = {name: value for name, value in given.items() if name in _KNOWN}
    for name in _TIMES:
        if name in fields:
            _convert_time(fields, name, notes)
    _convert_command(fields)
    for name in ("env", "headers"):
        if name in fields:
            fields[name] = _table(fields[name], ":" if name == "headers" else "=")
    fields = _with_our_variables(fields)
    notes += [
        f"{name}.{key} is used as written; for the value of the variable write ${{{found[1]}}}"
        for name in ("env", "headers")
        for key, value in _items(fields.get(name))
        if (found := re.fullmatch(r"\$([A-Z_][A-Z0-9_]*)", str(value)))
    ]
    if str(given.get("disabled")).lower() in ("true", "1"):
        fields["enabled"] = False
    if (tools := _filter(fields.pop("tools", None), given.get("excludeTools"))) is not None:
        fields["tools"] = tools
    return fields, tuple(notes)


def _flat(entry: JsonObject) -> JsonObject:
    """Return an entry without empty fields, and with the fields of a `command` or `transport` that is an object."""
    given = {name: value for name, value in entry.items() if value is not None}
    for name in ("command", "transport"):
        inner = given.get(name)
        if is_object(inner):
            del given[name]
            given |= {"command" if key == "path" else key: value for key, value in inner.items()}
    return {
        name: value.strip() if name in _TRANSPORTS and isinstance(value, str) else value
        for name, value in given.items()
        if value != "" or name not in (*_TRANSPORTS, "cwd", "args")
    }


def _convert_transport(given: JsonObject) -> None:
    """Change the name of a transport to ours."""
    kind = str(given.get("type", "http" if "url" in given else "stdio")).lower().replace("_", "-")
    if kind == "sse":
        given["transport"] = kind
    elif kind not in ("stdio", "local", "remote") and not kind.replace("-", "").startswith(("http", "streamable")):
        raise ConfigurationError(f"unknown transport {kind!r}; supported are `stdio`, `http` and `sse`")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _convert_time(fields: JsonObject, name: str, notes: list[str]) -> None:
    """Change a time to seconds; one that is not above zero is left out and named."""
    value: object = fields[name]
    if isinstance(value, str):
        written = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", value.lower())
        if written is None or (written[2] and written[2] not in _UNITS):
            return
        if written[2]:
            fields[name] = float(written[1]) * _UNITS[written[2]]
            return
        value = float(written[1])
    if value is False or (isinstance(value, int | float) and (value <= 0 or not math.isfinite(value))):
        del fields[name]
        notes.append(f"{name} {json.dumps(value)} is left out, so the default counts")
    elif isinstance(value, int | float) and value > MOST_SECONDS:
        fields[name] = value / 1000
        notes.append(f"{name} {value:g} was read as milliseconds ({value / 1000:g} s)")


def _convert_command(fields: JsonObject) -> None:
    """Change command and arguments to a text and a list of texts."""
    args = fields.get("args", [])
    words = [_as_text(word) for word in args if word is not None] if is_array(args) else [_as_text(args)]
    if is_array(command := fields.get("command")) and command:
        fields["command"], words = command[0], [*map(_as_text, command[1:]), *words]
    if words:
        fields["args"] = words


def _table(table: object, sign: str) -> object:
    """Return a table of texts; a list of lines such as `NAME=VALUE` is one, too. A name without a value is left out."""
    if is_array(table) and all(isinstance(line, str) and sign in line for line in table):
        pairs = (str(line).partition(sign) for line in table)
        table = {name.strip(): value.strip() if sign == ":" else value for name, _, value in pairs}
    return {key: _as_text(value) for key, value in _items(table) if value is not None} if is_object(table) else table


def _items(table: object) -> list[tuple[str, object]]:
    return list(table.items()) if is_object(table) else []


def _filter(allow: object, deny: object) -> JsonObject | None:
    """Return which tools are used: a list of names, one name, or a table with a truth value for each."""
    if is_object(allow) and not allow.keys() <= {"allow", "deny"}:
        deny = [*(deny if is_array(deny) else []), *(name for name, used in allow.items() if not used)]
        allow = [name for name, used in allow.items() if used] or None
    if is_object(allow):
        return allow
    lists = {key: [names] if isinstance(names, str) else names for key, names in (("allow", allow), ("deny", deny))}
    found: JsonObject = {key: names for key, names in lists.items() if names is not None}
    return found or None


def _with_our_variables(fields: JsonObject) -> JsonObject:
    """Return fields with `${NAME}` for the variables that other programs write differently."""
    # One pass over the JSON text reaches arguments, environment and headers alike.
    named = re.sub(r"\$?\{env:(\w+)\}", r"${\1}", json.dumps(fields))
    if foreign := re.search(r"\$\{\w+:(?!-)[^}]*\}|\{file:[^}]*\}", named):
        raise ConfigurationError(f"only variables such as ${{NAME}} can be used here, not {foreign[0]}")
    plain: object = json.loads(named)
    return plain if is_object(plain) else fields


def _as_text(value: object) -> object:
    """Return numbers and truth values as text, as they are written in JSON."""
    return json.dumps(value) if isinstance(value, bool | int | float) else value
