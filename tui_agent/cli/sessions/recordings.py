"""`--record`, `--replay` and `/replay`."""

import asyncio
import os
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent import __version__
from tui_agent.cli.process.controlling_terminal import need_terminal, say_error
from tui_agent.cli.process.log_file import LOG_NAME, log_to_file
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.events import Warned
from tui_agent.settings import Locations, Settings
from tui_agent.ui.base.terminal_environment import TerminalEnvironment, WorkingDirectory
from tui_agent.workbench.launch_options import DEMO_LABEL, LaunchOptions

if TYPE_CHECKING:
    # Imported at run time only by a program that records or replays.
    from tui_agent.recording import RecordingHeader, RecordingWriter
    from tui_agent.ui.replay.player_screen import PlayerScreen


@asynccontextmanager
async def open_recording_writer(path: Path | None) -> "AsyncGenerator[RecordingWriter | None]":
    """Record to `path` while the context is open; None: do not record.

    Raises:
        ConfigurationError: the file exists already, or cannot be created.
    """
    if path is None:
        yield None
        return
    from tui_agent.recording import RecordingWriter

    sink = RecordingWriter(path)
    async with sink:
        yield sink
    if sink.failed is not None and not sink.told:
        say_error(f"tui-agent: {sink.last_words}")


def recording_header(options: LaunchOptions, settings: Settings) -> "RecordingHeader":
    """Return the facts that the screen shows and no event carries."""
    from tui_agent.recording import RecordingHeader

    working = WorkingDirectory.of(options.cwd, Path.home())
    # As in Textual, a fixed size in the environment takes precedence.
    width, height = shutil.get_terminal_size((120, 40))
    terminal = TerminalEnvironment.of_environment(os.environ, reduced_motion=settings.ui.reduced_motion)
    return RecordingHeader(
        program=__version__,
        size=(width, height),
        theme=settings.ui.theme,
        directory=working.directory,
        branch=working.branch,
        model="" if options.demo else settings.model,
        label=DEMO_LABEL if options.demo else "",
        reduced_motion=terminal.reduced_motion,
        keys=settings.keys,
    )


def warn_of_broken_recording(bus: EventBus, text: str) -> None:
    """Publish a warning that recording has ended early."""
    bus.publish(Warned(code="recording_broken", text=text))


def run_replay(path: Path, theme: str | None) -> int:
    """Play a recording and return the exit code; needs no key, network or session.

    Raises:
        ConfigurationError: standard streams are not a terminal, or the file is not a recording.
    """
    from tui_agent.recording import read_recording
    from tui_agent.ui.replay.player_app import PlayerApp
    from tui_agent.ui.replay.replay_stage import player_of

    recording = read_recording(path)
    need_terminal("run tui-agent --replay in one")
    locations = Locations.of_user(os.environ)
    log_to_file(locations, verbose=False)
    terminal = TerminalEnvironment.of_environment(os.environ)
    themes_dirs = (locations.user_themes_dir,)
    player = player_of(
        recording,
        surroundings=terminal,
        theme=theme,
        themes_dirs=themes_dirs,
        log_file=locations.log_dir / LOG_NAME,
    )
    app = PlayerApp(player, theme or recording.head.theme, themes_dirs=themes_dirs, surroundings=terminal)
    app.run()
    return app.return_code or 0


async def open_recording(path: Path, locations: Locations, terminal: TerminalEnvironment) -> "PlayerScreen":
    """Return the screen that plays a recording, for `/replay`.

    Raises:
        ConfigurationError: the file is missing, or not a recording.
    """
    from tui_agent.recording import read_recording
    from tui_agent.ui.replay.replay_stage import player_of

    return player_of(
        await asyncio.to_thread(read_recording, path),
        surroundings=terminal,
        themes_dirs=(locations.user_themes_dir,),
        log_file=locations.log_dir / LOG_NAME,
    )
