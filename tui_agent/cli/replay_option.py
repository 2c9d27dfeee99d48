"""`--replay` and `/replay`: recordings are watched without key, network, settings or session."""

import asyncio
import os
from pathlib import Path

from tui_agent.recording import read_recording
from tui_agent.settings import Locations
from tui_agent.ui.base.terminal_environment import TerminalEnvironment
from tui_agent.ui.replay.player_app import PlayerApp, player_of
from tui_agent.ui.replay.player_screen import PlayerScreen

from .controlling_terminal import need_terminal
from .log_file import LOG_NAME, log_to_file


def run_replay(path: Path, theme: str | None) -> int:
    """Plays a recording; returns the exit code.

    Raises:
        ConfigurationError: there is no terminal, or no such recording.
    """
    recording = read_recording(path)
    need_terminal("a recording can only be watched in one")
    locations = Locations.of_user(os.environ)
    log_to_file(locations, verbose=False)
    surroundings = TerminalEnvironment.of_environment(os.environ)
    themes_dirs = (locations.user_themes_dir,)
    player = player_of(
        recording,
        surroundings=surroundings,
        theme=theme,
        themes_dirs=themes_dirs,
        log_file=locations.log_dir / LOG_NAME,
    )
    app = PlayerApp(player, theme or recording.head.theme, themes_dirs=themes_dirs, surroundings=surroundings)
    app.run()
    return app.return_code or 0


async def open_recording(path: Path, locations: Locations, surroundings: TerminalEnvironment) -> PlayerScreen:
    """The screen that plays a recording, for `/replay`.

    Raises:
        ConfigurationError: there is no such recording.
    """
    return player_of(
        await asyncio.to_thread(read_recording, path),
        surroundings=surroundings,
        themes_dirs=(locations.user_themes_dir,),
        log_file=locations.log_dir / LOG_NAME,
    )
