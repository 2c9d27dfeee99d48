"""A call in one row of the right column: what it is, and its state in a column of its own, at any width."""

from typing import get_args

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.support.table import table
from tests.ui.story import Story
from tui_agent.protocol.events import ToolStatus
from tui_agent.ui.panel.panel_rows import STATE_ROOM, RowContext, row_of
from tui_agent.ui.state.call_ledger import CallLedger
from tui_agent.ui.text.styled_lines import text_of_runs
from tui_agent.ui.transcript.call_part import CallContext, call_rows, flattened


def fold(story: Story) -> CallLedger:
    ledger = CallLedger()
    for envelope in story.envelopes:
        ledger.apply(envelope)
    return ledger


def rows(story: Story, width: int = 60) -> list[str]:
    ledger = fold(story)
    context = RowContext(width, story.now, digits=len(str(ledger.total)), find=ledger.find)
    return [text_of_runs(row_of(call, context)) for call in ledger.calls]


def states(story: Story) -> list[str]:
    """Return the column of the states."""
    found = [row[-STATE_ROOM:] for row in rows(story)]
    assert all(row[-STATE_ROOM - 2 : -STATE_ROOM] == "  " for row in rows(story))
    assert {row[-1] for row in found if row.strip()} & {" "} == set(), "the right edge is ragged"
    return [state.strip() for state in found]


def test_a_call_that_waits_for_several_names_the_one_that_needs_the_user() -> None:
    story = Story().run("x").step(0)
    running, asked, read = story.queued("bash", "ls"), story.queued("edit", "a.py"), story.queued("read", "a.py")
    story.started(running, "bash", "ls").blocked(read, running, asked)
    assert states(story)[2] == "after #1"

    story.asks(asked, "edit", "a.py", "no rule")
    assert states(story)[2] == "after #2"


@table(
    ("width", "shown"),
    [
        (60, "src/shop/of/cart/cart.py"),
        (43, "…/of/cart/cart.py"),
        (36, "…/cart.py"),
    ],
)
def test_of_a_long_path_the_end_is_shown_without_counts(width: int, shown: str) -> None:
    story = Story().run("x").step(0)
    story.call("edit", "src/shop/of/cart/cart.py (+2 −1)", status="error")

    row = " ".join(rows(story, width)[0].split())
    assert row == f"✖ #1 edit {shown} failed"


@table("status", get_args(ToolStatus))
def test_every_status_has_a_sign_and_all_but_success_have_a_word(status: ToolStatus) -> None:
    story = Story().run("x").step(0)
    story.call("bash", "pytest -q", status=status)

    assert rows(story)[0].strip()[0] in "✔✖⏱⊘⤼■?"
    assert (states(story)[0] == "0.02 s") == (status == "ok")
    assert 0 < len(states(story)[0]) <= STATE_ROOM


@given(st.integers(1, 160), st.text(max_size=60), st.text(max_size=30))
def test_no_row_is_wider_than_its_panel_or_has_control_characters(width: int, summary: str, name: str) -> None:
    story = Story().run("x").step(0)
    call_id = story.queued(name, summary)
    story.started(call_id, name, summary)
    text = text_of_runs(row_of(fold(story).calls[0], RowContext(width, story.now)))

    assert all(character.isprintable() for character in text)
    assert cell_len(text) <= max(width, 35)


def test_each_kind_of_tool_has_the_same_mark_in_the_panel_and_in_the_conversation() -> None:
    story = Story().run("x").step(0)
    for name in ("read", "edit", "bash", "agent", "todo"):
        story.call(name, "x")
    ledger = fold(story)

    marks = []
    for call in ledger.calls:
        (panel,) = [style for text, style in row_of(call, RowContext(60, story.now)) if text.strip() == call.view.name]
        rows = call_rows(call, CallContext(ledger.find), 60, is_open=False)
        (conversation,) = [style for text, style in flattened(rows)[0].runs if text.strip() == call.view.name]
        assert panel == conversation
        marks.append(panel)

    assert marks == ["tool-read", "tool-change", "tool-run", "tool-agent", "tool-other"]
