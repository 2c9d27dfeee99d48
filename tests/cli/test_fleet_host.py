"""Drivers that `fleet run` and `fleet retry` start."""

import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.terminal import PATIENCE
from tui_agent.cli.fleet_host import FleetOptions, create_fleet, remove_unstarted
from tui_agent.cli.subcommands.fleet_commands import fleet
from tui_agent.fleet import dask_connection
from tui_agent.fleet.fleet_directory import FleetDirectory, is_driven, read_status
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.fleet_records import UnitTask


@pytest.mark.parametrize("existed", [False, True])
def test_a_fleet_whose_cluster_cannot_be_reached_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, existed: bool
) -> None:
    monkeypatch.setattr(dask_connection, "CONNECT_SECONDS", 0.2)
    (tmp_path / "tasks.jsonl").write_text('{"prompt": "Go", "repo": "missing"}', "utf-8")
    out = tmp_path / "out"
    if existed:
        out.mkdir()
    arguments = ["run", str(tmp_path / "tasks.jsonl"), "--headless", "--out", str(out)]

    with pytest.raises(ConfigurationError, match="no scheduler answers"):
        fleet.main([*arguments, "--scheduler", "tcp://127.0.0.1:9"], standalone_mode=False)

    assert out.exists() == existed
    assert not existed or list(out.iterdir()) == []


def test_a_fleet_that_has_started_or_has_a_driver_is_never_removed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    create_fleet(out, FleetOptions(), (UnitTask(id="1", task="1", prompt="Go", repo="/r"),))
    driver = FleetDirectory.open(out)
    remove_unstarted(out, keeps_directory=False)
    assert (out / "units.jsonl").exists()
    driver.record({"type": "granted", "unit": "1", "epoch": 1})
    driver.close()
    remove_unstarted(out, keeps_directory=False)
    assert (out / "units.jsonl").exists()


def test_the_socket_of_a_driver_that_was_killed_is_not_taken_for_the_new_one(tmp_path: Path) -> None:
    task = UnitTask(id="1", task="1", prompt="Go", repo=str(tmp_path / "missing"))
    out = tmp_path / "out"
    create_fleet(out, FleetOptions(places=1, demo=True), (task,))
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(out / "control.sock"))

    # From a process of its own, as drivers survive the one that started them.
    start = "import sys; from pathlib import Path; from tui_agent.cli.fleet_host import *"
    start += "; start_driver(Path(sys.argv[1]), FleetOptions(places=1))"
    subprocess.run([sys.executable, "-c", start, str(out)], check=True, timeout=PATIENCE)

    assert is_driven(out) or read_status(out).rows[0].ended
    while is_driven(out):
        time.sleep(0.05)
    assert read_status(out).rows[0].state == "failed"
