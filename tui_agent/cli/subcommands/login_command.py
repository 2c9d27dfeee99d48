"""`tui-agent login`: tui-agent has no sign-in; this says which key it uses, and how to set one."""

import os
from pathlib import Path

import click

from tui_agent.cli.process.controlling_terminal import say
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.visible_text import escaped
from tui_agent.workbench.configuration.effective_settings import prepare_settings
from tui_agent.workbench.configuration.launch_options import LaunchOptions
from tui_agent.workbench.configuration.named_endpoints import key_source, require_key


@click.command(name="login")
def login() -> None:
    """Show the key that requests are sent with, and how to set one.

    tui-agent has no accounts and stores no keys: it reads them from the environment.
    """
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
