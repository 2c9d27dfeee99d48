"""`--replay` and `/replay`: finds and reads the journal of a session, and opens the screen that plays it."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_agent.cli.process.controlling_terminal import need_terminal
from tui_agent.cli.process.log_file import LOG_NAME, log_to_file
from tui_agent.cli.screen_parts import apply_input
from tui_agent.protocol.engine_imports import IMPORTING
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import AgentCreated, SessionCreated
from tui_agent.settings import Locations
from tui_agent.ui.base.terminal_environment import TerminalEnvironment, WorkingDirectory
from tui_agent.ui.chat.chat_options import ChatOptions
from tui_agent.workbench.configuration.effective_settings import prepare_settings
from tui_agent.workbench.configuration.launch_options import DEMO_LABEL, LaunchOptions

if TYPE_CHECKING:
    # Imported at run time only by a program that replays.
    from tui_agent.ui.replay.replay_screen import ReplayScreen
    from tui_agent.ui.replay.replay_timeline import ReplayTimeline

_MAX_PROBLEMS = 2
"""Problems of a journal that are named."""
_LONGEST_HEAD = 65_536
"""Bytes of the first line that are read to say why a file cannot be replayed."""
_FIRST_EVENTS = 20
"""Events among which those with the directory and the model are."""


def run_replay(name: str, options: LaunchOptions) -> int:
    """Replay a session and return the exit code; needs no key and no network.

    Args:
        name: the session's id, or the file of its journal.
        options: the command line.

    Raises:
        ConfigurationError: standard streams are not a terminal, or the file is not a journal.
        SessionError: no session has this id.
    """
    from tui_agent.ui.replay.replay_screen import ReplayApp

    locations, loaded = prepare_settings(options)
    timeline = read_timeline(find_journal(name, options.cwd, locations))
    need_terminal("run tui-agent --replay in one")
    log_to_file(locations, verbose=options.verbose)
    apply_input(loaded.settings)
    app = ReplayApp(
        lambda chat_options: screen_for(timeline, chat_options),
        theme=loaded.settings.ui.theme,
        themes_dirs=(locations.user_themes_dir,),
        surroundings=TerminalEnvironment.of_environment(os.environ, reduced_motion=loaded.settings.ui.reduced_motion),
        log_file=locations.log_dir / LOG_NAME,
    )
    app.run()
    return app.return_code or 0


def replay_opener(
    locations: Locations, folder: Path, current: Callable[[], str]
) -> "Callable[[str, ChatOptions], Awaitable[ReplayScreen]]":
    """Return the function that opens a replay for `/replay`; `current` returns the id of the present session."""

    async def open_replay(name: str, options: ChatOptions) -> "ReplayScreen":
        def read() -> "ReplayTimeline":
            return read_timeline(find_journal(name or current(), folder, locations, is_current=not name))

        return screen_for(await asyncio.to_thread(read), options)

    return open_replay


def find_journal(name: str, folder: Path, locations: Locations, *, is_current: bool = False) -> Path:
    """Return the file with this name, or the journal of the session with this id or the only one that begins so.

    Raises:
        ConfigurationError: there is no such file, or the present session is not saved.
        SessionError: no session has this id.
    """
    with IMPORTING:
        from tui_agent.session.store import SessionStore

    store = SessionStore(locations.sessions_dir)
    if is_current:
        if not name or not (journal := store.journal_path(name)).exists():
            raise ConfigurationError("this session is not saved")
        return journal
    file = folder / Path(name).expanduser()
    if file.exists() and not file.is_dir():
        return file
    if os.sep in name or file.suffix:
        raise ConfigurationError(f"{file} is a directory" if file.is_dir() else f"{file} does not exist")
    return store.journal_path(store.find(name))


def read_timeline(path: Path) -> "ReplayTimeline":
    """Read a journal. Blocks.

    Raises:
        ConfigurationError: the file is not a journal.
        SessionError: it cannot be read.
    """
    with IMPORTING:
        from tui_agent.session.journal_reader import scan_journal
        from tui_agent.ui.replay.replay_timeline import ReplayTimeline

    stamps: list[int] = []
    contents = scan_journal(path, lambda envelope: stamps.append(envelope.ts))
    if not stamps:
        raise ConfigurationError(_refusal(path))
    problems = [problem.text for problem in contents.problems]
    if len(problems) > _MAX_PROBLEMS:
        problems[_MAX_PROBLEMS:] = [f"The file has {len(problems) - _MAX_PROBLEMS} more problems."]
    return ReplayTimeline(contents.envelopes, stamps, problems)


def _refusal(path: Path) -> str:
    """Return why a file without events cannot be replayed."""
    with path.open("rb") as file:
        first = file.readline(_LONGEST_HEAD)
    try:
        head: Any = json.loads(first)
    except (ValueError, RecursionError):
        head = None
    if isinstance(head, dict) and "recording" in head:
        return (
            f"{path} is a recording of an earlier version, which this one cannot play. "
            "`tui-agent --replay ID` replays any saved session; `tui-agent sessions list` shows their ids"
        )
    return f"{path} is not the journal of a session: it has no event"


def screen_for(timeline: "ReplayTimeline", options: ChatOptions) -> "ReplayScreen":
    """Return the screen that replays a session, with the title of its beginning."""
    from tui_agent.providers import DEMO_MODEL
    from tui_agent.ui.replay.replay_screen import ReplayScreen

    place, model = WorkingDirectory(), ""
    for number in range(min(len(timeline), _FIRST_EVENTS)):
        match timeline.event(number):
            case Envelope(event=SessionCreated(cwd=cwd, branch=branch)):
                place = WorkingDirectory(_short(cwd), branch)
            case Envelope(event=AgentCreated(model=name)) if not model:
                model = name
            case _:
                pass
    label = DEMO_LABEL if model == DEMO_MODEL else ""
    settings = replace(options, place=place, model=model, label=label, first_page=None, glimpse=None, prompt=None)
    return ReplayScreen(timeline, settings)


def _short(directory: str) -> str:
    """Return a directory with `~` for the home directory."""
    path, home = Path(directory), Path.home()
    return str(Path("~") / path.relative_to(home)) if path.is_relative_to(home) else directory
