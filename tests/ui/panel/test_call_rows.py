"""Words of a call that waits, and the newest lines of its output."""

from hypothesis import given
from hypothesis import strategies as st

from tests.support.table import table
from tests.ui.story import Story
from tui_agent.protocol.events import (
    ToolBlockedOn,
    ToolProgress,
)
from tui_agent.ui.panel.call_rows import TAIL_ROWS, tail_lines, wait_text
from tui_agent.ui.state.call_ledger import CallLedger
from tui_agent.ui.text.styled_lines import text_of_runs
from tui_agent.ui.text.terminal_output import output_lines


def fold(story: Story) -> CallLedger:
    ledger = CallLedger()
    for envelope in story.envelopes:
        ledger.apply(envelope)
    return ledger


def waits(story: Story) -> list[str]:
    ledger = fold(story)
    return [wait_text(call.view, ledger.find) for call in ledger.calls]


@table(
    ("what", "words"),
    [
        ("permission", "is judged"),
        ("slot", "waits for a slot"),
        ("group", "waits its turn"),
        ("hook", "waits for a hook"),
    ],
)
def test_waiting_is_shown_with_its_reason(what: str, words: str) -> None:
    story = Story().run("x").step(0)
    call_id = story.queued("bash", "x")
    story.tell(ToolBlockedOn.model_validate({"call_id": call_id, "what": what}))

    assert waits(story) == [words]


def test_a_waiting_row_names_no_call_that_is_over() -> None:
    story = Story().run("x").step(0)
    first, second = story.queued("bash", "make"), story.queued("bash", "make test")
    third = story.queued("read", "a.py")
    story.started(first, "bash", "make").started(second, "bash", "make test").blocked(third, first, second)
    assert waits(story)[2] == "waits for #1 bash +1"

    story.ended(first, "bash")
    assert waits(story)[2] == "waits for #2 bash"

    story.ended(second, "bash")
    assert waits(story)[2] == "waits its turn"


def test_a_row_behind_a_question_says_after_which_call_and_that_it_needs_the_user() -> None:
    story = Story().run("x").step(0)
    running, asked, read = story.queued("bash", "ls"), story.queued("edit", "a.py"), story.queued("read", "a.py")
    story.started(running, "bash", "ls").blocked(read, running, asked)
    request = story.asks(asked, "edit", "a.py", "no rule")
    assert waits(story)[2] == "after #2, which needs you +1"

    story.ended(running, "bash")
    assert waits(story)[2] == "after #2, which needs you"

    story.resolved(request, asked).started(asked, "edit", "a.py")
    assert waits(story)[2] == "waits for #2 edit"


def test_live_output_shows_its_newest_lines_cleaned() -> None:
    story = Story().run("x").step(0)
    call_id = story.queued("bash", "x")
    story.started(call_id, "bash", "x")
    story.output(call_id, "one\ntwo\n\x1b[31mthree\x1b[0m\nfour\n10 %\r20 %")
    view = fold(story).calls[0].view

    assert [text_of_runs(row).strip() for row in tail_lines(view)] == ["three", "four", "20 %"]


PIECES = (
    "a",
    "bc ",
    "\n",
    "\n\n",
    " \n",
    "\x1b[31m",
    "\x1b[0m",
    "\x1b]0;t\x07",
    "\r",
    "\t",
    "\u2028",
    "\x0b",
    "x" * 300,
)


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=50))
def test_live_output_reads_only_its_end_and_shows_the_same(pieces: list[str]) -> None:
    story = Story().run("x").step(0)
    call_id = story.queued("bash", "x")
    story.started(call_id, "bash", "x")
    story.output(call_id, "".join(pieces))

    whole = [line for line in output_lines("".join(pieces)) if text_of_runs(line).strip()]
    assert [tuple(line) for line in tail_lines(fold(story).calls[0].view)] == whole[-TAIL_ROWS:]


def test_progress_is_shown_if_there_is_no_output() -> None:
    story = Story().run("x").step(0)
    call_id = story.queued("fetch", "x")
    story.started(call_id, "fetch", "x")
    story.tell(ToolProgress(call_id=call_id, text="connecting"))

    assert [text_of_runs(row).strip() for row in tail_lines(fold(story).calls[0].view)] == ["connecting"]
