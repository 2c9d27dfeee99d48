"""`tui-agent acp` serves an editor, `tui-agent serve` a browser."""

import asyncio
import importlib.util
import os
import socket
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from tui_agent.cli.command_line import INTERRUPTED, launch, launch_options
from tui_agent.cli.process.controlling_terminal import say, say_error
from tui_agent.cli.process.log_file import log_loop_stalls, log_to_file
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.programs import install_command
from tui_agent.settings import Locations
from tui_agent.workbench.configuration.launch_options import PICK_SESSION

_NOT_FOR_EDITORS = (
    *("prompt", "print_mode", "plain", "continue_last", "resume", "session_id", "cwd", "theme"),
    *("output_format", "input_format", "include_deltas", "record", "replay", "title", "answer_schema"),
)
"""Options of the program that do not hold for the sessions of an editor."""


@click.command(name="acp", params=[option for option in launch.params if option.name not in _NOT_FOR_EDITORS])
def acp(**values: Any) -> int:
    """Serve an editor by the Agent Client Protocol, on standard input and output.

    The editor starts this command and opens sessions in the directories that it names.
    """
    if importlib.util.find_spec("acp") is None:
        raise ConfigurationError(f"editors need the extra `acp`: {install_command('acp')}")
    locations = Locations.of_user()
    log_to_file(locations, verbose=values["verbose"])
    # Like plain mode, an editor has no screen and answers questions.
    options = launch_options({**values, "plain": True, "cwd": Path.cwd()})
    stdin, stdout = _private_streams()
    from tui_agent.acp.editor_agent import serve_editor
    from tui_agent.acp.editor_host import EditorHost
    from tui_agent.cli.process.process_setup import end_start
    from tui_agent.cli.screen_entry import question_lines, screen_problems
    from tui_agent.workbench.leftover_commands import adopt_orphans
    from tui_agent.workbench.sessions.session_catalogue import SessionCatalogue

    end_start()

    async def run() -> int:
        # Here rather than by each session: one that ends would resign for the others.
        async with adopt_orphans(), log_loop_stalls():
            saved = SessionCatalogue.of_directory(locations.sessions_dir, Path("/"))
            host = EditorHost(options, saved, question_lines, screen_problems)
            return await serve_editor(host, stdin, stdout)

    return asyncio.run(run())


def _private_streams() -> tuple[int, int]:
    """Move standard input and output to other descriptors: nothing but the protocol may use them.

    Programs that a session starts find an empty input, and text that a library prints goes to standard error.
    """
    stdin, stdout = os.dup(0), os.dup(1)
    empty = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    return stdin, stdout


_NOT_FOR_PAGES = (
    *("prompt", "print_mode", "plain", "session_id", "record", "replay"),
    *("output_format", "input_format", "include_deltas", "answer_schema"),
)
"""Options of the program that do not hold for pages: each page starts the app anew."""

_OWN = [
    click.Option(["--host"], default="127.0.0.1", metavar="HOST", help="Address to listen on. Default: 127.0.0.1."),
    click.Option(
        ["--port"],
        type=click.IntRange(0, 65_535),
        default=0,
        metavar="N",
        help="Port. Default: a free one.",
    ),
    click.Option(["--i-know"], is_flag=True, help="Listen on a HOST that other machines reach."),
]
_SHARED = [option for option in launch.params if option.name not in _NOT_FOR_PAGES]


@click.command(name="serve", params=[*_OWN, *_SHARED])
def serve(host: str, port: int, i_know: bool, **values: Any) -> int:
    """Show the app in a browser.

    Prints an address; each page that opens it has a session of its own. Anyone who has the address can do what you can
    do. Ctrl+C ends the server and its sessions. From another machine, use a tunnel: start the server with
    `--port 8000` there, run `ssh -L 8000:127.0.0.1:8000 HOST` here, and open the address here.
    """
    from tui_agent.serve.browser_page import client_folder

    folder = client_folder()
    if folder is None:
        raise ConfigurationError(f"the browser needs the extra `serve`: {install_command('serve')}")
    launch_options(values)
    from tui_agent.serve.browser_server import ServerOptions, is_loopback, serve_browser

    is_open = not is_loopback(host)
    if is_open and not i_know:
        raise ConfigurationError(
            f"other machines may reach {host}, and anyone with the address could run commands as you. Keep to this "
            "machine and use an ssh tunnel, as `tui-agent serve --help` shows, or add --i-know"
        )
    log_to_file(Locations.of_user(), verbose=values["verbose"])

    def announce(address: str) -> None:
        if is_open:
            address = address.replace("0.0.0.0", socket.gethostname(), 1).replace("[::]", socket.gethostname(), 1)
            say_error(
                "Warning: other machines reach this server, and nothing is encrypted. Anyone who reads the connection, "
                f"or gets the address, can run commands as you on {socket.gethostname()}."
            )
        say("Open this address in a browser. Keep it to yourself: anyone who has it can do what you can do.")
        say(f"\n  {address}\n")
        say("Each page has a session of its own. Ctrl+C ends the server and its sessions; what is saved stays.")

    # Without the current directory among the places of modules, which belongs to whatever project this is.
    command = (sys.executable, "-P", "-m", "tui_agent", *app_arguments(values))
    asyncio.run(serve_browser(ServerOptions(host, port, any_host=is_open), command, folder, announce))
    return INTERRUPTED


def app_arguments(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the arguments with which the app gets the same options."""
    for option in _SHARED:
        value, name = values.get(option.name or ""), option.opts[-1]
        # `--resume` without an id is a flag.
        if value is True or (option.name == "resume" and value == PICK_SESSION):
            yield name
        elif option.multiple:
            yield from (f"{name}={rule}" for rule in value or ())
        elif value not in (None, False):
            yield f"{name}={value}"
