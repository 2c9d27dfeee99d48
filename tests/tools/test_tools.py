"""The built-in tools together."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests.support.examples import examples
from tests.support.protocol_strategies import json_objects
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.tool import Accesses, CommandSubject, PathSubject, Subject
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


def test_every_call_describes_itself(workspace: Workspace, root: Path, clean_environment: Path) -> None:
    tools = {tool.name: tool for tool in default_tools(workspace, is_read_only_command=lambda text: text == "ls")}
    place, home = frozenset({root / "src"}), clean_environment
    change, search = Accesses(place, place), Accesses(searches=place)
    in_src = PathSubject("src", "search", leaves_out_denied=True)
    calls: list[tuple[str, JsonObject, bool, Accesses | None, Subject | None, str]] = [
        # tool, arguments, reads only, accesses, subject of rules, summary
        ("read", {"path": "src"}, True, Accesses(reads=place), PathSubject("src", "read"), "src"),
        ("read", {"path": "~/x", "offset": 10, "limit": 5}, True, Accesses(reads=frozenset({home / "x"})),
         PathSubject(f"{home}/x", "read"), "~/x:10–14"),
        ("write", {"path": "a/../src", "content": "x\ny"}, False, change, PathSubject("a/../src", "write"),
         "a/../src (2 lines)"),
        ("write", {"path": "src", "content": "x\n"}, False, change, PathSubject("src", "write"), "src (1 line)"),
        ("edit", {"path": "src", "old_string": "x\ny", "new_string": "", "replace_all": True}, False, change,
         PathSubject("src", "write"), "src (+0 −2 everywhere)"),
        ("glob", {"pattern": "*.py", "path": "src"}, True, search, in_src, "*.py in src"),
        ("grep", {"pattern": "foo", "path": "src", "glob": "*.py"}, True, search, in_src, "foo in src (*.py)"),
        ("bash", {"command": "make\nmake test"}, False, None, CommandSubject("make\nmake test"), "make ⏎ make test"),
        ("bash", {"command": "ls"}, True, None, CommandSubject("ls"), "ls"),
        ("todo", {"items": [{"text": "x", "status": "in_progress"}]}, True, Accesses(), None, "0 of 1 done: x"),
        ("read", {"path": 5, "x": "y"}, True, None, None, "path=5, x='y'"),
        ("bash", {}, False, None, None, ""),
    ]  # fmt: skip
    found = [
        (
            name,
            arguments,
            tool.is_read_only(arguments),
            tool.accesses(arguments),
            tool.subject(arguments),
            tool.summarise(arguments),
        )
        for name, arguments, *_ in calls
        for tool in (tools[name],)
    ]
    assert found == calls
    for name, arguments, reads_only, *_ in calls:
        assert (tools[name].is_concurrency_safe(arguments), tools[name].interruptible(arguments)) == (
            reads_only,
            reads_only,
        )
    assert (tools["bash"].timeout({"command": "ls"}), tools["read"].timeout({"path": "a"})) == (120, "default")
    assert tools["bash"].timeout({"command": "ls", "timeout": 0.5}) == 0.5
