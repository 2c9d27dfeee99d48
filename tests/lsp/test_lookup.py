"""The tool `lookup`: questions about code, with real servers and one written by hand."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.test_edit_findings import call, odd, outcomes, results, session
from tests.support.table import table
from tui_agent.protocol.events import ToolEnded

pytestmark = pytest.mark.slow

PYRIGHT = {"command": "pyright-langserver --stdio", "files": ["*.py"]}


@pytest.mark.skipif(shutil.which("pyright-langserver") is None, reason="pyright is not installed")
async def test_pyright_answers_and_checks_behind_walls(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "shapes.py").write_text("def area(x: int) -> int:\n    '''Grüße 😀'''\n    return x * x\n", "utf-8")
    (folder / "main.py").write_text("from shapes import area\n\nprint('😀', area(2))\n", "utf-8")
    script = [
        call("lookup", kind="definition", path="main.py", line=3, name="area"),
        call("lookup", kind="references", path="shapes.py", name="area"),
        call("lookup", kind="hover", path="main.py", line=3, name="area"),
        call("lookup", kind="symbols", path="shapes.py"),
        call("write", path="late.py", content="from shapes import area\n\narea('2')\n"),
        call("lookup", kind="references", path="shapes.py", name="area"),
    ]

    async with session(folder, script, "auto", pyright=PYRIGHT) as (bench, events):
        await bench.agent.run("Go")

    definition, references, hover, symbols, after = results(events, "lookup")
    assert definition == "shapes.py:1:5: def area(x: int) -> int:"
    assert set(references.splitlines()) == {
        "main.py:1:20: from shapes import area",
        "main.py:3:12: print('😀', area(2))",
        "shapes.py:1:5: def area(x: int) -> int:",
    }
    assert hover.startswith("(function) def area(x: int) -> int") or "area" in hover
    assert symbols.splitlines()[0] == "shapes.py:1:5: function area"
    assert "late.py:3:1: area('2')" in after.splitlines()
    assert "late.py:3:6: error: Argument of type" in results(events, "write")[0]


@table(
    ("arguments", "expected"),
    [
        ({"kind": "definition", "path": "a.txt", "name": "word"}, "a.txt:1:3: 😀 word(1)"),
        ({"kind": "hover", "path": "a.txt", "line": 1, "name": "word"}, "word"),
        ({"kind": "symbols", "name": "fo"}, "a.txt:1:1: function found"),
        ({"kind": "definition", "path": "a.txt", "line": 2, "name": "word"}, "word is not in line 2 of a.txt"),
        ({"kind": "definition", "path": "a.txt", "line": 9, "name": "word"}, "word is not in line 9 of a.txt"),
        ({"kind": "definition", "path": "a.txt"}, "definition needs path and name"),
        ({"kind": "symbols"}, "symbols needs path or name"),
        ({"kind": "hover", "path": "b.md", "name": "x"}, "No language server is configured for"),
        ({"kind": "hover", "path": "/etc/passwd", "name": "root"}, "is outside of the working directory"),
        ({"kind": "hover", "path": "none.txt", "name": "x"}, "none.txt does not exist"),
        ({"kind": "hover", "path": "secret.txt", "name": "x"}, "a rule denies reading secret.txt"),
        ({"kind": "hover", "path": ".env", "name": "x"}, ".env is read only with an approval"),
        ({"kind": "symbols", "path": "a.txt"}, "odd does not offer it"),
    ],
)
async def test_answers_and_refusals(tmp_path: Path, arguments: dict[str, Any], expected: str) -> None:
    (tmp_path / "a.txt").write_text("😀 word(1)\nmore\n", "utf-8")
    (tmp_path / "b.md").write_text("x\n", "utf-8")
    (tmp_path / "secret.txt").write_text("x\n", "utf-8")
    (tmp_path / ".env").write_text("x\n", "utf-8")

    script = [call("lookup", kind="hover", path="a.txt", name="word"), call("lookup", **arguments)]
    async with session(tmp_path, script, odd=odd()) as (bench, events):
        bench.policy.add_session_rule("deny", "read(secret.txt)")
        await bench.agent.run("Go")

    assert expected in results(events, "lookup")[1]
    assert next(event.status for event in events if isinstance(event, ToolEnded)) == "ok"


async def test_many_places_are_cut_and_denied_ones_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("word\n" * 300, "utf-8")

    async with session(tmp_path, [call("lookup", kind="references", path="a.txt", name="word")], odd=odd()) as (
        bench,
        events,
    ):
        await bench.agent.run("Go")

    lines = results(events, "lookup")[0].splitlines()
    assert (lines[0], lines[-1], len(lines)) == ("a.txt:1:1: word", "… and 100 more", 201)
    assert outcomes(events) == ["300 places"]
