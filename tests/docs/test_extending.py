"""Every block of `docs/extending.md` is complete and does what the page says."""

import itertools
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest
from textual.app import App

from tui_agent.ui.themes import ThemeShelf

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    title: str
    """The section it stands in."""
    language: str
    text: str


def blocks() -> list[Block]:
    """All of them, in the order of the page."""
    found: list[Block] = []
    for section in re.split(r"^## ", PAGE.read_text("utf-8"), flags=re.MULTILINE)[1:]:
        title = section.partition("\n")[0]
        fenced = re.findall(r"^```(\w*)\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
        found += [Block(title, language, text) for language, text in fenced]
    return found


def programs() -> list[tuple[Block, Block]]:
    """Each program with the block below it."""
    return [(block, after) for block, after in itertools.pairwise(blocks()) if block.language == "python"]


def test_there_is_one_example_for_each_thing_that_can_be_added() -> None:
    assert [(block.title, block.language) for block in blocks() if block.language != "text"] == [
        ("A tool, made of a function", "python"),
        ("A tool, made of a class", "python"),
        ("A hook", "python"),
        ("A guardrail", "python"),
        ("A provider", "python"),
        ("A theme", "toml"),
    ]


@pytest.mark.parametrize(("program", "output"), [pytest.param(*pair, id=pair[0].title) for pair in programs()])
def test_a_program_prints_what_stands_below_it(
    program: Block, output: Block, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("example")
    monkeypatch.setitem(sys.modules, "example", module)  # where annotations of its functions are looked up
    code = compile(program.text, f"{PAGE.name}: {program.title}", "exec")

    exec(code, module.__dict__)

    assert output.language == "text"
    assert capsys.readouterr().out == output.text


async def test_the_theme_can_be_chosen(tmp_path: Path) -> None:
    (block,) = [block for block in blocks() if block.language == "toml"]
    (tmp_path / "dusk.toml").write_text(block.text, "utf-8")
    shelf = ThemeShelf([tmp_path])

    assert shelf.read_all() == ()
    theme = shelf.find("dusk")
    assert theme is not None
    app: App[None] = App()
    async with app.run_test():
        app.register_theme(theme)
        app.theme = "dusk"
        assert (app.current_theme.name, app.current_theme.primary) == ("dusk", "#e0a458")
        assert app.get_css_variables()["footer-key-foreground"] == "#e0a458"
