"""Rows of the preview of a session."""

from dataclasses import replace

from tests.ui.app.saved_sessions import NOW
from tests.ui.app.still_sessions import PREVIEW, StillShelf
from tui_agent.ui.app.session_rows import preview_rows, title_of
from tui_agent.workbench.sessions.session_catalogue import SessionEntry

OPEN = StillShelf().fixed[1]


def shown(entry: SessionEntry, answer: str = "done", current: str = "") -> str:
    preview = replace(PREVIEW, answer=answer)
    return "\n".join(row.plain for row in preview_rows(entry, preview, 80, NOW, current=current, is_loading=False))


def test_the_session_on_the_screen_is_not_called_open_elsewhere() -> None:
    assert "open in another tui-agent" in shown(OPEN)

    rows = shown(OPEN, current=OPEN.summary.id)
    assert "this is the session on the screen" in rows
    assert "another tui-agent" not in rows


def test_texts_keep_their_emoji_and_show_control_characters_as_escapes() -> None:
    text = "\U0001f44d\U0001f3fd done\x1b[31m \u202eback"
    titled = replace(OPEN, summary=replace(OPEN.summary, title=text))

    assert "\U0001f44d done\\x1b[31m \\u202eback" in shown(OPEN, answer=text)
    assert title_of(titled, 60) == "\U0001f44d done\\x1b[31m \\u202eback"
