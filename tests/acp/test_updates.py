"""Events as updates: calls, changes of files, texts in Markdown, and reasons for the end of a run."""

from pathlib import Path

from markdown_it import MarkdownIt

from tests.support.table import table
from tui_agent.acp.call_updates import LONGEST_TITLE, changes_of, fenced, in_code, title_of
from tui_agent.acp.editor_session import stop_reason
from tui_agent.acp.session_updates import SessionUpdates
from tui_agent.protocol.envelope import Envelope, Origin
from tui_agent.protocol.events import FileChanged, MessageDelta, ToolEnded, ToolOutput, ToolQueued, ToolStarted
from tui_agent.protocol.messages import TextBlock
from tui_agent.protocol.reports import AgentRunReport, RunReason
from tui_agent.tools.unified_diff import diff_of


@table(
    ("old", "new", "changes"),
    [
        ("a\nb\nc\n", "a\nB\nc\n", [("a\nb\nc\n", "a\nB\nc\n")]),
        ("", "x\ny", [("", "x\ny")]),
        ("-- x\n++ y", "++ y\n", [("-- x\n++ y", "++ y\n")]),
        ("1\n" + "=\n" * 20 + "2\n", "1!\n" + "=\n" * 20 + "2!\n", [("1\n===", "1!\n==="), ("===2\n", "===2!\n")]),
    ],
)
def test_each_hunk_of_a_diff_is_a_change(old: str, new: str, changes: list[tuple[str, str]]) -> None:
    diff = diff_of(old, new, "a/x", "b/x")

    found = [(one.old_text, one.new_text) for one in changes_of(diff, "/w/x")]

    assert found == [tuple(side.replace("===", "=\n=\n=\n") for side in change) for change in changes]


def test_a_new_file_has_no_old_text_and_a_shortened_diff_ends_early() -> None:
    [change] = changes_of(diff_of("", "x\n", "/dev/null", "b/x"), "/w/x")
    shortened = diff_of("a\n" * 9, "b\n" * 9, "a/x", "b/x").shortened(60)

    assert (change.old_text, change.new_text) == (None, "x\n")
    assert [one.old_text for one in changes_of(shortened, "/w/x")] == ["a\n" * shortened.count("\n-a")]


@table("text", ["plain", "`", "a ``` b", "**no** [link](x)", "`a` ![i](u) `", "```\n````\n"])
def test_text_stays_code_whatever_it_contains(text: str) -> None:
    block, line = fenced(text), " ".join(text.split())
    fence = block.split("\n")[0]
    [paragraph] = MarkdownIt().parseInline(in_code(line))

    assert fence not in block[len(fence) : -len(fence)]
    assert block.endswith(f"\n{fence}")
    assert [(part.type, part.content) for part in paragraph.children or ()] == [("code_inline", line)]
    assert title_of("bash", "echo a\necho b") == "`echo a echo b`"
    assert len(title_of("read", "x" * 999)) == LONGEST_TITLE + len("read ``")


def updates(*events: object, depth: int = 0, terminals: bool = False) -> list[object]:
    fold = SessionUpdates(Path("/w"), terminals=terminals)
    envelopes = [Envelope(event, 1, 0, 0.0, Origin("s", depth=depth)) for event in events]  # type: ignore[arg-type]
    return [update for envelope in envelopes for update in fold.apply(envelope)]


def test_a_command_shows_the_end_of_its_output_and_the_changes_found_after_it() -> None:
    diff = diff_of("", "x\n", "/dev/null", "b/new")
    found = updates(
        ToolQueued(call_id="c", name="bash", args_raw={"command": "make"}, index=0, summary="make"),
        ToolStarted(call_id="c", name="bash", args={"command": "make"}, summary="make"),
        ToolOutput(call_id="c", stream="stdout", chunk="y" * 99_999 + "\x1b[31mend", bytes_total=1),
        ToolEnded(call_id="c", name="bash", index=0, status="ok", is_error=False, content=(TextBlock(text="made"),)),
        FileChanged(path="/w/new", change="created", call_id="c", diff=diff),
    )
    shown = [[part.type for part in one.content] if one.content else [] for one in found]  # type: ignore[attr-defined]

    assert shown == [[], [], ["content"], ["content"], ["diff", "content"]]
    assert "yyyend" in found[2].content[0].content.text  # type: ignore[attr-defined]
    assert len(found[2].content[0].content.text) < 20_000  # type: ignore[attr-defined]
    assert found[4].locations[0].path == "/w/new"  # type: ignore[attr-defined]


def test_a_client_with_terminals_gets_output_piece_by_piece() -> None:
    found = updates(
        ToolQueued(call_id="c", name="bash", args_raw={"command": "make"}, index=0, summary="make"),
        ToolOutput(call_id="c", stream="stdout", chunk="one\n", bytes_total=4),
        ToolOutput(call_id="c", stream="stdout", chunk="\x1b[31mtwo\n", bytes_total=8),
        ToolEnded(
            call_id="c",
            name="bash",
            index=0,
            status="ok",
            is_error=False,
            content=(TextBlock(text="one\ntwo\n"),),
            details={"exit_code": 0},
        ),
        terminals=True,
    )
    fields = [one.field_meta for one in found]  # type: ignore[attr-defined]

    assert fields == [
        {"terminal_info": {"terminal_id": "c", "cwd": "/w"}},
        {"terminal_output": {"terminal_id": "c", "data": "one\n"}},
        {"terminal_output": {"terminal_id": "c", "data": "two\n"}},
        {"terminal_exit": {"terminal_id": "c", "exit_code": 0, "signal": None}},
    ]
    assert found[0].content[0].terminal_id == "c"  # type: ignore[attr-defined]
    assert [one.content for one in found[1:]] == [None, None, None]  # type: ignore[attr-defined]


def test_an_id_that_a_model_repeats_is_another_call_for_the_editor() -> None:
    fold = SessionUpdates(Path("/w"))
    ids: list[str] = []
    for _ in range(2):
        for event in (
            ToolQueued(call_id="c", name="read", args_raw={}, index=0),
            ToolEnded(call_id="c", name="read", index=0, status="ok", is_error=False, content=()),
        ):
            ids += [one.tool_call_id for one in fold.apply(Envelope(event, 1, 0, 0.0, Origin("s")))]  # type: ignore[union-attr]
        fold.calls.forget()

    assert ids == ["c", "c", "c-2", "c-2"]


def test_the_words_of_a_sub_agent_are_not_those_of_the_agent() -> None:
    assert updates(MessageDelta(message_id="m", kind="text", delta="secret"), depth=1) == []


@table(
    ("reason", "model_stop", "stop"),
    [
        ("done", "end_turn", "end_turn"),
        ("done", "max_tokens", "max_tokens"),
        ("done", "refusal", "refusal"),
        ("stopped", "tool_use", "end_turn"),
        ("aborted", "tool_use", "cancelled"),
        ("max_steps", "tool_use", "max_turn_requests"),
        ("budget", "tool_use", "max_turn_requests"),
        ("input_rejected", None, "refusal"),
    ],
)
def test_the_end_of_a_run_has_a_reason_of_the_protocol(reason: RunReason, model_stop: str | None, stop: str) -> None:
    report = AgentRunReport(
        id="", model="", started_at=0, completed_at=0, total_ms=0.0, reason=reason, user_message="", final_text=""
    )

    assert stop_reason(report, model_stop) == stop
