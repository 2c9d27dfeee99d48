"""`tui-agent doctor`, `login`, `update-check` and `completion`: what this installation needs to work."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from tui_agent import __version__
from tui_agent.cli.command_words import OneOf
from tui_agent.cli.process.controlling_terminal import say
from tui_agent.protocol.errors import ConfigurationError, TuiAgentError
from tui_agent.protocol.programs import install_command, origin
from tui_agent.protocol.visible_text import escaped


@click.command()
@click.option("--probe", is_flag=True, help="Also ask the usual ports of this machine for model servers.")
def doctor(probe: bool) -> int:
    """Check what works here. The exit code is 1 if the agent cannot run."""
    # Imported here: a shell that starts asks this module for its completion script.
    from tui_agent.cli.installation_checks import examine, findings_text, probe_findings

    findings = list(examine(Path.cwd()))
    if probe:
        findings += probe_findings()
    say(findings_text(findings))
    if any(finding.state == "bad" for finding in findings):
        say("\nThe agent cannot run a model with this. `tui-agent --demo` works without a key or network.")
        return 1
    return 0


@click.command(name="login")
def login() -> None:
    """Show the key that requests are sent with, and how to set one.

    tui-agent has no accounts and stores no keys: it reads them from the environment.
    """
    from tui_agent.workbench.configuration.effective_settings import prepare_settings
    from tui_agent.workbench.configuration.launch_options import LaunchOptions
    from tui_agent.workbench.configuration.named_endpoints import key_source, require_key

    say("tui-agent has no sign-in: it sends requests with the key of your environment, and stores none.")
    try:
        settings = prepare_settings(LaunchOptions.for_command(Path.cwd()))[1].settings
        require_key(settings, os.environ)
        say(f"  now           {escaped(key_source(settings, os.environ))}, for the model {escaped(settings.model)}")
    except ConfigurationError as error:
        say(f"  now           {escaped(str(error))}")
    for words, command in (
        ("a key", "export ANTHROPIC_API_KEY=…"),
        ("a gateway", "export ANTHROPIC_BASE_URL=https://… ANTHROPIC_AUTH_TOKEN=…"),
        ("other models", "[providers.NAME] in the settings; `tui-agent config path` shows the file"),
        ("tool servers", "tui-agent mcp login NAME"),
        ("check", "tui-agent doctor"),
    ):
        say(f"  {words:<13} {command}")


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
    from tui_agent.tools.processes.child_environment import child_environment

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
    # An index without the package is reached, and one that does not answer may have it.
    if found is None and "No matching distribution" in done.stderr:
        return None
    if found is None:
        lines = done.stderr.strip().splitlines()
        raise TuiAgentError(f"the package index did not answer: {lines[-1] if lines else 'no version was named'}")
    return found[1]


def _pip() -> list[str] | None:
    """Return the command of a pip: that of this environment if it has one, else another."""
    # The one of this environment knows the index that the program was installed from.
    own = Path(sys.executable).with_name("pip")
    found = str(own) if own.exists() else shutil.which("pip3") or shutil.which("pip")
    return None if found is None else [found]


def _order(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, for comparison."""
    # Without a library for versions: releases here have numbers only.
    return tuple(int(number) for number in re.findall(r"\d+", version.partition("+")[0]))


@click.command()
@click.argument("shell", metavar="SHELL", type=OneOf(("bash", "zsh", "fish")))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of SHELL: bash, zsh or fish.

    \b
    bash: eval "$(tui-agent completion bash)"    in ~/.bashrc
    zsh:  eval "$(tui-agent completion zsh)"     in ~/.zshrc, after compinit
    fish: tui-agent completion fish > ~/.config/fish/completions/tui-agent.fish
    """
    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"no completion for {shell!r}")
    say(found(ctx.find_root().command, {}, "tui-agent", "_TUI_AGENT_COMPLETE").source())
