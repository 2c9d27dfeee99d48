"""Exports are inert and complete."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.session.played_sessions import FULL_SESSION, SESSION, play
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import read_envelope
from tui_agent.protocol.events import MessageEnded
from tui_agent.protocol.messages import (
    AssistantMessage,
    DocumentBlock,
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    user_message,
)
from tui_agent.protocol.visible_text import TYPOGRAPHY, is_invisible, split_sequences
from tui_agent.session.export import export_session
from tui_agent.session.stored_session import StoredSession

HOSTILE = "<script>alert(1)</script>\n````\n# heading & more"

MESSAGES: tuple[Message, ...] = (
    UserMessage(
        content=(
            TextBlock(text="look at this"),
            ImageBlock(media_type="image/png", data="QUJD"),
            DocumentBlock(media_type="application/pdf", data="QUJD", name="a.pdf", pages=2),
            DocumentBlock(media_type="text/plain", data="     1\tx", name="a.py:1"),
        )
    ),
    AssistantMessage(
        content=(
            ThinkingBlock(thinking="secret thoughts"),
            TextBlock(text="I look."),
            ToolCall(id="c1", name="bash", arguments={"command": "ls ä"}),
            ToolCall(id="c2", name="read", arguments={}),
        )
    ),
    ToolResultMessage(call_id="c1", tool_name="bash", content=(TextBlock(text=HOSTILE),)),
    ToolResultMessage(call_id="c2", tool_name="read", content=(TextBlock(text="no such file"),), is_error=True),
    user_message("the system says", "notice"),
    AssistantMessage(content=(TextBlock(text="Done."),)),
)


@pytest.fixture
def session() -> StoredSession:
    bus = EventBus()
    with bus.subscribe(merge=False) as told:
        for message in MESSAGES:
            bus.publish(MessageEnded(message_id=message.id, message=message))
        return StoredSession("talk", None, Path("/some/where"), tuple(told.drain()))


def test_markdown_reads_like_the_conversation(session: StoredSession) -> None:
    text = export_session(session, "md")

    headings = re.findall(r"^## .*|^# .*|^\*\*.*", text.replace(HOSTILE, ""), re.MULTILINE)
    assert headings == [
        "# Session talk",
        "## You",
        "## Assistant",
        "**calls bash**",
        "**calls read**",
        "**bash returned**",
        "**read failed**",
        "## Notice",
        "## Assistant",
    ]
    assert "look at this\n[image, image/png]\n[PDF a.pdf, 2 pages]\n[a.py:1]\n     1\tx" in text
    assert '"command": "ls ä"' in text
    assert "QUJD" not in text
    assert "secret thoughts" not in text
    assert text.endswith("Done.\n")


def test_content_cannot_close_its_fence(session: StoredSession) -> None:
    assert f"`````\n{HOSTILE}\n`````" in export_session(session, "md")


def test_html_holds_text_only(session: StoredSession) -> None:
    page = export_session(session, "html")
    tags: set[str] = set()
    texts: list[str] = []

    class _Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            tags.add(tag)
            assert {name for name, _ in attrs} <= {"lang", "charset"}

        def handle_data(self, data: str) -> None:
            texts.append(data)

    reader = _Reader()
    reader.feed(page)
    assert tags == {"html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "code", "pre"}
    assert HOSTILE in texts
    assert page.endswith("</html>\n")


def test_jsonl_holds_every_event() -> None:
    envelopes = tuple(play(FULL_SESSION))
    lines = export_session(StoredSession(SESSION, None, Path(), envelopes), "jsonl").split("\n")

    assert lines.pop() == ""
    assert [json.loads(line)["seq"] for line in lines] == [envelope.seq for envelope in envelopes]
    first = read_envelope(lines[0])
    assert first is not None
    assert first.event == envelopes[0].event


def session_full_of(text: str, cwd: Path = Path("/some/where")) -> StoredSession:
    """Return a session with a text in every part that an export shows."""
    messages: tuple[Message, ...] = (
        user_message(text),
        AssistantMessage(content=(TextBlock(text=text), ToolCall(id="c1", name=text, arguments={"a": text}))),
        ToolResultMessage(call_id="c1", tool_name=text, content=(TextBlock(text=text),)),
    )
    bus = EventBus()
    with bus.subscribe(merge=False) as published:
        for message in messages:
            bus.publish(MessageEnded(message_id=message.id, message=message))
        return StoredSession("talk", None, cwd, tuple(published.drain()))


def test_no_format_contains_terminal_control_characters() -> None:
    evil = "\x1b]52;c;aGk=\x07 \x9b31m \u202e\ufe01\u034f\u3164\u115f\U000e0100\ue000\u0378<b>"
    session = session_full_of(evil, Path("/a`b\x1b"))

    for form in ("md", "html", "jsonl"):
        assert not re.search(r"[^\n -~]", export_session(session, form))
    assert json.loads(export_session(session, "jsonl").split("\n")[0])["data"]["message"]["content"][0]["text"] == evil


def test_exports_keep_emoji_and_joined_words() -> None:
    text = "\u2764\ufe0f \U0001f468\u200d\U0001f469\u200d\U0001f467 \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
    session = session_full_of(text)

    assert text in export_session(session, "md")
    assert text in export_session(session, "html")


@given(st.text(st.sampled_from("`*[](<>\n\x1b\u200d\ufe0f\u034f\u3164👩a") | st.characters(), max_size=40))
def test_no_format_contains_hidden_characters(text: str) -> None:
    session = session_full_of(text)

    for form in ("md", "html", "jsonl"):
        shown = split_sequences(export_session(session, form))
        assert not [one for one in shown if is_invisible(one) and one not in "\n\t" and one not in TYPOGRAPHY]
