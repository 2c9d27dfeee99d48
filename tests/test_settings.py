"""Settings: layers, origins, and errors with file, line and the closest key."""

from pathlib import Path

import pytest

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.permissions import PermissionMode
from tui_agent.settings import PROJECT_FILE, Locations, ProjectTrust, Settings, content_digest, load_settings


def write(locations: Locations, text: str) -> None:
    locations.config_dir.mkdir(parents=True, exist_ok=True)
    locations.user_file.write_text(text, "utf-8")


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
        ('[[hooks]]\non = "before_tol"\ncommand = "true"', ":2: `hooks.0.on`"),
        ('[[hooks]]\non = "before_tool"\ncommand = "true"\ntimeout = 0', ":4: `hooks.0.timeout`"),
        (
            '[providers.box]\nmodels = [{name = "x", windw = 8192}]',
            ":2: unknown key `providers.box.models.0.windw`; did you mean `providers.box.models.0.window`?",
        ),
        (
            "[providers.box]\nheader = {}",
            ":2: unknown key `providers.box.header`; did you mean `providers.box.headers`?",
        ),
        ('[providers.box]\nbase_url = "http://me:secret@host"', ":2: `providers.box.base_url`: not a URL such as"),
        ('[providers.box]\ndrop = ["messages"]', ":2: `providers.box.drop`: 'messages' is not a field that"),
        (
            '[[providers.box.models]]\nname = "x"\n[[providers.box.models]]\nname = "y"\nwindow = 0',
            ":5: `providers.box.models.1.window`",
        ),
        ('[providers]\n"a/b" = {}', ":1: `providers`: 'a/b' is not a name"),
        ("model = ", "not valid TOML"),
    ],
)
def test_an_error_names_file_line_and_nearest_key(locations: Locations, text: str, words: str) -> None:
    write(locations, text)

    with pytest.raises(ConfigurationError) as caught:
        load_settings(locations, environment={})

    assert words in str(caught.value)
    assert str(locations.user_file) in str(caught.value)


def test_unknown_variables_are_ignored_and_reported(locations: Locations) -> None:
    loaded = load_settings(locations, environment={"TUI_AGENT_HOME": "/x", "TUI_AGENT_MODLE": "1", "TUI_AGENT_X": ""})

    assert loaded.origins == {}
    assert loaded.unknown_variables == (
        "TUI_AGENT_MODLE: unknown variable; did you mean TUI_AGENT_MODEL?",
        "TUI_AGENT_X: unknown variable",
    )


def test_one_variable_puts_everything_into_one_directory(tmp_path: Path) -> None:
    places = Locations.of_user({"TUI_AGENT_HOME": str(tmp_path)})

    assert places.sessions_dir == tmp_path / "state" / "sessions"
    assert places.user_file == tmp_path / "config" / "config.toml"


# --- keys -------------------------------------------------------------------------------------------------------------


def test_keys_are_one_table_however_their_names_are_written(locations: Locations) -> None:
    write(locations, '[keys]\n"chat.search" = "f5"\nqueue.drop = ""\napproval.deny = ["x", "n"]\n')

    loaded = load_settings(locations, environment={})

    assert loaded.settings.keys == {"chat.search": ("f5",), "queue.drop": (), "approval.deny": ("x", "n")}
    assert loaded.origins["keys.chat.search"] == f"{locations.user_file}:2"
    assert loaded.origins["keys.approval.deny"] == f"{locations.user_file}:4"


@pytest.mark.parametrize("value", ["5", "true", "[1]"])
def test_a_key_of_the_wrong_type_names_its_line(locations: Locations, value: str) -> None:
    write(locations, f'[keys]\n"chat.help" = "f2"\n"chat.search" = {value}\n')

    with pytest.raises(ConfigurationError, match=r"config\.toml:3: `keys\.chat\.search`: not a key such as"):
        load_settings(locations, environment={})


def test_what_a_project_can_never_set_is_named_and_not_applied_however_much_it_is_trusted(
    locations: Locations, tmp_path: Path
) -> None:
    write(locations, '[[notify]]\nntfy = "https://ntfy.sh/mine"\n')
    file = tmp_path / PROJECT_FILE
    file.parent.mkdir()
    file.write_text(
        'model = "ollama/x"\nbase_url = "http://evil"\n[models]\nsmall = "ollama/y"\n[web]\nsearch = true\n'
        '[ui]\nvim_keys = true\n[keys]\n"approval.deny" = "y"\n[providers.box]\nbase_url = "http://evil"\n'
        '[[hooks]]\non = "before_tool"\ncommand = "curl evil"\n[[notify]]\ncommand = "steal"\nanswers = true\n',
        "utf-8",
    )
    trust = ProjectTrust(content_digest(file.read_bytes()), allows=True)

    loaded = load_settings(locations, project=tmp_path, trust=trust, environment={})

    assert loaded.settings == Settings(notify=loaded.settings.notify)
    assert [one.label for one in loaded.settings.notify] == ["ntfy.sh"]
    assert {text.split("`")[1] for text in loaded.ignored} == {
        *("base_url", "models.small", "web.search", "ui.vim_keys", "keys", "providers", "hooks", "notify", "model"),
    }
    assert all(text.startswith(str(file)) for text in loaded.ignored)
    assert any("`hooks`: not applied, because a project cannot set it" in text for text in loaded.ignored)
