"""The blocks of `docs/extending.md` that are not programs work as described."""

from pathlib import Path
from typing import cast

import pytest
from textual.app import App

from tests.docs.programs import DOCS, Block, blocks_of
from tests.support.sample_tools import sample_tools
from tests.support.table import table
from tui_agent.permissions import PermissionPolicy
from tui_agent.permissions.commands.safe_commands import SafeCommand, read_table, safe_commands
from tui_agent.ui.app.themes import ThemeCatalogue

PAGE = DOCS / "extending.md"


@table(
    ("command", "decision"),
    [
        ("wordstat -n 3 notes.txt", "allow"),
        ("wordstat --ignore-case notes.txt -i", "allow"),
        ("wordstat ../notes.txt", "ask"),
        ("wordstat -o counts notes.txt", "ask"),
        ("wordstat --output=.git/config notes.txt", "ask"),
        ("wordstat --other notes.txt", "ask"),
    ],
)
def test_a_command_needs_one_row(command: str, decision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy, bash = PermissionPolicy(tmp_path), sample_tools(tmp_path)["bash"]
    assert policy.check(bash, {"command": "wordstat -n 3 notes.txt"}).decision == "ask"

    ((name, row),) = read_table(example("A read-only command").text).items()
    with monkeypatch.context() as changed:
        changed.setitem(cast(dict[str, SafeCommand], safe_commands()), name, row)
        assert policy.check(bash, {"command": command}).decision == decision


def example(title: str) -> Block:
    """Return the only example of a section that is not a program."""
    (block,) = [block for block in blocks_of(PAGE) if (block.title, block.language) == (title, "toml")]
    return block


async def test_the_theme_can_be_selected(tmp_path: Path) -> None:
    block = example("A theme")
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
