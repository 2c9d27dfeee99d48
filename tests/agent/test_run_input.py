"""Valid inputs of a run, and valid messages to an agent."""

from typing import Any

import pytest

from tests.support.table import table
from tui_agent.agent import AgentLoop, AgentLoopConfig
from tui_agent.agent.run_input import as_messages
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.messages import (
    AssistantMessage,
    DocumentBlock,
    ImageBlock,
    TextBlock,
    UserMessage,
    user_message,
)
from tui_agent.providers import ScriptedProvider

PICTURE = ImageBlock(media_type="image/png", data="aGk=")


@table(
    ("given", "texts"),
    [
        (None, []),
        ("hello", ["hello"]),
        (user_message("hello"), ["hello"]),
        (["look at this", PICTURE, TextBlock(text="and this")], ["look at this\nand this"]),
        (["one", "two"], ["one\ntwo"]),
        (["a \ud83d"], ["a \ufffd"]),
        ((user_message("one"), AssistantMessage(content=(TextBlock(text="two"),))), ["one", "two"]),
    ],
)
def test_an_input_is_a_text_a_message_parts_of_one_or_several_messages(given: Any, texts: list[str]) -> None:
    assert [message.text for message in as_messages(given)] == texts


def test_a_document_has_no_lone_surrogate_in_its_text_or_its_name() -> None:
    document = DocumentBlock(media_type="text/plain", data="a \ud83d", name="caf\udce9.txt")

    assert as_messages([document])[0].content == (
        DocumentBlock(media_type="text/plain", data="a \ufffd", name="caf\ufffd.txt"),
    )


@table(
    ("given", "words"),
    [
        (42, "the input of a run must be text, a message, or a list of blocks or messages, got 42"),
        ({"role": "user"}, "got {'role': 'user'}"),
        ([{"role": "user"}], "the input of a run[0] must be text, a block or a message, got {'role': 'user'}"),
        (["x", 3], "the input of a run[1] must be text, a block or a message, got 3"),
        ([], "an empty message cannot be sent"),
        ("  ", "an empty message cannot be sent"),
        (["x", user_message("y")], "with blocks or with messages, not with both at once"),
    ],
)
async def test_anything_else_is_refused(given: Any, words: str) -> None:
    loop = AgentLoop(AgentLoopConfig(provider=ScriptedProvider(["done"])))

    with pytest.raises(ConfigurationError) as caught:
        await loop.run(given)
    assert words in str(caught.value)
    assert loop.history.length == 0


def test_an_agent_accepts_texts_and_messages() -> None:
    loop: Any = AgentLoop(AgentLoopConfig(provider=ScriptedProvider([])))

    steer, later = loop.steer("first"), loop.follow_up(UserMessage(content=(TextBlock(text="later"),)))
    assert [message.text for message in loop.waiting_messages] == ["first", "later"]
    assert (steer.kind, later.kind) == ("steer", "follow_up")
    for tell in (loop.steer, loop.follow_up):
        with pytest.raises(ConfigurationError, match="a message must be text or a UserMessage, got 42"):
            tell(42)
        with pytest.raises(ConfigurationError, match=r"got \['x'\]"):
            tell(["x"])
