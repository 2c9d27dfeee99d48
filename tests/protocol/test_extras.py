"""Commands that install extras."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tui_agent.protocol import extras
from tui_agent.protocol.extras import install_command


@pytest.fixture(autouse=True)
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the folder of an installation."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    extras._template.cache_clear()  # pyright: ignore[reportPrivateUsage]
    yield tmp_path
    extras._template.cache_clear()  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize(
    ("file", "command"),
    [
        ("pyvenv.cfg", "pip install 'tui-agent[web]'"),
        ("uv-receipt.toml", "uv tool install 'tui-agent[web]'"),
        ("pipx_metadata.json", "pipx install --force 'tui-agent[web]'"),
    ],
)
def test_the_command_is_that_of_the_installer(prefix: Path, file: str, command: str) -> None:
    (prefix / file).write_text("")

    assert install_command("web") == command
