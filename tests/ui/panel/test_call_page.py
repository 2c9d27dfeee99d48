"""Detail page of a call: every section that has content."""

import pytest

from tests.ui.row_kit import DIFF
from tests.ui.state.test_call_view_state import ASKED, QUEUED, STARTED, ended, seen
from tui_agent.protocol.events import (
    ApprovalResolved,
    FileChanged,
    FileState,
    HookEnded,
    PermissionDecided,
    ToolOutput,
    ToolProgress,
)
from tui_agent.protocol.messages import TextBlock
from tui_agent.protocol.permissions import DecisionPart, PermissionMode
from tui_agent.protocol.reports import Metric
from tui_agent.ui.panel.call_page import (
    MAX_INPUT_CHARACTERS,
    MAX_OUTPUT_CHARACTERS,
    MAX_OUTPUT_LINES,
    NOT_COMPARED,
    call_sections,
)
from tui_agent.ui.state.call_view_state import CHANGES_LIMIT, CallViewState


def sections(view: CallViewState, now: float = 10.0, whole: str | None = None, width: int = 60) -> dict[str, list[str]]:
    return {
        section.title: [row.plain.rstrip() for row in section.rows]
        for section in call_sections(view, width, now, whole)
    }


def test_paths_are_relative_to_the_workspace() -> None:
    args = {"file_path": "/home/ada/shop/src/a.py", "path": "/etc/hosts", "command": "cat /home/ada/shop/a"}
    asked = ASKED.model_copy(update={"targets": ("/home/ada/shop/src/a.py", "/tmp/x")})
    view = seen(QUEUED, asked, STARTED.model_copy(update={"args": args}))
    page = {one.title: [row.plain for row in one.rows] for one in call_sections(view, 60, 10.0, root="/home/ada/shop")}

    assert page["Input"][:3] == ["file path  src/a.py", "path  /etc/hosts", "command  cat /home/ada/shop/a"]
    assert [row.split()[-1] for row in page["Decision"] if row.endswith(("a.py", "/x"))] == ["src/a.py", "/tmp/x"]


def test_names_and_values_are_plain_words_and_whole_numbers() -> None:
    args = {"path": "a.py", "old_string": "a", "new_string": "b", "replace_all": True, "max_results": 3}
    metrics = {"exit_code": 1.0, "output_bytes": 343923.0, "search_ms": 1500.0, "load": 0.254, "cached": True}
    metrics |= {"files_seen": 12345.0, "backend": "rg"}
    measured = {name: Metric(value=value) for name, value in metrics.items()}
    page = sections(seen(QUEUED, STARTED.model_copy(update={"args": args}), ended(metrics=measured, size_bytes=2)))

    rows = ["path  a.py", "old text  a", "new text  b", "everywhere  true", "max results  3"]
    assert page["Input"] == [*rows, "the model asked for:", "command  ls"]
    assert page["Timing"][-7:] == [
        "exit code      1",
        "output         344 kB",
        "search         1.5 s",
        "load           0.25",
        "cached         yes",
        "files seen     12,345",
        "backend        rg",
    ]
    same = seen(QUEUED, STARTED, ended(metrics={"output_bytes": Metric(value=343923.0)}, size_bytes=343923))
    assert sum("344 kB" in row for row in sections(same)["Timing"]) == 1
    assert sections(seen(QUEUED.model_copy(update={"args_raw": {}})))["Input"] == ["no input"]


def test_output_is_shown_as_in_a_terminal_until_the_result_replaces_it() -> None:
    out = ToolOutput(call_id="c1", stream="stdout", chunk="10%\r99%\n\x1b[31mred\x1b]0;t\x07\n", bytes_total=20)
    view = seen(QUEUED, STARTED, out, ToolProgress(call_id="c1", text="compiling"))
    view.live.is_cut = True
    assert sections(view)["Output"] == ["… earlier output is not shown …", "99%", "red", "compiling"]

    view = seen(QUEUED, STARTED, ended(content=(TextBlock(text="head … tail"),), persisted_path="/spool/c1"))
    assert sections(view)["Output"] == ["head … tail", "all of it in  /spool/c1"]
    assert sections(view, whole="all\nof it\n")["Output"] == ["all", "of it"]
    assert sections(seen(QUEUED, ended()))["Output"] == ["nothing"]

    failed = {"status": "error", "is_error": True, "error_kind": "KeyError", "traceback": "line 1\nline 2"}
    view = seen(QUEUED, ended(content=(TextBlock(text="x"),), **failed))
    assert sections(view)["Output"] == ["x", "", "KeyError", "line 1", "line 2"]

    text = "\n".join(str(number) for number in range(MAX_OUTPUT_LINES + 10))
    rows = sections(seen(QUEUED, ended(content=(TextBlock(text=text),))))["Output"]
    assert len(rows) == MAX_OUTPUT_LINES + 1
    assert rows[MAX_OUTPUT_LINES // 2] == "… 10 more lines not shown …"
    assert rows[-1] == str(MAX_OUTPUT_LINES + 9)


def test_files_changed_by_a_command_are_listed_above_the_diffs_as_many_as_fit() -> None:
    view = seen(
        QUEUED,
        FileChanged(path="/w/a.py", change="modified", call_id="c1", diff=DIFF, added=1, removed=1),
        FileChanged(path="/w/b.bin", change="deleted", call_id="c1", before=FileState(digest="d", size=7, mode=0o644)),
        ended(details={"files_changed": 2}),
    )

    rows = sections(view, width=90)["Change"]
    assert rows[:3] == ["/w/a.py +1 −1", "/w/b.bin deleted, 7 B", ""]
    assert any("round(sum" in row for row in rows)
    assert sections(seen(QUEUED, ended(details={"files_changed": None})), width=200)["Change"] == [NOT_COMPARED]

    many = [FileChanged(path="/w/x", change="created", call_id="c1")] * (CHANGES_LIMIT + 3)
    rows = sections(seen(QUEUED, *many))["Change"]
    assert (len(rows), rows[-1]) == (CHANGES_LIMIT + 1, "… 3 more files")


def test_the_decision_is_shown_in_full_with_each_reason_once() -> None:
    def decided(reason: str = "", **fields: object) -> PermissionDecided:
        part = DecisionPart(text="ls", decision="ask", reason=reason)
        values = {"call_id": "c1", "decision": "ask", "mode": PermissionMode.ASK, "reason": reason, "parts": (part,)}
        return PermissionDecided.model_validate({**values, **fields})

    asked = ASKED.model_copy(update={"reason": "a rule asks", "trace": ("floor: fine",), "targets": ("/home/a",)})
    answer = {"request_id": "q", "call_id": "c1", "by": "user"}
    approved = ApprovalResolved.model_validate({**answer, "decision": "approve", "scope": "session", "note": "go on"})
    hook = HookEnded(event="before_tool", name="audit", call_id="c1", action="allow", reason="fine", ms=20.0)
    rule = decided(source="rule", rule="bash(ls:*) (user)")
    assert sections(seen(QUEUED, rule, asked, approved, hook), width=80)["Decision"] == [
        "asked by rule  bash(ls:*) (user)",
        "mode           ask",
        "asked because  a rule asks",
        "▲ ls",
        "touches  /home/a",
        "· floor: fine",
        "answer         approved by you for the session",
        "with the note  go on",
        "hook audit (before tool)  allow · fine · 0.02 s",
    ]

    reason = "may change files; no rule allows `ls`"
    denied = ApprovalResolved.model_validate({**answer, "decision": "deny"})
    events = (decided(reason, source="mode"), ASKED.model_copy(update={"reason": reason}), denied)
    assert sections(seen(QUEUED, *events, ended(status="denied_user")), width=80)["Decision"] == [
        f"asked by mode  {reason}",
        "mode           ask",
        "▲ ls",
        "answer         denied by you",
    ]


@pytest.mark.slow
def test_endless_input_and_output_are_cut_in_the_middle() -> None:
    nested: object = "deep"
    for _ in range(300):
        nested = [nested]
    args = {"first": "漢" * 500_000, "second": "\u202e" * 500_000, "third": nested}
    view = seen(QUEUED, STARTED.model_copy(update={"args": args}), ended(content=(TextBlock(text="x\n" * 100_000),)))

    page = sections(view, whole="o" * 3 * MAX_OUTPUT_CHARACTERS)

    assert sum(map(len, page["Input"])) < 10 * MAX_INPUT_CHARACTERS
    assert sum("more characters" in row for row in page["Input"]) >= 2
    assert sum(row.count("o") for row in page["Output"]) < MAX_OUTPUT_CHARACTERS + 100
    assert any(f"{2 * MAX_OUTPUT_CHARACTERS:,} more characters" in row for row in page["Output"])
