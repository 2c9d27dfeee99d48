"""The image in the clipboard, by programs with the arguments and answers of the real ones."""

import os
from pathlib import Path

import pytest

from tui_agent.workbench.sessions.prompt_files import clipboard_image, readers

PNG = b"\x89PNG\r\n\x1a\nrest"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin")
    for name in ("WAYLAND_DISPLAY", "DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    return folder


def put(folder: Path, name: str, body: str) -> None:
    program = folder / name
    program.write_text(f"#!/bin/sh\n{body}\n", "utf-8")
    program.chmod(0o755)


async def test_the_image_comes_from_the_program_of_the_desktop(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = tmp_path / "work"
    workspace.mkdir()
    picture = tmp_path / "picture.png"
    picture.write_bytes(PNG)
    put(programs, "wl-paste", 'echo "No selection" >&2; exit 1')
    put(programs, "xclip", f'[ "$*" = "-selection clipboard -target image/png -out" ] && cat {picture}')

    assert await clipboard_image(workspace) == b""
    monkeypatch.setenv("DISPLAY", ":0")
    assert await clipboard_image(workspace) == PNG
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    assert [Path(one[0]).name for one in readers(os.environ, workspace)] == ["wl-paste", "xclip"]
    assert await clipboard_image(workspace) == PNG
    put(programs, "wl-paste", f'[ "$*" = "--no-newline --type image/png" ] && cat {picture} && echo >/dev/null')
    put(programs, "xclip", "exit 1")
    assert await clipboard_image(workspace) == PNG


async def test_a_program_that_hangs_or_floods_is_ended(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr("tui_agent.workbench.sessions.prompt_files._CLIPBOARD_SECONDS", 0.2)
    put(programs, "xclip", "exec sleep 60")
    assert await clipboard_image(tmp_path / "work") == b""
    monkeypatch.setattr("tui_agent.workbench.sessions.prompt_files._CLIPBOARD_SECONDS", 60)
    monkeypatch.setattr("tui_agent.workbench.sessions.prompt_files._LARGEST_IMAGE", 100_000)
    put(programs, "xclip", "exec yes")
    assert await clipboard_image(tmp_path / "work") == b""
