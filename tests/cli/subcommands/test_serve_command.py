"""`tui-agent serve` before its server starts."""

import sys
from pathlib import Path

import pytest

from tui_agent.cli.command_line import run_program
from tui_agent.protocol.programs import install_command


@pytest.mark.parametrize("package", ["textual_serve", "aiohttp"])
def test_without_its_extra_it_says_how_to_install_it(
    package: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, clean_environment: Path
) -> None:
    monkeypatch.setitem(sys.modules, package, None)

    code = run_program(["serve"])

    captured = capsys.readouterr()
    assert (code, captured.out) == (2, "")
    assert captured.err == f"tui-agent: the browser needs the extra `serve`: {install_command('serve')}\n"
