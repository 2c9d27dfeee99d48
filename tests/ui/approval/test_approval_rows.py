"""Rows of an approval request: the exact input first, all of it visible, each omission marked."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.table import table
from tests.ui.row_kit import DIFF
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import ApprovalRequest, DecisionPart
from tui_agent.protocol.tool import Preview, Verdict
from tui_agent.tools.unified_diff import diff_of
from tui_agent.ui.approval.approval_rows import ApprovalRows, line_counts, request_in_short, request_title
from tui_agent.ui.text.diff_rows import MAX_LINES
from tui_agent.ui.text.sanitiser import sanitise
from tui_agent.ui.text.styled_lines import width_of_runs

COMMAND = "git commit -am 'x'  && git push \u202e"


def request(args: JsonObject, preview: Preview | None = None, **fields: object) -> ApprovalRequest:
    tool = {"command": "bash", "diff": "edit"}.get(preview.kind if preview is not None else "", "t")
    return ApprovalRequest.model_validate(
        {"call_id": "c1", "digest": "d", "tool": tool, "args": args, "preview": preview, **fields}
    )


def shown(asked: ApprovalRequest, width: int = 60, *, with_trace: bool = False) -> list[str]:
    return [row.plain.rstrip() for row in ApprovalRows(asked).rows(width, with_trace=with_trace)]


def test_the_exact_command_comes_first_with_hidden_characters_visible() -> None:
    asked = request(
        {"description": "harmless", "command": COMMAND, "timeout": 5}, Preview(kind="command", text=COMMAND)
    )

    assert shown(asked) == [
        " git commit -am 'x'  && git push \\u202e",
        "",
        "description  harmless",
        "timeout  5",
    ]


def test_the_lines_of_a_command_stay_apart_in_the_announcement() -> None:
    asked = request({"command": "cd src\nmake"}, Preview(kind="command", text="cd src\nmake"), summary="cd src\nmake")

    assert request_in_short(asked) == "Run this command? cd src ⏎ make"


def test_a_note_on_the_execution_follows_the_command() -> None:
    asked = request({"command": "make"}, Preview(kind="command", text="make", note="runs in the sandbox\u202e"))

    assert shown(asked) == [" make", "runs in the sandbox\\u202e"]


def test_a_preview_that_is_not_the_input_does_not_hide_the_input() -> None:
    asked = request({"command": "rm -rf /"}, Preview(kind="command", text="ls"))

    assert shown(asked) == [" ls", "", "command  rm -rf /"]


def test_a_target_that_the_title_names_is_not_named_again() -> None:
    preview = Preview(kind="diff", text=DIFF, path="/home/a/src/x.py")

    def touched(path: str, note: str = "", **fields: object) -> list[str]:
        asked = request({"path": path}, preview.model_copy(update={"note": note}), **fields)
        return [row for row in shown(asked) if "touches" in row or row.startswith(("path", "         /"))]

    assert touched("src/x.py") == touched("x.py") == touched("/home/a/src/x.py") == []
    assert touched("../x.py") == touched("other.py") == touched("rc/x.py") == ["touches  /home/a/src/x.py"]
    linked = "x.py leads through a symbolic link to src/x.py, which is the file changed"
    assert touched("x.py", linked) == ["touches  /home/a/src/x.py"]
    assert touched("x.py", reason="outside the workspace: x.py; …") == ["touches  /home/a/src/x.py"]
    both = ("/home/a/src/x.py", "/home/a/y.py")
    assert touched("x.py", targets=both) == ["touches  /home/a/y.py"]


@table(
    ("path", "title"),
    [
        ("src/x.py", "Edit src/x.py?"),
        ("/home/a/src/x.py", "Edit src/x.py?"),
        ("/other/src/x.py", "Edit /other/src/x.py?"),
        ("x.py", "Edit x.py?"),
    ],
)
def test_the_title_names_a_file_of_the_workspace_without_the_workspace(path: str, title: str) -> None:
    text = "--- a/src/x.py\n+++ b/src/x.py\n@@ -1 +1 @@\n-a\n+b\n"
    asked = request({"path": path}, Preview(kind="diff", text=text, path="/home/a/src/x.py"))
    outside = Preview(kind="diff", text=text.replace("src/x.py", "etc/x"), path="/etc/x")

    assert request_title(asked) == title
    assert request_title(request({"path": "/etc/x"}, outside)) == "Edit /etc/x?"


def test_a_long_path_is_shown_whole_with_its_target() -> None:
    path = "src/" * 10 + "x.py"
    rows = shown(request({"path": path}, Preview(kind="diff", text=DIFF, path=f"/w/{path}")), 70)

    assert rows[:2] == [f"path  {path}", f"touches  /w/{path}"]


def test_a_target_that_the_command_spells_is_not_named_again() -> None:
    def touched(command: str, *targets: str) -> list[str]:
        asked = request({"command": command}, Preview(kind="command", text=command), targets=targets)
        return [row for row in shown(asked) if "/" in row][1:]

    assert touched("cp a /etc/hosts", "/etc/hosts") == touched("echo a >'/etc/hosts'", "/etc/hosts") == []
    assert touched("cp a /etc/hosts.d", "/etc/hosts") == ["touches  /etc/hosts"]
    assert touched("cp a ./b", "/w/b") == ["touches  /w/b"]
    inside = request({}, None, targets=("/w/b/c", "/w2/d"))
    assert [row.plain.rstrip() for row in ApprovalRows(inside, "/w").rows(60)] == ["touches  b/c", "         /w2/d"]


def test_input_that_the_change_shows_line_by_line_is_not_shown_twice() -> None:
    diff = "--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+one\n+two\n"
    preview = Preview(kind="diff", text=diff, path="/x")

    def covered(args: JsonObject) -> list[str]:
        return [row for row in shown(request(args, preview)) if row.startswith("all of")]

    assert line_counts(request({}, preview)) == " +2"
    assert not any("content" in row for row in shown(request({"content": "one\ntwo\n"}, preview)))
    assert "content" in shown(request({"content": "one\nthree\n"}, preview))
    assert covered({"content": "one\nthree\n"}) == covered({"content": "one\ntwo \n"}) == []
    assert covered({"old": "two", "new": "one"}) == ["all of old, new"]
    assert "old  tw   touches  /x" in shown(request({"old": "tw"}, preview))


@pytest.mark.slow
def test_contents_that_differ_beyond_what_is_read_of_a_change_are_shown_whole() -> None:
    def asked(content: str) -> ApprovalRequest:
        preview = Preview(kind="diff", text=diff_of("", content, "a/x", "b/x"), path="/x")
        return request({"content": content}, preview)

    def look(content: str) -> list[str]:
        return shown(asked(content))

    half = "a\nb\n" * (MAX_LINES // 2)

    assert look(half + "a\nb\n") != look(half + "b\na\n")
    assert line_counts(asked("a\nb\n" * (MAX_LINES // 4))) == f" +{MAX_LINES // 2}"


def test_without_empty_rows_it_is_as_complete() -> None:
    asked = request(
        {"path": "x"},
        Preview(kind="diff", text=DIFF, path="/x"),
        parts=(DecisionPart(text="a", decision="ask", reason="r"),),
    )
    rows = ApprovalRows(asked)

    assert [row for row in rows.rows(60) if row.plain] == rows.rows(60, spaced=False)
    assert len(rows.rows(60)) == len(rows.rows(60, spaced=False)) + 1


def part(text: str, decision: Verdict = "ask", reason: str = "", **fields: Any) -> DecisionPart:
    return DecisionPart(text=text, decision=decision, reason=reason, **fields)


def of_command(command: str, *parts: DecisionPart, width: int = 60) -> list[str]:
    return shown(request({"command": command}, Preview(kind="command", text=command), parts=parts), width)


def test_a_command_of_several_parts_is_shown_as_its_parts() -> None:
    pushes = "pushes; no rule allows `git push`"
    rows = of_command(
        "cd src && git push 2>&1 | tee x",
        part("cd src", "allow", "only changes the directory"),
        part("git push 2>&1", reason=pushes, operator="&&"),
        part("tee x", "allow", "the rule allow bash(tee:*) allows it", rule="bash(tee:*)", operator="|"),
    )

    assert rows == ["✔    cd src", "▲ && git push 2>&1   pushes", "✔ |  tee x           rule bash(tee:*)"]


def test_a_note_without_room_is_below_unless_the_part_is_allowed() -> None:
    rows = of_command(
        "cat aaaaaaaaaaaaaa; make bbbbbbbbbbbbb",
        part("cat aaaaaaaaaaaaaa", "allow", rule="bash(cat:*)"),
        part("make bbbbbbbbbbbbb", reason="runs code of the project; no rule allows `make`", operator=";"),
        width=30,
    )

    assert rows == ["✔   cat aaaaaaaaaaaaaa", "▲ ; make bbbbbbbbbbbbb", "     runs code of the project"]


@table("command", ["a  | b", "a|b", "a | b ", "a | b # c", "a\n| b", "a && b"])
def test_a_command_that_is_more_than_its_parts_is_shown_exactly(command: str) -> None:
    rows = of_command(command, part("a", "allow"), part("b", operator="|"))

    assert rows[0].startswith(f" {command.partition(chr(10))[0]}".rstrip())
    assert rows[-3:] == ["2 parts, 1 not allowed yet", "✔   a", "▲ | b"]


def test_a_single_part_is_shown_only_where_it_is_not_the_command() -> None:
    reason = "runs code of the project; no rule allows `make`"

    assert of_command("make", part("make", reason=reason)) == [" make"]
    assert of_command("f() { make; }; f", part("make", reason=reason))[1:] == [
        "",
        "1 part",
        "▲ make   runs code of the project",
    ]


def test_the_trace_is_there_on_request() -> None:
    asked = request({"a": "b"}, trace=("floor: fine", "rules: none"), reason="no rule")
    rows = ApprovalRows(asked)

    assert shown(asked, with_trace=True) == [
        "a  b",
        "",
        "why  no rule",
        "every rule and check, in order",
        "· floor: fine",
        "· rules: none",
    ]
    assert rows.trace_start(60) == 2
    assert shown(request({}, reason="no rule"), with_trace=True)[2:] == ["· no rule"]


def test_letters_of_other_scripts_are_named() -> None:
    command = "cat \u0441\u043e\u0440\u0443"

    assert "! has letters that are not Latin: Cyrillic" in shown(
        request({"command": command}, Preview(kind="command", text=command))
    )


def test_every_kind_of_value_is_shown() -> None:
    rows = shown(request({"empty": "", "many": "a\nb", "flag": True, "list": [1, 2], "none": None}))

    assert rows == [
        "empty  (empty)",
        "many",
        " a",
        " b",
        "flag  true",
        "list",
        " [",
        "   1,",
        "   2",
        " ]",
        "none  null",
    ]


texts = st.text(st.sampled_from("ab \t\n\\\x1b\u202e\u200b日{}[]"), max_size=60)


@given(texts, texts, st.integers(16, 80))
def test_no_row_is_wider_than_asked_and_nothing_in_it_hides(command: str, other: str, width: int) -> None:
    asked = request({"command": command, "other": other}, Preview(kind="command", text=command), targets=(other,))

    for row in ApprovalRows(asked).rows(width):
        assert width_of_runs(row.runs) <= width
        assert sanitise(row.plain) == row.plain


ALIKE = "ab\n\n\r\x00\\x0udc81b\x1b\udc80\ud800\x85\u2028\u0301\u1161\u1100↪⇥ \t(empty)"
alike = st.text(st.sampled_from(ALIKE), max_size=40)
WIDTHS = st.sampled_from([10, 13, 24, 60, 130])


def look_of_change(old: str, new: str, width: int) -> list[str]:
    preview = Preview(kind="diff", text=diff_of(old, new, "a/x", "b/x"), path="/x")
    return [row.plain for row in ApprovalRows(request({}, preview)).rows(width)]


@given(alike, alike, alike, WIDTHS)
@example("", "a\r\n", "a\n", 60)
@example("a\n", "M1\x00M2\n", "M1\\x00M2\n", 60)
@example("a\n", "a\udc80\n", "a\\udc80\n", 60)
@example("bbbb\n", "aaaaaaaabbbb\n", "aaaaaaaa\nbbbb\n", 10)
def test_two_contents_never_look_the_same_in_a_change(old: str, one: str, other: str, width: int) -> None:
    assert (look_of_change(old, one, width) == look_of_change(old, other, width)) == (one == other)


@given(alike, alike, WIDTHS, st.booleans())
@example("a" * 20, "a" * 8 + "\n" + "a" * 12, 10, True)
@example("(empty)", "", 60, False)
def test_two_inputs_never_look_the_same_however_they_are_wrapped(
    one: str, other: str, width: int, as_command: bool
) -> None:
    def look(text: str) -> list[str]:
        preview = Preview(kind="command", text=text) if as_command and text else None
        part = DecisionPart(text=text, decision="ask", reason="r")
        asked = request({"command": text}, preview, targets=(f"/{text}",), parts=(part, part))
        return [row.plain for row in ApprovalRows(asked).rows(width)]

    assert (look(one) == look(other)) == (one == other)


@given(st.lists(alike.map("/{}".format), max_size=3), st.lists(alike.map("/{}".format), max_size=3), WIDTHS)
@example(["/aaaaaaaa/b"], ["/aaaaaaaa", "/b"], 10)
@example(["/a\n/b"], ["/a", "/b"], 60)
def test_two_lists_of_targets_never_look_the_same(one: list[str], other: list[str], width: int) -> None:
    def look(targets: list[str]) -> list[str]:
        return [row.plain for row in ApprovalRows(request({}, targets=tuple(targets))).rows(width)]

    assert (look(one) == look(other)) == (one == other)


def test_a_text_that_reads_like_another_value_is_named_a_text() -> None:
    assert shown(request({"a": True, "b": 1, "c": None})) == ["a  true", "b  1", "c  null"]
    assert shown(request({"a": "true", "b": "1", "c": "null", "d": "truth"})) == [
        "a (text)  true",
        "b (text)  1",
        "c (text)  null",
        "d  truth",
    ]


def test_names_that_the_title_cuts_are_shown_whole() -> None:
    rows = shown(request({"n" * 70: "value"}).model_copy(update={"tool": "t" * 70, "agent": "main"}), 60)

    assert "".join(row.replace("↪", "").removeprefix("tool").strip() for row in rows[:2]) == "t" * 70
    assert "n" * 70 in "".join(row.removeprefix("↪") for row in rows)


def test_changes_besides_the_lines_are_listed_in_the_head() -> None:
    preview = Preview(
        kind="diff", text=diff_of("a\n", "b\r\n", "a/x", "b/x"), path="/x", note="it was UTF-16\nit is UTF-8"
    )

    rows = shown(request({}, preview), 80)
    start = next(place for place, row in enumerate(rows) if row.startswith("! Line"))
    assert rows[start : start + 3] == ["! Line endings change from LF to CR LF", "! it was UTF-16", "! it is UTF-8"]


def test_ends_of_lines_that_are_none_here_are_visible_inside_a_line() -> None:
    change = diff_of("", "a\rb\x85c\u2028d\u2029e", "a/x", "b/x")
    rows = shown(request({}, Preview(kind="diff", text=change)), 80)

    assert "1 + a\\x0db\\x85c\\u2028d\\u2029e" in rows
    assert "No newline at end of file" in rows
