"""The worker that units run on: this program, its directories, and the walls around `verify`."""

import os
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tui_agent.fleet.unit_runner import UnitHost
from tui_agent.settings import Locations, load_settings
from tui_agent.walls.bubblewrap import PROBE_SECONDS, found_bubblewraps
from tui_agent.walls.wall_options import writable_options
from tui_agent.workbench.built_in_tools import own_directories


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
    confine = partial(
        _confined,
        hidden=own_directories(locations),
        shown=(Path(os.path.realpath(mirrors)),),
        network=settings.sandbox_network,
    )
    return UnitHost(
        worker=name,
        work=work,
        mirrors=mirrors,
        program=(sys.executable, "-m", "tui_agent"),
        confine=confine if settings.sandbox != "off" and _works(confine(work)) else None,
    )


def walls_work(root: Path) -> bool:
    """Return True if commands can run behind walls in a directory, found out by running an empty one. Blocks."""
    return _works(_confined(root))


def _works(walls: tuple[str, ...]) -> bool:
    try:
        done = subprocess.run((*walls, "true"), capture_output=True, check=False, timeout=PROBE_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _confined(
    root: Path, *, hidden: Sequence[Path] = (), shown: Sequence[Path] = (), network: bool = False
) -> tuple[str, ...]:
    """Return the start of a command line that lets the rest of it change this directory only. Blocks."""
    place = Path(os.path.realpath(root))
    # If it was removed since the test, the command fails, as it must not run without it.
    bwrap = next((str(one.path) for one in found_bubblewraps(place)), "bwrap")
    search_path = os.environ.get("PATH", os.defpath)
    return (bwrap, *writable_options(place, search_path, hidden=hidden, shown=shown, network=network), "--")
