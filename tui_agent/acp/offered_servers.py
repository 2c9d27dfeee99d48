"""The tool servers that an editor names for a session: read, and asked about before they start."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from acp.helpers import text_block, tool_content
from acp.schema import AcpMcpServer, HttpMcpServer, McpServerStdio, PermissionOption, SseMcpServer, ToolCallUpdate
from pydantic import ValidationError

from tui_agent.protocol.tool_server import SERVER_NAME, ToolServer
from tui_agent.protocol.visible_text import escapes_in

from .call_updates import fenced, in_code
from .editor_client import EditorClient

NamedServer: TypeAlias = HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio

_OPTIONS = (
    PermissionOption(option_id="start", name="Start it for this session", kind="allow_once"),
    PermissionOption(option_id="leave", name="Do not start it", kind="reject_once"),
)


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
        case SseMcpServer():
            raise ValueError("the transport `sse` was replaced by `http`, which is the one supported here")
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
