"""Paths that the sandbox hides, wherever homes and variables put them."""

import os
from pathlib import Path

import pytest

from tests.tools.calls import call
from tui_agent.protocol.errors import ToolError
from tui_agent.tools.bash_tool import BashTool
from tui_agent.tools.processes import private_places as page
from tui_agent.tools.processes.private_places import homes_of_others, private_places
from tui_agent.tools.processes.sandbox import Sandbox
from tui_agent.tools.workspace import Workspace


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home in a directory of homes that is not one of the usual ones."""
    directory = tmp_path / "export" / "home" / "me"
    for path in (directory, directory.with_name("other")):
        path.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(directory))
    monkeypatch.setattr(page, "_HOMES", ())
    for variable in (*page._MOVED, *page._NAMED_BY):
        monkeypatch.delenv(variable, raising=False)
    return directory


def make(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("secret", "utf-8")
    return path


def test_other_homes_are_hidden_wherever_homes_are(home: Path) -> None:
    found = private_places("")

    assert found.homes == (home.parent,)
    assert found.shown == (home,)


def test_a_home_of_its_own_hides_nothing_around_it(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))

    assert homes_of_others() == ()


@pytest.mark.parametrize("place", ["export/home", "export"])
async def test_a_workspace_that_contains_other_homes_is_refused(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    bwrap = make(tmp_path / "programs" / "bwrap")
    bwrap.chmod(0o755)
    monkeypatch.setenv("PATH", str(bwrap.parent), prepend=os.pathsep)
    workspace = Workspace(tmp_path / place, spool_dir=tmp_path / "spool")
    bash = BashTool(workspace, is_read_only_command=lambda _: False, sandbox=Sandbox(lambda _: ()))

    with pytest.raises(ToolError, match="as the working directory"):
        await call(bash, command="true")


@pytest.mark.parametrize("name", [".claude/.credentials.json", ".m2/settings.xml", ".s3cfg", ".fly/x", ".1password/s"])
def test_credentials_of_a_home_are_hidden(home: Path, name: str) -> None:
    path = make(home / name)

    found = private_places("")

    assert any(path.is_relative_to(hidden) for hidden in (*found.files, *found.directories))


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("XDG_CONFIG_HOME", "gh/hosts.yml"),
        ("XDG_CONFIG_HOME", "gcloud/credentials.db"),
        ("GNUPGHOME", "private-keys-v1.d/x"),
        ("CARGO_HOME", "credentials.toml"),
        ("DOCKER_CONFIG", "config.json"),
        ("AWS_SHARED_CREDENTIALS_FILE", ""),
        ("KUBECONFIG", ""),
    ],
)
def test_credentials_that_a_variable_moves_are_hidden(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, variable: str, name: str
) -> None:
    path = make(tmp_path / "moved" / (name or "file"))
    monkeypatch.setenv(variable, str(tmp_path / "moved") if name else f"{tmp_path}/none:{path}")

    found = private_places("")

    assert any(path.is_relative_to(hidden) for hidden in (*found.files, *found.directories))


@pytest.mark.parametrize("value", ["/", "/dev/null", "{home}", "{home}/..", "relative"])
def test_a_variable_hides_neither_the_home_nor_a_device(
    home: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    for variable in ("HISTFILE", "GNUPGHOME"):
        monkeypatch.setenv(variable, value.format(home=home))
    monkeypatch.chdir(home)

    found = private_places("")

    hidden = {*found.files, *found.directories}
    assert hidden.isdisjoint({Path("/"), Path("/dev/null"), home, home.parent, home / "relative"})
