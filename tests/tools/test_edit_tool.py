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
from tui_agent.tools.edit_tools import EditTool
from tui_agent.tools.read_tool import ReadTool
from tui_agent.tools.workspace import Workspace


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


CHINESE = "# 读取配置文件并连接到数据库，如果失败则重试三次。\nname = ''\n"
GERMAN = "Die Größe der Datei läßt sich nicht ändern. Überprüfe die Lösung für größere Zahlen. x = 1\n" * 3

ENCODED_EDITS: dict[str, tuple[bytes, str, str, bytes | str]] = {
    # name: content, old_string, new_string, new content or words of the refusal
    "a short text in GBK": ("# 测试\nname = ''测试\n".encode("gbk"), "name = ''", "name = 'é'", "is not known"),
    "ASCII in it": ("# 测试\nx = 1\n".encode("gbk"), "x = 1", "x = 2", "# 测试\nx = 2\n".encode("gbk")),
    "a short text in Shift-JIS": ("日本語テキスト\nabc = 1".encode("cp932"), "1", "'é'", "is not known"),
    "the second byte of a character": ("# ソ\n".encode("cp932"), "\\\n", "\n", "is not known"),
    "known GBK": (CHINESE.encode("gbk"), "''", "'测试'", CHINESE.replace("''", "'测试'").encode("gbk")),
    "known GBK takes all of Unicode": (
        CHINESE.encode("gbk"),
        "''",
        "'é'",
        CHINESE.replace("''", "'é'").encode("gb18030"),
    ),
    "known Windows-1252": (GERMAN.encode("cp1252") + b"y", "y", "ü", (GERMAN + "ü").encode("cp1252")),
    "a character it lacks": (GERMAN.encode("cp1252") + b"y", "y", "→", "has no '→'"),
    "one that its relatives have elsewhere": (
        GERMAN.encode("cp1252") + b"y",
        "y",
        "ñ",
        "which have other bytes for 'ñ'",
    ),
    "two encodings in one file": ("é\n".encode() + "é\nx\n".encode("cp1252"), "x", "ü", "is not known"),
    "another encoding far down": (b"a\n" * 40_000 + b"\xe9\nx\n", "x", "ü", "is not known"),
    "CR only": (b"one\rtwo\r", "one\ntwo", "1\n2\n3", b"1\r2\r3\r"),
    "CR only, then LF": (b"one\r" * 20_000 + b"x\n", "x", "y", "its lines end in CR at first"),
    "UTF-16": ("\ufeffé\n".encode("utf-16-le"), "é", "測", "\ufeff測\n".encode("utf-16-le")),
}


async def test_new_text_goes_only_into_a_known_encoding(edit: EditTool, root: Path) -> None:
    wrong: list[str] = []
    for name, (content, old, new, expected) in ENCODED_EDITS.items():
        (root / name).write_bytes(content)
        try:
            said = (await call(edit, path=name, old_string=old, new_string=new)).text
        except ToolError as error:
            said = str(error)
        after = (root / name).read_bytes()
        is_right = after == expected if isinstance(expected, bytes) else expected in said and after == content
        if not is_right:
            wrong.append(f"{name}: {said}: {after[-40:]!r}")
    assert wrong == []


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


BYTES = st.one_of(
    st.binary(max_size=20),
    st.tuples(st.text(max_size=30), st.sampled_from(["gbk", "cp932", "euc_jp", "euc_kr", "big5", "cp1252"])).map(
        lambda text: text[0].encode(text[1], "ignore")
    ),
)


@pytest.mark.slow
@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    before=BYTES,
    after=BYTES,
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
