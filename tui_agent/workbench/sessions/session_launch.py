"""One start of the program: its options and settings, and the sessions that it can open one after another."""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tui_agent.protocol.engine_imports import IMPORTING
from tui_agent.protocol.errors import SessionError
from tui_agent.protocol.facts.first_page_data import FirstPage
from tui_agent.protocol.facts.history_tail import HistoryTail
from tui_agent.settings import Locations, Settings
from tui_agent.workbench.configuration.launch_options import DEMO_LABEL, LaunchOptions

from .first_pages import collect_first_page, is_first_run, keep_theme


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
        self._locations = locations
        self._settings = settings
        self._first_run = is_first_run(locations)
        self._kept_theme = ""

    async def first_page(self, options: LaunchOptions, age_text: Callable[[int, int], str]) -> FirstPage:
        """Return the content of the first page of a session; `age_text` returns the words for the age of another."""
        return await collect_first_page(options, self._locations, age_text, first_run=self._first_run)

    async def keep_theme(self, name: str) -> str:
        """Write a theme into the user's new settings file and return its path."""
        path = await keep_theme(name, self._locations, self._kept_theme)
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

    async def prepare(self, session_id: str | None, *, demo: bool) -> NextSession:
        """Check that a session can be opened, and return it.

        Args:
            session_id: the session; None for a new one.
            demo: True for the offline model.

        Raises:
            ConfigurationError: no key is set.
            SessionError: the session does not exist, or another program has it open.
        """
        options = replace(
            self.options,
            prompt=None,
            continue_last=False,
            resume=session_id,
            session_id=None,
            # The recording is that of the first session.
            record=None,
            notice="",
            demo=demo,
        )
        glimpse = None
        if session_id is not None:
            from .resume import read_glimpse

            glimpse = await asyncio.to_thread(read_glimpse, options, self._locations)
        model, label = ("", DEMO_LABEL) if demo else (self._settings.model, "")
        return NextSession(options, glimpse, model, label)
