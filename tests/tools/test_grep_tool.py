"""The grep tool on real trees, with and without ripgrep."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.tools.calls import Recorded, call, details_of
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import InvalidArgumentsError, OperationCancelledError, ToolError
from tui_agent.protocol.tool import Accesses, PathSubject
from tui_agent.tools.grep_tool import GrepTool
from tui_agent.tools.search import file_listing
from tui_agent.tools.search.search_engine import Ripgrep
from tui_agent.tools.workspace import Workspace


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


@pytest.mark.parametrize(
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
        ({"pattern": "foo\\nbar"}, "[nothing matches foo\\nbar; a match cannot span lines]"),
        ({"pattern": "[^\\n]o{2} = 1"}, "a.py:2:foo = 1"),
    ],
)
async def test_finds_lines(grep: GrepTool, tree: Path, arguments: dict[str, Any], text: str) -> None:
    assert (await call(grep, **({"pattern": "foo"} | arguments))).text == text


@pytest.mark.slow
async def test_details_count(grep: GrepTool, tree: Path) -> None:
    everything = await call(grep, pattern="foo", ignore_case=True)
    counted = await call(grep, pattern="foo", ignore_case=True, output_mode="count")
    some = await call(grep, pattern="foo", limit=1)
    none = await call(grep, pattern="no such thing")

    assert details_of(everything) == {
        "outcome": "4 matches in 3 files",
        "files": 3,
        "matches": 4,
        "complete": True,
    }
    assert details_of(counted)["matches"] == 4
    assert not details_of(some)["complete"]
    assert details_of(none) == {"outcome": "no matches", "files": 0, "matches": 0, "complete": True}


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


async def test_an_incomplete_search_says_so(grep: GrepTool, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_listing, "_LISTING_SIZE", 5)
    monkeypatch.setattr(file_listing, "LISTING_TIME", -1.0)

    assert "[the search is incomplete because it took too long" in (await call(grep, pattern="foo")).text


async def test_a_cancelled_call_stops(grep: GrepTool, tree: Path) -> None:
    token = CancellationToken()
    token.cancel("stop")

    with pytest.raises(OperationCancelledError):
        await call(grep, Recorded(token), pattern="foo")


@pytest.mark.parametrize("arguments", [{"limit": 0}, {"context": -1}, {"output_mode": "lines"}, {"pattern": ""}])
async def test_wrong_arguments_are_refused(grep: GrepTool, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentsError):
        await call(grep, **({"pattern": "x"} | arguments))


def test_a_call_describes_itself(grep: GrepTool, root: Path) -> None:
    arguments = {"pattern": "foo", "path": "src", "glob": "*.py"}

    assert grep.is_read_only(arguments)
    assert grep.is_concurrency_safe(arguments)
    assert grep.accesses(arguments) == Accesses(searches=frozenset({root / "src"}))
    assert grep.subject(arguments) == PathSubject("src", "search", leaves_out_denied=True)
    assert grep.summarise(arguments) == "foo in src (*.py)"
    assert grep.summarise({"pattern": "foo"}) == "foo"
