"""`--record`: a recording for as long as the program runs."""

import os
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent import __version__
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.events import Warned
from tui_agent.settings import Settings
from tui_agent.ui.base.terminal_environment import TerminalEnvironment, WorkingDirectory

from .controlling_terminal import say_error
from .launch_options import DEMO_LABEL, LaunchOptions

if TYPE_CHECKING:
    # Loaded where something is recorded only.
    from tui_agent.recording import RecordingHeader, RecordingWriter


@asynccontextmanager
async def open_recording_writer(path: Path | None) -> "AsyncGenerator[RecordingWriter | None]":
    """Takes a recording to `path` as long as the context is open; None: there is none.

    Raises:
        ConfigurationError: there is a file already, or it cannot be made.
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
    """What the screen shows that no event tells."""
    from tui_agent.recording import RecordingHeader

    place = WorkingDirectory.of(options.cwd, Path.home())
    # As Textual does: a fixed size in the environment comes first.
    width, height = shutil.get_terminal_size((120, 40))
    surroundings = TerminalEnvironment.of_environment(os.environ, reduced_motion=settings.ui.reduced_motion)
    return RecordingHeader(
        program=__version__,
        size=(width, height),
        theme=settings.ui.theme,
        directory=place.directory,
        branch=place.branch,
        model="" if options.demo else settings.model,
        label=DEMO_LABEL if options.demo else "",
        reduced_motion=surroundings.reduced_motion,
    )


def warn(bus: EventBus, text: str) -> None:
    """Tells that the recording broke off."""
    bus.publish(Warned(code="recording_broken", text=text))
