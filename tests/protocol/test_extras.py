"""Commands that install extras."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tui_agent.protocol.programs import install_command, origin

FROM_CLONE = {"url": "file:///home/u/a%20clone", "dir_info": {}}
EDITABLE = {"url": "file:///src", "dir_info": {"editable": True}}
FROM_GIT = {"url": "https://host/tui-agent", "vcs_info": {"vcs": "git", "commit_id": "0"}}

FROM_WHEEL = {"url": "file:///w/tui_agent-0-py3-none-any.whl", "archive_info": {"hashes": {}}}


@pytest.fixture(autouse=True)
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the folder of an installation whose metadata is found first."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    origin.cache_clear()
    yield tmp_path
    origin.cache_clear()


@pytest.mark.parametrize(
    ("file", "record", "command"),
    [
        ("pyvenv.cfg", None, "{}/bin/pip install --upgrade 'tui-agent[web]'"),
        ("pyvenv.cfg", {"url": 3}, "{}/bin/pip install --upgrade 'tui-agent[web]'"),
        ("pyvenv.cfg", FROM_CLONE, "{}/bin/pip install --upgrade '/home/u/a clone[web]'"),
        ("pyvenv.cfg", EDITABLE, "{}/bin/pip install --upgrade -e '/src[web]'"),
        ("uv-receipt.toml", FROM_CLONE, "uv tool install --force '/home/u/a clone[web]'"),
        (
            "pyvenv.cfg",
            FROM_WHEEL,
            "{}/bin/pip install --upgrade 'tui-agent[web] @ file:///w/tui_agent-0-py3-none-any.whl'",
        ),
        ("pipx_metadata.json", FROM_GIT, "pipx install --force 'tui-agent[web] @ git+https://host/tui-agent'"),
    ],
)
def test_the_command_installs_again_from_where_the_program_came(
    prefix: Path, file: str, record: object, command: str
) -> None:
    (prefix / file).write_text("")
    (prefix / "tui_agent-0.dist-info").mkdir()
    (prefix / "tui_agent-0.dist-info" / "METADATA").write_text("Name: tui-agent\nVersion: 0\n")
    if record is not None:
        (prefix / "tui_agent-0.dist-info" / "direct_url.json").write_text(json.dumps(record))

    assert install_command("web") == command.format(prefix)
