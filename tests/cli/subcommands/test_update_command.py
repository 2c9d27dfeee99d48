"""`tui-agent update-check` asks the index that pip is configured for."""

import zipfile
from pathlib import Path

import pytest

from tui_agent import __version__
from tui_agent.cli.command_line import run_program
from tui_agent.cli.subcommands import installation_commands
from tui_agent.protocol.programs import install_command, origin


def offer(folder: Path, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a folder with one wheel the package index."""
    with zipfile.ZipFile(folder / f"tui_agent-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"tui_agent-{version}.dist-info/METADATA", f"Name: tui-agent\nVersion: {version}\n")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))


@pytest.mark.parametrize(
    ("version", "words"),
    [
        (
            "999.10.1",
            f"tui-agent 999.10.1 is available; this is {__version__}. To update: {install_command()}",
        ),
        (__version__, f"tui-agent {__version__} is the newest version"),
    ],
)
def test_the_newest_version_of_the_index_is_compared(
    version: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    offer(tmp_path, version, monkeypatch)

    assert run_program(["update-check"]) == 0
    assert words in capsys.readouterr().out


def test_an_index_without_the_program_is_not_an_index_without_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))

    assert run_program(["update-check"]) == 0
    out = capsys.readouterr().out
    assert "tui-agent is not in the package index" in out
    assert f"git -C '{origin().directory}' pull && {install_command()}" in out or not origin().directory


def test_without_an_answer_it_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(installation_commands, "_pip", lambda: ["sh", "-c", "echo ERROR: no route to host >&2; exit 1"])

    assert run_program(["update-check"]) == 2
    assert "the package index did not answer: ERROR: no route to host" in capsys.readouterr().err


def test_pip_gets_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-canary")
    monkeypatch.setattr(installation_commands, "_pip", lambda: ["sh", "-c", 'echo "tui-agent (1$ANTHROPIC_API_KEY)"'])

    assert installation_commands._newest_version() == "1"
