"""Tools of servers in an agent: the one permission path, changes between steps, tools on demand, and a missing SDK."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.pools import SERVERS, hostile, running, until
from tests.workbench.configuration.test_live_settings import options_for
from tests.workbench.quiet_bench import open_quietly
from tui_agent.mcp import server_task
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.messages import ToolResultMessage
from tui_agent.providers import ScriptedProvider, call, reply
from tui_agent.workbench.workbench import Workbench


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test-key")


def config_file(folder: Path, *flags: str) -> Path:
    file = folder / "servers.json"
    entry = {"command": sys.executable, "args": [str(SERVERS / "hostile.py"), *flags], "startup_timeout": 60}
    file.write_text(json.dumps({"mcpServers": {"h": entry}}))
    return file


async def run(bench: Workbench, *steps: Any) -> tuple[ScriptedProvider, list[ToolResultMessage]]:
    provider = ScriptedProvider([*steps, reply("done")])
    bench.agent.provider = provider
    await bench.agent.run("go")
    messages = bench.agent.history.messages()
    return provider, [message for message in messages if isinstance(message, ToolResultMessage)]


async def test_calls_pass_the_one_permission_path(tmp_path: Path) -> None:
    options = replace(
        options_for(tmp_path),
        rules=(("deny", "mcp__h__env"), ("allow", "mcp__h__*")),
        mcp_config=config_file(tmp_path, "poisoned"),
    )
    async with open_quietly(options, watched=False) as bench:
        with bench.events.subscribe() as subscription:
            provider, results = await run(
                bench,
                reply(call("mcp__h__echo", text="hi"), call("mcp__h__env")),
                reply(call("mcp__h__echo", words="hi"), call("mcp__h__none")),
            )
            events: list[Envelope] = subscription.drain()

        assert "mcp__h__echo" in [tool.name for tool in provider.requests[0].tools]
        assert [result.is_error for result in results] == [False, True, True, True]
        assert results[0].text.endswith("\nhi")
        assert "deny mcp__h__env" in results[1].text
        assert "'text' is a required property" in results[2].text
        assert bench.servers.tasks["h"].state == "ready"
        kinds = [envelope.event.type for envelope in events]
        assert "mcp.status" in kinds

        # What the server claims about its tool lifts no question.
        bench.agent.set_mode("plan")
        _, results = await run(bench, reply(call("mcp__h__read_file")))
        assert "plan mode changes nothing" in results[-1].text


async def test_a_grant_of_the_session_ends_when_the_tool_changes(tmp_path: Path) -> None:
    options = replace(options_for(tmp_path), rules=(), mcp_config=config_file(tmp_path))
    async with open_quietly(options, watched=False) as bench:
        bench.policy.add_session_rule("allow", "mcp__h__echo")
        bench.policy.add_session_rule("allow", "mcp__h__change")
        say = call("mcp__h__echo", text="a")
        _, results = await run(bench, reply(say), reply(call("mcp__h__change")))
        assert [result.is_error for result in results] == [False, False]
        server = bench.servers.tasks["h"]
        assert server is not None
        await until(lambda: any(tool.raw_name == "new" for tool in server.tools))

        _, results = await run(bench, reply(call("mcp__h__echo", text="a")))

        assert "no approver is available" in results[-1].text


async def test_many_tools_are_found_on_demand() -> None:
    async with running(hostile("many"), window=100_000) as servers:
        assert servers.tools.names == ("find_tools",)

        found = await servers.call_of("find_tools", {"query": "number 42"})
        assert "mcp__h__extra_42" in found.text
        names = await servers.update()
        assert "mcp__h__extra_42" in names
        assert len(names) <= 11

        servers.tools.only = "read".__eq__
        await servers.update()
        servers.tools.only = None
        assert "find_tools" in servers.tools.names
        assert "No tool matches" in (await servers.call_of("find_tools", {"query": "zebra"})).text
    async with running(hostile("many"), window=1_000_000) as servers:
        assert "find_tools" not in servers.tools.names
        assert "mcp__h__extra_42" in servers.tools.names


async def test_a_missing_sdk_is_one_clear_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError("No module named 'mcp'")

    monkeypatch.setattr(server_task.importlib, "import_module", missing)
    async with running(hostile()) as servers:
        assert servers.task().error == server_task.not_installed()
        assert servers.tools.names == ()
