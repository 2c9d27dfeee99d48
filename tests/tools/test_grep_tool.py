"""The grep tool on real trees, with and without ripgrep."""

import os
import resource
from pathlib import Path
from typing import Any

import pytest

from tests.support.table import table
from tui_agent.protocol.errors import ToolError
from tui_agent.tools.glob_tool import GlobTool
from tui_agent.tools.grep_tool import SHOWN_CHARACTERS, SHOWN_WIDTH, GrepTool, matching_lines
from tui_agent.tools.pinned_directory import ResolvedPath
from tui_agent.tools.search import file_listing
from tui_agent.tools.search.content_search import LONGEST_LINE, FileHits
from tui_agent.tools.search.path_patterns import SearchScope
from tui_agent.tools.search.search_engine import Ripgrep
from tui_agent.tools.workspace import Workspace

from .calls import call


@pytest.fixture
def grep(workspace: Workspace, engine: Ripgrep | None) -> GrepTool:
    return GrepTool(workspace)


@pytest.fixture
def tree(root: Path) -> Path:
    files = {
        "a.py": "import os\nfoo = 1\nbar = 2\nFoo = 3\n",
        "src/b.py": "x\ny\nfoo()\nz\nw\n",
        "src/c.min.js": "foo\n",
        "src/d.txt": "nothing\n",
        "build/e.py": "foo\n",
    }
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    (root / "f.bin").write_bytes(b"foo\0")
    (root / ".gitignore").write_text("build/\n")
    return root


@table(
    ("arguments", "text"),
    [
        ({}, "a.py:2:foo = 1\nsrc/b.py:3:foo()\nsrc/c.min.js:1:foo"),
        ({"path": "src"}, "src/b.py:3:foo()\nsrc/c.min.js:1:foo"),
        ({"path": "a.py"}, "a.py:2:foo = 1"),
        ({"path": "build"}, "build/e.py:1:foo"),
        ({"path": "build/e.py"}, "build/e.py:1:foo"),
        ({"ignore_case": True, "path": "a.py"}, "a.py:2:foo = 1\na.py:4:Foo = 3"),
        ({"glob": "*.py"}, "a.py:2:foo = 1\nsrc/b.py:3:foo()"),
        ({"glob": "src/*.py"}, "src/b.py:3:foo()"),
        ({"glob": "!*.min.js"}, "a.py:2:foo = 1\nsrc/b.py:3:foo()"),
        ({"context": 1, "path": "src/b.py"}, "src/b.py-2-y\nsrc/b.py:3:foo()\nsrc/b.py-4-z"),
        ({"output_mode": "files_with_matches"}, "a.py\nsrc/b.py\nsrc/c.min.js"),
        ({"output_mode": "count", "ignore_case": True}, "a.py:2\nsrc/b.py:1\nsrc/c.min.js:1"),
        (
            {"limit": 2},
            "a.py:2:foo = 1\nsrc/b.py:3:foo()\n"
            "[stopped at the limit of 2; narrow the search or raise `limit` to see more]",
        ),
        ({"glob": "*.rs"}, "[nothing matches foo]"),
        (
            {"pattern": "foo\\nbar"},
            "[nothing matches foo\\nbar; a match cannot span lines; not searched: "
            "1 file that .gitignore excludes (build/e.py), 1 binary file (f.bin)]",
        ),
        ({"pattern": "[^\\n]o{2} = 1"}, "a.py:2:foo = 1"),
    ],
)
async def test_finds_lines(grep: GrepTool, tree: Path, arguments: dict[str, Any], text: str) -> None:
    assert (await call(grep, **({"pattern": "foo"} | arguments))).text == text


async def test_a_search_without_a_match_lists_the_files_once_with_and_once_without_the_ignored_ones(
    grep: GrepTool, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[bool] = []
    list_scope = file_listing._list_scope

    def counting(scope: SearchScope, *arguments: Any) -> Any:
        listed.append(scope.rules is not None)
        return list_scope(scope, *arguments)

    monkeypatch.setattr(file_listing, "_list_scope", counting)

    assert "1 file that .gitignore excludes (build/e.py)" in (await call(grep, pattern="no such thing")).text
    assert listed == [True, False]


UNSEARCHED: dict[str, tuple[dict[str, Any], str]] = {
    # name: arguments, result
    "a folder whose files are ignored": ({"path": "scripts"}, "scripts/w.py:1:MARKER"),
    "a folder by the filter": ({"glob": "scripts/*.py"}, "scripts/w.py:1:MARKER"),
    "a file by the filter": ({"glob": ".env"}, ".env:1:MARKER"),
    "brackets in the filter": ({"glob": "app/[slug]/*.tsx"}, "app/[slug]/p.tsx:1:MARKER"),
    "a binary file": ({"path": "f.bin"}, "[nothing matches MARKER; not searched: 1 binary file (f.bin)]"),
    "UTF-16 without a mark": ({"path": "utf16"}, "[nothing matches MARKER; not searched: 1 binary file (utf16)]"),
    "ignored files": (
        {"glob": "w.*", "path": "."},
        "[nothing matches MARKER; not searched: 1 file that .gitignore excludes (scripts/w.py)]",
    ),
    "another encoding": (
        {"pattern": "测试", "glob": "*.gbk"},
        "[nothing matches 测试; not searched: 1 file in another encoding than UTF-8 (a.gbk)]",
    ),
    "ASCII in another encoding": ({"pattern": "abc", "glob": "*.gbk"}, "a.gbk:1:abc ²âÊÔ"),
    "a pipe by the filter": ({"glob": "pipe"}, "[nothing matches MARKER]"),
    "excluded by the filter": (
        {"glob": "!*", "path": "src"},
        "[nothing matches MARKER]",
    ),
}


async def test_a_search_that_finds_nothing_says_what_it_left_out(grep: GrepTool, tree: Path) -> None:
    (tree / ".gitignore").write_text("build/\nscripts/*\n.env\n")
    for name in ("scripts/w.py", ".env", "app/[slug]/p.tsx"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("MARKER\n")
    (tree / "utf16").write_bytes("MARKER\n".encode("utf-16-le"))
    (tree / "a.gbk").write_bytes("abc 测试\n".encode("gbk"))
    os.mkfifo(tree / "pipe")

    found = {
        name: (await call(grep, **({"pattern": "MARKER"} | given))).text for name, (given, _) in UNSEARCHED.items()
    }

    assert found == {name: expected for name, (_, expected) in UNSEARCHED.items()}


@pytest.mark.slow
async def test_a_line_of_gigabytes_is_not_kept_in_memory(grep: GrepTool, tree: Path) -> None:
    for name, content in {"zeros": b"", "text": b"foo\n" * 3000, "binary": b"\0"}.items():
        (tree / name).write_bytes(content)
        os.truncate(tree / name, 2 << 30)
    with (tree / "letters").open("wb") as file:
        file.write(b"a" * (LONGEST_LINE + 1))
    with (tree / "lines").open("wb") as file:
        file.write((b"a" * 99 + b"\n") * (LONGEST_LINE // 100 + 1) + b"foo\n")
    # A child counts the memory of this process, too, until it runs its own program.
    before = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF))

    text = (await call(grep, pattern="foo", output_mode="files_with_matches")).text

    assert text.split("\n") == [
        *("a.py", "lines", "src/b.py", "src/c.min.js"),
        "[not searched: 2 binary files (binary, zeros), 2 files with too long lines (letters, text)]",
    ]
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss <= before + 300 * 1024
    assert "2 binary files (binary, zeros)" in (await call(grep, pattern="fooo", glob="[bz]*")).text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"pattern": "("}, "invalid pattern: "),
        ({"pattern": "x", "path": "scr"}, r"scr does not exist; did you mean src/\?"),
        ({"pattern": "x", "path": "pipe"}, "pipe is a named pipe"),
    ],
)
async def test_errors_are_clear(grep: GrepTool, tree: Path, arguments: dict[str, Any], words: str) -> None:
    os.mkfifo(tree / "pipe")

    with pytest.raises(ToolError, match=words):
        await call(grep, **arguments)


async def test_an_incomplete_search_or_listing_says_so(
    grep: GrepTool, workspace: Workspace, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_listing, "_LISTING_SIZE", 5)
    monkeypatch.setattr(file_listing, "LISTING_TIME", -1.0)

    assert "[the search is incomplete because it took too long" in (await call(grep, pattern="foo")).text
    listed = await call(GlobTool(workspace), pattern="*")
    assert "[the listing is incomplete because it took too long" in listed.text


def shown_lines(workspace: Workspace, hits: dict[str, dict[int, int]], context: int = 0) -> list[str]:
    found = [FileHits(name, columns) for name, columns in hits.items()]
    return matching_lines(ResolvedPath(workspace.root), found, context, workspace, lambda: False)


def test_context_lines_are_marked_and_groups_separated(workspace: Workspace, root: Path) -> None:
    (root / "a").write_text("".join(f"{number}\n" for number in range(1, 21)))
    (root / "b").write_text("x\n")

    assert shown_lines(workspace, {"a": {2: 1, 4: 1, 10: 1}, "b": {1: 1}}, context=1) == [
        *("a-1-1", "a:2:2", "a-3-3", "a:4:4", "a-5-5"),
        *("--", "a-9-9", "a:10:10", "a-11-11"),
        *("--", "b:1:x"),
    ]


def test_a_long_line_is_shown_around_its_match(workspace: Workspace, root: Path) -> None:
    (root / "a").write_text("ä" * 5000 + "foo" + "y" * 5000 + "\n", "utf-8")

    (line,) = shown_lines(workspace, {"a": {1: 10_001}})

    assert line.startswith("a:1:[4,900 characters …] ää")
    assert "äfooy" in line
    assert line.endswith("y [… 4,703 characters]")
    assert len(line) < SHOWN_WIDTH + 100


def test_a_long_result_is_cut(workspace: Workspace, root: Path) -> None:
    (root / "a").write_text(("x" * 300 + "\n") * 1000)

    lines = shown_lines(workspace, {"a": dict.fromkeys(range(1, 1001), 1)})

    assert sum(map(len, lines)) < SHOWN_CHARACTERS + 100
    assert lines[-1] == f"[cut after {SHOWN_CHARACTERS:,} characters; narrow the search to see the rest]"


def test_a_deleted_file_is_reported(workspace: Workspace) -> None:
    (line,) = shown_lines(workspace, {"a": {1: 1}})

    assert line.startswith("[a has matches, but could not be read: ")
