"""The built-in tools together."""

import pytest
from hypothesis import HealthCheck, given, settings

from tests.support.words import json_objects
from tui_agent.protocol.messages import JsonObject
from tui_agent.tools import Workspace, default_tools

ARGUMENTS = {
    "read": (["path"], ["offset", "limit"]),
    "write": (["path", "content"], []),
    "edit": (["path", "old_string", "new_string"], ["replace_all"]),
    "bash": (["command"], ["timeout", "description"]),
    "glob": (["pattern"], ["path"]),
    "grep": (["pattern"], ["path", "glob", "output_mode", "context", "ignore_case", "limit"]),
    "todo": (["items"], []),
}


def test_every_tool_has_the_arguments_it_is_known_by(workspace: Workspace) -> None:
    found = default_tools(workspace, is_read_only_command=lambda command: False)

    assert [tool.name for tool in found] == list(ARGUMENTS)
    for tool in found:
        required, optional = ARGUMENTS[tool.name]
        assert list(tool.spec.input_schema["properties"]) == required + optional
        assert tool.spec.input_schema["required"] == required


def test_descriptions_begin_with_a_sentence(workspace: Workspace) -> None:
    for tool in default_tools(workspace, is_read_only_command=lambda command: False):
        first = tool.spec.description.split("\n")[0]
        assert first.endswith((".", "`."))
        assert len(first) < 100


@pytest.mark.parametrize("name", list(ARGUMENTS))
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
