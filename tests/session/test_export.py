"""Exports are inert and complete."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.table import table
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.diffs import Diff, FileDiff, hunks_between, split_lines
from tui_agent.protocol.events import FileChanged, MessageEnded, SessionRenamed
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
    return session_of(*MESSAGES)


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


class Tags(HTMLParser):
    """The tags of a page, its links, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str | None] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name == "href"]
        expected = {"meta": {"charset", "name", "http-equiv", "content"}, "html": {"lang"}, "a": {"href"}}
        assert {name for name, _ in attrs} <= expected.get(tag, {"class"})

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


FRAME = {"html", "head", "meta", "title", "style", "body", "h1", "p", "code", "div"}
CALL = {"details", "summary", "span", "b", "dl", "dt", "dd", "pre"}


def test_html_holds_text_only(session: StoredSession) -> None:
    page = export_session(session, "html")
    found = Tags(page)
    assert set(found.tags) == FRAME | CALL
    assert HOSTILE in found.texts
    assert found.tags.count("details") == 2
    assert "secret thoughts" not in page
    assert "QUJD" not in page
    assert "default-src 'none'" in page
    assert page.endswith("</html>\n")


@table(
    ("markdown", "shown"),
    [
        ("**bold** `x`", "<p><strong>bold</strong> <code>x</code></p>"),
        ("- one\n- two", "<li>one</li>"),
        ("a | b\n-|-\n1 | 2", "<td>1</td>"),
        ("```py\nif a < b:\n```", '<pre><code class="language-py">if a &lt; b:'),
        ("[site](https://a.example/x)", '<a href="https://a.example/x">site</a>'),
        ("[x](javascript:alert(1))", "<p>[x](javascript:alert(1))</p>"),
        ("[x](data:text/html,y)", "<p>[x](data:text/html,y)</p>"),
        ("[x](/etc/passwd)", "<p>[x](/etc/passwd)</p>"),
        ("![pixel](https://a.example/x.png)", '<p>!<a href="https://a.example/x.png">pixel</a></p>'),
        ('<img src=x onerror="alert(1)">', "&lt;img src=x"),
        ("</div></body><script>x</script>", "&lt;/div&gt;&lt;/body&gt;&lt;script&gt;"),
        ('```x" onclick=y\nz\n```', '<pre><code class="language-x&quot;">z'),
        ("&#x202e;&#27;[31m &lt;b&gt;", "\\u202e\ufffd[31m &lt;b&gt;"),
    ],
)
def test_answers_are_rendered_and_stay_inert(markdown: str, shown: str) -> None:
    page = export_session(session_of(AssistantMessage(content=(TextBlock(text=markdown),))), "html")
    assert shown in page
    assert set(Tags(page).tags) - FRAME <= {
        *("strong", "ul", "li", "table", "thead", "tbody"),
        "tr",
        "th",
        "td",
        "pre",
        "a",
    }


def test_a_page_has_title_diffs_and_folded_calls() -> None:
    before, after = split_lines("a\nb <i>\n"), split_lines("a\nc <i>\n")
    diff = Diff.of([FileDiff("a/x.py", "b/x.py", hunks_between(before, after))])
    calls = (
        ToolCall(id="c1", name="edit", arguments={"path": "x.py"}),
        ToolCall(id="c2", name="bash", arguments={"command": "make", "timeout": 5}),
    )
    bus = EventBus()
    with bus.subscribe(merge=False) as told:
        for message in (user_message("fix it"), AssistantMessage(content=calls)):
            bus.publish(MessageEnded(message_id=message.id, message=message))
        for call in calls:
            bus.publish(FileChanged(path="x.py", change="modified", call_id=call.id, diff=diff, added=1, removed=1))
            result = ToolResultMessage(call_id=call.id, tool_name=call.name, content=(TextBlock(text="done"),))
            bus.publish(MessageEnded(message_id=result.id, message=result))
        bus.publish(SessionRenamed(id="talk", title="Mend <x>"))
        page = export_session(StoredSession("talk", None, Path("/some/where"), tuple(told.drain())), "html")

    assert "<h1>Mend &lt;x&gt;</h1>" in page
    assert page.count('<span class="removed">-b &lt;i&gt;</span><span class="added">+c &lt;i&gt;</span>') == 1
    edit, bash = page.split("<details>")[1:]
    assert '<pre class="diff">' in edit
    assert "<dt>path</dt>" not in edit, "the summary says it"
    assert '<code>x.py</code> <span class="good">+1</span> <span class="bad">&minus;1</span>' in bash
    assert "diff" not in bash, "the conversation does not have what a command wrote"
    assert "<dt>timeout</dt><dd><pre>5</pre></dd>" in bash


def session_of(*messages: Message, cwd: Path = Path("/some/where")) -> StoredSession:
    """Return a session with these messages."""
    bus = EventBus()
    with bus.subscribe(merge=False) as published:
        for message in messages:
            bus.publish(MessageEnded(message_id=message.id, message=message))
        return StoredSession("talk", None, cwd, tuple(published.drain()))


def session_full_of(text: str, cwd: Path = Path("/some/where")) -> StoredSession:
    """Return a session with a text in every part that an export shows."""
    messages: tuple[Message, ...] = (
        user_message(text),
        AssistantMessage(content=(TextBlock(text=text), ToolCall(id="c1", name=text, arguments={"a": text}))),
        ToolResultMessage(call_id="c1", tool_name=text, content=(TextBlock(text=text),)),
    )
    return session_of(*messages, cwd=cwd)


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
