"""Requests contain only what the API accepts; calls and screen keep the original text, schemas their meaning."""

import json
from typing import Any

from hypothesis import given

from tests.support.conversations import any_text
from tests.support.table import table
from tui_agent.protocol.messages import (
    TERMINAL_OUTPUT,
    AssistantMessage,
    DocumentBlock,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    user_message,
)
from tui_agent.providers.wire_blocks import EMPTY_MESSAGE, answer_format, blocks_of, encode


def call_block(call: ToolCall) -> dict:
    return json.loads(encode(blocks_of(AssistantMessage(content=(call,)))[0]))


def test_a_pdf_is_a_document_and_attached_lines_are_text() -> None:
    pdf = DocumentBlock(media_type="application/pdf", data="JVBERg==", name="report.pdf", pages=3)
    lines = DocumentBlock(media_type="text/plain", data="    10\tx = 1", name="a.py:10")
    wanted = [
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="},
            "title": "report.pdf",
        },
        {"type": "text", "text": "[a.py:10]\n    10\tx = 1"},
    ]

    assert blocks_of(UserMessage(content=(TextBlock(text="see"), pdf, lines)))[1:] == wanted
    assert blocks_of(UserMessage(content=(TextBlock(text="see"), pdf, lines), kind="notice"))[1:] == wanted
    (result,) = blocks_of(ToolResultMessage(call_id="c", tool_name="read", content=(pdf,)))
    assert result["content"] == wanted[:1]


def test_blank_text_is_left_out_and_an_empty_message_says_so() -> None:
    assert blocks_of(UserMessage(content=(TextBlock(text=" \n"), TextBlock(text="x")))) == [
        {"type": "text", "text": "x"}
    ]
    assert blocks_of(user_message("")) == [{"type": "text", "text": EMPTY_MESSAGE}]


def test_a_notice_is_marked_as_a_message_of_the_system() -> None:
    (block,) = blocks_of(user_message("context was compacted", "notice"))

    assert block["text"] == "<system-notice>\ncontext was compacted\n</system-notice>"


def test_output_of_programs_is_sent_without_colours_and_any_other_text_as_it_is() -> None:
    content = (TextBlock(text="\x1b[1;31mFAILED\x1b[0m a.py \x1b]8;;http://x\x07link\x1b]8;;\x07"),)
    output = ToolResultMessage(call_id="c", tool_name="bash", content=content, details={TERMINAL_OUTPUT: True})
    file = ToolResultMessage(call_id="c", tool_name="read", content=content, details={"outcome": "1 line"})

    assert blocks_of(output)[0]["content"] == [{"type": "text", "text": "FAILED a.py link"}]
    assert blocks_of(file)[0]["content"] == [{"type": "text", "text": content[0].text}]
    assert blocks_of(UserMessage(content=content, kind="command")) == [{"type": "text", "text": "FAILED a.py link"}]
    assert blocks_of(UserMessage(content=content))[0]["text"] == content[0].text


def test_reasoning_goes_back_with_its_signature_or_not_at_all() -> None:
    content = (
        ThinkingBlock(thinking="hm", signature="c2ln"),
        ThinkingBlock(thinking="from elsewhere"),
        ThinkingBlock(thinking="", redacted="ZW5j"),
    )

    assert blocks_of(AssistantMessage(content=content)) == [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "ZW5j"},
    ]


@table("arguments", [["a"], "text", None, 7])
def test_arguments_that_are_not_an_object_are_sent_as_an_empty_one(arguments: object) -> None:
    call = ToolCall.model_construct(
        type="tool_call", id="c", name="read", arguments=arguments, malformed=None, cut=False
    )
    message = AssistantMessage.model_construct(role="assistant", content=(call,), id="m")

    assert blocks_of(message)[0]["input"] == {}
    assert call.arguments == arguments


def test_numbers_that_json_does_not_know_become_null() -> None:
    call = ToolCall(id="c", name="t", arguments={"a": [float("nan"), 1.5], "b": {"c": float("-inf")}})

    assert call_block(call)["input"] == {"a": [None, 1.5], "b": {"c": None}}


@given(any_text)
def test_whatever_is_encoded_is_valid_utf_8_without_line_ends(text: str) -> None:
    encoded = encode({"text": text})

    assert b"\n" not in encoded
    assert isinstance(json.loads(encoded.decode("utf-8"))["text"], str)


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
