"""`--record` without a screen: the recording plays like any other, and its model streams can be replayed."""

import os
import sys
from pathlib import Path

import pytest

from tests.support.terminal import Terminal
from tui_agent.cli.command_line import run_program
from tui_agent.protocol.envelope import Envelope
from tui_agent.recording import read_recording
from tui_agent.ui.replay.replay_stage import Stage


@pytest.mark.slow
def test_a_headless_run_is_recorded_and_shows_the_same_conversation(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "note.txt").write_text("the quick brown fox\n", "utf-8")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-canary")
    file = tmp_path / "run.jsonl"

    code = run_program(["-p", "show note.txt", "--demo", "--cwd", str(tmp_path), "--record", str(file), "--no-session"])

    assert code == 0, capsys.readouterr().err
    recording = read_recording(file)
    stage = Stage(recording, size=(120, 40))
    assert stage.play_to(recording.length + 1)
    shown = stage.text()
    stage.close()
    for words in ("show note.txt", "the quick brown fox", "✔ #1 read", "scripted demo", "ready"):
        assert words in shown
    types = [entry.value.type for entry in recording.entries if isinstance(entry.value, Envelope)]
    assert types.count("run.ended") == 1
    assert any("begin" in note for note in recording.data_of("stream"))
    assert (file.stat().st_mode & 0o777, b"canary" in file.read_bytes()) == (0o600, False)


def test_a_run_that_cannot_start_leaves_no_recording(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run_program(["-p", "hello", "--record", str(tmp_path / "run.jsonl")]) == 2

    assert "no key" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_an_engine_that_cannot_start_leaves_no_recording(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    settings = home / ".config" / "tui-agent" / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('[permissions]\nrules = [["deny", "bash("]]\n', "utf-8")
    program = [sys.executable, "-m", "tui_agent", "--demo", "--record", "run.jsonl"]
    environment = {"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)}

    with Terminal(program, cwd=work, environment=environment) as terminal:
        assert terminal.wait_for_end() == 2
        assert "bash(" in terminal.screen.text

    assert list(work.iterdir()) == []


def test_a_recording_plays_only_in_a_terminal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    file.write_text('{"recording":1}\n', "utf-8")

    assert run_program(["--replay", str(file)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
