"""Calls in the conversation: one row each with its result, reads in one row, and everything else unfolded."""

from collections.abc import Iterable

import pytest

from tests.support.table import table
from tests.ui.row_kit import DIFF, FoldWithLedger, Teller, ended, queued, rows_of, run_ended
from tui_agent.protocol.diffs import Diff
from tui_agent.protocol.envelope import Envelope, Origin
from tui_agent.protocol.events import (
    AgentEvent,
    ApprovalRequested,
    ApprovalResolved,
    BackgroundEnded,
    BackgroundStarted,
    ChangesDiscarded,
    ChangesKept,
    FileChanged,
    FileState,
    HookEnded,
    PermissionDecided,
    SessionCreated,
    SubagentStarted,
    ToolBlockedOn,
    ToolEnded,
    ToolOutput,
    ToolQueued,
    ToolStarted,
    ToolStatus,
)
from tui_agent.protocol.messages import JsonObject, TextBlock
from tui_agent.protocol.permissions import PermissionMode
from tui_agent.protocol.visible_text import left_out_note
from tui_agent.ui.state.call_view_state import LIVE_LIMIT
from tui_agent.ui.text.styled_lines import width_of_runs
from tui_agent.ui.transcript.call_part import (
    BRIEF_DIFF_ROWS,
    HEAD_ROWS,
    LIVE_ROWS,
    MAX_FILES,
    TAIL_ROWS,
)
from tui_agent.ui.transcript.transcript_layout import Transcript
from tui_agent.ui.transcript.transcript_parts import CommandPart


class Talk:
    """A conversation that a test continues event by event."""

    def __init__(self, *events: AgentEvent) -> None:
        self.transcript, self._teller = Transcript(), Teller()
        self.fold = FoldWithLedger(self.transcript)
        self.tell(*events)

    def tell(self, *events: AgentEvent) -> None:
        for event in events:
            self.fold.apply(self._teller.tell(event))

    def rows(self, width: int = 80) -> list[str]:
        """Return the shown text without empty rows; the right end of a call's row is separated by one blank."""
        self.fold.flush()
        return [" ".join(row.split()) for row in rows_of(self.transcript, width) if row.strip()]

    def toggle(self) -> None:
        """Fold or unfold the last part."""
        part = self.transcript.parts[-1]
        assert part.toggle()
        self.transcript.refresh(part)


def done(
    call_id: str,
    name: str,
    summary: str,
    outcome: str = "",
    *,
    text: str = "",
    status: ToolStatus = "ok",
    ms: float = 3.0,
) -> list[AgentEvent]:
    """Return the events of a whole call."""
    reads = name in ("read", "grep", "glob")
    details: JsonObject = {"outcome": outcome} if outcome else {}
    args: JsonObject = {"command": summary} if name == "bash" else {"path": summary}
    return [
        ToolQueued(call_id=call_id, name=name, args_raw=args, index=0, summary=summary, safe=reads),
        ToolStarted(call_id=call_id, name=name, args=args, read_only=reads),
        ToolEnded(
            call_id=call_id,
            name=name,
            index=0,
            status=status,
            is_error=status != "ok",
            content=(TextBlock(text=text),) if text else (),
            details=details,
            latency_ms=ms,
        ),
    ]


NEW = FileChanged(
    path="src/new.py",
    change="created",
    call_id="c1",
    diff=Diff("--- /dev/null\n+++ b/src/new.py\n@@ -0,0 +1,2 @@\n+one\n+two\n"),
    added=2,
    removed=0,
)
RAW = {"path": "a", "limit": "7"}
HELP = "\nInvalid arguments for kill_bash:\n\n  - task_id is missing\nso"


def around(call: list[AgentEvent], *events: AgentEvent, starts: bool = False) -> list[AgentEvent]:
    """Return the events of a whole call with others between its beginning and its end."""
    return [call[0], *([call[1]] if starts else []), *events, call[2]]


def ended_as(status: ToolStatus, **fields: object) -> list[AgentEvent]:
    """Return the events of a command that a rule decided about and that did not run to its end."""
    values = {"source": "rule", "rule": "bash(rm:*)", "reason": "rule of settings.toml", **fields}
    decided = PermissionDecided.model_validate(
        {"call_id": "c1", "decision": "deny", "mode": PermissionMode.ASK, **values}
    )
    return around(done("c1", "bash", "rm -rf build", status=status), decided)


def denied_by(by: str) -> list[AgentEvent]:
    """Return the events of a question that was answered with no."""
    asked = ApprovalRequested(request_id="q", call_id="c1", digest="d", tool="bash", args={"command": "make"})
    values = {"request_id": "q", "call_id": "c1", "decision": "deny", "by": by, "note": "use pytest"}
    return around(done("c1", "bash", "make", status="denied_user"), asked, ApprovalResolved.model_validate(values))


def hooked(reason: str) -> list[AgentEvent]:
    """Return the events of a call that a hook denied."""
    hook = HookEnded(event="before_tool", name="guard", call_id="c1", action="deny", reason=reason)
    return around(done("c1", "bash", "make", status="denied_hook"), hook)


@table(
    ("events", "rows"),
    [
        # Each state once.
        (done("c1", "write", "notes.md (4 lines)", "new file +4"), ["✔ write notes.md new file +4"]),
        (done("c1", "edit", "a (1).py (+2 −1 everywhere)", "+8 −4"), ["✔ edit a (1).py +8 −4"]),
        (done("c1", "todo", "1 of 4 done: Change it", "1 of 4 done"), ["✔ todo 1 of 4 done: Change it"]),
        (done("c1", "todo", "11 of 14 done", "1 of 14 done"), ["✔ todo 11 of 14 done 1 of 14 done"]),
        (done("c1", "bash", "echo ready", "ready"), ["✔ bash echo ready ready"]),
        # A new file is named once.
        (
            around(done("c1", "write", "src/new.py (2 lines)", "new file +2"), NEW, starts=True),
            ["✔ write src/new.py new file +2", "1 + one", "2 + two"],
        ),
        (
            around(done("c1", "bash", "make", "done"), NEW, starts=True),
            ["✔ bash make done", "src/new.py +2 created", "1 + one", "2 + two"],
        ),
        # A failure shows its first line.
        (
            done("c1", "edit", "a.py", text="old_string was not found\nin a.py", status="error"),
            ["✖ edit a.py old_string was not found +2 lines #1"],
        ),
        (
            done("c1", "kill_bash", "", text=HELP, status="error"),
            ["✖ kill_bash Invalid arguments for kill_bash: task_id is missing +4 lines #1"],
        ),
        # A read that failed or runs has a row of its own.
        (
            [
                *done("c1", "read", "a.py", "1 line"),
                *done("c2", "read", "b.py", "1 line"),
                *done("c3", "read", "gone.py", text="gone.py does not exist", status="error"),
                *done("c4", "read", "d.py", "1 line")[:2],
            ],
            ["✔ read a.py · b.py", "✖ read gone.py gone.py does not exist #3", "◐ read d.py #4"],
        ),
        # A call that did not run to its end says why, and who denied it.
        (ended_as("denied_policy"), ["⊘ bash rm -rf build denied: bash(rm:*) #1"]),
        (ended_as("skipped_steering"), ["⤼ bash rm -rf build skipped: you steered #1"]),
        (ended_as("cancelled"), ["■ bash rm -rf build cancelled #1"]),
        (ended_as("interrupted"), ["? bash rm -rf build outcome unknown #1"]),
        (ended_as("timeout"), ["⏱ bash rm -rf build timed out #1"]),
        (
            # The row has the file already.
            ended_as("denied_policy", source="floor", rule=None, reason="plan mode changes nothing: it runs rm"),
            ["⊘ bash rm -rf build plan mode changes nothing #1"],
        ),
        (denied_by("user"), ["⊘ bash make you denied it: use pytest #1"]),
        (denied_by("timeout"), ["⊘ bash make denied: no answer in time: use pytest #1"]),
        (denied_by("nobody"), ["⊘ bash make denied: no user to ask: use pytest #1"]),
        (denied_by("cancel"), ["⊘ bash make not run: cancelled before you answered: use pytest #1"]),
        (hooked("no rm here"), ["⊘ bash make denied by a hook: no rm here #1"]),
        (hooked("Denied by a hook (a.json:2): no rm"), ["⊘ bash make Denied by a hook (a.json:2): no rm #1"]),
        # A hook changed it, and arguments that were only converted are not called changed.
        (
            around(
                done("c1", "bash", "make install"),
                HookEnded(event="before_tool", name="dry", call_id="c1", action="modify"),
                ToolStarted(call_id="c1", name="bash", args={"command": "make -n"}, summary="make -n"),
            ),
            ["✔ bash make -n", "└ hook dry changed it; the model asked for: make install"],
        ),
        (
            [
                ToolQueued(call_id="c1", name="read", args_raw=RAW, index=0, summary="a"),
                ToolStarted(call_id="c1", name="read", args={"path": "a", "limit": 7, "offset": 0}, summary="a"),
                done("c1", "read", "a")[2],
            ],
            ["✔ read a"],
        ),
    ],
)
def test_a_call_is_rows(events: list[AgentEvent], rows: list[str]) -> None:
    assert Talk(*events).rows(120) == rows


def test_an_unfolded_call_has_the_reason_of_its_decision() -> None:
    talk = Talk(*ended_as("denied_policy"))
    talk.toggle()
    assert "rule of settings.toml" in talk.rows()[1]


@table("outcome", ["exit 1 · FAILED test_price.py::test_round", f"exit 1 · FAILED {'../shop/' * 15}test_price.py"])
def test_a_long_failure_is_below_its_call_and_cut(outcome: str) -> None:
    call, *below = Talk(*done("c1", "bash", "pytest -q", outcome, status="error")).rows(60)
    assert call == "✖ bash pytest -q #1"
    assert below[0].startswith("└ exit 1 · FAILED")
    assert below[-1].endswith(("test_round", "…"))
    assert len(below[-1]) < 60


def test_adjacent_reads_fold_to_one_row_that_names_the_files() -> None:
    talk = Talk(
        *done("c1", "read", "src/price.py", "82 lines"),
        *done("c2", "read", "src/cart.py", "9 lines"),
        *done("c3", "grep", '"round(" in src', "12 matches in 4 files"),
    )
    assert talk.rows() == [
        "✔ read src/price.py · src/cart.py",
        'grep "round(" in src (12 matches in 4 files)',
    ]

    talk.toggle()
    assert talk.rows() == [
        "✔ read src/price.py 82 lines",
        "✔ read src/cart.py 9 lines",
        '✔ grep "round(" in src 12 matches in 4 files',
    ]
    talk.toggle()
    assert len(talk.rows()) == 2


def test_an_unfolded_call_shows_its_input_and_both_ends_of_its_output() -> None:
    lines = [f"line {number}" for number in range(100)]
    command = "for n in $(seq 100); do\n  echo line $n\ndone"
    talk = Talk(*done("c1", "bash", command, "100 lines · line 99", text="\n".join(lines)))
    assert talk.rows() == ["✔ bash for n in $(seq 100); do ⏎ echo line $n ⏎ done 100 lines · line 99"]

    talk.toggle()
    rows = talk.rows()
    assert rows[1:4] == ["for n in $(seq 100); do", "echo line $n", "done"]
    assert rows[4 : 4 + HEAD_ROWS] == lines[:HEAD_ROWS]
    assert rows[4 + HEAD_ROWS] == f"… {100 - HEAD_ROWS - TAIL_ROWS} more lines …"
    assert rows[5 + HEAD_ROWS :] == lines[-TAIL_ROWS:]


def test_what_was_cut_is_counted_as_it_was_before() -> None:
    """FLOOD: its result has the first and the last 200 of 3,001 lines."""
    lines = [f"line {number}" for number in range(3_000)] + ["error"]
    note = left_out_note("30,000 of 90,000 bytes", 3_001 - 400, "the full output is in /tmp/x")
    text = "\n".join([*lines[:200], note, *lines[-200:], "[exit code 1]"])
    details: JsonObject = {"outcome": "exit 1 · error", "lines": 3_001}
    first, began, end = done("c1", "bash", "make", text=text, status="error")
    talk = Talk(first, began, end.model_copy(update={"details": details}))
    assert talk.rows() == ["✖ bash make exit 1 · error +3,001 lines #1"]

    talk.toggle()
    assert talk.rows()[0] == "✖ bash make exit 1 · error #1"
    assert talk.rows()[1 + HEAD_ROWS] == "… 2,978 more lines …"

    command = CommandPart("make")
    command.end("error", text)
    assert "… 2,978 more lines above" in "".join(row.plain for row in command.layout(80))


def test_a_change_of_a_file_is_shown_once_as_a_diff() -> None:
    changed = FileChanged(path="src/price.py", change="modified", call_id="c1", diff=DIFF, added=1, removed=1)
    reported = ended("c1", "edit", details={"path": "src/price.py", "diff": DIFF})

    for events in ([changed, reported], [reported], [changed]):
        rows = Talk(queued("c1", "edit"), *events).rows()
        assert sum("round(sum(round(item.price, 2)" in row for row in rows) == 1


def test_a_long_diff_is_cut_until_the_call_is_unfolded() -> None:
    diff = "@@ -0,0 +1,50 @@\n" + "".join(f"+line {number}\n" for number in range(50))
    talk = Talk(queued("c1", "write"), FileChanged(path="x", change="modified", call_id="c1", diff=Diff(diff)))

    assert talk.rows()[-1] == f"… {50 - BRIEF_DIFF_ROWS} more rows"
    talk.toggle()
    assert talk.rows()[-1].endswith("line 49")


def test_several_changed_files_are_one_row_and_unfold_with_their_diffs() -> None:
    gone = FileState(digest="d", size=2_000, mode=0o644)
    root = "/home/ada/shop"
    talk = Talk(
        SessionCreated(id="s", cwd=root),
        queued("c1", "bash"),
        FileChanged(path=f"{root}/src/price.py", change="modified", call_id="c1", diff=DIFF, added=1, removed=1),
        FileChanged(path="/etc/x.bin", change="deleted", call_id="c1", known=True, before=gone),
        ended("c1", "bash"),
    )

    assert talk.rows()[1] == "└ changed 2 files src/price.py +1 −1 · /etc/x.bin"
    talk.toggle()
    rows = talk.rows()
    assert rows[1] == "src/price.py +1 −1"
    assert any("round(sum" in row for row in rows)
    assert rows[-1] == "/etc/x.bin deleted, 2 kB"


def test_of_very_many_changed_files_the_first_are_listed() -> None:
    talk = Talk(queued("c1", "bash"))
    for number in range(MAX_FILES + 900):
        talk.tell(FileChanged(path=f"f{number}", change="created", call_id="c1", diff=DIFF, added=1, removed=1))

    assert "changed 940 files" in talk.rows()[1]
    talk.toggle()
    assert talk.rows()[-1] == "… 900 more files"


def test_a_waiting_call_names_the_call_it_waits_for_while_that_is_open() -> None:
    first, second = done("c1", "edit", "a.py", "+1 −1"), done("c2", "bash", "make")
    waits = ToolBlockedOn(call_id="c2", what="group", on=("c1",))
    talk = Talk(first[0], second[0], waits)
    assert talk.rows()[1] == "◌ bash make #2"  # The right column says it.
    talk.fold.show_alone(True)
    assert talk.rows()[1] == "◌ bash make waits for #1 edit #2"

    asked = ApprovalRequested(request_id="q", call_id="c1", digest="d", tool="edit", args={})
    talk.tell(asked)
    talk.fold.redraw("c2")
    assert talk.rows()[1] == "◌ bash make after #1, which needs you #2"

    talk.tell(*first[1:])
    talk.fold.redraw("c2")
    assert talk.rows()[1] == "◌ bash make waits its turn #2"


@pytest.mark.parametrize("is_alone", [False, True], ids=["beside the panel", "alone"])
def test_a_running_call_shows_the_end_of_its_output_in_colour_at_every_width(is_alone: bool) -> None:
    first, began, end = done("c1", "bash", "make", "3,000 lines")
    talk = Talk(first, began)
    talk.fold.show_alone(is_alone)
    assert len(talk.rows()) == 1

    lines = [f"\x1b[32m[{number:04}]\x1b[0m compiling module_{number}.c\n" for number in range(3_000)]
    for place in range(0, len(lines), 100):
        chunk = "".join(lines[place : place + 100])
        talk.tell(ToolOutput(call_id="c1", stream="stdout", chunk=chunk, bytes_total=len(chunk)))
    for width in (60, 80, 118, 200):
        shown = [f"[{number:04}] compiling module_{number}.c" for number in range(3_000 - LIVE_ROWS, 3_000)]
        assert talk.rows(width)[1:] == shown
    runs = [run for row in range(talk.transcript.total) for run in talk.transcript.line(row).runs]
    assert ("[2999]", "muted sgr-f2") in runs
    assert len(talk.fold.calls.find("c1").view.live.text) <= LIVE_LIMIT

    talk.tell(end)
    assert talk.rows() == ["✔ bash make 3,000 lines"]


def test_a_command_whose_changes_were_all_discarded_has_the_mark_of_a_denied_call() -> None:
    first, began, end = done("c1", "bash", "rm -rf old_data", "no output")
    refused = ChangesDiscarded(call_id="c1", layer="1", paths=("old_data",), count=1, reason="keep it")
    talk = Talk(first, began.model_copy(update={"place": "trial"}), refused, end)
    assert talk.rows() == ["⊘ bash rm -rf old_data no output · discarded 1 file: keep it #1"]
    assert [call.kind for call in talk.fold.ledger.calls] == ["denied"]

    kept = ChangesKept(call_id="c1", layer="1", paths=("a.py",), count=1, by="user")
    assert Talk(first, began, refused, kept, end).rows()[0].startswith("✔ bash")


def test_a_background_command_has_a_mark_of_its_own_until_it_ends() -> None:
    first, began, end = done("c1", "bash", "sleep 30", ms=4_000.0)
    details: JsonObject = {"task_id": "bash_1", "outcome": "runs in the background as bash_1"}
    talk = Talk(first, began, BackgroundStarted(task_id="bash_1", kind="bash", command="sleep 30"))
    talk.tell(end.model_copy(update={"details": details}), run_ended())
    assert talk.rows()[0] == "» bash sleep 30 runs in the background as bash_1 #1"

    talk.tell(*done("c1", "bash", "ls", "a.py"))  # Some servers use an id again.
    talk.tell(BackgroundEnded(task_id="bash_1", kind="bash", status="exited", code=3))
    assert talk.rows()[0] == "✖ bash sleep 30 exit 3 · ran in the background 4.0 s #1"
    assert talk.rows()[2:4] == ["✔ bash ls a.py", "! bash_1 ended with exit code 3 · sleep 30"]


def test_no_row_is_wider_than_the_window() -> None:
    events: Iterable[AgentEvent] = [
        *done("c1", "bash", "日本語 👍🏽 " * 30, "exit 1 · " + "x" * 300, text="y" * 500, status="error"),
        *done("c2", "read", "/".join("d" * 20 for _ in range(20)), "1 line"),
        *done("c3", "read", "e" * 300, "1 line"),
    ]
    for width in (16, 40, 80, 200):
        talk = Talk(*events)
        for part in talk.transcript.parts:
            assert part.toggle()
            for opened in (True, False):
                assert max(width_of_runs(line.runs) for line in part.layout(width)) <= width, opened
                part.toggle()


def test_lines_that_a_search_has_found_are_shown_where_an_output_is_cut() -> None:
    lines = "\n".join(f"line {number}" + (" needle" if number in (40, 60) else "") for number in range(100))
    talk = Talk(*done("c1", "bash", "make", text=lines))
    talk.toggle()
    part = talk.transcript.parts[-1]
    part.sought = "NEEDLE"
    part.changed()
    talk.transcript.refresh(part)

    rows = talk.rows()

    assert [row for row in rows if "needle" in row or "more line" in row] == [
        f"… {40 - HEAD_ROWS} more lines …",
        "line 40 needle",
        "… 19 more lines …",
        "line 60 needle",
        f"… {100 - TAIL_ROWS - 61} more lines …",
    ]


def test_a_found_text_that_is_broken_between_rows_of_a_diff_is_shown_whole() -> None:
    diff = "@@ -0,0 +1,100 @@\n" + "".join(f"+{'x' * 70 if number == 90 else 'y'}\n" for number in range(100))
    talk = Talk(queued("c1", "write"), FileChanged(path="a.py", change="modified", call_id="c1", diff=Diff(diff)))
    talk.toggle()
    part = talk.transcript.parts[-1]
    part.sought = "x" * 70
    part.changed()
    talk.transcript.refresh(part)

    assert sum(row.count("x") for row in talk.rows(60) if "more" not in row) == 70


def test_a_sub_agent_says_what_it_does_and_then_what_it_found() -> None:
    talk = Talk()
    talk.fold.calls.at = lambda place: talk.fold.ledger.calls[place]
    first, began, _ = done("c1", "agent", "find callers")
    talk.tell(first, began, SubagentStarted(call_id="c1", child_run_id="k1", agent="explore-1", task="find callers"))
    assert talk.rows() == ["◐ agent find callers #1", "└ 0 calls"]

    inner = ToolQueued(call_id="k", name="grep", args_raw={}, index=0, summary="price")
    talk.fold.ledger.apply(Envelope(inner, 99, 0, 99.0, Origin(run_id="k1", depth=1, parent_call_id="c1")))
    talk.fold.redraw("c1")
    assert talk.rows() == ["◐ agent find callers #1", "└ 1 call · grep price"]

    for event in (
        ToolStarted(call_id="k", name="grep", args={}),
        ToolOutput(call_id="k", stream="stdout", chunk="\x1b[32mok\x1b[0m 1\nok 2\n", bytes_total=10),
    ):
        talk.fold.ledger.apply(Envelope(event, 100, 0, 100.0, Origin(run_id="k1", depth=1, parent_call_id="c1")))
    talk.fold.redraw("c1")
    assert talk.rows()[2:] == ["ok 1", "ok 2"]

    view = talk.fold.ledger.calls[0].view
    view.subagent = view.subagent.saying(0, "I look for callers.").saying(1, "Two so far.")
    talk.toggle()
    assert talk.rows()[2:] == ["I look for callers.", "◐ grep price", "Two so far."]
    talk.toggle()

    talk.tell(done("c1", "agent", "find callers", "1 step, 1 call", text="Two callers round.\nMore.")[2])
    assert talk.rows() == ["✔ agent find callers 1 step, 1 call", "└ Two callers round."]
