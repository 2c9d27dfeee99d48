"""Messages of a conversation, and parsing of a call's arguments."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.protocol_strategies import json_objects
from tests.support.table import table
from tui_agent.protocol import TextBlock, UserMessage
from tui_agent.protocol.messages import parse_tool_call, share_field_sets


@table("raw", ["", " ", "\n", "null", "{}", '""', '"{}"', '" "'])
def test_a_call_without_arguments_is_valid(raw: str) -> None:
    call = parse_tool_call("1", "now", raw)

    assert call.arguments == {}
    assert call.malformed is None


@table(
    "raw",
    [
        "{",
        '{"a": 1',
        "[1]",
        "7",
        "true",
        '"text"',
        '"[1]"',
        "{'a': 1}",
        "[" * 100_000,
        '{"a": NaN}',
        '{"a": -Infinity}',
        '{"a": 1e999}',
        '{"a": "\\ud83d"}',
        '{"\\ude00": 1}',
        '"{\\"a\\": \\"\\\\ud83d\\"}"',
        '{"a": 1, "b": ' * 101 + "{}" + "}" * 101,
    ],
)
def test_malformed_arguments_are_reported_and_never_guessed(raw: str) -> None:
    call = parse_tool_call("1", "rm", raw)

    assert call.arguments == {}
    assert call.malformed


@given(json_objects)
def test_an_object_inside_a_string_is_unwrapped(value: dict[str, object]) -> None:
    assert parse_tool_call("1", "t", json.dumps(value)).arguments == value
    assert parse_tool_call("1", "t", json.dumps(json.dumps(value))).arguments == value


@given(st.text())
@example('{"a": "\\ud83d\\ude00"}')
def test_parsing_never_raises(raw: str) -> None:
    call = parse_tool_call("1", "t", raw)

    assert isinstance(call.arguments, dict)
    assert "\\ud83d" not in raw or call.arguments == {"a": "\U0001f600"}, "a pair of surrogates is one character"


@pytest.mark.slow
def test_ids_are_unique_even_in_a_forked_process() -> None:
    script = (
        "import os; from tui_agent.protocol.messages import new_id\n"
        "pid = os.fork()\n"
        "pid and os.waitpid(pid, 0)\n"
        "os.write(1, f\"{new_id('run')} {new_id('run')} \".encode())\n"
    )
    command = [sys.executable, "-c", script]
    root = Path(__file__).parents[2]
    made = subprocess.run(command, capture_output=True, encoding="utf-8", check=True, cwd=root, timeout=60)

    ids = made.stdout.split()
    assert len(ids) == len(set(ids)) == 4
    assert all(re.fullmatch("run_[0-9a-f]{16}", name) for name in ids)


def test_kept_messages_share_equal_sets_of_given_fields_and_a_copy_has_its_own() -> None:
    one, other = TextBlock(text="a"), TextBlock.model_validate_json('{"text":"b"}')
    kept = (UserMessage(id="1", content=(one,)), UserMessage(id="2", content=(other,)))
    for message in kept:
        share_field_sets(message)
    both = TextBlock(type="text", text="c")
    assert kept[0].__pydantic_fields_set__ is kept[1].__pydantic_fields_set__
    assert one.__pydantic_fields_set__ is other.__pydantic_fields_set__
    assert both.model_fields_set == {"type", "text"}

    assert one.model_copy(update={"type": "text"}).model_fields_set == {"type", "text"}
    assert other.model_fields_set == {"text"}
    assert one.model_dump(exclude_unset=True) == {"text": "a"}
