"""`tui-agent acp`: serves an editor by the Agent Client Protocol on standard input and output."""

import asyncio
import importlib.util
import os
from pathlib import Path
from typing import Any

import click

from tui_agent.cli.command_line import launch, launch_options
from tui_agent.cli.process.log_file import log_loop_stalls, log_to_file
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.installation import install_command
from tui_agent.settings import Locations

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
    options = launch_options({**values, "plain": True, "cwd": Path.cwd()})
    stdin, stdout = _private_streams()
    from tui_agent.acp.editor_agent import serve_editor
    from tui_agent.acp.editor_host import EditorHost
    from tui_agent.cli.interactive import question_lines, screen_problems
    from tui_agent.cli.process.process_setup import end_start
    from tui_agent.workbench.leftover_commands import adopt_orphans
    from tui_agent.workbench.sessions.session_catalogue import SessionCatalogue

    end_start()

    async def serve() -> int:
        # Here rather than by each session: one that ends would resign for the others.
        async with adopt_orphans(), log_loop_stalls():
            saved = SessionCatalogue.of_directory(locations.sessions_dir, Path("/"))
            host = EditorHost(options, saved, question_lines, screen_problems)
            return await serve_editor(host, stdin, stdout)

    return asyncio.run(serve())


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
