"""Findings of language servers after an edit, where there is no screen."""

from pathlib import Path

from tui_agent.acp.session_updates import SessionUpdates
from tui_agent.headless.plain_reporter import PlainReporter
from tui_agent.protocol.envelope import Envelope, Origin
from tui_agent.protocol.events import FileChanged, ToolEnded, ToolQueued, ToolStarted
from tui_agent.protocol.messages import TextBlock
from tui_agent.tools.unified_diff import diff_of

CHANGED = TextBlock(text="Changed a.py (+1 −0 lines).")
FOUND = TextBlock(text="New problems after this change:\na.py:1:1: error: x (ruff)")
EVENTS = (
    ToolQueued(call_id="c", name="edit", args_raw={"path": "a.py"}, index=0, summary="a.py"),
    ToolStarted(call_id="c", name="edit", args={"path": "a.py"}, summary="a.py"),
    FileChanged(path="/w/a.py", change="modified", call_id="c", diff=diff_of("", "x\n", "a/a.py", "b/a.py")),
    ToolEnded(
        call_id="c",
        name="edit",
        index=0,
        status="ok",
        is_error=False,
        content=(CHANGED, FOUND),
        details={"outcome": "+1 · 1 error", "problems": "1 error"},
    ),
)
ENVELOPES = [Envelope(event, 1, 0, 0.0, Origin("s")) for event in EVENTS]


def test_an_editor_gets_them_after_the_change() -> None:
    fold = SessionUpdates(Path("/w"), terminals=False)
    *_, last = [update for envelope in ENVELOPES for update in fold.apply(envelope)]
    content = last.content  # type: ignore[union-attr]

    assert [part.type for part in content] == ["diff", "content"]
    assert "a.py:1:1: error: x (ruff)" in content[1].content.text


def test_plain_mode_names_their_number() -> None:
    reporter = PlainReporter(lambda _: ())
    lines = b"".join(reporter.render(envelope) for envelope in ENVELOPES).decode().splitlines()

    assert lines[-1] == "done: edit a.py: Changed a.py (+1 −0 lines). (3 lines): 1 error"
