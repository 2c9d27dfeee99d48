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
from tui_agent.ui.approval.approval_rows import ApprovalRows
from tui_agent.ui.approval.approval_summary import danger_marks, line_counts, request_in_short, request_title
from tui_agent.ui.text.diff_rows import MAX_LINES
from tui_agent.ui.text.sanitiser import sanitise
from tui_agent.ui.text.styled_lines import width_of_runs

COMMAND = "git commit -am 'x'  && git push \u202e"
CYRILLIC = "cat \u0441\u043e\u0440\u0443"
LONG_PATH = "src/" * 10 + "x.py"
AGENT = {"tool": "agent"}


def request(args: JsonObject, preview: Preview | None = None, **fields: object) -> ApprovalRequest:
    tool = {"command": "bash", "diff": "edit"}.get(preview.kind if preview is not None else "", "t")
    return ApprovalRequest.model_validate(
        {"call_id": "c1", "digest": "d", "tool": tool, "args": args, "preview": preview, **fields}
    )


def shown(asked: ApprovalRequest, width: int = 60, *, with_trace: bool = False) -> list[str]:
    return [row.plain.rstrip() for row in ApprovalRows(asked).rows(width, with_trace=with_trace)]


@table(
    ("asked", "rows"),
    [
        (
            request({"why": "harmless", "command": COMMAND, "timeout": 5}, Preview(kind="command", text=COMMAND)),
            [" git commit -am 'x'  && git push \\u202e", "", "why  harmless", "timeout  5"],
        ),
        (
            request({"command": "make"}, Preview(kind="command", text="make", note="runs in the sandbox\u202e")),
            [" make", "runs in the sandbox\\u202e"],
        ),
        # A preview that is not the input does not hide the input.
        (request({"command": "rm -rf /"}, Preview(kind="command", text="ls")), [" ls", "", "command  rm -rf /"]),
        (
            request({"command": CYRILLIC}, Preview(kind="command", text=CYRILLIC)),
            [f" {CYRILLIC}", "! has letters that are not Latin: Cyrillic"],
        ),
        (
            request({"empty": "", "many": "a\nb", "list": [1, 2], "none": None}),
            ["empty  (empty)", "many", " a", " b", "list", " [", "   1,", "   2", " ]", "none  null"],
        ),
        # A text that reads like another value is named a text.
        (
            request({"a": True, "b": 1, "c": "true", "d": "1", "e": "truth"}),
            ["a  true", "b  1", "c (text)  true", "d (text)  1", "e  truth"],
        ),
        (
            request({"path": LONG_PATH}, Preview(kind="diff", text="", path=f"/w/{LONG_PATH}")),
            [f"path  {LONG_PATH}", f"touches  /w/{LONG_PATH}"],
        ),
    ],
)
def test_the_whole_input_is_shown_with_hidden_characters_visible(asked: ApprovalRequest, rows: list[str]) -> None:
    assert shown(asked, 70) == rows


def test_the_title_is_a_question_without_the_workspace_and_the_announcement_one_line() -> None:
    text = "--- a/src/x.py\n+++ b/src/x.py\n@@ -1 +1 @@\n-a\n+b\n"
    inside = Preview(kind="diff", text=text, path="/home/a/src/x.py")
    outside = Preview(kind="diff", text=text.replace("src/x.py", "etc/x"), path="/etc/x")
    created = Preview(kind="diff", text="--- /dev/null\n+++ b/x.py\n@@ -0,0 +1 @@\n+a\n", path="/home/a/x.py")
    command = request({"command": "cd src\nmake"}, Preview(kind="command", text="cd src\nmake"), summary="cd src\nmake")
    for title, asked in (
        ("Edit src/x.py?", request({"path": "src/x.py"}, inside)),
        ("Edit src/x.py?", request({"path": "/home/a/src/x.py"}, inside)),
        ("Edit /other/src/x.py?", request({"path": "/other/src/x.py"}, inside)),
        ("Edit x.py?", request({"path": "x.py"}, inside)),
        ("Edit /etc/x?", request({"path": "/etc/x"}, outside)),
        ("Create x.py?", request({"path": "x.py"}, created)),
        ("Start a sub-agent to find all callers?", request({"task": "Find all callers."}).model_copy(update=AGENT)),
        ("Start a sub-agent to API: list it?", request({"task": "API: list it"}).model_copy(update=AGENT)),
        ("Use t?", request({})),
        ("Run this command? · sub-agent explorer", command.model_copy(update={"agent": "explorer"})),
        ("Run this command? · asked by #2 Check it", command.model_copy(update={"agent": "#2 Check it"})),
        ("Run this command for you?", command.model_copy(update={"agent": "you"})),
    ):
        assert request_title(asked) == title
    assert request_in_short(command) == "Run this command? cd src ⏎ make"

    # Names that the title cuts are shown whole.
    rows = shown(request({"n" * 70: "value"}).model_copy(update={"tool": "t" * 70}), 60)
    assert "".join(row.replace("↪", "").removeprefix("tool").strip() for row in rows[:2]) == "t" * 70
    assert "n" * 70 in "".join(row.removeprefix("↪") for row in rows)


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


def test_a_target_that_the_command_spells_is_not_named_again() -> None:
    def touched(command: str, *targets: str) -> list[str]:
        asked = request({"command": command}, Preview(kind="command", text=command), targets=targets)
        return [row for row in shown(asked) if "/" in row][1:]

    assert touched("cp a /etc/hosts", "/etc/hosts") == touched("echo a >'/etc/hosts'", "/etc/hosts") == []
    assert touched("cp a /etc/hosts.d", "/etc/hosts") == ["touches  /etc/hosts"]
    assert touched("cp a ./b", "/w/b") == ["touches  /w/b"]
    inside = request({}, None, targets=("/w/b/c", "/w2/d"))
    assert [row.plain.rstrip() for row in ApprovalRows(inside, "/w").rows(60)] == ["touches  b/c", "         /w2/d"]


@pytest.mark.slow
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

    # What differs beyond the part of a change that is read is shown whole.
    half = "a\nb\n" * (MAX_LINES // 2)
    long = [f"{half}a\nb\n", f"{half}b\na\n"]
    previews = [Preview(kind="diff", text=diff_of("", one, "a/x", "b/x"), path="/x") for one in long]
    one, other = (shown(request({"content": text}, changed)) for text, changed in zip(long, previews, strict=True))
    assert one != other


def test_what_a_change_has_besides_lines_is_visible() -> None:
    note = "it was UTF-16\nit is UTF-8"
    preview = Preview(kind="diff", text=diff_of("a\n", "b\r\n", "a/x", "b/x"), path="/x", note=note)
    rows = shown(request({}, preview), 80)
    start = next(place for place, row in enumerate(rows) if row.startswith("! Line"))
    assert rows[start : start + 3] == ["! Line endings change from LF to CR LF", "! it was UTF-16", "! it is UTF-8"]

    ends = diff_of("", "a\rb\x85c\u2028d\u2029e", "a/x", "b/x")
    rows = shown(request({}, Preview(kind="diff", text=ends)), 80)
    assert "1 + a\\x0db\\x85c\\u2028d\\u2029e" in rows
    assert "No newline at end of file" in rows


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


def test_dangers_of_parts_secrets_and_paths_outside_are_marked() -> None:
    def marks(command: str, *parts: DecisionPart, reason: str = "") -> tuple[str, ...]:
        preview = Preview(kind="command", text=command) if command else None
        return danger_marks(request({"command": command}, preview, parts=parts, reason=reason))

    removes, leaves = "deletes files", "outside the workspace"
    parts = (part("rm a", dangers=(removes,)), part("rm ../b", dangers=(removes, leaves)), part("make"))
    assert marks("rm a; rm ../b; make", *parts) == (removes, leaves), "each is named once"
    assert marks("cat .env") == marks("cat ~/.ssh/id_rsa") == ("may show secrets",)
    assert marks("ls form") == ()
    outside = "outside the workspace: /etc/hosts; no rule allows changing it"
    assert marks("", reason=outside) == ("outside the workspace",)
    assert marks("", reason="~/x is private: it is ours") == ("may hold secrets",)
