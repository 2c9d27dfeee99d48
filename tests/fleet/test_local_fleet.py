"""Whole fleets as processes of this machine, with the real program and the scripted Messages API."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.support.server_thread import ServerThread
from tests.support.terminal import PATIENCE
from tui_agent.protocol.envelope import read_envelope
from tui_agent.protocol.fleet_records import FleetStatus

from .repositories import git

CANARY = "sk-ant-canary-9f8e7d6c5b4a"
PROGRAM = (sys.executable, "-m", "tui_agent")


def environment_of(tmp_path: Path, **more: str) -> dict[str, str]:
    """Environment of a user of their own who lets commands run."""
    config = tmp_path / "config" / "tui-agent"
    config.mkdir(parents=True, exist_ok=True)
    (config / "config.toml").write_text(
        '[permissions]\nrules = [["allow", "bash(*)"]]\nunknown_targets = "allow"\n', "utf-8"
    )
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    places = {"HOME": tmp_path, "XDG_CONFIG_HOME": tmp_path / "config", "XDG_STATE_HOME": tmp_path / "state"}
    return kept | {name: str(path) for name, path in places.items()} | more


def fleet(tmp_path: Path, *arguments: str, **more: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [*PROGRAM, "fleet", *arguments],
        cwd=tmp_path,
        env=environment_of(tmp_path, **more),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def status_of(out: Path) -> FleetStatus:
    return FleetStatus.model_validate_json((out / "status.json").read_bytes())


def assert_valid_journal(path: Path) -> None:
    """Assert that each line is an event, and that the numbers only rise."""
    numbers: list[int] = []
    for line in path.read_bytes().splitlines():
        envelope = read_envelope(line)
        assert envelope is not None
        numbers.append(envelope.seq)
    assert numbers == sorted(set(numbers))


TASKS = """
prompt = "run `echo {what} >> kept.txt`"

[[task]]
repo = "repo"
what = "first"
verify = "grep -qx first kept.txt"

[[task]]
repo = "repo"
what = "second"
verify = "sleep 60"
timeout = 5

[[task]]
repo = "missing"
what = "third"

[[task]]
repo = "repo"
ref = "nope"
what = "fourth"
permissions.mode = "plan"
"""


@pytest.mark.slow
def test_a_fleet_of_four_ends_and_a_bad_unit_disturbs_no_other(tmp_path: Path, repo: Path) -> None:
    (tmp_path / "tasks.toml").write_text(TASKS, "utf-8")

    running = fleet(
        tmp_path, "run", "tasks.toml", "--local", "4", "--headless", "--out", "out", "--demo", ANTHROPIC_API_KEY=CANARY
    )
    output, _ = running.communicate(timeout=PATIENCE)

    assert running.returncode == 1, output
    out = tmp_path / "out"
    rows = {row.id: row for row in status_of(out).rows}
    assert [(row.state, row.reason) for row in rows.values()] == [
        ("done", ""),
        ("failed", "its time limit of 5 s is over"),
        ("failed", rows["3"].reason),
        ("failed", "the repository has no branch, tag or commit 'nope'"),
    ]
    assert "missing" in rows["3"].reason
    assert (out / "units/1/patch/0001.patch").read_text().count("\n+first\n") == 1
    assert rows["1"].verified is True
    assert_valid_journal(out / "units/1/journal.jsonl")
    assert git("status", "--porcelain", cwd=repo) == ""
    assert list((out / "work").glob("*-*")) == []
    assert b"1 done \xc2\xb7 3 failed" in output
    for path in (file for file in tmp_path.rglob("*") if file.is_file()):
        assert CANARY.encode() not in path.read_bytes(), path


SCRIPT = [
    {"blocks": [{"type": "tool_use", "name": "bash", "input": {"command": "echo line >> kept.txt"}}]},
    {"wait_for": "the kill", "blocks": [{"type": "text", "text": "Never read."}]},
    {"blocks": [{"type": "text", "text": "Finished after all."}]},
]
"""A unit that changes its files, and then waits for a model that does not answer."""


@pytest.mark.slow
def test_after_kill_9_of_the_driver_a_retry_continues_without_repeating(tmp_path: Path, repo: Path) -> None:
    (tmp_path / "tasks.jsonl").write_text(json.dumps({"prompt": "Append a line", "repo": "repo"}), "utf-8")
    out = tmp_path / "out"
    with ServerThread(SCRIPT) as server:
        running = fleet(tmp_path, "run", "tasks.jsonl", "--headless", "--out", "out", **server.environment)
        server.reached("the kill")
        journal = out / "units/1/journal.jsonl"
        wait_for(lambda: journal.exists() and b'"type":"tool.ended"' in journal.read_bytes())
        units = psutil.Process(running.pid).children(recursive=True)
        running.send_signal(signal.SIGKILL)
        running.communicate(timeout=PATIENCE)
        _, alive = psutil.wait_procs(units, timeout=PATIENCE)
        assert alive == [], "units end with their driver"
        before = journal.read_bytes()

        again = fleet(tmp_path, "retry", "out", "--headless", **server.environment)
        output, _ = again.communicate(timeout=PATIENCE)

        assert again.returncode == 0, output
        assert "was interrupted" in json.dumps(server.requests[-1]["body"]["messages"][-1])
        assert all(not request["problems"] for request in server.requests)
        token = server.token
    assert journal.read_bytes().startswith(before), "nothing that was saved is lost"
    assert_valid_journal(journal)
    assert journal.read_bytes().count(b'"type":"tool.started"') == 1
    assert (out / "units/1/patch/0001.patch").read_text().count("\n+line\n") == 1
    assert (out / "units/1/report.md").read_text() == "Finished after all.\n"
    (row,) = status_of(out).rows
    assert (row.state, row.epoch, row.unknown_effects) == ("done", 2, 0)
    assert not (tmp_path / "state" / "tui-agent" / "sessions").exists(), "units are not among the user's sessions"
    for path in (file for file in out.rglob("*") if file.is_file()):
        assert token.encode() not in path.read_bytes(), path


def wait_for(fact: Callable[[], object]) -> None:
    """Wait until a fact holds."""
    deadline = time.monotonic() + PATIENCE
    while not fact():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.slow
def test_an_interrupt_stops_the_units_and_keeps_their_state(tmp_path: Path, repo: Path) -> None:
    (tmp_path / "tasks.jsonl").write_text(json.dumps({"prompt": "Append a line", "repo": "repo"}), "utf-8")
    with ServerThread(SCRIPT) as server:
        running = fleet(tmp_path, "run", "tasks.jsonl", "--headless", "--out", "out", **server.environment)
        server.reached("the kill")
        running.send_signal(signal.SIGINT)
        output, _ = running.communicate(timeout=PATIENCE)

    assert running.returncode == 130, output
    (row,) = status_of(tmp_path / "out").rows
    assert (row.state, row.reason) == ("stopped", "stopped")
    assert b"fleet retry" in output
    assert (tmp_path / "out/units/1/patch/0001.patch").read_text().count("\n+line\n") == 1
    last = (tmp_path / "out/units/1/journal.jsonl").read_bytes().splitlines()[-1]
    assert b'"run.ended"' in last
