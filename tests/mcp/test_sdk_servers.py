"""Servers made with the protocol's own SDK: the example of the documentation over stdio, and one over HTTP."""

import asyncio
import re
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from tests.mcp.pools import SERVERS, running, until
from tui_agent.cli.command_line import run_program
from tui_agent.mcp import server_task
from tui_agent.mcp.server_parts import QuestionAnswer, ServerQuestions
from tui_agent.mcp.server_session import ServerSession
from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.server_entries import ToolServer
from tui_agent.protocol.server_question import ServerQuestion

PAGE = Path(__file__).parents[2] / "docs" / "mcp.md"


@pytest.mark.slow
def test_the_example_of_the_page_works(
    clean_environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = PAGE.read_text("utf-8")
    (tmp_path / "clock.py").write_text(re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0])
    example = re.findall(r"```console\n(.*?)```", text, re.DOTALL)[-1]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")

    assert run_program(["mcp", "add", "clock", "--", "python", "clock.py"]) == 0
    capsys.readouterr()
    assert run_program(["mcp", "test", "clock"]) == 0

    said = capsys.readouterr().out
    assert re.sub(r"(connected: clock).*", r"\1", said) == example.partition("test clock\n")[2]


@asynccontextmanager
async def http_server(port: int = 0, *flags: str) -> AsyncGenerator[tuple[str, asyncio.subprocess.Process, int]]:
    if not port:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(SERVERS / "web.py"), str(port), *flags, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        for _ in range(400):
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                break
            except OSError:
                await asyncio.sleep(0.05)
        assert process.returncode is None, "the server did not start"
        yield f"http://127.0.0.1:{port}/mcp", process, port
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def accept(question: ServerQuestion) -> QuestionAnswer:
    assert question.server == "h"
    return QuestionAnswer("accept", {"pieces": 3})


async def test_a_server_that_refuses_the_handshake_is_connected_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    modes: list[str] = []

    @asynccontextmanager
    async def client(transport: object, mode: str) -> AsyncGenerator[str]:
        modes.append(mode)
        if mode == "legacy":
            raise MCPError(types.METHOD_NOT_FOUND, "no initialize")
        yield "a client"

    setup: Any = SimpleNamespace(
        name="h", parts=SimpleNamespace(questions=None), log=None, server=ToolServer(command="x")
    )
    session: Any = ServerSession(setup)
    monkeypatch.setattr(session, "_new_client", client)
    monkeypatch.setattr(session, "_transport", AsyncMock())
    async with AsyncExitStack() as stack:
        assert await session._connected(stack) == "a client"

    assert modes == ["legacy", "auto"]
    assert session._transport.await_count == 2, "the first connection has ended"


@pytest.mark.slow
async def test_the_older_transport_is_spoken_where_the_settings_name_it() -> None:
    settings = {"startup_timeout": 60, "bearer_token_env": "T", "transport": "sse"}
    async with http_server(0, "sse") as (url, _, _), http_server() as (moved, _, _):
        servers = {"h": url.replace("/mcp", "/sse"), "moved": moved}
        named = [(name, ToolServer.model_validate({**settings, "url": where})) for name, where in servers.items()]
        async with running(*named, secrets={"T": "right"}) as found:
            assert (await found.call("broken")).is_error
            assert (await found.call_of("mcp__moved__broken")).is_error, "it speaks the newer one by now"


@pytest.mark.slow
async def test_a_server_over_http(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_task, "WAITS", (0.5,) * 50)
    async with http_server() as (url, process, port):
        server = ToolServer(url=url, startup_timeout=60, bearer_token_env="WEB_TOKEN", headers={"X-Team": "${TEAM}"})
        wrong = ToolServer(url=url, startup_timeout=60)
        questions = ServerQuestions(ask=accept)
        secrets = {"WEB_TOKEN": "right", "TEAM": "blue"}
        async with running(("h", server), ("wrong", wrong), secrets=secrets, questions=questions) as servers:
            assert servers.task().state == "ready", servers.task().error
            assert servers.task("wrong").state == "failed"
            assert "401" in servers.task("wrong").error

            assert (await servers.call("team")).text.endswith("blue")
            await servers.call("count")
            assert (await servers.call("broken")).is_error
            assert (await servers.call("order")).text.endswith("accept 3")
            assert [report.text for report in servers.reports if "step" in str(report)] != []  # pyright: ignore

            process.kill()
            await process.wait()
            with pytest.raises(ToolError):
                await servers.call("team")
            await until(lambda: servers.task().state == "degraded")
            async with http_server(port):
                await until(lambda: servers.task().state == "ready")
                assert (await servers.call("team")).text.endswith("blue")
