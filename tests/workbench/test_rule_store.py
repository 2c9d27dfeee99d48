"""The user's rules are stored in the settings, which otherwise stay unchanged."""

import os
import tomllib
from pathlib import Path

import pytest

from tests.support.table import table
from tui_agent.permissions import Rule
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.settings import Locations
from tui_agent.workbench.configuration.permission_rules import RuleStore, with_rule
from tui_agent.workbench.configuration.project_trust import TrustStore, trust_request_for

MAKE = Rule.parse("allow", "bash(make all)")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def rules_in(text: str) -> list[list[str]]:
    return tomllib.loads(text)["permissions"]["rules"]


def test_comments_and_order_stay() -> None:
    before = """\
# my settings
model = "x"  # the best

[permissions]  # careful
mode = "ask"
rules = [
    # never
    ["deny", "bash(rm:*)"],
    ["ask", "bash(make:*)"],  # slow
    ["deny", "bash(curl:*)"],
]

[ui]
theme = "dark"  # at night
"""
    after = with_rule(before, MAKE)

    assert rules_in(after) == [
        ["deny", "bash(rm:*)"], ["allow", "bash(make all)"], ["ask", "bash(make:*)"], ["deny", "bash(curl:*)"]
    ]  # fmt: skip
    for words in ("# my settings", "# the best", "# careful", "# never", "# slow", "# at night"):
        assert words in after
    left = after.replace('["allow", "bash(make all)"],', "")
    assert "".join(left.split()) == "".join(before.split())


@table(
    "before",
    [
        "",
        'model = "x"\n',
        "[permissions]\n",
        '[permissions]\nmode = "ask"\n',
        "[permissions]\nrules = []\n",
        'permissions.mode = "ask"\n',
        "permissions = {rules = []}\n",
        "# only words\n",
        '[ui]\ntheme = "dark"\n',
    ],
)
def test_a_missing_list_is_created(before: str) -> None:
    after = with_rule(before, MAKE)

    assert rules_in(after) == [["allow", "bash(make all)"]]
    for key, value in tomllib.loads(before).items():
        if key != "permissions":
            assert tomllib.loads(after)[key] == value


def test_rules_of_any_text_are_stored_unchanged_and_once() -> None:
    odd = Rule.parse("allow", "bash(echo \"a\\b\" 'c' \u00e9 [x])")
    once = with_rule("", odd)

    assert rules_in(once) == [["allow", odd.text]]
    assert with_rule(once, odd) == once
    assert rules_in(with_rule(once, MAKE)) == [["allow", odd.text], ["allow", "bash(make all)"]]


@table("before", ["[permissions\n", "permissions = 7\n", "[permissions]\nrules = 7\n"])
def test_a_file_that_is_not_a_settings_file_stays_unchanged(before: str) -> None:
    with pytest.raises(ConfigurationError, match="not stored"):
        with_rule(before, MAKE)


def test_an_existing_file_keeps_its_mode_and_its_link(locations: Locations, project: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_text("# mine\n", "utf-8")
    real.chmod(0o640)
    locations.config_dir.mkdir()
    locations.user_file.symlink_to(real)
    RuleStore(locations, project).store([MAKE], "user")

    assert locations.user_file.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert "# mine" in real.read_text("utf-8")


def test_a_grant_does_not_extend_trust_to_the_projects_own_rules(locations: Locations, project: Path) -> None:
    settings = project / ".tui-agent" / "config.toml"
    settings.parent.mkdir()
    settings.write_text('[permissions]\nrules = [["allow", "bash"]]\n', "utf-8")
    store = RuleStore(locations, project)

    with pytest.raises(ConfigurationError, match="not trusted"):
        store.store([MAKE], "project")
    assert "make" not in settings.read_text("utf-8")
    offer = trust_request_for(project, locations)
    assert offer is not None
    TrustStore(locations).remember(offer, "tightening")
    with pytest.raises(ConfigurationError, match="not trusted"):
        store.store([MAKE], "project")
    TrustStore(locations).remember(offer, "all")
    store.store([MAKE], "project")
    assert "make" in settings.read_text("utf-8")
    settings.write_text('[permissions]\nrules = [["allow", "read"]]\n', "utf-8")
    with pytest.raises(ConfigurationError, match="not trusted"):
        store.store([MAKE], "project")


def test_settings_linked_outside_the_project_are_not_written(
    locations: Locations, project: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (project / ".tui-agent").symlink_to(elsewhere)

    with pytest.raises(ConfigurationError, match="outside the project"):
        RuleStore(locations, project).store([MAKE], "project")
    assert list(elsewhere.iterdir()) == []


def test_a_failed_write_is_a_configuration_error(locations: Locations, project: Path) -> None:
    locations.config_dir.write_text("a file", "utf-8")

    with pytest.raises(ConfigurationError, match="was not stored"):
        RuleStore(locations, project).store([MAKE], "user")
    os.unlink(locations.config_dir)
    locations.config_dir.mkdir()
    locations.user_file.write_bytes(b"\xff\xff")
    with pytest.raises(ConfigurationError, match="was not stored"):
        RuleStore(locations, project).store([MAKE], "user")


def test_other_scopes_are_not_stored(locations: Locations, project: Path) -> None:
    RuleStore(locations, project).store([MAKE], "session")

    assert not locations.config_dir.exists()
