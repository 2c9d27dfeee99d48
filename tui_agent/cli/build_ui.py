"""Builds the app and its bridge from options and settings; an engine is opened to the bridge later."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.settings import Locations, Settings
from tui_agent.ui.app.tui_agent_app import OpenPlayer, TuiAgentApp
from tui_agent.ui.base.terminal_environment import TerminalEnvironment, WorkingDirectory
from tui_agent.ui.bridge.agent_bridge import AgentBridge
from tui_agent.ui.chat.chat_options import HistoryTail

from .launch_options import DEMO_LABEL, LaunchOptions
from .log_file import LOG_NAME
from .recordings import open_recording, recording_header

if TYPE_CHECKING:
    # Imported at run time only by a program that records.
    from tui_agent.recording import RecordingWriter


def build_app(
    options: LaunchOptions,
    locations: Locations,
    settings: Settings,
    glimpse: HistoryTail | None,
    sink: "RecordingWriter | None",
) -> tuple[TuiAgentApp, AgentBridge]:
    """Return the app and its bridge.

    Args:
        options: the command line.
        locations: the user's directories.
        settings: the effective settings.
        glimpse: end of the resumed session for the first screen; None for a new session.
        sink: records events and input; None: nothing is recorded.
    """
    bridge, note_input = AgentBridge.for_pending_agent(settings.permissions.mode), None
    if sink is not None:
        from tui_agent.ui.bridge.exchange import RecordingExchange
        from tui_agent.ui.bridge.input_events import input_recorder

        bridge = AgentBridge.for_pending_agent(settings.permissions.mode, RecordingExchange(sink))
        note_input = input_recorder(sink)
    terminal = TerminalEnvironment.of_environment(os.environ, reduced_motion=settings.ui.reduced_motion)
    app = TuiAgentApp(
        bridge,
        theme=settings.ui.theme,
        themes_dirs=(locations.user_themes_dir,),
        glimpse=glimpse,
        prompt=options.prompt,
        model="" if options.demo else settings.model,
        label=DEMO_LABEL if options.demo else "",
        place=WorkingDirectory.of(options.cwd, Path.home()),
        surroundings=terminal,
        log_file=locations.log_dir / LOG_NAME,
        note_input=note_input,
        open_player=_player_opener(locations, options.cwd, terminal),
    )
    if sink is not None:
        sink.begin(recording_header(options, settings), lambda text: app.notify(text, severity="warning"))
    return app, bridge


def _player_opener(locations: Locations, folder: Path, terminal: TerminalEnvironment) -> OpenPlayer:
    """Return the function that opens a recording for `/replay`."""

    async def open_player(name: str):
        return await open_recording(folder / Path(name).expanduser(), locations, terminal)

    return open_player
