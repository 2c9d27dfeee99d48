"""Export of a session as a page to share: answers as rendered Markdown, folded calls, diffs in colour.

The page is inert (safety promise 17): Markdown becomes tags without HTML, images and links that run something, all
other text is escaped, and nothing is loaded.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from tui_agent.protocol.diffs import Diff, DiffLine
from tui_agent.protocol.events import FileChanged, RunStarted, SessionRenamed, ToolQueued
from tui_agent.protocol.messages import (
    AssistantMessage,
    DocumentBlock,
    ImageBlock,
    Message,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    UserBlock,
    UserMessage,
)
from tui_agent.protocol.past_session import events_of
from tui_agent.protocol.visible_text import escaped

from .stored_session import StoredSession

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

LONGEST_TITLE = 100
"""Most characters of the first prompt as the title."""

_SAFE_LINK = re.compile(r"https?://|mailto:", re.IGNORECASE)
_WRITING_TOOLS = ("write", "edit")
"""Tools whose input has what they write, so that the diff tells nothing more than the conversation does."""


def to_html(session: StoredSession) -> str:
    """Return the session as one HTML page without scripts, images or external resources."""
    found = _Facts(session)
    about = f'<p class="muted">{html_text(session.id)} &middot; <code>{html_text(str(session.cwd))}</code></p>'
    body = "\n".join(_parts(session.messages, found))
    # Entities in Markdown can spell any character.
    return html_page(found.title or f"Session {session.id}", (about, escaped(body)))


class _Facts:
    """Facts of the journal that no message has."""

    def __init__(self, session: StoredSession) -> None:
        self.title = ""
        self.summaries: dict[str, str] = {}
        self.changes: dict[str, list[FileChanged]] = {}
        prompt = ""
        for envelope in events_of(session.envelopes, (FileChanged, RunStarted, SessionRenamed, ToolQueued)):
            match envelope.event:
                case FileChanged(call_id=str(call_id)) as change:
                    self.changes.setdefault(call_id, []).append(change)
                case ToolQueued(call_id=call_id, summary=summary):
                    self.summaries[call_id] = summary
                case RunStarted(input=text, trigger="prompt") if not envelope.origin.depth:
                    prompt = prompt or " ".join(text.split())
                case SessionRenamed(title=title):
                    self.title = title
                case _:
                    pass
        short = prompt if len(prompt) <= LONGEST_TITLE else f"{prompt[: LONGEST_TITLE - 1]}…"
        self.title = self.title or short


def _parts(messages: Iterable[Message], found: _Facts) -> Iterator[str]:
    """Yield the parts of the conversation, with a heading where the speaker changes."""
    messages = tuple(messages)
    results = {message.call_id: message for message in messages if isinstance(message, ToolResultMessage)}
    speaker = ""
    for message in messages:
        if isinstance(message, ToolResultMessage):
            continue
        who = speaker_of(message)
        if who != speaker:
            yield f'<p class="who">{who}</p>'
        speaker = who
        if isinstance(message, AssistantMessage):
            yield from _answer(message, results, found)
        else:
            is_own = message.kind not in ("notice", "command")
            yield f'<div class="{"user" if is_own else "user muted"}">{html_text(block_words(message.content))}</div>'


def speaker_of(message: Message) -> str:
    """Return the name of who wrote a message."""
    if isinstance(message, UserMessage):
        return "Notice" if message.kind == "notice" else "You"
    return "Assistant"


def _answer(message: AssistantMessage, results: Mapping[str, ToolResultMessage], found: _Facts) -> Iterator[str]:
    for block in message.content:
        if isinstance(block, TextBlock):
            yield f'<div class="answer">{_renderer().render(escaped(block.text))}</div>'
        elif isinstance(block, ToolCall):
            yield from _call(block, results.get(block.id), found)


def _call(call: ToolCall, result: ToolResultMessage | None, found: _Facts) -> Iterator[str]:
    changes = found.changes.get(call.id, [])
    summary = found.summaries.get(call.id) or next((one for one in call.arguments.values() if isinstance(one, str)), "")
    is_good = result is not None and not result.is_error
    mark = '<span class="good">&#10003;</span>' if is_good else '<span class="bad">&#10007;</span>'
    # The summary of a writing tool has them already.
    counts = _counts(changes[0]) if len(changes) == 1 and call.name not in _WRITING_TOOLS else ""
    line = " ".join(summary.split())
    yield f"<details><summary>{mark} <b>{html_text(call.name)}</b> <code>{html_text(line)}</code>{counts}</summary>"
    for change in changes:
        yield f'<p class="muted">{change.change} <code>{html_text(change.path)}</code>{_counts(change)}</p>'
        if call.name in _WRITING_TOOLS:
            yield _diff(change.diff)
    yield "<dl>"
    for name, value in call.arguments.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
        if text != line:
            yield f"<dt>{html_text(name)}</dt><dd><pre>{html_text(text)}</pre></dd>"
    if result is not None:
        label = "failed" if result.is_error else "returned"
        yield f"<dt>{label}</dt><dd><pre>{html_text(block_words(result.content))}</pre></dd>"
    yield "</dl></details>"


def _counts(change: FileChanged) -> str:
    return f' <span class="good">+{change.added}</span> <span class="bad">&minus;{change.removed}</span>'


def _diff(diff: Diff) -> str:
    rows = [row for file in diff.files for hunk in file.hunks for row in (("at", hunk.header), *_lines(hunk.lines))]
    rows += [("at", f"{file.left_out:,} more lines") for file in diff.files if file.left_out]
    shown = "".join(f'<span class="{kind}">{html_text(text) or " "}</span>' for kind, text in rows)
    return f'<pre class="diff">{shown}</pre>' if rows else ""


def _lines(lines: Sequence[DiffLine]) -> Iterator[tuple[str, str]]:
    signs = {"same": " ", "added": "+", "removed": "-"}
    return ((line.kind, f"{signs[line.kind]}{line.text}") for line in lines)


def block_words(content: Iterable[UserBlock]) -> str:
    """Return the text of a message, with words in place of images and PDF files."""
    return "\n".join(map(_words, content))


def _words(block: UserBlock) -> str:
    match block:
        case TextBlock():
            return block.text
        case ImageBlock():
            return f"[image, {block.media_type}]"
        case DocumentBlock():
            return f"{block.label}\n{block.data}" if block.is_text else block.label


@cache
def _renderer() -> "MarkdownIt":
    # Only an export pays for the import.
    from markdown_it import MarkdownIt

    class _Reader(MarkdownIt):
        def validateLink(self, url: str) -> bool:  # noqa: N802
            return _SAFE_LINK.match(url) is not None

    return _Reader("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("image")


_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Refuses scripts and everything from elsewhere, should the text of a page ever become markup."""
_STYLE = """
:root { color-scheme: light dark; --text: #1f2328; --muted: #656d76; --page: #ffffff; --panel: #f6f8fa; --line: #d1d9e0;
  --accent: #0969da; --good: #1a7f37; --bad: #cf222e; --added: #dafbe1; --removed: #ffebe9; }
@media (prefers-color-scheme: dark) { :root { --text: #e6edf3; --muted: #8d96a0; --page: #0d1117; --panel: #161b22;
  --line: #30363d; --accent: #58a6ff; --good: #3fb950; --bad: #f85149; --added: #12361f; --removed: #4b1a1d; } }
* { box-sizing: border-box; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; background: var(--page); color: var(--text);
  font: 16px/1.55 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.3; margin: 0 0 .25rem; }
a { color: var(--accent); }
code, pre { font: .875em/1.45 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
pre { white-space: pre-wrap; margin: .5rem 0; padding: .6rem .8rem; background: var(--panel);
  border: 1px solid var(--line); border-radius: 6px; font-size: .8125rem; }
table { border-collapse: collapse; } th, td { text-align: left; padding: .25rem .75rem; border: 1px solid var(--line); }
th { background: var(--panel); }
.muted, .who { color: var(--muted); } .who { font-size: .8125rem; margin: 1.5rem 0 .25rem; }
.good { color: var(--good); } .bad { color: var(--bad); }
.user { white-space: pre-wrap; padding: .6rem .9rem; background: var(--panel); border-left: 3px solid var(--accent);
  border-radius: 0 6px 6px 0; }
.answer h1, .answer h2, .answer h3 { font-size: 1.1rem; margin: 1rem 0 .25rem; }
.answer p code, .answer li code { padding: .1em .3em; background: var(--panel); border-radius: 4px; }
.answer blockquote { margin: .5rem 0; padding-left: .9rem; border-left: 3px solid var(--line); color: var(--muted); }
details { margin: .35rem 0; border: 1px solid var(--line); border-radius: 6px; padding: .3rem .7rem; }
summary { cursor: pointer; font-size: .875rem; }
dt { font-size: .75rem; color: var(--muted); margin-top: .5rem; } dd { margin: 0; }
.diff span { display: block; } .diff .added { background: var(--added); } .diff .removed { background: var(--removed); }
.diff .at { color: var(--muted); }
.wide { overflow-x: auto; } td { font-size: .875rem; }
svg text { fill: var(--text); } svg .paper { fill: var(--page); }
@media print { details { break-inside: avoid; } }
"""


def html_text(text: str) -> str:
    """Return a text for HTML, with what a reader would not see as escapes."""
    # It has the table of all 2,231 named characters, which only an export needs.
    import html

    return html.escape(escaped(text))


def html_page(title: str, body: Iterable[str]) -> str:
    """Return a page.

    Args:
        body: its lines below the title, as HTML.
    """
    shown = html_text(title)
    return "\n".join(
        (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="referrer" content="no-referrer">',
            f"<title>{shown}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{shown}</h1>",
            *body,
            "</body>\n</html>\n",
        )
    )
