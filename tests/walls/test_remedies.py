"""The command that would let a trial work is named, not only the error."""

from pathlib import Path

import pytest

from tui_agent.walls import bubblewrap as page
from tui_agent.walls.bubblewrap import remedies


@pytest.mark.parametrize(
    ("name", "value", "command"),
    [
        (
            "kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        ("kernel/unprivileged_userns_clone", "0", "sysctl -w kernel.unprivileged_userns_clone=1"),
        ("user/max_user_namespaces", "0", "sysctl -w user.max_user_namespaces=15000"),
    ],
)
def test_the_setting_that_forbids_namespaces_is_named(tmp_path: Path, name: str, value: str, command: str) -> None:
    assert remedies(has_bubblewrap=True, is_forbidden=False, settings=tmp_path, files=tmp_path) == ""
    (tmp_path / name).parent.mkdir()
    (tmp_path / name).write_text(f"{value}\n", "utf-8")
    assert command in remedies(has_bubblewrap=True, is_forbidden=False, settings=tmp_path, files=tmp_path)


def test_a_missing_bubblewrap_and_a_container_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page.shutil, "which", lambda name: name if name == "dnf" else None)
    (tmp_path / ".dockerenv").touch()
    words = remedies(has_bubblewrap=False, is_forbidden=True, settings=tmp_path, files=tmp_path)
    assert "dnf install bubblewrap" in words
    assert "seccomp=unconfined" in words
