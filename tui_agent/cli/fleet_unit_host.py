"""The worker that units run on: this program, its directories, and the sandbox around `verify`."""

import os
import sys
from functools import partial
from pathlib import Path

from tui_agent.fleet.unit_runner import UnitHost
from tui_agent.protocol.programs import find_program
from tui_agent.settings import Locations, load_settings
from tui_agent.tools import Sandbox, sandbox_problem

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
    works = settings.sandbox != "off" and sandbox_problem(work, sandbox) is None
    return UnitHost(
        worker=name,
        work=work,
        mirrors=mirrors,
        program=(sys.executable, "-m", "tui_agent"),
        confine=partial(_confined, sandbox) if works else None,
    )


def _confined(sandbox: Sandbox, root: Path) -> tuple[str, ...]:
    """Return the start of a command line that runs the rest of it in the sandbox. Blocks."""
    place = Path(os.path.realpath(root))
    bwrap = find_program("bwrap", place)
    # If it was removed since the test, the command fails, as it must not run without it.
    return (str(bwrap or "bwrap"), *sandbox.arguments(place, (), os.environ.get("PATH", os.defpath)), "--")
