"""One refused part of a conversation costs itself and not the session, through the real SDK and after a resume."""

import json
from collections.abc import Callable, Iterable
from contextlib import aclosing
from typing import Any

import pytest

from tests.support.fussy_server import FussyServer
from tests.support.table import table
from tests.support.validating_bus import ValidatingBus
from tui_agent.agent import AgentLoop, AgentLoopConfig, RetryPolicy
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import CompactionEnded, ContentDropped, Warned
from tui_agent.protocol.messages import (
    AssistantMessage,
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    user_message,
)
from tui_agent.protocol.provider import ModelInfo
from tui_agent.protocol.reports import AgentRunReport
from tui_agent.providers import AnthropicProvider
from tui_agent.providers.anthropic_provider import EndpointTraits
from tui_agent.providers.demo.demo_server import error_body
from tui_agent.session.history_fold import fold_history

PICTURE = ImageBlock(media_type="image/png", data="aGVsbG8=", name="shot.png")
LINE = "[image shot.png was removed, because the model's server refused it]"


def text_message(text: str) -> UserMessage:
    return user_message(text)


def answer(*blocks: Any) -> AssistantMessage:
    return AssistantMessage(content=blocks or (TextBlock(text="Yes."),))


def picture_results(*ids: str) -> list[Message]:
    """Return calls with a picture as their result, each followed by an answer but the last."""
    found: list[Message] = []
    for call_id in ids:
        found.append(answer(ToolCall(id=call_id, name="read")))
        found.append(ToolResultMessage(call_id=call_id, tool_name="read", content=(TextBlock(text="a"), PICTURE)))
    return found


def refusing(status: int, words: Any, when: Callable[[Any], bool]) -> Callable[[Any], tuple[int, Any] | None]:
    body = error_body("invalid_request_error", words) if isinstance(words, str) else words
    return lambda request: (status, body) if when(request) else None


def has(*kinds: str) -> Callable[[Any], bool]:
    return lambda request: any(f'"type": "{kind}"' in _json(request["messages"]) for kind in kinds)


def _json(value: Any) -> str:
    return json.dumps(value)


def is_longer(characters: int) -> Callable[[Any], bool]:
    return lambda request: len(_json(request["messages"])) > characters


class Outcome:
    """The reports of runs on one conversation, the events, and the requests."""

    def __init__(
        self, reports: list[AgentRunReport], told: list[Envelope], loop: AgentLoop, server: FussyServer
    ) -> None:
        self.reports = reports
        self.history = tuple(loop.history.messages())
        self.folded = fold_history(told).messages()
        self.sent = [_json(body["messages"]) for body in server.bodies]
        self.bodies = server.bodies
        events = [envelope.event for envelope in told]
        self.dropped = [event for event in events if isinstance(event, ContentDropped)]
        self.warned = [event.text for event in events if isinstance(event, Warned)]
        self.compacted = sum(isinstance(event, CompactionEnded) and event.ok for event in events)

    @property
    def reasons(self) -> list[str]:
        return [report.reason for report in self.reports]


async def outcome(server: FussyServer, history: Iterable[Message], *prompts: str, window: int = 200_000) -> Outcome:
    """Publish a conversation as a session has it, and run prompts on it."""
    bus = ValidatingBus(whole=False)
    subscription = bus.subscribe(merge=False, since=0)
    endpoint = EndpointTraits(ModelInfo("some-model", context_window=window, thinking="adaptive"), counts_tokens=False)
    async with server, aclosing(AnthropicProvider("some-model", base_url=server.base_url, endpoint=endpoint)) as model:
        retry = RetryPolicy(first_wait=0)
        loop = AgentLoop(AgentLoopConfig(provider=model, bus=bus, retry=retry, thinking_tokens=4_096))
        for message in history:
            loop._agent.add_message(message)  # pyright: ignore[reportPrivateUsage] — as a run does it
        reports = [await loop.run(prompt) for prompt in prompts]
        return Outcome(reports, subscription.drain(), loop, server)


@table(
    "words",
    [
        "Could not process image",
        "messages.2.content.0.tool_result.content.1.image.source.base64: the image does not match the "
        "provided media type image/jpeg",
        "messages.2.content.0.tool_result.content.1: image cannot be empty",
        "image exceeds 5 MB maximum: 7000000 bytes > 5242880 bytes",
        "messages.2.content.0: Invalid value",
        {"detail": [{"loc": ["body", "messages", 2, "content", 0], "msg": "Value error"}]},
        "This model does not support vision",
        "Unable to handle this request",
        {},
    ],
)
async def test_a_refused_picture_leaves_the_conversation_whatever_the_words(words: Any) -> None:
    server = FussyServer(refuses=refusing(400, words, has("image")))

    seen = await outcome(server, [text_message("look"), *picture_results("c1")], "What is it?", "And now?")

    assert (seen.reasons, len(seen.sent)) == (["done", "done"], 3), "one request more"
    assert LINE in seen.sent[1], "the model is told"
    assert ["refused a picture" in text for text in seen.warned] == [True], "the user is told"
    assert seen.folded == seen.history
    assert "aGVsbG8" not in str(seen.history)


async def test_a_picture_that_was_not_the_reason_stays() -> None:
    server = FussyServer(refuses=refusing(400, "Something is wrong with you", lambda _: True))
    history = [text_message("look"), *picture_results("c1")]

    seen = await outcome(server, history, "What is it?")

    assert seen.reasons == ["error"]
    assert [("aGVsbG8" in sent) for sent in seen.sent] == [True, False]
    assert (seen.dropped, "aGVsbG8" in str(seen.history)) == ([], True)


@table(
    "words",
    [
        "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message "
        "cannot be modified. These blocks must remain as they were in the original response.",
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When "
        "`thinking` is enabled, a final `assistant` message must start with a thinking block.",
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        {"error": {"code": 400, "message": "Thought signature is not valid.."}},
        "messages.1.content.0: Input tag 'thinking' does not match any of the expected tags",
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
        "The encrypted content gAAA could not be verified.",
        "messages.1.content.0: Input should be a valid dictionary",
        {"error": {"upstream_error": {"error": {"message": "reasoning content in messages is invalid"}}}},
    ],
)
@table("block", [ThinkingBlock(thinking="hm", signature="c2ln"), ThinkingBlock(thinking="", redacted="c2VjcmV0")])
async def test_refused_reasoning_leaves_the_conversation_whatever_the_words(words: Any, block: ThinkingBlock) -> None:
    server = FussyServer(refuses=refusing(400, words, has("thinking", "redacted_thinking")))
    history = [text_message("hi"), answer(block, TextBlock(text="Yes."))]

    seen = await outcome(server, history, "Go on", "And now?")

    assert (seen.reasons, len(seen.sent)) == (["done", "done"], 3), "one request more"
    assert "Yes." in seen.sent[1], "text stays"
    assert ["reasoning" in text for text in seen.warned] == [True], "the user is told"
    assert seen.folded == seen.history
    assert "ThinkingBlock" not in repr(seen.history)


async def test_a_server_that_misses_reasoning_is_asked_without_any() -> None:
    words = "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`."
    enabled: Callable[[Any], bool] = lambda request: request.get("thinking") != {"type": "disabled"}  # noqa: E731

    seen = await outcome(FussyServer(refuses=refusing(400, words, enabled)), [text_message("hi"), answer()], "Go on")

    assert seen.reasons == ["done"]
    assert [body["thinking"]["type"] for body in seen.bodies] == ["adaptive", "disabled"]


LONG: list[Message] = [
    text_message("Read the files"),
    *(
        message
        for place in range(12)
        for message in (
            answer(ToolCall(id=f"c{place}", name="read")),
            ToolResultMessage(call_id=f"c{place}", tool_name="read", content=(TextBlock(text="word " * 700),)),
        )
    ),
    answer(),
]
"""About 42,000 characters."""


@table(
    ("status", "words"),
    [
        (400, {"message": "Input is too long for requested model."}),
        (400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens."),
        (400, "Invalid request: Your request exceeded model token limit: 262144 (requested: 270000)"),
        (400, "Please reduce the length of the messages or completion."),
        (400, "prompt token count of 135000 exceeds the limit of 128000"),
        (413, error_body("request_too_large", "Request exceeds the maximum size")),
        (413, "<html><head><title>413 Request Entity Too Large</title></head></html>"),
    ],
)
async def test_a_conversation_that_is_too_long_is_compacted_once_whatever_the_words(status: int, words: Any) -> None:
    seen = await outcome(FussyServer(refuses=refusing(status, words, is_longer(30_000))), LONG, "Go on", "And now?")

    assert (seen.reasons, seen.compacted) == (["done", "done"], 1), seen.reports[0].error
    assert seen.folded == seen.history


async def test_one_large_result_at_the_end_is_cut() -> None:
    result = ToolResultMessage(call_id="c", tool_name="read", content=(TextBlock(text="word " * 9_000),))
    history = [text_message("Read it"), answer(ToolCall(id="c", name="read")), result]
    refuses = refusing(400, "prompt is too long: 9999 tokens > 8000 maximum", is_longer(30_000))

    seen = await outcome(FussyServer(refuses=refuses), history, "What is in it?")

    assert (seen.reasons, seen.compacted) == (["done"], 1)


@pytest.mark.parametrize(("window", "is_hinted"), [(16_000, True), (200_000, False)])
async def test_an_unknown_refusal_of_a_large_request_names_the_compaction(window: int, is_hinted: bool) -> None:
    server = FussyServer(refuses=refusing(400, "Something is wrong with you", lambda _: True))

    seen = await outcome(server, LONG, "Go on", window=window)

    assert seen.reasons == ["error"]
    assert ("/compact may help" in str(seen.reports[0].error)) is is_hinted
