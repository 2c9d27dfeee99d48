"""The journal of a session, found and read for a replay."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tui_agent.protocol.background import IMPORTING
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import AgentCreated, SessionCreated
from tui_agent.settings import Locations
from tui_agent.workbench.configuration.launch_options import DEMO_LABEL

_MAX_PROBLEMS = 2
"""Problems of a journal that are named."""
_LONGEST_HEAD = 65_536
"""Bytes of the first line that are read to say why a file cannot be replayed."""
_FIRST_EVENTS = 20
"""Events among which those with the directory and the model are."""


@dataclass(frozen=True, slots=True)
class ReplaySource:
    """The events of a session, and what its beginning says about it."""

    envelopes: Sequence[Envelope]
    """The events; those of a long journal are parsed at each access."""
    stamps: Sequence[int]
    """Their `ts`, in milliseconds since the epoch."""
    problems: Sequence[str]
    """Reports of damaged parts that were skipped, a sentence each."""
    directory: str = ""
    """Its directory, with `~` for the home directory."""
    branch: str = ""
    model: str = ""
    label: str = ""
    """Text beside the model's name."""


def find_journal(name: str, folder: Path, locations: Locations, *, is_current: bool = False) -> Path:
    """Return the file with this name, or the journal of the session whose id is, or alone begins with, it. Blocks.

    Args:
        folder: directory for relative names.
        is_current: True if `name` is the whole id of the present session.

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


def read_source(path: Path) -> ReplaySource:
    """Read a journal. Blocks.

    Raises:
        ConfigurationError: the file is not a journal.
        SessionError: it cannot be read.
    """
    with IMPORTING:
        from tui_agent.providers import DEMO_MODEL
        from tui_agent.session.journal_reader import scan_journal

    stamps: list[int] = []
    contents = scan_journal(path, lambda envelope: stamps.append(envelope.ts))
    if not stamps:
        raise ConfigurationError(_refusal(path))
    problems = [problem.text for problem in contents.problems]
    if len(problems) > _MAX_PROBLEMS:
        problems[_MAX_PROBLEMS:] = [f"The file has {len(problems) - _MAX_PROBLEMS} more problems."]
    directory = branch = model = ""
    for number in range(min(len(stamps), _FIRST_EVENTS)):
        match contents.envelopes[number]:
            case Envelope(event=SessionCreated(cwd=cwd, branch=named)):
                directory, branch = _short(cwd), named
            case Envelope(event=AgentCreated(model=name)) if not model:
                model = name
            case _:
                pass
    label = DEMO_LABEL if model == DEMO_MODEL else ""
    return ReplaySource(contents.envelopes, stamps, problems, directory, branch, model, label)


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


def _short(directory: str) -> str:
    """Return a directory with `~` for the home directory."""
    path, home = Path(directory), Path.home()
    return str(Path("~") / path.relative_to(home)) if path.is_relative_to(home) else directory
