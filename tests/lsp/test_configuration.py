"""Language servers in the settings: their form, trust in those of a project, and what `doctor` says about them."""

import importlib.util
from pathlib import Path

import pytest

from tests.support.table import table
from tui_agent.cli.installation_checks import examine
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.server_entries import LanguageServer
from tui_agent.settings import PROJECT_FILE, Locations, ProjectTrust, content_digest, load_settings
from tui_agent.workbench.configuration.project_trust import trust_request_for

OWN = '[lsp.go]\ncommand = "gopls -v"\nfiles = "*.go"\n'
PROJECTS = '[lsp.go]\ncommand = "evil"\nfiles = ["*"]\n[lsp.py]\ncommand = ["ruff", "server"]\nfiles = ["*.py"]\n'


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")


@table(
    ("text", "words"),
    [
        ('[lsp.x]\nfiles = "*.py"', "`lsp.x.command`: Field required"),
        ('[lsp.x]\ncommand = "ruff server"', "`lsp.x.files`: Field required"),
        ('[lsp.x]\ncommand = ""\nfiles = "*.py"', ":2: `lsp.x.command`"),
        ('[lsp.x]\ncommand = "ruff \'server"\nfiles = "*.py"', ":2: `lsp.x.command`: No closing quotation"),
        (
            '[lsp.x]\ncomand = "a"\ncommand = "a"\nfiles = "b"',
            ":2: unknown key `lsp.x.comand`; did you mean `lsp.x.command`",
        ),
        ('[lsp."a b"]\ncommand = "a"\nfiles = "b"', "'a b' is not a name"),
    ],
)
def test_a_mistake_is_named_with_its_line(locations: Locations, text: str, words: str) -> None:
    write(locations.user_file, text)

    with pytest.raises(ConfigurationError) as caught:
        load_settings(locations, environment={})

    assert words in str(caught.value)


def test_servers_of_a_project_need_a_yes_and_never_replace_the_users_own(tmp_path: Path, locations: Locations) -> None:
    project = tmp_path / "project"
    write(locations.user_file, OWN)
    write(project / PROJECT_FILE, PROJECTS)
    digest = content_digest(PROJECTS.encode())
    own = LanguageServer(command=("gopls", "-v"), files=("*.go",))

    found = {
        allows: load_settings(locations, project=project, trust=ProjectTrust(digest, allows=allows), environment={})
        for allows in (False, True)
    }
    offer = trust_request_for(project, locations)

    assert found[False].settings.lsp == {"go": own}
    assert any("`lsp`: not applied, because you did not accept its servers" in text for text in found[False].ignored)
    assert found[True].settings.lsp == {"go": own, "py": LanguageServer(command=("ruff", "server"), files=("*.py",))}
    assert any("`lsp.go`: not applied, because you have a server" in text for text in found[True].ignored)
    assert offer is not None
    assert offer.powers == "language servers"
    assert ("language servers: programs it would run", ("py: ruff server  for *.py",)) in offer.sections


def test_doctor_names_those_in_use_and_offers_those_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("gopls", "basedpyright-langserver", "pyright-langserver"):
        write(tmp_path / "bin" / name, "#!/bin/sh\nexit 1\n")
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("TUI_AGENT_HOME", str(tmp_path / "home"))
    write(tmp_path / "home" / "config" / "config.toml", OWN + '[lsp.gone]\ncommand = "gone-server"\nfiles = "*"\n')

    found = [(one.state, one.message) for one in examine(tmp_path) if one.subject == "lsp"]

    assert found[:2] == [("ok", "go checks *.go after edits"), ("note", "gone: there is no program gone-server")]
    offers = [message for _, message in found[2:]]
    assert [offer.partition(" ")[0] for offer in offers] == ["basedpyright"]
    assert [line.strip() for line in offers[0].splitlines()[1:]] == [
        "[lsp.basedpyright]",
        'command = "basedpyright-langserver --stdio"',
        'files = ["*.py", "*.pyi"]',
    ]

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    without = [one.message for one in examine(tmp_path) if one.subject == "lsp"]
    assert without[0].startswith("go, gone: the client for language servers is not installed")
