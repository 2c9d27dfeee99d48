import socket
import subprocess
import sys
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from tests.execution.kit import ScriptedTool, call, run
from tui_agent.execution import validate_tool_arguments
from tui_agent.execution.validation import complaints_about
from tui_agent.protocol.errors import InvalidArgumentsError
from tui_agent.protocol.messages import JsonObject, parse_tool_call


class Item(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str


class ReadArguments(BaseModel):
    model_config = ConfigDict(extra="forbid")

    path: str
    limit: int = Field(default=10, gt=0)
    items: list[Item] = []
    mode: Literal["head", "tail"] = "head"


class TypedTool(ScriptedTool):
    arguments_model = ReadArguments

    def __init__(self) -> None:
        super().__init__("read", schema=ReadArguments.model_json_schema())


def complaint(arguments: JsonObject) -> str:
    with pytest.raises(InvalidArgumentsError) as caught:
        validate_tool_arguments(TypedTool(), call("read", **arguments))
    return str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "path: is required (string)"),
        ({"path": "a", "limit": 0}, "limit: Input should be greater than 0, got 0"),
        ({"path": "a", "limit": "x"}, 'got "x"'),
        ({"path": "a", "items": [{"text": "t"}, {}]}, "items[1].text: is required"),
        ({"path": "a", "limt": 3}, "limt: unknown argument; did you mean limit?"),
        ({"path": "a", "zzz": 3}, "zzz: unknown argument"),
        ({"path": "a", "items": [{"text": "t", "texx": 1}]}, "items[0].texx: unknown argument; did you mean text?"),
        ({"path": "a", "items": [{"text": "t", "items": 1}]}, "items[0].items: unknown argument; it has text"),
        ({"path": "a", "items": [{}]}, "items[0].text: is required (string)"),
        ({"path": "a" * 500, "limit": "b" * 500}, "bbb…"),
    ],
)
def test_the_error_names_the_path_and_the_expectation(arguments: JsonObject, says: str) -> None:
    text = complaint(arguments)

    assert says in text
    assert text.startswith("Invalid arguments for read:")
    assert 'Expected: path: string, limit?: integer, items?: array, mode?: "head" | "tail"' in text


def test_arguments_that_are_not_json_are_invalid_with_the_reason() -> None:
    with pytest.raises(InvalidArgumentsError, match="Invalid arguments for act: "):
        validate_tool_arguments(ScriptedTool(), parse_tool_call("c", "act", '{"a": 1'))


def foreign(schema: JsonObject, **arguments: Any) -> list[str]:
    return complaints_about(ScriptedTool(schema=schema), arguments)


SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"a": {"type": ["string", "null"]}, "b": {"anyOf": [{"type": "integer"}, {"enum": ["x"]}]}, "c": {}},
    "required": ["a"],
    "additionalProperties": False,
}


def test_an_error_of_a_foreign_schema_states_the_expectation() -> None:
    with pytest.raises(InvalidArgumentsError, match=r'Expected: a: string \| null, b\?: integer \| "x", c\?: any'):
        validate_tool_arguments(ScriptedTool(schema=SCHEMA), call(b="y"))


def test_a_remote_reference_is_never_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_network(*_: Any, **__: Any) -> None:
        pytest.fail("the network was opened")

    monkeypatch.setattr(socket, "create_connection", no_network)
    monkeypatch.setattr(socket.socket, "connect", no_network)

    complaints = foreign({"properties": {"a": {"$ref": "http://127.0.0.1:9/schema.json"}}}, a=1)

    assert "schema cannot be used" in complaints[0]


NULL_ARGUMENTS: dict[str, tuple[JsonObject, bool]] = {
    # name: schema of the optional argument a, True if null is its default
    "a number": ({"type": "integer"}, True),
    "one of two kinds": ({"type": ["integer", "string"]}, True),
    "a choice": ({"enum": ["x", "y"]}, True),
    "alternatives": ({"anyOf": [{"type": "string"}, {"type": "object"}]}, True),
    "a definition": ({"$ref": "#/$defs/n"}, True),
    "a kind or null": ({"type": ["integer", "null"]}, False),
    "a choice with null": ({"enum": ["x", None]}, False),
    "alternatives with null": ({"anyOf": [{"type": "string"}, {"type": "null"}]}, False),
    "anything": ({}, False),
    "nothing": (False, True),
}


def test_null_means_the_default_of_an_optional_argument_that_cannot_be_null() -> None:
    definitions: JsonObject = {"n": {"type": "integer"}}
    wrong: list[str] = []
    for name, (schema, is_default) in NULL_ARGUMENTS.items():
        tool = ScriptedTool("t", schema={"type": "object", "properties": {"a": schema}, "$defs": definitions})
        if validate_tool_arguments(tool, call("t", a=None)) != ({} if is_default else {"a": None}):
            wrong.append(name)
    assert wrong == []
    assert validate_tool_arguments(TypedTool(), call("read", path="a", limit=None)) == {"path": "a"}
    assert "path" in complaint({"path": None})
    assert "unknown argument" in complaint({"path": "a", "limits": None})


@pytest.mark.slow
def test_the_schema_library_is_loaded_only_when_a_foreign_tool_needs_it() -> None:
    script = "import sys, tui_agent.execution; print('jsonschema' in sys.modules)"

    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout

    assert loaded.strip() == "False"


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "objekt"},
        {"properties": {"a": {"pattern": "("}}},
        {"$ref": "#/nowhere"},
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": 3},
        {"type": "object", "properties": {"a": {"enum": 5}}},
        {"type": "object", "$schema": 5},
        {"type": "object", "$id": "http://[x", "properties": {"a": {"$ref": "y"}}},
        {"type": "object", "properties": {"a": {"$ref": "http://[bad"}}},
        {"$ref": "#"},
    ],
)
async def test_an_unusable_schema_refuses_the_calls_of_its_own_tool_only(schema: JsonObject) -> None:
    ran = await run(
        [ScriptedTool("odd", schema=schema), ScriptedTool()], [call("odd", "a", a="text"), call("act", "b")]
    )

    assert ran.statuses == ["invalid", "ok"]
    assert "the tool's own schema cannot be used" in ran.texts[0]
