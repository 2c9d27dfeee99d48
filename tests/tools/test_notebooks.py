"""Notebooks: read by cell, and a change of one cell leaves every other byte of the file as it is."""

import base64
import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.table import table
from tests.tools.calls import Recorded, call
from tests.tools.test_read_images import image
from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.messages import ImageBlock
from tui_agent.tools.edit_tools import EditTool
from tui_agent.tools.media import notebook_cells
from tui_agent.tools.media.notebook_file import read_notebook
from tui_agent.tools.read_tool import ReadTool
from tui_agent.tools.workspace import Workspace

PICTURE = base64.b64encode(image("PNG")).decode()
BOOK: dict[str, Any] = {
    "cells": [
        {"cell_type": "markdown", "id": "one", "metadata": {}, "source": ["# Prices\n", "über 1 {}[],"]},
        {
            "cell_type": "code",
            "execution_count": 3,
            "id": "two",
            "metadata": {"tags": ["keep"], "source": "not this"},
            "outputs": [
                {"name": "stdout", "output_type": "stream", "text": ["\x1b[31mred\x1b[0m\n"]},
                {
                    "data": {"image/png": PICTURE, "text/plain": ["<Figure>"]},
                    "metadata": {},
                    "output_type": "display_data",
                },
                {"ename": "E", "evalue": "bad", "output_type": "error", "traceback": ["Traceback", "E: bad"]},
            ],
            "source": ["x = 1\n", 'y = "source"'],
        },
        {"cell_type": "code", "execution_count": None, "id": "three", "metadata": {}, "outputs": [], "source": []},
    ],
    "metadata": {"cells": [1]},
    "nbformat": 4,
    "nbformat_minor": 5,
}
Write = Callable[[object], str]
FORMS: dict[str, Write] = {
    "jupyter": lambda book: json.dumps(book, ensure_ascii=False, indent=1, sort_keys=True) + "\n",
    "escaped": lambda book: json.dumps(book, indent=2, sort_keys=True),
    "tabs": lambda book: json.dumps(book, ensure_ascii=False, indent="\t", sort_keys=True),
    "crlf": lambda book: json.dumps(book, ensure_ascii=False, indent=1, sort_keys=True).replace("\n", "\r\n"),
    "compact": lambda book: json.dumps(book, ensure_ascii=False, separators=(",", ":"), sort_keys=True),
    "line": lambda book: json.dumps(book, ensure_ascii=False, sort_keys=True),
}


def changed(change: Callable[[list[dict[str, Any]]], object]) -> dict[str, Any]:
    """Return the notebook after a change of its cells."""
    book = copy.deepcopy(BOOK)
    change(book["cells"])
    return book


@pytest.fixture
def book(root: Path) -> Path:
    path = root / "prices.ipynb"
    path.write_text(FORMS["jupyter"](BOOK))
    return path


@table("form", FORMS)
def test_a_change_of_one_cell_keeps_the_form_of_the_file(form: str) -> None:
    write = FORMS[form]
    found = read_notebook(write(BOOK))
    assert found is not None
    assert [cell.source for cell in found.cells] == ["# Prices\nüber 1 {}[],", 'x = 1\ny = "source"', ""]

    for number, source in ((1, ["ß\n", "b"]), (2, []), (3, ["new\n"])):
        wanted = changed(lambda cells, number=number, source=source: cells[number - 1].update(source=source))
        assert found.with_source(found.cell(number), "".join(source)) == write(wanted)
    for number in (1, 2, 3):
        assert found.without_cell(found.cell(number)) == write(
            changed(lambda cells, number=number: cells.pop(number - 1))
        )
    for number in (1, 2, 4):
        text = found.with_cell(number, "code", "z = 1\nü")
        new = json.loads(text)["cells"][number - 1]
        assert (new["cell_type"], new["source"], new["outputs"]) == ("code", ["z = 1\n", "ü"], [])
        assert text == write(changed(lambda cells, number=number, new=new: cells.insert(number - 1, new)))


def test_a_cell_is_added_to_an_empty_notebook_and_ids_follow_the_format() -> None:
    for minor, has_id in ((4, False), (5, True)):
        empty = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": minor}
        found = read_notebook(FORMS["jupyter"](empty))
        assert found is not None
        text = found.with_cell(1, "markdown", "# New")
        (cell,) = json.loads(text)["cells"]
        assert ("id" in cell) is has_id
        assert text == FORMS["jupyter"]({**empty, "cells": [cell]})


@table("text", ["", "[]", '{"cells": 1}', '{"cells": [], "nbformat": 3}', '{"cells": [1], "nbformat": 4}'])
def test_other_json_is_not_a_notebook(text: str) -> None:
    assert read_notebook(text) is None


async def test_read_shows_cells_with_their_outputs(book: Path, workspace: Workspace) -> None:
    result = await call(ReadTool(workspace), path="prices.ipynb")

    assert result.text == (
        "[cell 1: markdown]\n# Prices\nüber 1 {}[],\n\n"
        '[cell 2: code, run 3]\nx = 1\ny = "source"\n[stdout]\nred\n[shown]\n<Figure>\n[error]\nTraceback\nE: bad\n'
        "[image 1 of cell 2: image/png, 7×5 pixels]\n\n"
        "[cell 3: code, not run]"
    )
    assert [type(block) for block in result.content[1:]] == [ImageBlock]
    part = await call(ReadTool(workspace), path="prices.ipynb", offset=2, limit=1)
    assert part.text.endswith("[cells 2 to 2 of 3; continue with offset=3]")
    with pytest.raises(ToolError, match="has only 3 cells; offset=4"):
        await call(ReadTool(workspace), path="prices.ipynb", offset=4)


async def test_a_broken_notebook_is_read_and_edited_as_text(book: Path, workspace: Workspace) -> None:
    book.write_text('{"cells": [}\n')

    assert (await call(ReadTool(workspace), path="prices.ipynb")).text == '     1\t{"cells": [}'
    await call(EditTool(workspace), path="prices.ipynb", old_string="[}", new_string="[]}")
    assert book.read_text() == '{"cells": []}\n'
    with pytest.raises(ToolError, match="not a notebook of format 4, so it has no cells"):
        await call(EditTool(workspace), path="prices.ipynb", old_string="c", new_string="d", cell=1)


async def test_damaged_images_are_decoded_no_oftener_than_sound_ones(
    root: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    async def fail(_: bytes, __: str, name: str, ___: object) -> None:
        tried.append(name)
        raise ToolError("damaged")

    monkeypatch.setattr(notebook_cells, "load_image", fail)
    output = {"output_type": "display_data", "metadata": {}, "data": {"image/png": PICTURE}}
    (root / "many.ipynb").write_text(json.dumps(changed(lambda cells: cells[1].update(outputs=[output] * 50))))

    result = await call(ReadTool(workspace), path="many.ipynb")

    assert len(tried) == notebook_cells.MOST_IMAGES
    assert "image 50 of cell 2: image/png, not shown" in result.text


@pytest.mark.parametrize(
    ("arguments", "change", "note"),
    [
        ({"old_string": "x = 1", "new_string": "x = 2"}, {"source": ["x = 2\n", 'y = "source"']}, "cell 2 (code)"),
        ({"old_string": "", "new_string": "z\n", "cell": 2}, {"source": ["z\n"]}, "cell 2 (code)"),
        (
            {"old_string": "=", "new_string": ":=", "cell": 2, "replace_all": True},
            {"source": ["x := 1\n", 'y := "source"']},
            "2",
        ),
    ],
)
async def test_edit_changes_the_source_of_a_cell(
    book: Path, workspace: Workspace, arguments: dict[str, Any], change: dict[str, Any], note: str
) -> None:
    tool = EditTool(workspace)
    preview = await tool.preview({"path": "prices.ipynb", **arguments})
    recorded = Recorded()
    result = await call(tool, recorded, path="prices.ipynb", **arguments)

    assert book.read_text() == FORMS["jupyter"](changed(lambda cells: cells[1].update(change)))
    assert preview is not None
    assert note in preview.note
    assert preview.text.startswith("--- a/prices.ipynb cell 2 (code)\n+++ b/prices.ipynb cell 2 (code)\n@@ ")
    assert '"source"' not in preview.text.replace('y = "source"', "").replace('y := "source"', "")
    assert f"[{preview.note}]" in result.text


async def test_edit_inserts_and_deletes_cells(book: Path, workspace: Workspace) -> None:
    edit = EditTool(workspace)
    await call(edit, path="prices.ipynb", old_string="", new_string="# End", cell_action="insert_markdown")
    await call(edit, path="prices.ipynb", old_string="", new_string="", cell=1, cell_action="delete")
    await call(edit, path="prices.ipynb", old_string="", new_string="a", cell=1, cell_action="insert_code")

    cells = json.loads(book.read_text())["cells"]
    assert [(cell["cell_type"], "".join(cell["source"])[:5]) for cell in cells] == [
        ("code", "a"),
        ("code", "x = 1"),
        ("code", ""),
        ("markdown", "# End"),
    ]
    assert cells[1:3] == BOOK["cells"][1:]


@table(
    ("arguments", "reason"),
    [
        ({"old_string": "r", "new_string": "s"}, "occurs in cells 1, 2; set cell, or replace_all"),
        ({"old_string": "zzz", "new_string": "s"}, "prices.ipynb was not changed: old_string was not found"),
        ({"old_string": "x", "new_string": "s", "cell": 9}, "there is no cell 9; the notebook has 3"),
        (
            {"old_string": "", "new_string": "s", "cell": 9, "cell_action": "insert_code"},
            "there is no cell 9; cell=4 adds",
        ),
        ({"old_string": "# P", "new_string": "s", "cell": 2}, "cell 2 \\(code\\): old_string was not found"),
        ({"old_string": "über 1 {}[],\nx", "new_string": "s"}, "only across cells"),
    ],
)
async def test_an_edit_that_does_not_fit_says_why(
    book: Path, workspace: Workspace, arguments: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ToolError, match=reason):
        await call(EditTool(workspace), path="prices.ipynb", **arguments)
    assert book.read_text() == FORMS["jupyter"](BOOK)
