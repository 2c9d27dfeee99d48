"""Settings: layers, origins, and errors with file, line and the closest key."""

from pathlib import Path

import pytest

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.permissions import PermissionMode
from tui_agent.settings import PROJECT_FILE, Locations, Settings, key_names, load_settings, value_of


@pytest.fixture
def locations(tmp_path: Path) -> Locations:
    return Locations(tmp_path / "config", tmp_path / "state")


def write(locations: Locations, text: str) -> None:
    locations.config_dir.mkdir(parents=True, exist_ok=True)
    locations.user_file.write_text(text, "utf-8")


def test_without_files_every_value_is_a_default(locations: Locations) -> None:
    loaded = load_settings(locations, environment={})

    assert loaded.settings == Settings()
    assert loaded.origins == {}
    assert loaded.rules == ()


def test_later_layers_win_and_every_value_has_its_origin(locations: Locations) -> None:
    write(locations, 'model = "file"\nmax_steps = 3\n\n[ui]\ntheme = "light"\n')

    loaded = load_settings(
        locations,
        environment={"TUI_AGENT_MODEL": "variable", "TUI_AGENT_UI__THEME": "ansi"},
        options={"model": "option"},
    )

    assert (loaded.settings.model, loaded.settings.max_steps, loaded.settings.ui.theme) == ("option", 3, "ansi")
    assert loaded.origins == {
        "model": "command line",
        "max_steps": f"{locations.user_file}:2",
        "ui.theme": "environment",
    }


def test_rules_of_all_layers_are_kept_with_their_lines(locations: Locations) -> None:
    write(
        locations,
        '[permissions]\nmode = "plan"\nrules = [\n  ["deny", "bash(rm:*)"],\n  ["allow", "bash(git status:*)"],\n]\n',
    )

    loaded = load_settings(locations, environment={}, option_rules=[("ask", "write")])

    assert loaded.settings.permissions.mode is PermissionMode.PLAN
    assert [(rule.verdict, rule.text, rule.origin) for rule in loaded.rules] == [
        ("deny", "bash(rm:*)", f"{locations.user_file}:4"),
        ("allow", "bash(git status:*)", f"{locations.user_file}:5"),
        ("ask", "write", "--ask"),
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('modle = "x"', ":1: unknown key `modle`; did you mean `model`?"),
        ('\n[ui]\nthem = "x"', ":3: unknown key `ui.them`; did you mean `ui.theme`?"),
        ("[permision]\nx = 1", ":1: unknown key `permision`; did you mean `permissions`?"),
        ('[permissions]\nmode = "aks"', ":2: `permissions.mode`"),
        ("max_steps = 0", ":1: `max_steps`"),
        ('strategy = "batched:0"', ":1: `strategy`"),
        ('[[hooks]]\non = "before_tol"\ncommand = "true"', ":1: `hooks.0.on`"),
        ('[[hooks]]\non = "before_tool"\ncommand = "true"\ntimeout = 0', ":1: `hooks.0.timeout`"),
        ("model = ", "not valid TOML"),
    ],
)
def test_an_error_names_file_line_and_nearest_key(locations: Locations, text: str, words: str) -> None:
    write(locations, text)

    with pytest.raises(ConfigurationError) as caught:
        load_settings(locations, environment={})

    assert words in str(caught.value)
    assert str(locations.user_file) in str(caught.value)


def test_an_invalid_variable_is_an_error(locations: Locations) -> None:
    with pytest.raises(ConfigurationError, match="max_steps"):
        load_settings(locations, environment={"TUI_AGENT_MAX_STEPS": "many"})


def test_unknown_variables_are_ignored_and_reported(locations: Locations) -> None:
    loaded = load_settings(locations, environment={"TUI_AGENT_HOME": "/x", "TUI_AGENT_MODLE": "1", "TUI_AGENT_X": ""})

    assert loaded.origins == {}
    assert loaded.unknown_variables == (
        "TUI_AGENT_MODLE: unknown variable; did you mean TUI_AGENT_MODEL?",
        "TUI_AGENT_X: unknown variable",
    )


def test_settings_of_an_untrusted_project_are_reported_and_not_applied(locations: Locations, tmp_path: Path) -> None:
    file = tmp_path / PROJECT_FILE
    file.parent.mkdir()
    file.write_text('model = "evil"\nbase_url = "http://evil"\n', "utf-8")

    loaded = load_settings(locations, project=tmp_path, environment={})

    assert loaded.settings == Settings()
    assert "not trusted" in loaded.ignored[0]


def test_a_file_with_a_byte_order_mark_is_read(locations: Locations) -> None:
    write(locations, '\ufeffmodel = "x"\n')

    assert load_settings(locations, environment={}).settings.model == "x"


def test_one_variable_puts_everything_into_one_directory(tmp_path: Path) -> None:
    places = Locations.of_user({"TUI_AGENT_HOME": str(tmp_path)})

    assert places.sessions_dir == tmp_path / "state" / "sessions"
    assert places.user_file == tmp_path / "config" / "config.toml"


def test_every_key_has_a_value() -> None:
    assert "permissions.mode" in key_names()
    assert all(value_of(Settings(), key) is not Ellipsis for key in key_names())
