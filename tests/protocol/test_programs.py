"""Programs come from the system, never from the workspace; and the commands that install extras."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tui_agent.protocol.programs import find_program, install_command, origin


@pytest.fixture
def root(tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    directory.mkdir()
    return directory


def program(directory: Path, name: str = "rg") -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_first_program_on_path_outside_the_workspace_is_found(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, inside = program(tmp_path / "one"), program(tmp_path / "two"), program(root / "bin")
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "rg").symlink_to(inside)
    (root / "link").symlink_to(first.parent)
    (tmp_path / "directory" / "rg").mkdir(parents=True)
    program(tmp_path / "unset").chmod(0o644)
    monkeypatch.chdir(root)

    skipped = (
        f":.:bin:{inside.parent}:{tmp_path / 'link'}:{root / 'link'}:{tmp_path / 'directory'}:{tmp_path / 'unset'}"
    )
    monkeypatch.setenv("PATH", f"{skipped}:{second.parent}:{first.parent}")
    assert find_program("rg", root) == second
    assert find_program("nothing", root) is None

    monkeypatch.setenv("PATH", skipped)
    assert find_program("rg", root) is None


FROM_CLONE = {"url": "file:///home/u/a%20clone", "dir_info": {}}
EDITABLE = {"url": "file:///src", "dir_info": {"editable": True}}
FROM_GIT = {"url": "https://host/tui-agent", "vcs_info": {"vcs": "git", "commit_id": "0"}}

FROM_WHEEL = {"url": "file:///w/tui_agent-0-py3-none-any.whl", "archive_info": {"hashes": {}}}


@pytest.fixture
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
