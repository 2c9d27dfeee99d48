"""Helpers for the answers of the scripted model, and for the requests of the program."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.server_thread import ServerThread

Reply = dict[str, Any]
Block = dict[str, Any]


def says(text: str, **more: Any) -> Reply:
    """Return an answer without calls; `more` are fields of `messages_server.ScriptedReply`."""
    return {"blocks": [text_block(text)], **more}


def calls(*blocks: Block, **more: Any) -> Reply:
    """Return an answer with calls, and other blocks between them."""
    return {"blocks": list(blocks), **more}


def text_block(text: str) -> Block:
    """Return a text block."""
    return {"type": "text", "text": text}


def call(name: str, **arguments: Any) -> Block:
    """Return a tool call."""
    return {"type": "tool_use", "name": name, "input": arguments}


def until(name: str) -> Block:
    """Pause the stream until the test releases `name`."""
    return {"type": "pause", "until": name}


def fails(status: int, error_type: str, **headers: str) -> Reply:
    """Return an error response."""
    return {"status": status, "error_type": error_type, "error_message": f"scripted {error_type}", "headers": headers}


def bodies_of(server: ServerThread) -> list[dict[str, Any]]:
    """Return the bodies of the requests, each checked as strictly as by the real API.

    Raises:
        AssertionError: the API would refuse a request.
    """
    requests = server.requests
    assert [request["problems"] for request in requests] == [[] for _ in requests]
    return [request["body"] for request in requests]


def results_in(body: dict[str, Any]) -> list[tuple[str, bool]]:
    """Return text and error flag of the results of the last answer's calls, in order."""
    content = body["messages"][-1]["content"]
    blocks = [block for block in content if block["type"] == "tool_result"]
    return [("".join(part["text"] for part in block["content"]), block.get("is_error", False)) for block in blocks]


def words_in(body: dict[str, Any]) -> list[str]:
    """Return the texts of all user messages so far."""
    said: list[str] = []
    for message in body["messages"]:
        if message["role"] == "user":
            said += [block["text"] for block in message["content"] if block["type"] == "text"]
    return said


@contextmanager
def step(name: str) -> Iterator[None]:
    """Name a step of a walk through one program in the report of its failure."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"This was the step: {name}.")
        raise
