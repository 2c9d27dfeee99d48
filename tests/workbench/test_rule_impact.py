"""Facts about a rule before it is stored: its file, and the calls that it would allow."""

from pathlib import Path

import pytest

from tui_agent.agent import AgentLoop, AgentLoopConfig
from tui_agent.permissions import PermissionPolicy
from tui_agent.protocol.messages import AssistantMessage, JsonObject, ToolCall, user_message
from tui_agent.providers import ScriptedProvider
from tui_agent.settings import Locations
from tui_agent.workbench.built_in_tools import tool_finder
from tui_agent.workbench.configuration.permission_rules import RuleImpact, RuleStore


def call(number: int, name: str, **arguments: object) -> ToolCall:
    given: JsonObject = dict(arguments)
    return ToolCall(id=f"c{number}", name=name, arguments=given)


CALLS = (
    call(1, "bash", command="make all -j4"),
    call(2, "bash", command="make all"),
    call(3, "bash", command="ls"),
    call(4, "bash", command="make install"),
    call(5, "nothing", what="x"),
    call(6, "edit", path=7),
    ToolCall(id="c7", name="bash", malformed="cut"),
    call(8, "bash", command="make all -j8"),
)


@pytest.fixture
def record(tmp_path: Path) -> RuleImpact:
    policy = PermissionPolicy(tmp_path)
    loop = AgentLoop(AgentLoopConfig(provider=ScriptedProvider(), tools=[], policy=policy))
    loop.history.append(user_message("go"))
    loop.history.append(AssistantMessage(content=CALLS, id="a1", model="m"))
    store = RuleStore(Locations(tmp_path / "config", tmp_path / "state"), tmp_path)
    return RuleImpact(loop, policy, store, tool_finder(tmp_path, loop.tools))


def test_each_scope_has_its_file_and_the_calls_that_a_rule_would_allow(record: RuleImpact, tmp_path: Path) -> None:
    assert record.file_of("user") == str(tmp_path / "config" / "config.toml")
    assert record.file_of("project") == str(tmp_path / ".tui-agent" / "config.toml")
    assert record.file_of("session") is None
    assert record.answered("bash(make all:*)", "c8") == ["bash  make all -j4", "bash  make all"]
    assert record.answered("bash(make install)\nbash(make all -j8)", "c1") == [
        "bash  make install",
        "bash  make all -j8",
    ]
    assert record.answered("bash(git status)", "c1") == []
