"""The worker that units run on: this program, its directories, and the walls around `verify`."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

from tui_agent.fleet.unit_runner import UnitHost
from tui_agent.settings import Locations, load_settings
from tui_agent.tools.processes.sandbox import Sandbox
from tui_agent.walls.bubblewrap import PROBE_SECONDS, found_bubblewraps

from .built_in_tools import own_directories


def unit_host(name: str, work: Path, mirrors: Path) -> UnitHost:
    """Return what this machine offers its units. Blocks.

    Args:
        name: name of the worker.
        work: private directory of this fleet on this machine; it exists.
        mirrors: private directory of the mirrors; it exists.

    Raises:
        ConfigurationError: the user's settings have mistakes.
    """
    locations = Locations.of_user(os.environ)
    settings = load_settings(locations).settings
    sandbox = Sandbox(
        lambda _: (),
        hidden=own_directories(locations),
        shown=(Path(os.path.realpath(mirrors)),),
        network=settings.sandbox_network,
    )
    works = settings.sandbox != "off" and walls_work(work, sandbox)
    return UnitHost(
        worker=name,
        work=work,
        mirrors=mirrors,
        program=(sys.executable, "-m", "tui_agent"),
        confine=partial(_confined, sandbox) if works else None,
    )


def walls_work(root: Path, sandbox: Sandbox | None = None) -> bool:
    """Return True if commands can run behind walls in a directory, found out by running an empty one. Blocks."""
    argv = (*_confined(sandbox or Sandbox(lambda _: ()), root), "true")
    try:
        done = subprocess.run(argv, capture_output=True, check=False, timeout=PROBE_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _confined(sandbox: Sandbox, root: Path) -> tuple[str, ...]:
    """Return the start of a command line that runs the rest of it in the sandbox. Blocks."""
    place = Path(os.path.realpath(root))
    # If it was removed since the test, the command fails, as it must not run without it.
    bwrap = next((str(one.path) for one in found_bubblewraps(place)), "bwrap")
    return (bwrap, *sandbox.arguments(place, (), os.environ.get("PATH", os.defpath)), "--")
