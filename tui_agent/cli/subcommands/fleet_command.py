"""`tui-agent fleet`: one prompt over many repositories."""

import os
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from tui_agent.cli.fleet_cluster import chosen_cluster, cluster_options
from tui_agent.cli.process.log_file import log_to_file
from tui_agent.settings import Locations

_DIRECTORY = click.Path(path_type=Path, file_okay=False)


@click.group()
def fleet() -> None:
    """Run one prompt over many repositories."""


@fleet.command()
@click.argument("tasks", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--local", type=click.IntRange(min=1, max=1000), metavar="N", help="Run N units at a time here.")
@cluster_options
@click.option("--watch", is_flag=True, help="Show the fleet screen. Default on a terminal.")
@click.option("--headless", is_flag=True, help="Show no screen; report progress on stderr. Questions are denied.")
@click.option("--out", type=_DIRECTORY, metavar="DIR", help="New directory for journals and results.")
@click.option("--demo", is_flag=True, help="Use the built-in offline model: no key, no network.")
def run(tasks: Path, out: Path | None, **values: Any) -> int:
    """Run the tasks of a TOML file, or of JSON lines on standard input (-)."""
    from tui_agent.cli.fleet_host import FleetOptions, read_tasks_of, run_fleet

    if values["watch"] and values["headless"]:
        raise click.UsageError("--watch and --headless cannot be combined")
    log_to_file(Locations.of_user(os.environ), verbose=False)
    units = read_tasks_of(tasks)
    directory = out or Path(f"fleet-{datetime.now():%Y%m%d-%H%M%S}")
    options = FleetOptions(
        directory.absolute(),
        places=values["local"] or 1,
        demo=values["demo"],
        cluster=chosen_cluster(values),
    )
    return run_fleet(options, units)
