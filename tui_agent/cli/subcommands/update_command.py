"""`tui-agent update-check`: whether the package index has a newer version. Only this command asks it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click

from tui_agent import __version__
from tui_agent.cli.process.controlling_terminal import say
from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.programs import install_command, origin
from tui_agent.tools.processes.child_environment import child_environment

_SECONDS = 30.0
"""Time limit of the question to the package index."""


@click.command(name="update-check")
def update_check() -> None:
    """Ask the package index for a newer version.

    The question goes to the index that pip is configured for. tui-agent never asks by itself, and installs nothing.
    """
    newest = _newest_version()
    if newest is None:
        directory = origin().directory
        pull = f"git -C '{directory}' pull && " if directory else ""
        say(f"tui-agent is not in the package index; this is {__version__}. To update: {pull}{install_command()}")
        return
    if _order(newest) <= _order(__version__):
        say(f"tui-agent {__version__} is the newest version")
        return
    say(f"tui-agent {newest} is available; this is {__version__}. To update: {install_command()}")


def _newest_version() -> str | None:
    """Return the newest version of the index; None if the index does not have this program."""
    pip = _pip()
    if pip is None:
        raise TuiAgentError("pip, which asks the package index, is not installed here; nothing was checked")
    command = [*pip, "--disable-pip-version-check", "index", "versions", "tui-agent"]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
            env=child_environment(os.environ),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TuiAgentError(f"the package index did not answer: {error}") from error
    found = re.search(r"^tui-agent \(([0-9][^\s)]*)\)", done.stdout, re.MULTILINE)
    if found is None and "No matching distribution" in done.stderr:
        return None
    if found is None:
        lines = done.stderr.strip().splitlines()
        raise TuiAgentError(f"the package index did not answer: {lines[-1] if lines else 'no version was named'}")
    return found[1]


def _pip() -> list[str] | None:
    """Return the command of a pip: that of this environment if it has one, else another."""
    own = Path(sys.executable).with_name("pip")
    found = str(own) if own.exists() else shutil.which("pip3") or shutil.which("pip")
    return None if found is None else [found]


def _order(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, for comparison."""
    return tuple(int(number) for number in re.findall(r"\d+", version.partition("+")[0]))
