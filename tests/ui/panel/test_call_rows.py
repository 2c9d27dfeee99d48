"""A call in one row: what it is, what it waits for, the newest lines of its output, and its state at any width."""

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.support.table import table
from tests.ui.story import Story
from tui_agent.protocol.events import ToolBlockedOn, ToolProgress
from tui_agent.ui.panel.call_rows import TAIL_ROWS, tail_lines, wait_text
from tui_agent.ui.panel.panel_rows import STATE_ROOM, RowContext, row_of
from tui_agent.ui.state.call_ledger import CallLedger
from tui_agent.ui.text.styled_lines import text_of_runs
from tui_agent.ui.text.terminal_output import output_lines
from tui_agent.ui.transcript.call_part import CallContext, call_rows, flattened


def fold(story: Story) -> CallLedger:
    ledger = CallLedger()
    for envelope in story.envelopes:
        ledger.apply(envelope)
    return ledger


def waits(story: Story) -> list[str]:
    ledger = fold(story)
    return [wait_text(call.view, ledger.find) for call in ledger.calls]


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


def test_a_waiting_row_says_why_and_names_no_call_that_is_over() -> None:
    story = Story().run("x").step(0)
    call_id = story.queued("bash", "x")
    for what, words in (
        ("permission", "is judged"),
        ("slot", "waits for a slot"),
        ("group", "waits its turn"),
        ("hook", "waits for a hook"),
    ):
        story.tell(ToolBlockedOn.model_validate({"call_id": call_id, "what": what}))
        assert waits(story) == [words]

    story = Story().run("x").step(0)
    first, asked, third = story.queued("bash", "make"), story.queued("edit", "a.py"), story.queued("read", "a.py")
    story.started(first, "bash", "make").blocked(third, first, asked)
    assert waits(story)[2] == "waits for #1 bash +1"
    assert states(story)[2] == "after #1"
    request = story.asks(asked, "edit", "a.py", "no rule")
    assert waits(story)[2] == "after #2, which needs you +1"
    assert states(story)[2] == "after #2", "the one that needs the user"

    story.ended(first, "bash")
    assert waits(story)[2] == "after #2, which needs you"
    story.resolved(request, asked).started(asked, "edit", "a.py")
    assert waits(story)[2] == "waits for #2 edit"
    story.ended(asked, "edit")
    assert waits(story)[2] == "waits its turn"


def test_a_running_row_shows_the_newest_lines_of_its_output_cleaned_or_its_progress() -> None:
    story = Story().run("x").step(0)
    call_id = story.queued("bash", "x")
    story.started(call_id, "bash", "x")
    story.tell(ToolProgress(call_id=call_id, text="connecting"))
    assert [text_of_runs(row).strip() for row in tail_lines(fold(story).calls[0].view)] == ["connecting"]

    story.output(call_id, "one\ntwo\n\x1b[31mthree\x1b[0m\nfour\n10 %\r20 %")
    assert [text_of_runs(row).strip() for row in tail_lines(fold(story).calls[0].view)] == ["three", "four", "20 %"]


ENDS = ("\n", "\n\n", " \n", "\r", "\t", "\u2028", "\x0b")
PIECES = ("a", "bc ", *ENDS, "\x1b[31m", "\x1b[0m", "\x1b]0;t\x07", "x" * 300)


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=50))
def test_live_output_reads_only_its_end_and_shows_the_same(pieces: list[str]) -> None:
    story = Story().run("x").step(0)
    call_id = story.queued("bash", "x")
    story.started(call_id, "bash", "x")
    story.output(call_id, "".join(pieces))

    whole = [line for line in output_lines("".join(pieces)) if text_of_runs(line).strip()]
    assert [tuple(line) for line in tail_lines(fold(story).calls[0].view)] == whole[-TAIL_ROWS:]


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
