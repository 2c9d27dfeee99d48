"""Text from outside in every place of the screen: nothing of it acts, hides or breaks anything (safety promise 17)."""

import pytest
from textual.filter import LineFilter

from tests.support.table import table
from tests.ui.still import drawn, shown, still_app
from tests.ui.story import Story
from tui_agent.protocol.events import Failed, Noticed, StepRetry, TodoItem, TodoUpdated, Warned
from tui_agent.protocol.messages import ToolCall
from tui_agent.protocol.permissions import DecisionPart
from tui_agent.protocol.tool import Preview
from tui_agent.ui.app.base_app import ControlCharacterFilter, plain
from tui_agent.ui.app.tui_agent_app import TuiAgentApp
from tui_agent.ui.base.terminal_environment import WorkingDirectory

HOSTILE = {
    "markup": "[red]a[/] [/] [@click=app.quit]b[/] [link=http://x]c",
    "clipboard": "a\x1b]52;c;ZXZpbA==\x07b",
    "link": "a\x1b]8;;http://evil.example\x1b\\b\x1b]8;;\x1b\\",
    "title": "a\x1b]0;evil\x07\x9d2;evil\x9cb",
    "question": "a\x1b[6n\x1b[c\x1bP$q m\x1b\\\x05b",
    "screen": "a\x1b[2J\x1b[H\x1b[?1049l\x9b31mb\x1bc",
    "direction": "a\u202eb\u2066c\u2069\u061c",
    "zero width": "a\u200bb\u2060c\ufeffd\U000e0041",
    "marks": "a" + "\u0301\u0489" * 200,
    "tab and return": "a\tb\rc\r\nd\x0be\x0cf",
    "line ends": "a\x85b\u2028c\u2029d",
    "half a character": "a\ud800b\udc00",
    "nothing": "\x00\x01\x7f\x80",
}
TEXTS = {
    "all on lines": "\n".join(HOSTILE.values()),
    "all in a row": "[" + "".join(HOSTILE.values()),
    "one long line": "[x" + "a" * 20_000 + HOSTILE["clipboard"],
}


class Watcher(LineFilter):
    """Notes what the last look at the terminal would have had to take away."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def apply(self, segments: list, background: object) -> list:  # type: ignore[override]
        for text, style, _ in segments:
            if plain(text) != text or (style is not None and style.link is not None):
                self.seen.append(text)
        return segments


def everywhere(text: str) -> Story:
    """A story that has the text in every place where text from outside can stand."""
    story = Story(model=text).run(text).step(0)
    story.tell(TodoUpdated(items=(TodoItem(text=text, status="pending"),)))
    story.answer(
        f"{text}\n\n# {text}\n\n| {text} | b |\n|--|--|\n| {text} | c |\n\n```{text}\n{text}\n```\n\n- {text}\n> {text}"
    )
    story.call(text, text, text=text)
    story.call("bash", text, status="error", text=text)
    story.tell(Noticed(code="x", text=text))
    story.tell(Warned(code="x", text=text))
    story.tell(Failed(code="x", text=text))
    story.tell(StepRetry(attempt=1, max=2, wait_s=1, error_kind="x", status=500, discarded=False, text=text))
    waiting = story.sends(text)
    story.delivered(waiting, text, text)
    story.sends(text, "follow_up")
    story.answer(text, ToolCall(id=text[:40], name=text, arguments={text: text}))
    running = story.queued(text, text, what=text)
    story.started(running, text, text, what=text)
    story.output(running, text + "\n")
    return story


def asked(story: Story, text: str, *, diff: bool) -> Story:
    """The same with a question about a call in it."""
    change = f"--- a/{text}\n+++ b/{text}\n@@ -1 +1 @@ {text}\n-{text}\n+{text}!\n"
    preview = Preview(kind="diff", text=change, path=text) if diff else Preview(kind="command", text=text)
    call_id = story.queued(text, text, command=text)
    part = DecisionPart(text=text, decision="ask", rule=text, reason=text)
    story.asks(
        call_id, text, text, text, args={"command": text, text: [text]}, preview=preview, parts=(part, part),
        trace=(text,), targets=(text,), session_rule=text, rules=(text,), agent=text,
    )  # fmt: skip
    return story


def watched(app: TuiAgentApp) -> Watcher:
    """Looks at every row before the last look does."""
    watcher = Watcher()
    assert isinstance(app._filters[-1], ControlCharacterFilter)
    app._filters.insert(len(app._filters) - 1, watcher)
    return watcher


@pytest.mark.slow
@table(("name", "diff"), [(name, name != "all in a row") for name in TEXTS])
async def test_whatever_it_is_nothing_of_it_acts_anywhere(name: str, diff: bool) -> None:
    text = TEXTS[name]
    app = still_app(asked(everywhere(text), text, diff=diff), running=True, label=text, ideas=(text,))
    watcher = watched(app)
    app.chat.bars.frame._place = WorkingDirectory(text, text)
    async with app.run_test(size=(120, 40)) as pilot:
        await shown(pilot)
        for keys in (["w"], ["end"], ["home"], ["escape"], ["ctrl+t"], ["enter"], ["escape"], ["ctrl+f", "a"], ["f1"]):
            await pilot.press(*keys)
            await drawn(pilot)
        app.notify(text, title=text)
        app.copy_to_clipboard(text)
        await drawn(pilot)

    assert watcher.seen == []
