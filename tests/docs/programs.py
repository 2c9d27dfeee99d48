"""Programs of a page: each fenced `python` block is complete and prints the content of the block below it."""

import itertools
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@dataclass(frozen=True)
class Block:
    """Fenced block of code."""

    title: str
    """Title of its section."""
    language: str
    text: str


def blocks_of(page: Path) -> list[Block]:
    """Return all blocks in the order of the page."""
    found: list[Block] = []
    for section in re.split(r"^## ", page.read_text("utf-8"), flags=re.MULTILINE)[1:]:
        title = section.partition("\n")[0]
        fenced = re.findall(r"^```(\w*)\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
        found += [Block(title, language, text) for language, text in fenced]
    return found


def programs_of(page: Path) -> list[tuple[Block, Block]]:
    """Return each program with the block below it."""
    return [(block, after) for block, after in itertools.pairwise(blocks_of(page)) if block.language == "python"]


def printed_by(program: Block, page: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a program and return what it prints."""
    module = ModuleType("example")
    monkeypatch.setitem(sys.modules, "example", module)  # Annotations of its functions are looked up there.
    code = compile(program.text, f"{page.name}: {program.title}", "exec")

    exec(code, module.__dict__)

    return capsys.readouterr().out
