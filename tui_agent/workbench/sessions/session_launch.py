"""One start of the program: its options, its settings, its first page, and the sessions that it can open."""

import asyncio
import json
import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.protocol.amounts import age_text
from tui_agent.protocol.background import IMPORTING
from tui_agent.protocol.errors import ConfigurationError, SessionError, TuiAgentError
from tui_agent.protocol.facts.screen_facts import FirstPage, HistoryTail, SessionOffer
from tui_agent.protocol.messages import now_ms
from tui_agent.protocol.regular_file import branch_of, make_private_directories
from tui_agent.settings import Locations, Settings
from tui_agent.workbench.configuration.effective_settings import load_effective_settings
from tui_agent.workbench.configuration.launch_options import DEMO_LABEL, LaunchOptions
from tui_agent.workbench.configuration.named_endpoints import key_source

if TYPE_CHECKING:
    # Most sessions replay none.
    from .replay_source import ReplaySource

MOST_SESSIONS = 3
JOURNALS_READ = 200
"""Journals that are read at most to find the last sessions of the folder."""
TEST_FILES = ("pyproject.toml", "tests", "package.json", "Cargo.toml", "go.mod", "Makefile", "pom.xml", "tox.ini")
"""Files that suggest that a project has tests."""
DEMO_STARTERS = ("give me the tour", "list files in .", "run echo hello")
INSTRUCTIONS = ("AGENTS.md", "CLAUDE.md")


@dataclass(frozen=True, slots=True)
class NextSession:
    """A session that can be opened."""

    options: LaunchOptions
    glimpse: HistoryTail | None
    """Its last events; None for a new session."""
    model: str
    """Model name until an event reports one."""
    label: str
    """Text beside the model's name."""


class SessionLaunch:
    """Finds sessions, and the options with which each is opened."""

    def __init__(self, options: LaunchOptions, locations: Locations, settings: Settings) -> None:
        self.options = options
        """The command line."""
        self.mode = settings.permissions.mode
        """Permission mode of a new session."""
        self.sessions_dir = locations.sessions_dir
        """Directory of the saved sessions."""
        self.locations = locations
        """The user's directories."""
        self.settings = settings
        """The merged settings."""
        self._first_run = is_first_run(locations)
        self._kept_theme = ""

    def with_options(self, options: LaunchOptions) -> "SessionLaunch":
        """Return the same start with other options."""
        return SessionLaunch(options, self.locations, self.settings)

    def first_session(self) -> NextSession:
        """Return the session that the command line names. Blocks for a moment if it is resumed.

        Raises:
            SessionError: the session does not exist, or another program has it open.
        """
        return self._named(self.options)

    def _named(self, options: LaunchOptions) -> NextSession:
        glimpse = None
        if options.resume is not None:
            from tui_agent.workbench.sessions.journal_options import read_glimpse

            glimpse = read_glimpse(options, self.locations)
        model, label = ("", DEMO_LABEL) if options.demo else (self.settings.model, "")
        return NextSession(options, glimpse, model, label)

    async def first_page(self, options: LaunchOptions) -> FirstPage:
        """Return the content of the first page of a session."""
        return await asyncio.to_thread(first_page, options, self.locations, first_run=self._first_run)

    async def keep_theme(self, name: str) -> str:
        """Write a theme into the user's new settings file and return its path.

        Raises:
            ConfigurationError: the file has other content, or cannot be written.
        """
        path = await asyncio.to_thread(keep_theme, name, self.locations.user_file, self._kept_theme)
        self._kept_theme = name
        return path

    async def find(self, words: str, folder: Path) -> str | None:
        """Return the only session with this id, or of this folder with these words in its title; None if several.

        Raises:
            SessionError: there is none.
        """
        return await asyncio.to_thread(self._find, words, folder)

    def _find(self, words: str, folder: Path) -> str | None:
        with IMPORTING:
            from tui_agent.session.store import SessionStore

        store = SessionStore(self.sessions_dir)
        with suppress(SessionError):
            return store.find(words)
        wanted = words.casefold().split()
        here = os.path.realpath(folder)
        found = [
            one
            for one in store.list()
            if one.said
            and os.path.realpath(one.cwd) == here
            and all(word in f"{one.id} {one.title}".casefold() for word in wanted)
        ]
        if not found:
            raise SessionError(f"No session of this folder has “{words}” in its id or title. /resume lists all.")
        return found[0].id if len(found) == 1 else None

    async def read_replay(self, name: str, folder: Path, *, is_current: bool) -> "ReplaySource":
        """Read the session with this id or in this file, for a replay.

        Raises:
            TuiAgentError: it cannot be found or read, or is the present one and not saved.
        """
        with IMPORTING:
            from .replay_source import find_journal, read_source

        def read() -> "ReplaySource":
            return read_source(find_journal(name, folder, self.locations, is_current=is_current))

        return await asyncio.to_thread(read)

    async def prepare(self, session_id: str | None, *, demo: bool) -> NextSession:
        """Check that a session can be opened, and return it; None begins a new one.

        Raises:
            SessionError: the session does not exist, or another program has it open.
        """
        options = replace(
            self.options,
            prompt=None,
            continue_last=False,
            resume=session_id,
            session_id=None,
            # The recording and the title are those of the first session.
            extras=replace(self.options.extras, record=None, title=""),
            notice="",
            demo=demo,
        )
        return self._named(options) if session_id is None else await asyncio.to_thread(self._named, options)


# --- the first page ---------------------------------------------------------------------------------------------------


def is_first_run(locations: Locations) -> bool:
    """Return True if the user has neither settings nor sessions. Call it before a session is created. Blocks."""
    return not locations.user_file.exists() and not locations.sessions_dir.exists()


def first_page(options: LaunchOptions, locations: Locations, *, first_run: bool) -> FirstPage:
    """Return the content of the page. Blocks."""
    return FirstPage(
        sessions=_last_sessions(options.cwd, locations),
        facts=_facts(options, locations),
        starters=DEMO_STARTERS if options.demo else starters_for(options.cwd),
        is_first_run=first_run,
        key="none needed for the demo" if options.demo else _key_source(options, locations),
    )


def starters_for(folder: Path) -> tuple[str, ...]:
    """Return three prompts that fit the contents of a folder. Blocks."""
    try:
        names = {entry.name for entry in os.scandir(folder)} - {".git", ".tui-agent"}
    except OSError:
        names = set[str]()
    if not names:
        return ("write a small program that …", "set up a new project for …", "what can you do?")
    fitting = ["explain this project"]
    if names.intersection(TEST_FILES):
        fitting.append("run the tests and fix what fails")
    if branch_of(folder):
        fitting.append("review my uncommitted changes")
    if not names.intersection(INSTRUCTIONS):
        fitting.append("write an AGENTS.md for this project")
    fitting.append("find the riskiest part of this code and say why")
    return tuple(fitting[:3])


def _last_sessions(folder: Path, locations: Locations) -> tuple[SessionOffer, ...]:
    """Return the sessions of a folder with the latest messages, without those that a program has open."""
    with IMPORTING:
        from tui_agent.session.journal import is_journal_open
        from tui_agent.session.store import SessionStore
        from tui_agent.session.summary import SessionSummary, summarise

    here = os.path.realpath(folder)
    found: list[SessionSummary] = []
    try:
        for path in SessionStore(locations.sessions_dir).newest_paths()[:JOURNALS_READ]:
            one = summarise(path)
            is_here = one is not None and one.said and bool(one.cwd) and os.path.realpath(one.cwd) == here
            if one is not None and is_here and not is_journal_open(path):
                found.append(one)
            if len(found) > MOST_SESSIONS:
                break
    except TuiAgentError:
        return ()
    found.sort(key=lambda one: one.last_message, reverse=True)
    now = now_ms()
    return tuple(
        SessionOffer(one.id, one.title or one.id, age_text(one.last_message, now)) for one in found[:MOST_SESSIONS]
    )


def _facts(options: LaunchOptions, locations: Locations) -> tuple[str, ...]:
    """Return what the folder brings: branch, instructions that are used, number of rules."""
    with IMPORTING:
        from tui_agent.workbench.configuration.project_trust import folder_trust, without_files

    facts = [branch] if (branch := branch_of(options.cwd)) else []
    try:
        folder = folder_trust(options.cwd, locations, given=options.trust)
        folder = without_files(folder) if options.extras.is_safe else folder
        paths = [Path(str(layer.metadata["path"])) for layer in folder.instructions]
        facts += [path.name for path in paths if path.is_relative_to(os.path.realpath(options.cwd))]
        rules = len(load_effective_settings(options, locations).rules)
    except ConfigurationError:
        return tuple(facts)
    if rules:
        facts.append("1 rule" if rules == 1 else f"{rules} rules")
    return tuple(facts)


def _key_source(options: LaunchOptions, locations: Locations) -> str:
    try:
        return key_source(load_effective_settings(options, locations).settings, os.environ)
    except ConfigurationError:
        return ""


def keep_theme(name: str, path: Path, before: str) -> str:
    """Write a theme into the user's new settings file and return its path. Blocks.

    `before` is the theme in the file; empty if the file does not exist yet.

    Raises:
        ConfigurationError: the file has other content by now, or cannot be written.
    """
    with IMPORTING:
        from tui_agent.tools.atomic_write import write_atomically

    try:
        if path.exists() and (not before or path.read_text("utf-8") != _settings_with(before)):
            raise ConfigurationError(f'{path} exists; write the theme there: `theme = "{name}"` in the table [ui]')
        make_private_directories(path.parent)
        write_atomically(path, _settings_with(name).encode())
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: the theme was not kept: {error}") from error
    return str(path)


def _settings_with(theme: str) -> str:
    return f"[ui]\ntheme = {json.dumps(theme)}\n"
