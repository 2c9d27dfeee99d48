"""A setting that tui-agent writes for the user leaves the rest of the file as it is."""

import tomllib
from pathlib import Path

import pytest

from tests.support.table import table
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.workbench.configuration.user_settings import store_server, store_setting, with_setting


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


@table(
    ("before", "after"),
    [
        ("", "[ui]\nvim_keys = true\n"),
        ('model = "m"', 'model = "m"\n\n[ui]\nvim_keys = true\n'),
        (
            '# mine\n[ui] # screen\ntheme = "dark" # calm\n\n# limits\n[budget]\ntokens = 3\n',
            '# mine\n[ui] # screen\nvim_keys = true\ntheme = "dark" # calm\n\n# limits\n[budget]\ntokens = 3\n',
        ),
        ("[ui]\nvim_keys = false # no\n", "[ui]\nvim_keys = true # no\n"),
        ('ui.theme = "dark"\nmodel = "m"\n', 'ui.theme = "dark"\nui.vim_keys = true\nmodel = "m"\n'),
        ('ui = { theme = "dark" }\n', 'ui = { theme = "dark", vim_keys = true}\n'),
        (
            'append_system = """\n[ui]\n"""\n[ui]\ntheme = "dark"\n',
            'append_system = """\n[ui]\n"""\n[ui]\ntheme = "dark"\nvim_keys = true\n',
        ),
        (
            '[ui]\ntheme = "dark"\n[[hooks]]\non = "before_tool"\ncommand = "./x"\n',
            '[ui]\nvim_keys = true\ntheme = "dark"\n[[hooks]]\non = "before_tool"\ncommand = "./x"\n',
        ),
    ],
)
def test_a_setting_of_a_section_goes_into_its_section(before: str, after: str) -> None:
    assert with_setting(before, "ui.vim_keys", True) == after


@table(
    ("before", "after"),
    [
        (
            'model = "m"\n# calm\n[ui]\ntheme = "dark" # eyes\nmouse = false\n',
            'model = "m"\n# calm\n[ui]\nmouse = false\n',
        ),
        ('ui.theme = "dark"\nmodel = "m"\n', 'model = "m"\n'),
        ('model = "m"\n', 'model = "m"\n'),
    ],
)
def test_a_removed_setting_leaves_all_others(before: str, after: str) -> None:
    assert with_setting(before, "ui.theme", None) == after


def test_a_broken_file_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("model = \n", "utf-8")

    with pytest.raises(ConfigurationError, match="`model` was not stored"):
        store_setting(path, "model", "m")
    assert path.read_text("utf-8") == "model = \n"


@table(
    ("key", "value", "reason"),
    [
        ("max_tokens", -3, "greater than 0"),
        ("ui.notifications", "loud", "'off', 'bell', 'osc9' or 'auto'"),
        ("ui.vim_keys", "perhaps", "valid boolean"),
        ("base_url", "nowhere", "not a URL"),
    ],
)
def test_a_value_that_a_start_would_refuse_is_not_written(
    tmp_path_factory: pytest.TempPathFactory, key: str, value: object, reason: str
) -> None:
    path = tmp_path_factory.mktemp("config") / "config.toml"
    path.write_text("# mine\n", "utf-8")

    with pytest.raises(ConfigurationError, match=reason):
        store_setting(path, key, value)
    assert path.read_text("utf-8") == "# mine\n"


def test_a_file_that_changed_since_the_user_saw_it_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("max_steps = 3\n", "utf-8")

    with pytest.raises(ConfigurationError, match="has changed meanwhile"):
        store_setting(path, "max_steps", 5, seen=b"max_steps = 2\n")
    assert path.read_text("utf-8") == "max_steps = 3\n"

    store_setting(path, "max_steps", 5, seen=b"max_steps = 3\n")
    assert path.read_text("utf-8") == "max_steps = 5\n"


def test_a_server_is_refused_if_mcp_is_not_a_table(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("mcp = 1\n", "utf-8")

    with pytest.raises(ConfigurationError, match="`mcp` is not a table"):
        store_server(path, "one", {"command": "x"})

    assert path.read_text("utf-8") == "mcp = 1\n"
