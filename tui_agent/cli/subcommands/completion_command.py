"""`tui-agent completion`: the script with which a shell completes the command line."""

import click
from click.shell_completion import get_completion_class

from tui_agent.cli.command_words import OneOf
from tui_agent.cli.process.controlling_terminal import say


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
