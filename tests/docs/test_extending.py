"""Every block of `docs/extending.md` is complete and works as described."""

from pathlib import Path

import pytest
from textual.app import App

from tests.docs.programs import DOCS, Block, blocks_of, printed_by, programs_of
from tui_agent.ui.app.themes import ThemeCatalogue

PAGE = DOCS / "extending.md"


def test_there_is_one_example_for_each_extension() -> None:
    assert [(block.title, block.language) for block in blocks_of(PAGE) if block.language != "text"] == [
        ("A tool", "python"),
        ("A theme", "toml"),
    ]


@pytest.mark.parametrize(("program", "output"), [pytest.param(*pair, id=pair[0].title) for pair in programs_of(PAGE)])
def test_a_program_prints_the_output_below_it(
    program: Block, output: Block, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert output.language == "text"
    assert printed_by(program, PAGE, capsys, monkeypatch) == output.text


async def test_the_theme_can_be_selected(tmp_path: Path) -> None:
    (block,) = [block for block in blocks_of(PAGE) if block.language == "toml"]
    (tmp_path / "dusk.toml").write_text(block.text, "utf-8")
    shelf = ThemeCatalogue([tmp_path])

    assert await shelf.read_all() == ()
    theme = shelf.find("dusk")
    assert theme is not None
    app: App[None] = App()
    async with app.run_test():
        app.register_theme(theme)
        app.theme = "dusk"
        assert (app.current_theme.name, app.current_theme.primary) == ("dusk", "#e0a458")
        assert app.get_css_variables()["footer-key-foreground"] == "#e0a458"
