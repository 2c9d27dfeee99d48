"""Drivers that `fleet run` and `fleet retry` start."""

import socket
import subprocess
import sys
import time
from pathlib import Path

from tests.support.terminal import PATIENCE
from tui_agent.cli.fleet_host import FleetOptions, create_fleet
from tui_agent.fleet.fleet_directory import is_driven, read_status
from tui_agent.protocol.fleet_records import UnitTask


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
