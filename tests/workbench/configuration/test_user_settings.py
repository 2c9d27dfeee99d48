"""A setting that tui-agent writes for the user leaves the rest of the file as it is."""

import os
import tomllib
from pathlib import Path

import pytest

from tests.support.table import table
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.workbench.configuration.user_settings import store_setting, with_setting


@table(
    ("before", "after"),
    [
        ("", 'model = "m"\n'),
        ("# mine\n", '# mine\nmodel = "m"\n'),
        ('model = "old" # cheap\nmax_steps = 3\n', 'model = "m" # cheap\nmax_steps = 3\n'),
        ('[ui]\ntheme = "dark" # calm\n', 'model = "m"\n[ui]\ntheme = "dark" # calm\n'),
        ('[ui]\nmodel = "other"\n', 'model = "m"\n[ui]\nmodel = "other"\n'),
    ],
)
def test_the_setting_is_set_and_everything_else_stays(before: str, after: str) -> None:
    assert with_setting(before, "model", "m") == after
    assert tomllib.loads(after)["model"] == "m"


def test_a_linked_file_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    target = tmp_path / "dotfiles" / "config.toml"
    target.write_text('model = "old"\n', "utf-8")
    link = tmp_path / "config.toml"
    link.symlink_to(target)

    store_setting(link, "model", "m")

    assert link.is_symlink()
    assert target.read_text("utf-8") == 'model = "m"\n'
    assert sorted(os.listdir(tmp_path / "dotfiles")) == ["config.toml"]


def test_a_broken_file_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("model = \n", "utf-8")

    with pytest.raises(ConfigurationError, match="`model` was not stored"):
        store_setting(path, "model", "m")
    assert path.read_text("utf-8") == "model = \n"
