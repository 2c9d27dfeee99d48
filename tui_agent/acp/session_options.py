"""Choices of an editor for a session: modes and settings as options, and the tool servers that it names."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from acp.helpers import text_block, tool_content
from acp.schema import (
    AcpMcpServer,
    HttpMcpServer,
    McpServerStdio,
    PermissionOption,
    SessionConfigOptionBoolean,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionMode,
    SessionModeState,
    SseMcpServer,
    ToolCallUpdate,
)
from pydantic import ValidationError

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.permissions import PermissionMode
from tui_agent.protocol.server_entries import SERVER_NAME, ToolServer
from tui_agent.protocol.visible_text import escapes_in

from .call_updates import fenced, in_code
from .editor_client import EditorClient
from .editor_host import EditorBench

MODE = "mode"
_CATEGORIES = {"model": "model", "effort": "thought_level"}
_HELP = {
    PermissionMode.ASK: ("Ask", "Asks before anything changes"),
    PermissionMode.ACCEPT_EDITS: ("Accept edits", "Keeps changes of files in the workspace; asks about the rest"),
    PermissionMode.PLAN: ("Plan", "Keeps no changes"),
    PermissionMode.DENY: ("Deny", "Keeps no changes and asks nothing"),
    PermissionMode.ALLOW: ("Allow", "Everything runs that no rule denies"),
}

NamedServer: TypeAlias = HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio

_OPTIONS = (
    PermissionOption(option_id="start", name="Start it for this session", kind="allow_once"),
    PermissionOption(option_id="leave", name="Do not start it", kind="reject_once"),
)


def mode_state(opened: EditorBench) -> SessionModeState:
    """Return the modes to choose from, and the current one."""
    modes = [SessionMode(id=mode.value, name=_HELP[mode][0], description=_HELP[mode][1]) for mode in opened.modes]
    return SessionModeState(current_mode_id=opened.bench.agent.policy.mode.value, available_modes=modes)


def config_options(opened: EditorBench) -> list[SessionConfigOptionSelect | SessionConfigOptionBoolean]:
    """Return all options with their values."""
    state = mode_state(opened)
    modes = [
        SessionConfigSelectOption(value=one.id, name=one.name, description=one.description)
        for one in state.available_modes
    ]
    options: list[SessionConfigOptionSelect | SessionConfigOptionBoolean] = [
        SessionConfigOptionSelect(
            type="select", id=MODE, name="Mode", category="mode", current_value=state.current_mode_id, options=modes
        )
    ]
    models = opened.bench.models
    for name, names in models.choices.items():
        values = [SessionConfigSelectOption(value=value, name=value) for value in names]
        options.append(
            SessionConfigOptionSelect.model_validate(
                {
                    "type": "select",
                    "id": name,
                    "name": name.capitalize(),
                    "category": _CATEGORIES[name],
                    "current_value": models.model if name == "model" else models.effort,
                    "options": values,
                }
            )
        )
    return options


def set_mode(opened: EditorBench, name: str) -> None:
    """Change the permission mode.

    Raises:
        ConfigurationError: the session has no such mode.
    """
    modes = {mode.value: mode for mode in opened.modes}
    if name not in modes:
        raise ConfigurationError(f"no mode {name!r} here; there are {', '.join(modes)}")
    if modes[name] is not opened.bench.agent.policy.mode:
        opened.bench.agent.set_mode(modes[name], "user")


def set_option(opened: EditorBench, name: str, value: object) -> None:
    """Change an option.

    Raises:
        ConfigurationError: it has no such value.
    """
    if not isinstance(value, str):
        raise ConfigurationError(f"the option {name!r} takes text")
    if name == MODE:
        set_mode(opened, value)
    else:
        opened.choose(name, value)


def read_servers(named: Iterable[NamedServer]) -> tuple[dict[str, ToolServer], list[str]]:
    """Return the servers that can be used, and messages about the others."""
    servers: dict[str, ToolServer] = {}
    problems: list[str] = []
    for one in named:
        name = re.sub(r"__+", "_", re.sub(r"[^A-Za-z0-9_-]", "_", one.name)).strip("_")
        try:
            if SERVER_NAME.fullmatch(name) is None or name in servers:
                raise ValueError("its name is missing or taken")
            servers[name] = _server(one)
        except ValidationError as error:
            problems.append(f"The editor's tool server {one.name} is not used: {error.errors()[0]['msg']}.")
        except ValueError as error:
            problems.append(f"The editor's tool server {one.name} is not used: {error}.")
    return servers, problems


def _server(one: NamedServer) -> ToolServer:
    match one:
        case McpServerStdio(command=command, args=args, env=env):
            return ToolServer(command=command, args=tuple(args), env={entry.name: entry.value for entry in env})
        case HttpMcpServer(url=url, headers=headers):
            return ToolServer(url=url, headers={entry.name: entry.value for entry in headers})
        case SseMcpServer(url=url, headers=headers):
            return ToolServer(url=url, transport="sse", headers={entry.name: entry.value for entry in headers})
        case AcpMcpServer():
            raise ValueError("servers inside the editor are not supported")


async def accepted_servers(
    session_id: str, client: EditorClient, servers: Mapping[str, ToolServer]
) -> dict[str, ToolServer]:
    """Ask the user about each server, and return those to start."""
    return {
        name: server
        for name, server in servers.items()
        if await client.ask(session_id, _question(name, server), _OPTIONS) == "start"
    }


def _question(name: str, server: ToolServer) -> ToolCallUpdate:
    # Values of variables and headers may be secrets, which the editor knows already.
    kept = {"env": sorted(server.env), "headers": sorted(server.headers)}
    more = [f"{what}: {json.dumps(names, ensure_ascii=False)}" for what, names in kept.items() if names]
    text = "\n".join([server.shown, *more])
    return ToolCallUpdate(
        tool_call_id=f"server-{name}",
        title=f"Start the tool server {in_code(name)}, which the editor names?",
        kind="other",
        status="pending",
        content=[tool_content(text_block(fenced(text.translate(escapes_in(text)))))],
    )
