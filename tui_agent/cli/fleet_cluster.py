"""The workers of a fleet: on this machine, with walls around `verify`, or on a Dask cluster."""

import asyncio
import importlib.util
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tui_agent.fleet.backend import Backend, ClusterChoice, TlsFiles
from tui_agent.fleet.unit_process import UnitFailureError
from tui_agent.fleet.unit_runner import UnitHost, run_unit
from tui_agent.fleet.worker_messages import DriverLink
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.programs import install_command
from tui_agent.settings import Locations, load_settings
from tui_agent.walls.bubblewrap import PROBE_SECONDS, found_bubblewraps
from tui_agent.walls.wall_options import writable_options

if TYPE_CHECKING:
    from tui_agent.fleet.dask_worker import WorkerPlace

MIRRORS = "tui-agent-mirrors"
"""Directory beside those of a host's workers, for the mirrors that they share."""

CommandT = TypeVar("CommandT", bound=Callable[..., Any])

_FILE = click.Path(path_type=Path, dir_okay=False, exists=True, resolve_path=True)


def cluster_options(command: CommandT) -> CommandT:
    """Add the options that choose a cluster."""
    for option in (
        click.option("--tls-key", type=_FILE, metavar="FILE", help="Key of --tls-cert."),
        click.option("--tls-cert", type=_FILE, metavar="FILE", help="Own certificate for the scheduler."),
        click.option("--tls-ca", type=_FILE, metavar="FILE", help="Authority of the cluster's certificates."),
        click.option("--scheduler", metavar="URL", help="Run on a Dask cluster: tcp://HOST:PORT, tls://HOST:PORT."),
        click.option("--workers", type=click.IntRange(1, 1000), metavar="N", help="Run on a Dask cluster of N here."),
    ):
        command = option(command)
    return command


def chosen_cluster(values: dict[str, Any]) -> ClusterChoice | None:
    """Return the cluster that the options choose; None for none.

    Raises:
        click.UsageError: the options contradict each other.
    """
    chosen = [option for option in ("local", "scheduler", "workers") if values.get(option)]
    if len(chosen) > 1:
        raise click.UsageError(" and ".join(f"--{option}" for option in chosen) + " cannot be combined")
    tls = TlsFiles(ca=values.get("tls_ca"), cert=values.get("tls_cert"), key=values.get("tls_key"))
    if tls != TlsFiles() and not values.get("scheduler"):
        raise click.UsageError("--tls-ca, --tls-cert and --tls-key are for --scheduler")
    if values.get("scheduler"):
        return ClusterChoice(scheduler=values["scheduler"], tls=tls)
    return ClusterChoice(workers=values["workers"]) if values.get("workers") else None


def cluster_arguments(choice: ClusterChoice | None) -> list[str]:
    """Return the options that choose a cluster."""
    if choice is None:
        return []
    if not choice.scheduler:
        return [f"--workers={choice.workers}"]
    files = (("ca", choice.tls.ca), ("cert", choice.tls.cert), ("key", choice.tls.key))
    return [f"--scheduler={choice.scheduler}", *(f"--tls-{name}={path}" for name, path in files if path is not None)]


def cluster_backend(choice: ClusterChoice, scratch: Path) -> Backend:
    """Return the backend of a cluster.

    Args:
        scratch: private directory for the files of a cluster that is started; made and removed.

    Raises:
        ConfigurationError: Dask is not installed.
    """
    if importlib.util.find_spec("distributed") is None or importlib.util.find_spec("cryptography") is None:
        raise ConfigurationError(f"a Dask cluster needs the extra `fleet`: {install_command('fleet')}")
    # Imported here: Dask is slow to import, and no other command needs it.
    from tui_agent.fleet.dask_backend import DaskBackend

    return DaskBackend(choice, run_on_worker, scratch)


async def run_on_worker(topic: str, unit_id: str, number: int) -> None:
    """Dask task of one unit. Its arguments are names; everything else comes from the driver."""
    from tui_agent.fleet.dask_worker import carry_unit

    await carry_unit(_run, (topic, unit_id, number))


async def _run(unit_id: str, link: DriverLink, place: "WorkerPlace") -> None:
    host = await asyncio.to_thread(_host_at, place.name, place.directory)
    await run_unit(unit_id, link, host)


@cache
def _host_at(name: str, directory: Path) -> UnitHost:
    """Return what the worker offers its units. Blocks."""
    mirrors = directory.parent / MIRRORS
    mirrors.mkdir(mode=0o700, exist_ok=True)
    # Not followed: the parent may be a directory that others can write to.
    found = mirrors.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise UnitFailureError(f"{mirrors} on the worker is not a directory of its user")
    mirrors.chmod(0o700)
    work = Path(tempfile.mkdtemp(prefix="tui-agent-", dir=directory))
    return unit_host(name, work, mirrors)


def unit_host(name: str, work: Path, mirrors: Path) -> UnitHost:
    """Return what this machine offers its units. Blocks.

    Raises:
        ConfigurationError: the user's settings have mistakes.
    """
    locations = Locations.of_user()
    settings = load_settings(locations).settings
    # Hidden are the settings and sessions: what a check prints reaches the report.
    confine = partial(
        _confined,
        hidden=locations.own_directories,
        shown=(Path(os.path.realpath(mirrors)),),
        network=settings.sandbox_network,
    )
    return UnitHost(
        worker=name,
        work=work,
        mirrors=mirrors,
        # Not the command by its name, which PATH may not have on a worker.
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
