"""The write tool on real files."""

import codecs
import errno
import os
import stat
from pathlib import Path

import pytest

from tests.tools.calls import Recorded, call, details_of
from tui_agent.protocol.errors import ToolError
from tui_agent.tools.atomic_write import lost_ownership
from tui_agent.tools.edit_tools import WriteTool
from tui_agent.tools.read_tool import ReadTool
from tui_agent.tools.workspace import Workspace


@pytest.fixture
def write(workspace: Workspace) -> WriteTool:
    return WriteTool(workspace)


@pytest.fixture
def read(workspace: Workspace) -> ReadTool:
    return ReadTool(workspace)


async def test_creates_a_file_with_its_directories(write: WriteTool, root: Path) -> None:
    recorded = Recorded()

    result = await call(write, recorded, path="src/new/a.py", content="a\nb\n")

    diff = "--- /dev/null\n+++ b/src/new/a.py\n@@ -0,0 +1,2 @@\n+a\n+b\n"
    emitted = {"path": str(root / "src/new/a.py"), "change": "created", "diff": diff, "added": 2, "removed": 0}
    assert (root / "src/new/a.py").read_text() == "a\nb\n"
    assert result.text == "Created src/new/a.py (+2 −0 lines)."
    assert recorded.data == [("file.changed", emitted)]
    assert details_of(result) == emitted | {"outcome": "new file +2"}


async def test_a_file_that_was_never_read_is_not_overwritten(write: WriteTool, root: Path) -> None:
    (root / "a").write_text("unknown")

    with pytest.raises(ToolError, match="a exists, but you have not read it; nothing was written: read it first"):
        await call(write, path="a", content="new")

    assert (root / "a").read_text() == "unknown"


async def test_a_file_that_changed_since_is_not_overwritten_and_the_change_is_shown(
    write: WriteTool, read: ReadTool, root: Path
) -> None:
    (root / "a").write_text("1\n2\n")
    await call(read, path="a")
    (root / "a").write_text("1\ntwo\n")

    with pytest.raises(
        ToolError, match=r"(?s)a changed on disk since it was last read; nothing was written.*-2\n\+two"
    ):
        await call(write, path="a", content="new")

    assert (root / "a").read_text() == "1\ntwo\n"
    await call(write, path="a", content="new")
    assert (root / "a").read_text() == "new"


async def test_a_change_that_is_too_long_to_be_shown_must_be_read(write: WriteTool, read: ReadTool, root: Path) -> None:
    (root / "a").write_text("1\n")
    await call(read, path="a")
    (root / "a").write_text("line of text\n" * 1000)

    for words in ("changed on disk since it was last read", "you have not seen all"):
        with pytest.raises(ToolError, match=words):
            await call(write, path="a", content="new")
    await call(read, path="a")
    await call(write, path="a", content="new")
    assert (root / "a").read_text() == "new"


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        (b"a\r\nb\r\n", "x\ny\n", b"x\r\ny\r\n"),
        (b"a\r\nb\r\n", "x\r\ny\n", b"x\r\ny\r\n"),
        (b"a\nb\n", "x\r\ny\r\n", b"x\ny\n"),
        (b"a", "x\r\ny\n", b"x\r\ny\n"),
        (b"a\r\nb\r\nc\n", "a\nb\nc\n", b"a\r\nb\r\nc\r\n"),
        (codecs.BOM_UTF8 + b"a\n", "x\n", codecs.BOM_UTF8 + b"x\n"),
        (
            codecs.BOM_UTF16_LE + "a\r\n".encode("utf-16-le"),
            "ä\n",
            codecs.BOM_UTF16_LE + "ä\r\n".encode("utf-16-le"),
        ),
        ("ä\n".encode("cp1252"), "x\nä\n", "x\nä\n".encode("cp1252")),
        (b"a\rb\r", "x\ny\n", b"x\ry\r"),
    ],
)
async def test_encoding_mark_and_line_endings_are_kept(
    write: WriteTool, read: ReadTool, root: Path, before: bytes, content: str, after: bytes
) -> None:
    (root / "a").write_bytes(before)
    await call(read, path="a")

    await call(write, path="a", content=content)

    assert (root / "a").read_bytes() == after


async def test_text_that_the_encoding_does_not_allow_is_refused(write: WriteTool, read: ReadTool, root: Path) -> None:
    german = "Die Größe der Datei läßt sich nicht ändern. Überprüfe die Lösung für größere Zahlen.\n" * 3
    cases = {
        "its encoding, Windows-1252, has no '日'": (german.encode("cp1252"), "日本\n"),
        "the file is not valid UTF-8; its encoding is not known": ("ä\n".encode("cp1252"), "ö\n"),
        "its encoding is not known, shown": ("# 测试\nname = ''测试\nx = 1\n".encode("gbk"), "# 测试\nx = 2\n"),
    }
    for words, (before, content) in cases.items():
        (root / "a").write_bytes(before)
        await call(read, path="a")
        with pytest.raises(ToolError, match=f"a was not changed: .*{words}.*nothing was written: .*iconv"):
            await call(write, path="a", content=content)
        assert (root / "a").read_bytes() == before


async def test_a_link_is_written_through_and_other_names_of_the_file_are_reported(
    write: WriteTool, read: ReadTool, root: Path
) -> None:
    (root / "real").mkdir()
    (root / "real" / "a").write_text("old")
    (root / "link").symlink_to("real/a")
    os.link(root / "real" / "a", root / "b")
    await call(read, path="link")

    result = await call(write, path="link", content="new")

    assert "[link leads through a symbolic link to real/a, which is the file changed]" in result.text
    assert "[the file had 2 hard links; the others keep the old content]" in result.text
    assert (root / "link").is_symlink()
    assert ((root / "real" / "a").read_text(), (root / "b").read_text()) == ("new", "old")


async def test_a_group_that_cannot_be_kept_is_named_and_gets_no_rights(
    write: WriteTool, read: ReadTool, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fchown(descriptor: int, owner: int, group: int) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    (root / "a").write_text("old")
    own = os.getgid()
    os.chown(root / "a", -1, own + 12_345)
    (root / "a").chmod(0o2764)
    await call(read, path="a")
    monkeypatch.setattr(os, "fchown", fchown)

    text = (await call(write, path="a", content="new")).text
    before, now = (root / "a").stat(), os.stat_result((0o644, 1, 1, 1, own + 12_345, own, 0, 0, 0, 0))

    assert f"its owner changed from {own + 12_345} to " in lost_ownership(now, before)
    assert f"its group changed from {own + 12_345} to " in text
    assert (root / "a").stat().st_gid == own
    assert stat.S_IMODE((root / "a").stat().st_mode) == 0o744
