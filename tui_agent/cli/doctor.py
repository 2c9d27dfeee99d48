"""`tui-agent doctor`: what works here, and whether the main job can run."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import click

from tui_agent import __version__
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.settings import LoadedSettings, Locations, Settings, load_settings
from tui_agent.tools import sandbox_problem
from tui_agent.tools.command_launcher import launcher_problem

from .controlling_terminal import say
from .credentials import Credentials
from .project_trust import folder_trust, trust_for
from .shortage import memory_problem

_SIGNS = {"ok": "ok  ", "note": "note", "bad": "BAD "}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    what: str
    state: Literal["ok", "note", "bad"]
    """`bad`: the main job cannot run like this."""
    words: str


@click.command()
def doctor() -> int:
    """Tells what works here; exit code 1 if the main job cannot run."""
    findings = list(examine(Path.cwd()))
    for finding in findings:
        say(f"{_SIGNS[finding.state]}  {finding.what:<10} {finding.words}")
    if any(finding.state == "bad" for finding in findings):
        say("\nThe agent cannot run a model like this. `tui-agent --demo` works without a key and a network.")
        return 1
    return 0


def examine(directory: Path) -> Iterator[Finding]:
    """Looks at everything the main job needs in this directory; changes nothing but a probe file it removes."""
    python = ".".join(str(part) for part in sys.version_info[:3])
    yield Finding("version", "ok", f"tui-agent {__version__}, Python {python}")
    locations = Locations.of_user(os.environ)
    try:
        loaded = load_settings(locations, project=directory, trust=trust_for(directory, locations))
    except ConfigurationError as error:
        yield Finding("settings", "bad", str(error))
        loaded = LoadedSettings(Settings(), {})
    else:
        yield Finding("settings", "ok", ", ".join(str(file) for file in loaded.files) or "defaults, no file")
        yield from (Finding("settings", "note", words) for words in (*loaded.unknown_variables, *loaded.ignored))
    left_out = folder_trust(directory, locations).left_out
    yield from (Finding("trust", "note", words) for words in left_out)
    if words := memory_problem():
        yield Finding("memory", "bad", words)
    yield _terminal()
    yield from _model(loaded)
    yield _program("bash", "bad", "commands cannot run without it")
    yield _program("git", "note", "not found: the agent works, without knowing branches")
    yield _program("rg", "note", "not found: searching uses the slower built-in way")
    yield _processes(directory)
    yield _sandbox(directory, loaded.settings)
    yield _writable("workspace", directory, "note", "read-only: nothing can be edited here")
    yield _writable("sessions", locations.state_dir, "bad", "sessions cannot be kept")


def _terminal() -> Finding:
    name = os.environ.get("TERM", "")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return Finding("terminal", "note", "not a terminal: the full-screen app needs one, -p does not")
    if name in ("", "dumb"):
        return Finding("terminal", "bad", f"TERM={name!r} cannot show a full-screen app; -p works")
    size = shutil.get_terminal_size()
    colours = os.environ.get("COLORTERM", "256 colours or fewer")
    return Finding("terminal", "ok", f"{name}, {size.columns}×{size.lines}, {colours}")


def _model(loaded: LoadedSettings) -> Iterator[Finding]:
    credentials = Credentials.of_environment(os.environ, loaded.settings.base_url)
    if credentials.usable:
        yield Finding("key", "ok", credentials.words)
    else:
        yield Finding("key", "bad", "ANTHROPIC_API_KEY is not set, and no other endpoint is configured")
    yield Finding("endpoint", "ok", credentials.host)
    yield Finding("model", "ok", loaded.settings.model)


def _program(name: str, state: Literal["note", "bad"], otherwise: str) -> Finding:
    place = shutil.which(name)
    if place is None:
        return Finding(name, state, otherwise)
    answer = subprocess.run([place, "--version"], capture_output=True, text=True, check=False, timeout=10)
    first = (answer.stdout or answer.stderr).splitlines()
    return Finding(name, "ok", f"{place} ({first[0] if first else 'no version'})")


def _processes(directory: Path) -> Finding:
    """Report if processes of a command can outlive its call, or a killed tui-agent."""
    problem = launcher_problem(directory)
    if sys.platform != "linux":
        return Finding("processes", "note", "not Linux: daemons that commands start may outlive them")
    if problem is not None:
        return Finding("processes", "note", f"{problem}: commands may outlive tui-agent if it is killed")
    return Finding("processes", "ok", "commands end with everything they start, and with tui-agent")


def _sandbox(directory: Path, settings: Settings) -> Finding:
    """Whether commands can run in the sandbox, by running one."""
    problem = sandbox_problem(directory, network=settings.sandbox_network)
    words = " ".join((problem or "").split())
    match settings.sandbox:
        case "bwrap" if problem:
            return Finding("sandbox", "bad", f'sandbox = "bwrap" is set, and no command will run: {words}')
        case "bwrap":
            network = "with network" if settings.sandbox_network else "without network"
            return Finding("sandbox", "ok", f"bwrap works; commands run in it, {network}")
        case _ if problem:
            return Finding("sandbox", "note", f"off, and not to be had here: {words}")
        case _:
            return Finding("sandbox", "note", 'off; bwrap works here: sandbox = "bwrap" makes commands run in it')


def _writable(what: str, directory: Path, state: Literal["note", "bad"], otherwise: str) -> Finding:
    place = next((folder for folder in (directory, *directory.parents) if folder.exists()), directory)
    if os.access(place, os.W_OK | os.X_OK):
        return Finding(what, "ok", f"{directory} can be written")
    return Finding(what, state, f"{directory}: {otherwise}")
