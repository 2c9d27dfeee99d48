"""The edit tool on real files."""

import asyncio
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.tools.calls import Recorded, call, details_of
from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.tool import Accesses, PathSubject
from tui_agent.tools.edit_tool import EditTool
from tui_agent.tools.read_tool import ReadTool
from tui_agent.tools.workspace import Workspace
from tui_agent.tools.write_tool import WriteTool


@pytest.fixture
def edit(workspace: Workspace) -> EditTool:
    return EditTool(workspace)


async def test_replaces_the_only_place(edit: EditTool, root: Path) -> None:
    (root / "a").write_text("1\n2\n3\n")
    (root / "a").chmod(0o711)
    recorded = Recorded()

    result = await call(edit, recorded, path="a", old_string="2", new_string="two")

    diff = "--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n"
    assert (root / "a").read_text() == "1\ntwo\n3\n"
    assert stat.S_IMODE((root / "a").stat().st_mode) == 0o711
    assert result.text == "Changed a (+1 −1 lines)."
    counted = {"path": str(root / "a"), "change": "modified", "diff": diff, "added": 1, "removed": 1}
    assert recorded.data == [("file.changed", counted)]
    assert details_of(result)["diff"] == diff


async def test_replaces_every_place_when_asked(edit: EditTool, root: Path) -> None:
    (root / "a").write_text("x x\nx\n")

    result = await call(edit, path="a", old_string="x", new_string="y", replace_all=True)

    assert (root / "a").read_text() == "y y\ny\n"
    assert "[3 occurrences replaced]" in result.text


async def test_invalid_bytes_survive(edit: EditTool, root: Path) -> None:
    (root / "a").write_bytes("ä\n".encode() + b"\xff\xfe\n1\n")

    await call(edit, path="a", old_string="1", new_string="ö")

    assert (root / "a").read_bytes() == "ä\n".encode() + b"\xff\xfe\n" + "ö\n".encode()


async def test_an_encoding_that_lacks_a_character_is_an_error(edit: EditTool, root: Path) -> None:
    (root / "a").write_bytes("ä 1\n".encode("cp1252"))

    with pytest.raises(ToolError, match=r"its encoding, Windows-1252 .*, has no '→'"):
        await call(edit, path="a", old_string="1", new_string="→")

    await call(edit, path="a", old_string="ä 1", new_string="ü")
    assert (root / "a").read_bytes() == "ü\n".encode("cp1252")


LINES = "".join(f"line{number} = {number}\n" for number in range(1, 41))

STALE_EDITS: dict[str, tuple[str, str, str, dict[str, Any], str]] = {
    # name: as read, on disk, old_string, more arguments, outcome: words of the refusal, or of the done edit's note
    "another line": (LINES, LINES.replace("= 30", "= 31"), "line1 =", {}, "done: +line30 = 31"),
    "lines added above": (LINES, "a\n" * 50 + LINES, "line1 =", {}, "done: +a"),
    "lines removed": (LINES, LINES.replace("line30 = 30\n", ""), "line1 =", {}, "done: -line30 = 30"),
    "other line endings": (LINES, LINES.replace("\n", "\r\n"), "line1 =", {}, "done: from LF to CR LF"),
    "a long change elsewhere": (LINES, LINES + "x = 1\n" * 2000, "line1 =", {}, "done: more lines"),
    "the same line": ("a = 1  # x\nb\n", "a = 1  # y\nb\n", "a = 1", {}, "refused: +a = 1  # y"),
    "moved into an added line": ("f\nx = 1\na\nb\nc\n", "f\nx = 2\na\nb\nc\nx = 1\n", "x = 1", {}, "refused: +x = 1"),
    "around a removed line": ("a\nb\nc\n", "a\nc\n", "a\nc", {}, "refused: -b"),
    "one of all places": ("x\nb\n", "x\nb\nx\n", "x", {"replace_all": True}, "refused: +x"),
    "a file too large to be compared": ("a\n" * 600_000, "a\n" * 600_000 + "x = 1\n", "x = 1", {}, "refused: now has"),
    "the text is gone": ("a\nb\n", "a\nc\n", "b", {}, "fails: -b"),
    "the text is there twice": ("a\nb\n", "a\nb\na\n", "a", {}, "fails: +a"),
}


async def test_only_an_edit_that_meets_an_unseen_change_is_refused_and_once(workspace: Workspace, root: Path) -> None:
    read, edit, wrong = ReadTool(workspace), EditTool(workspace), list[str]()
    for name, (before, now, old, more, expected) in STALE_EDITS.items():
        (root / name).write_text(before)
        await call(read, path=name)
        (root / name).write_bytes(now.encode())
        outcome, _, words = expected.partition(": ")
        arguments = {"path": name, "old_string": old, "new_string": "NEW", **more}
        try:
            said = f"done: {(await edit.execute(arguments, Recorded().context)).text}"
        except ToolError as error:
            said = f"refused: {error}"
        if outcome == "refused" and said.startswith("refused"):
            await edit.execute(arguments, Recorded().context)
        changed = "NEW" in (root / name).read_text()
        if (said.startswith("done"), changed) != (outcome == "done", outcome != "fails") or words not in said:
            wrong.append(f"{name}: {said}")
    assert wrong == []


async def test_an_edit_beside_a_long_unseen_change_does_not_make_it_seen(workspace: Workspace, root: Path) -> None:
    (root / "a").write_text(LINES)
    await call(ReadTool(workspace), path="a")
    (root / "a").write_text(LINES + "x = 1\n" * 2000)

    await call(EditTool(workspace), path="a", old_string="line1 =", new_string="line0 =")
    await call(EditTool(workspace), path="a", old_string="line2 =", new_string="line0 =")

    with pytest.raises(ToolError, match="you have not seen all of what changed in a"):
        await call(WriteTool(workspace), path="a", content="")


async def test_edits_may_follow_each_other(edit: EditTool, root: Path) -> None:
    (root / "a").write_text("1\n")

    await call(edit, path="a", old_string="1", new_string="2")
    await call(edit, path="a", old_string="2", new_string="3")

    assert (root / "a").read_text() == "3\n"


async def test_edits_of_one_file_at_once_lose_nothing(edit: EditTool, root: Path) -> None:
    (root / "a").write_text("".join(f"line {number};\n" for number in range(20)))

    async with asyncio.TaskGroup() as group:
        for number in range(20):
            group.create_task(call(edit, path="a", old_string=f" {number};", new_string=f" -{number}"))

    assert (root / "a").read_text() == "".join(f"line -{number}\n" for number in range(20))


async def test_a_call_cancelled_while_its_file_is_opened_returns_at_once_and_writes_nothing(
    edit: EditTool, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a").write_text("1\n")
    entered, released = threading.Event(), threading.Event()
    threads: list[threading.Thread] = []
    whole_open = os.open

    def slow_open(path: Any, flags: int, *args: Any, **options: Any) -> int:
        if path == "a" and not released.is_set():
            threads.append(threading.current_thread())
            entered.set()
            assert released.wait(60)
        return whole_open(path, flags, *args, **options)

    monkeypatch.setattr(os, "open", slow_open)
    async with asyncio.TaskGroup() as tasks:
        editing = tasks.create_task(call(edit, path="a", old_string="1", new_string="2"))
        while not entered.is_set():  # Runs only because the loop does not wait for the file.
            await asyncio.sleep(0)
        editing.cancel()
    assert editing.cancelled()
    released.set()
    await asyncio.to_thread(threads[0].join, 60)

    assert os.listdir(root) == ["a"]
    assert (root / "a").read_text() == "1\n"
    assert not any(os.path.realpath(f"/proc/self/fd/{fd}") == str(root / "a") for fd in os.listdir("/proc/self/fd"))
    assert (await call(edit, path="a", old_string="1", new_string="2")).text == "Changed a (+1 −1 lines)."


async def test_errors_name_the_file(edit: EditTool, root: Path) -> None:
    (root / "main.py").write_text("a = 1\n")

    with pytest.raises(ToolError, match=r"mian\.py does not exist; did you mean main\.py"):
        await call(edit, path="mian.py", old_string="a", new_string="b")
    with pytest.raises(ToolError, match=r"main\.py was not changed: old_string was not found; most similar"):
        await call(edit, path="main.py", old_string="a = 2", new_string="b")
    with pytest.raises(ToolError, match="old_string must not be empty, because the file has text; use write"):
        await call(edit, path="main.py", old_string="", new_string="b")


async def test_an_empty_old_string_creates_a_file_or_fills_an_empty_one(edit: EditTool, root: Path) -> None:
    (root / "empty").touch()
    (root / "mark").write_bytes(b"\xef\xbb\xbf")

    results = [
        (await call(edit, path=name, old_string="", new_string="é\n")).text for name in ("new/a", "empty", "mark")
    ]

    assert [text.split()[0] for text in results] == ["Created", "Changed", "Changed"]
    assert [(root / name).read_bytes() for name in ("new/a", "empty", "mark")] == [
        "é\n".encode(),
        "é\n".encode(),
        b"\xef\xbb\xbf" + "é\n".encode(),
    ]
    with pytest.raises(ToolError, match="gone does not exist"):
        await call(edit, path="gone", old_string="x", new_string="")


async def test_the_preview_is_the_diff_and_writes_nothing(edit: EditTool, root: Path) -> None:
    (root / "a").write_text("1\n")

    preview = await edit.preview({"path": "a", "old_string": "1", "new_string": "2"})
    with pytest.raises(ToolError, match=r"^a was not changed"):
        await edit.preview({"path": "a", "old_string": "x", "new_string": "2"})

    assert preview is not None
    assert preview.text == "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\n"
    assert (root / "a").read_text() == "1\n"


def test_a_call_describes_itself(edit: EditTool, root: Path) -> None:
    arguments = {"path": "a", "old_string": "x\ny", "new_string": ""}

    assert not edit.is_read_only(arguments)
    assert edit.accesses(arguments) == Accesses(frozenset({root / "a"}), frozenset({root / "a"}))
    assert edit.subject(arguments) == PathSubject("a", "write")
    assert edit.summarise(arguments) == "a (+0 −2)"
    assert edit.summarise(arguments | {"replace_all": True}) == "a (+0 −2 everywhere)"


@pytest.mark.slow
@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    before=st.binary(max_size=20),
    after=st.binary(max_size=20),
    mark=st.sampled_from([b"", b"\xef\xbb\xbf"]),
    ending=st.sampled_from([b"\n", b"\r\n"]),
)
async def test_everything_else_stays_unchanged(
    workspace: Workspace, root: Path, before: bytes, after: bytes, mark: bytes, ending: bytes
) -> None:
    content = mark + before + ending + b"@here@" + ending + after
    assume(b"\0" not in content and not content.startswith((b"\xff\xfe", b"\xfe\xff")))
    (root / "a").write_bytes(content)

    await call(EditTool(Workspace(root, spool_dir=workspace.spool_dir)), path="a", old_string="@here@", new_string="x")

    assert (root / "a").read_bytes() == mark + before + ending + b"x" + ending + after
