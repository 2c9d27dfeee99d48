"""The built-in tools together."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests.support.examples import examples
from tests.support.protocol_strategies import json_objects
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.messages import JsonObject
from tui_agent.tools import Workspace, default_tools

ARGUMENTS = {
    "read": (["path"], ["offset", "limit", "column"]),
    "write": (["path", "content"], []),
    "edit": (["path", "old_string", "new_string"], ["replace_all", "cell", "cell_action"]),
    "bash": (["command"], ["timeout", "description"]),
    "glob": (["pattern"], ["path"]),
    "grep": (["pattern"], ["path", "glob", "output_mode", "context", "ignore_case", "limit"]),
    "todo": (["items"], []),
    "ask_user": (["questions"], []),
}


def test_every_tool_has_its_documented_arguments(workspace: Workspace) -> None:
    found = default_tools(workspace, is_read_only_command=lambda command: False)

    assert [tool.name for tool in found] == list(ARGUMENTS)
    for tool in found:
        required, optional = ARGUMENTS[tool.name]
        assert list(tool.spec.input_schema["properties"]) == required + optional
        assert tool.spec.input_schema["required"] == required


CHECKS: list[Any] = [
    lambda command: command == "ls",
    lambda command, workspace: (command, workspace.name) == ("ls", "work"),
    lambda command, strict=True: strict and command == "ls",
    "ls".__eq__,
]
NO_CHECKS: list[Any] = [lambda: True, lambda a, b, c: True, lambda *, command: True, None, "ls"]


def test_a_read_only_check_may_take_the_workspace_and_no_other_arguments(workspace: Workspace) -> None:
    for check in CHECKS:
        bash = next(tool for tool in default_tools(workspace, is_read_only_command=check) if tool.name == "bash")
        assert (bash.is_read_only({"command": "ls"}), bash.is_read_only({"command": "rm"})) == (True, False)
    for check in NO_CHECKS:
        with pytest.raises(ConfigurationError, match="is_read_only_command must"):
            default_tools(workspace, is_read_only_command=check)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(ARGUMENTS))
@settings(max_examples=examples(20, 5), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(arguments=json_objects)
async def test_no_arguments_make_a_predicate_raise(workspace: Workspace, name: str, arguments: JsonObject) -> None:
    found = default_tools(workspace, is_read_only_command=lambda command: False)
    tool = next(tool for tool in found if tool.name == name)
    names = [*tool.spec.input_schema["properties"]]

    for given_arguments in (arguments, dict(zip(names, arguments.values(), strict=False))):
        tool.is_read_only(given_arguments)
        tool.is_concurrency_safe(given_arguments)
        tool.interruptible(given_arguments)
        tool.accesses(given_arguments)
        tool.subject(given_arguments)
        tool.timeout(given_arguments)
        assert "\n" not in tool.summarise(given_arguments)
        await tool.preview(given_arguments)
