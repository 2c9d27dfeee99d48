"""Which part of a JSON schema is sent, so that the endpoint holds the model to it."""

from typing import Any

from tests.support.table import table
from tui_agent.providers.wire_blocks import answer_format

TEXT = {"type": "string"}
MODEL = "claude-sonnet-5-5"


def thing(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def strict(**properties: Any) -> dict[str, Any]:
    return {**thing(**properties), "additionalProperties": False}


@table(
    "schema, sent",
    [
        (thing(a=TEXT), strict(a=TEXT)),
        (thing(a={**TEXT, "minLength": 2, "format": "date"}), strict(a={**TEXT, "format": "date"})),
        (
            thing(a={"type": "array", "items": TEXT, "minItems": 3}),
            strict(a={"type": "array", "items": TEXT, "minItems": 1}),
        ),
        (thing(a={"oneOf": [TEXT, {"const": 1}]}), strict(a={"anyOf": [TEXT, {"const": 1}]})),
        (thing(a={"enum": ["x", None]}), strict(a={"enum": ["x", None]})),
        (
            {**thing(a={"$ref": "#/$defs/b"}), "$defs": {"b": thing(c=TEXT)}, "$schema": "x", "title": "t"},
            {**strict(a={"$ref": "#/$defs/b"}), "$defs": {"b": strict(c=TEXT)}},
        ),
        # Without these parts the model could not give every right answer, or would not know what is right.
        ({**thing(a=TEXT), "additionalProperties": TEXT}, None),
        (thing(a={"type": "object"}), None),
        (thing(a={"not": TEXT}), None),
        (thing(a=True), None),
        (thing(a={}), None),
        ({**thing(a={"$ref": "#/$defs/b"}), "$defs": {"b": thing(c={"$ref": "#/$defs/b"})}}, None),
        (thing(a={"$ref": "https://example.org/b"}), None),
        ({"type": "array", "items": TEXT}, None),
    ],
)
def test_only_a_schema_that_keeps_its_meaning_is_sent(schema: dict[str, Any], sent: dict[str, Any] | None) -> None:
    expected = {} if sent is None else {"format": {"type": "json_schema", "schema": sent}}
    assert answer_format(MODEL, schema) == expected
    assert answer_format("qwen3", schema) == {}
