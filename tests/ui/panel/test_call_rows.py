"""A call in one row: a sign and text for its state, at any width."""

from dataclasses import replace
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.support.table import table
from tests.ui.story import Story, working
from tui_agent.protocol.events import (
    FileChanged,
    ToolBlockedOn,
    ToolEnded,
    ToolProgress,
    ToolStarted,
    ToolStatus,
)
from tui_agent.ui.panel.call_rows import TAIL_ROWS, RowContext, row_of, step_row, tail_lines, tail_rows
from tui_agent.ui.state.call_ledger import CallLedger
from tui_agent.ui.text.styled_lines import text_of_runs
from tui_agent.ui.text.terminal_output import output_lines
from tui_agent.ui.transcript.call_part import CallContext, call_rows, flattened


def fold(story: Story) -> CallLedger:
    ledger = CallLedger()
    for envelope in story.envelopes:
        ledger.apply(envelope)
    return ledger


def rows(story: Story, width: int = 60, *, tenths: bool = True) -> list[str]:
    ledger = fold(story)
    context = RowContext(width, story.now, tenths=tenths, digits=len(str(ledger.total)), find=ledger.find)
    return [text_of_runs(row_of(call, context)) for call in ledger.calls]


def test_a_row_shows_sign_number_tool_summary_and_time() -> None:
    read, _, bash, edit = rows(working())

    assert read.split() == ["✔", "#1", "read", "tests/test_price.py", "0.01", "s"]
    assert bash.split() == ["◐", "#3", "bash", "pytest", "-q", "12.3", "s"]
    assert edit.split() == ["◌", "#4", "edit", "src/price.py", "waits", "for", "#3", "bash"]


@table(
    ("width", "shown"),
    [
        (60, "/tmp/tour-x1/shop/cart.py (+2 −1)"),
        (44, "…/shop/cart.py (+2 −1)"),
        (39, "…/shop/cart.py (+2 −1)"),
        (31, "…/cart.py (+2 −1)"),
    ],
)
def test_a_note_after_a_long_path_is_shown(width: int, shown: str) -> None:
    story = Story().run("x").step(0)
    story.call("edit", "/tmp/tour-x1/shop/cart.py (+2 −1)")

    assert " ".join(rows(story, width)[0].split()[3:6]) == shown


def test_a_long_path_leaves_room_for_the_state() -> None:
    path, width = "/tmp/tui-agent-tour-fp2xudq0/cart.py (+2 −1)", 43
    story = Story().run("x").step(0)
    story.call("edit", path, status="skipped_steering")
    story.asks(story.queued("edit", path), "edit", path, "no rule")

    assert [" ".join(row.split()[2:]) for row in rows(story.wait(7), width)] == [
        "edit …/cart.py (+2 −1) skipped",
        "edit …/cart.py (+2 −1) needs you",
    ]


def test_of_a_long_name_the_beginning_is_shown() -> None:
    story = Story().run("x").step(0)
    story.call("read", "src/a_very_long_file_name.py")

    assert rows(story, 32)[0].split()[3] == "a_very_long_file_n…"


def test_of_a_long_command_the_beginning_is_shown() -> None:
    story = Story().run("x").step(0)
    story.call("bash", "pytest -q tests/test_cart.py")

    assert rows(story, 32)[0].rstrip().endswith("bash  pytest -q tests/te…")


def test_badges_leave_the_argument_half_of_the_row() -> None:
    story = Story().run("x").step(0)
    command = "python -m pytest tests/test_price.py -q"
    bash = story.queued("bash", command)
    story.started(bash, "bash", command)
    for number in range(13):
        story.tell(FileChanged(call_id=bash, path=f"{number}.py", change="modified"))
    story.ended(
        bash, "bash", text="x" * 2_000, latency_ms=2_000.0, approval_ms=41_000.0, details={"files_changed": ["0.py"]}
    )

    shown: dict[str, None] = {}
    for width in range(100, 40, -1):
        argument, *badges = rows(story, width)[0].split("bash  ")[1].split("  ")
        assert len(argument) >= min(width // 2, len(command))
        shown[" ".join(badge.strip() for badge in badges if badge)] = None

    assert list(shown) == ["13 files you 41 s 2 kB 2.0 s", "13 files you 41 s 2.0 s", "13 files 2.0 s", "2.0 s"]


def test_rows_from_number_ten_show_as_much_as_those_before() -> None:
    story = Story().run("x").step(0)
    for number in range(1, 12):
        story.call("read", f"tests/test_part_{number:02}.py")

    shown = rows(story, 44)

    assert all(f"read  tests/test_part_{number:02}.py " in row for number, row in enumerate(shown, 1))
    assert {row.index("read") for row in shown} == {7}
    assert {len(row.rstrip()) for row in shown} == {43}


def test_progress_is_shown_as_a_share() -> None:
    story = Story().run("x").step(0)
    call_id = story.queued("fetch", "docs")
    story.started(call_id, "fetch", "docs")
    story.tell(ToolProgress(call_id=call_id, text="half", fraction=0.5))

    assert "50 %" in rows(story)[0]


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

    assert words in rows(story)[0]


def test_a_waiting_row_names_no_call_that_is_over() -> None:
    story = Story().run("x").step(0)
    first, second = story.queued("bash", "make"), story.queued("bash", "make test")
    third = story.queued("read", "a.py")
    story.started(first, "bash", "make").started(second, "bash", "make test").blocked(third, first, second)
    assert "waits for #1 bash +1" in rows(story)[2]

    story.ended(first, "bash")
    assert rows(story)[2].rstrip().endswith("waits for #2 bash")

    story.ended(second, "bash")
    assert rows(story)[2].rstrip().endswith("waits its turn")


def test_a_row_behind_a_question_says_after_which_call_and_that_it_needs_the_user() -> None:
    story = Story().run("x").step(0)
    running, asked, read = story.queued("bash", "ls"), story.queued("edit", "a.py"), story.queued("read", "a.py")
    story.started(running, "bash", "ls").blocked(read, running, asked)
    request = story.asks(asked, "edit", "a.py", "no rule")
    assert rows(story)[2].rstrip().endswith("after #2, which needs you +1")

    story.ended(running, "bash")
    assert rows(story)[2].rstrip().endswith("after #2, which needs you")

    story.resolved(request, asked).started(asked, "edit", "a.py")
    assert rows(story)[2].rstrip().endswith("waits for #2 edit")


@table("status", get_args(ToolStatus))
def test_every_status_has_a_sign_and_all_but_success_have_a_text(status: ToolStatus) -> None:
    story = Story().run("x").step(0)
    story.call("bash", "pytest -q", status=status)
    (row,) = rows(story)
    words = row.split("pytest -q")[1].replace("0.02 s", "").strip()

    assert row.strip()[0] in "✔✖⏱⊘⤼■?"
    assert bool(words) == (status != "ok")


def test_live_output_shows_its_newest_lines_cleaned() -> None:
    story = Story().run("x").step(0)
    call_id = story.queued("bash", "x")
    story.started(call_id, "bash", "x")
    story.output(call_id, "one\ntwo\n\x1b[31mthree\x1b[0m\nfour\n10 %\r20 %")
    view = fold(story).calls[0].view

    assert [text_of_runs(row).strip() for row in tail_rows(view, 40)] == ["three", "four", "20 %"]


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

    assert [text_of_runs(row).strip() for row in tail_rows(fold(story).calls[0].view, 40)] == ["connecting"]


def test_a_hairline_is_between_steps() -> None:
    view = fold(working()).calls[0].view
    assert set(text_of_runs(step_row(view, 30)).strip()) == {"─"}

    view.origin = replace(view.origin, depth=1, agent_id="explorer", step=None)
    assert text_of_runs(step_row(view, 30)).startswith(" ─ explorer ─")


@given(st.integers(1, 160), st.text(max_size=60), st.text(max_size=30))
def test_no_row_is_wider_than_its_panel_or_has_control_characters(width: int, summary: str, name: str) -> None:
    story = Story().run("x").step(0)
    call_id = story.queued(name, summary)
    story.started(call_id, name, summary)
    story.output(call_id, summary)
    ledger = fold(story)
    shown = [row_of(ledger.calls[0], RowContext(width, story.now)), *tail_rows(ledger.calls[0].view, width)]

    for row in shown:
        text = text_of_runs(row)
        assert all(character.isprintable() for character in text)
        assert cell_len(text) <= max(width, 30)


def test_a_call_that_took_over_anothers_work_says_so() -> None:
    story = Story().run("x").step(0)
    call_id = story.queued("read", "a.txt")
    story.tell(ToolStarted(call_id=call_id, name="read", args={}, adopted_from="call_0"))
    story.tell(
        ToolEnded(call_id=call_id, name="read", index=0, status="ok", is_error=False, content=(), latency_ms=500.0)
    )

    assert rows(story)[0].rstrip().endswith("taken over  0.50 s")


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
