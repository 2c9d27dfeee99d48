"""`tui-agent fleet`: one prompt over many repositories."""

import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from tui_agent.cli.command_words import OneOf
from tui_agent.cli.fleet_cluster import chosen_cluster, cluster_options
from tui_agent.cli.process.log_file import log_to_file
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.settings import Locations

_Command = Callable[..., Any]

_FLEET = click.argument("directory", metavar="DIR", type=click.Path(path_type=Path, file_okay=False, exists=True))


def _driver_options(command: _Command) -> _Command:
    """Add the options of a command that drives a fleet."""
    options = (
        click.option("--local", type=click.IntRange(1, 1000), metavar="N", help="Run N units at a time here."),
        cluster_options,
        click.option("--watch", is_flag=True, help="Show the fleet screen. Default on a terminal."),
        click.option("--headless", is_flag=True, help="Show no screen; report progress on stderr, and deny questions."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.group()
def fleet() -> None:
    """Run one prompt over many repositories."""


@fleet.command()
@click.argument("tasks", type=click.Path(path_type=Path, allow_dash=True))
@_driver_options
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="New directory for journals and results.")
@click.option("--demo", is_flag=True, help="Use the built-in offline model: no key, no network.")
@click.option("--check", is_flag=True, help="Start nothing: say what would run, with which rights, at what cost.")
def run(tasks: Path, out: Path | None, *, check: bool, **values: Any) -> int:
    """Run the tasks of a TOML file, or of JSON lines on standard input (-).

    Ctrl+c stops the units and keeps their work; `fleet retry` continues. The fleet screen can be closed and opened
    again: the fleet works on without it.
    """
    from tui_agent.cli.fleet_host import FleetOptions, create_fleet, read_tasks_of, remove_unstarted
    from tui_agent.cli.fleet_views import show_plan

    show = _viewer_of(values)
    units = read_tasks_of(tasks)
    cluster = chosen_cluster(values)
    if check:
        return show_plan(units, cluster, values["local"])
    directory = (out or Path(f"fleet-{datetime.now():%Y%m%d-%H%M%S}")).absolute()
    options = FleetOptions(places=values["local"], demo=values["demo"], cluster=cluster)
    existed = directory.exists()
    create_fleet(directory, options, units)
    try:
        return _drive(directory, options, show=show)
    except ConfigurationError:
        remove_unstarted(directory, keeps_directory=existed)
        raise


@fleet.command()
@_FLEET
@_driver_options
def retry(directory: Path, **values: Any) -> int:
    """Continue the units of a fleet that are not done.

    A unit continues with its conversation and its files; one that never began starts.
    """
    from tui_agent.cli.fleet_host import FleetOptions, check_idle

    show = _viewer_of(values)
    check_idle(directory.absolute())
    return _drive(directory.absolute(), FleetOptions(places=values["local"], cluster=chosen_cluster(values)), show=show)


@fleet.command()
@_FLEET
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--watch", is_flag=True, help="Show the fleet screen.")
def status(directory: Path, *, as_json: bool, watch: bool) -> int:
    """Show the units of a fleet and their states."""
    from tui_agent.cli.fleet_views import show_status, watch_fleet

    return watch_fleet(directory.absolute()) if watch else show_status(directory.absolute(), as_json=as_json)


@fleet.command()
@_FLEET
@click.option("--unit", "unit_id", metavar="ID", help="Only the events of one unit, each as in its journal.")
@click.option("--follow", is_flag=True, help="Wait for more events while the fleet runs.")
def events(directory: Path, *, unit_id: str | None, follow: bool) -> int:
    """Print the events of a fleet as JSON lines."""
    from tui_agent.cli.fleet_views import print_events

    return print_events(directory.absolute(), unit_id, follow=follow)


@fleet.command()
@_FLEET
@click.option("--unit", "unit_ids", metavar="ID", multiple=True, help="Stop only this unit. Repeatable.")
@click.option("--now", is_flag=True, help="Do not wait for the end of a step.")
def stop(directory: Path, *, unit_ids: tuple[str, ...], now: bool) -> int:
    """Stop a running fleet; `fleet retry` continues it."""
    from tui_agent.cli.fleet_views import stop_fleet

    return stop_fleet(directory.absolute(), unit_ids, now=now)


@fleet.command()
@_FLEET
@click.option("--format", "form", type=OneOf(("table", "json", "html")), default="table", help="Default: table.")
@click.option(
    "--apply", "unit_id", metavar="ID", help="Make a branch of the patch of a unit, or of a task's best unit."
)
@click.option("--repo", type=click.Path(path_type=Path, file_okay=False, exists=True), help="Repository for --apply.")
@click.option("--branch", metavar="NAME", help="Name of the branch. Default: fleet/FLEET/ID.")
def results(directory: Path, *, form: Any, unit_id: str | None, repo: Path | None, branch: str | None) -> int:
    """Print what the units of a fleet achieved, the best attempt at each task first, or apply one."""
    from tui_agent.cli.fleet_results import apply_unit, show_results

    if unit_id is None:
        if repo is not None or branch is not None:
            raise click.UsageError("--repo and --branch need --apply")
        return show_results(directory.absolute(), form)
    return apply_unit(directory.absolute(), unit_id, repo and repo.absolute(), branch)


@fleet.command(hidden=True)
@_FLEET
@click.option("--local", type=int)
@cluster_options
def drive(directory: Path, **values: Any) -> int:
    """Drive a fleet without a viewer; started by `run` and `retry`."""
    from tui_agent.cli.fleet_host import FleetOptions, drive_fleet

    return drive_fleet(
        directory.absolute(),
        FleetOptions(places=values["local"], cluster=chosen_cluster(values)),
        denies_questions=False,
    )


def _viewer_of(values: dict[str, Any]) -> bool:
    """Return True if a screen is wanted."""
    if values["watch"] and values["headless"]:
        raise click.UsageError("--watch and --headless cannot be combined")
    log_to_file(Locations.of_user(), verbose=False)
    return not values["headless"] and (values["watch"] or sys.stdout.isatty())


def _drive(directory: Path, options: Any, *, show: bool) -> int:
    from tui_agent.cli.fleet_host import drive_fleet, start_driver

    if not show:
        return drive_fleet(directory, options, denies_questions=True)
    from tui_agent.cli.fleet_views import watch_fleet

    start_driver(directory, options)
    return watch_fleet(directory)
