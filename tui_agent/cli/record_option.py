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
from tui_agent.ui.surroundings import Place, Surroundings

from .launch_options import DEMO_LABEL, LaunchOptions
from .own_terminal import say_error

if TYPE_CHECKING:
    # Loaded where something is recorded only.
    from tui_agent.recording import Head, TapeWriter


@asynccontextmanager
async def taping(path: Path | None) -> "AsyncGenerator[TapeWriter | None]":
    """Takes a recording to `path` as long as the context is open; None: there is none.

    Raises:
        ConfigurationError: there is a file already, or it cannot be made.
    """
    if path is None:
        yield None
        return
    from tui_agent.recording import TapeWriter

    tape = TapeWriter(path)
    async with tape:
        yield tape
    if tape.failed is not None and not tape.told:
        say_error(f"tui-agent: {tape.last_words}")


def head_of(options: LaunchOptions, settings: Settings) -> "Head":
    """What the screen shows that no event tells."""
    from tui_agent.recording import Head

    place = Place.of(options.cwd, Path.home())
    # As Textual does: a fixed size in the environment comes first.
    width, height = shutil.get_terminal_size((120, 40))
    surroundings = Surroundings.of_environment(os.environ, reduced_motion=settings.ui.reduced_motion)
    return Head(
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
