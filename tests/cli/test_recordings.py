"""`--record` copies the journal of a session, and `--replay` plays a journal."""

import json
import os
import sys
from pathlib import Path

import pytest

from tests.support.terminal import Terminal
from tui_agent.cli.command_line import run_program
from tui_agent.settings import Locations
from tui_agent.workbench.sessions.replay_source import read_source


def events_in(file: Path) -> list[tuple[int, str]]:
    """Return number and type of every event but deltas, which each writer merges in its own way."""
    records = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    return [(one["seq"], one["type"]) for one in records if not one["type"].endswith(("delta", ".output"))]


@pytest.mark.slow
@pytest.mark.parametrize("stored", [True, False])
def test_a_recording_is_the_journal_of_the_session(
    stored: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "note.txt").write_text("the quick brown fox\n", "utf-8")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-canary")
    file = tmp_path / "run.jsonl"
    session = ("--session", "talk") if stored else ("--no-session",)

    code = run_program(["-p", "show note.txt", "--demo", "--cwd", str(tmp_path), "--record", str(file), *session])

    assert code == 0, capsys.readouterr().err
    types = [kind for _, kind in events_in(file)]
    assert (types.count("run.started"), types.count("run.ended")) == (1, 1)
    assert "the quick brown fox" in file.read_text("utf-8")
    assert (file.stat().st_mode & 0o777, b"canary" in file.read_bytes()) == (0o600, False)
    journal = Locations.of_user(os.environ).sessions_dir / "talk.jsonl"
    assert journal.exists() == stored
    if stored:
        assert events_in(journal) == events_in(file)
        again = tmp_path / "again.jsonl"
        resumed = ["-p", "help", "--demo", "--cwd", str(tmp_path), "--resume", "talk", "--record", str(again)]
        assert run_program(resumed) == 0
        assert events_in(journal) == events_in(again)


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


EVENT = (
    '{"v":1,"seq":%d,"ts":%d,"mono":1.0,"session_id":"s","run_id":null,"agent_id":"main","parent_call_id":null,'
    '"depth":0,"turn":null,"step":null,"type":"session.renamed","data":{"id":"s","title":"x"}}\n'
)


def test_a_recording_of_an_earlier_version_is_refused_with_what_to_do(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "old.jsonl"
    file.write_text('{"recording":1,"program":"0.1.0"}\n{"at":0.5,"input":{"kind":"key","key":"y"}}\n', "utf-8")

    assert run_program(["--replay", str(file)]) == 2
    error = capsys.readouterr().err
    assert "a recording of an earlier version" in error
    assert "tui-agent --replay ID" in error
    assert error.count("\n") == 1


def test_a_damaged_journal_is_replayed_without_its_damaged_lines(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    whole = [EVENT % (number, number * 1_000) for number in (1, 2, 3)]
    file.write_text(f"{whole[0]}nonsense\n\x00\n{whole[1]}[[[[\n{whole[2]}{whole[0][:40]}", "utf-8")

    source = read_source(file)

    assert list(source.stamps) == [1_000, 2_000, 3_000]
    assert len(source.problems) == 3
    assert source.problems[0].startswith("Line 2 is not an event")
    assert source.problems[-1].startswith("The file has")
