"""Parts beside Markdown: a text of any length takes a bounded number of rows and time."""

import pytest

from tests.ui.row_kit import FoldWithLedger, Teller, rows_of, user
from tui_agent.protocol.events import TodoItem
from tui_agent.ui.transcript import transcript_parts
from tui_agent.ui.transcript.transcript_layout import Part, Transcript
from tui_agent.ui.transcript.transcript_parts import (
    MAX_CHARACTERS,
    MAX_OUTPUT_ROWS,
    MAX_TODO_CHARACTERS,
    MAX_TODO_ITEMS,
    CommandPart,
    NotePart,
    TodoPart,
)

ENDLESS = "begin " + "x" * 1_000_000 + " end"


def shown(part: Part, width: int = 80) -> list[str]:
    return [row.plain for row in part.layout(width)]


def test_a_long_note_shows_both_ends() -> None:
    rows = shown(NotePart("error", ENDLESS))

    assert rows[0].startswith(" ✖ begin")
    assert rows[-1].endswith("x end")
    assert f"… {len(ENDLESS) - MAX_CHARACTERS:,} more characters …" in "".join(rows)
    assert len("".join(rows)) < 2 * MAX_CHARACTERS


def test_long_and_many_items_of_a_plan_are_cut() -> None:
    items = [TodoItem(text=ENDLESS, status="pending")] * (MAX_TODO_ITEMS + 5)
    rows = shown(TodoPart(items))

    assert rows[-1].strip() == "… 5 more items"
    assert sum("begin" in row for row in rows) == MAX_TODO_ITEMS
    assert len(rows) < MAX_TODO_ITEMS * (MAX_TODO_CHARACTERS // 20)


def test_a_command_keeps_the_newest_of_an_endless_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript_parts, "MAX_STORED_OUTPUT", 1_000)
    part = CommandPart(ENDLESS)
    for number in range(1_000):
        part.grow(f"line {number}\n")

    rows = shown(part)

    assert len(part.text) < len(ENDLESS) + 3_000
    assert rows[-1].strip() == "line 999"
    assert f"… {1_000 - MAX_OUTPUT_ROWS:,} more lines above" in "".join(rows)
    part.end("ok", "whole\n" * 3)
    assert shown(part)[-1].strip() == "whole"


def test_a_long_message_stays_folded_until_the_user_opens_it() -> None:
    fold = FoldWithLedger(Transcript())
    text = "\n".join(["look at this:", "a\x1b[31mb", *(f"line {number}" for number in range(2, 60))])
    fold.apply(Teller().tell(user(text)))
    assert rows_of(fold.transcript, 60) == ["", " ❯ ▸ look at this:  pasted 60 lines"]

    part = fold.transcript.parts[-1]
    assert part.active
    assert part.text == text
    assert part.toggle()
    fold.transcript.refresh(part)
    rows = rows_of(fold.transcript, 60)
    assert rows[:4] == ["", " ❯ ▾ pasted 60 lines", "   look at this:", "   a\\x1b[31mb"]
    assert len(rows) == 62

    short = FoldWithLedger(Transcript())
    short.apply(Teller().tell(user("one\n" * 6 + "seven")))
    assert rows_of(short.transcript, 60)[-1].strip() == "seven"
