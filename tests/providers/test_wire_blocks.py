"""Requests contain only what the API accepts; calls and screen keep the original text."""

import json

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
from tui_agent.providers.wire_blocks import EMPTY_MESSAGE, blocks_of, encode, wire_call_id


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


@table(
    ("name", "wire"), [("read", "read"), ("functions.read", "functions_read"), ("", "unknown"), ("x" * 200, "x" * 128)]
)
def test_invalid_tool_names_are_made_valid(name: str, wire: str) -> None:
    assert call_block(ToolCall(id="c", name=name))["name"] == wire


def test_a_good_id_stays_and_a_bad_one_is_the_same_for_call_and_result() -> None:
    assert wire_call_id("toolu_01-x") == "toolu_01-x"
    assert wire_call_id("call:1") == wire_call_id("call:1")
    assert wire_call_id("call:1") != wire_call_id("call.1")
    result = blocks_of(ToolResultMessage(call_id="call:1", tool_name="t", content=()))[0]
    assert result["tool_use_id"] == call_block(ToolCall(id="call:1", name="t"))["id"] == wire_call_id("call:1")


@given(any_text)
def test_whatever_is_encoded_is_valid_utf_8_without_line_ends(text: str) -> None:
    encoded = encode({"text": text})

    assert b"\n" not in encoded
    assert isinstance(json.loads(encoded.decode("utf-8"))["text"], str)
