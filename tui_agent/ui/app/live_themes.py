"""The themes of a running app: chosen by name, and read again when a file changes."""

from collections.abc import Callable, Sequence
from pathlib import Path

from textual.theme import Theme

from tui_agent.protocol.background import run_service
from tui_agent.protocol.file_watch import watch_files

from .base_app import BaseApp
from .themes import AUTO_THEME, DEFAULT_THEME, ThemeCatalogue, ThemeProblem, theme_for


class LiveThemes:
    """The themes of one app."""

    def __init__(
        self, app: BaseApp[None], catalogue: ThemeCatalogue, first: str, repaint: Callable[[], object]
    ) -> None:
        """Choose the theme `first`, or the default one; `repaint` redraws the app after its theme has changed."""
        self._app = app
        self._catalogue = catalogue
        self._chosen = first
        """The name that the user chose, perhaps `auto`."""
        first = theme_for(first, light=app.light)
        self._unchecked_first: str | None = first
        """Name of the first theme until all themes are read and it is known to exist or not."""
        self._repaint = repaint
        self._shown: dict[str, Theme] = {}
        self._problems: tuple[ThemeProblem, ...] = ()
        # Reads the file of one theme only: the others must not delay the first paint.
        for name in (first, DEFAULT_THEME):
            found = catalogue.find(name)
            if found is not None:
                self._use(name, found)
                break

    def offer(self, more: Callable[[], Sequence[Path]]) -> None:
        """Offer the files that `more` returns, before the first paint only if the first theme is in no folder."""
        self._catalogue.more = more
        first = self._unchecked_first
        if first is not None and first not in self._shown and (found := self._catalogue.find(first)) is not None:
            self._use(first, found)

    @property
    def names(self) -> Sequence[str]:
        """Names of the themes read so far."""
        return self._catalogue.names

    @property
    def choices(self) -> Sequence[str]:
        """Names to choose from: the themes read so far, and the name that follows the terminal."""
        return (*self._catalogue.names, AUTO_THEME)

    @property
    def follows_terminal(self) -> bool:
        """True if the theme depends on the terminal's background."""
        return self._chosen == AUTO_THEME

    def background_reported(self) -> None:
        """Use the theme for the terminal's background, if the theme follows it."""
        if self.follows_terminal:
            self.choose(AUTO_THEME)

    def choose(self, name: str) -> None:
        """Use another theme, or say that it does not exist."""
        actual = theme_for(name, light=self._app.light)
        found = self._catalogue.find(actual)
        if found is None:
            self._warn_unknown(name)
        else:
            self._chosen = name
            if actual != self._app.theme or name != AUTO_THEME:
                self._use(actual, found)

    async def watch(self) -> None:
        """Read all themes now and after each change of a file; a broken file keeps its last good theme."""
        await run_service("live themes", self._watch_files(), self._report_unwatched)

    async def read_now(self) -> None:
        """Read all themes once."""
        self._apply(await self._catalogue.read_all())

    async def _watch_files(self) -> None:
        await watch_files(self._catalogue.watched, self._read, self._report_polling)

    async def _read(self) -> None:
        await self.read_now()
        first, self._unchecked_first = self._unchecked_first, None
        if first is not None and self._catalogue.find(first) is None:
            self._warn_unknown(first)

    def _apply(self, problems: Sequence[ThemeProblem]) -> None:
        """Put changed themes to use, and report files that could not be read."""
        for name in self._catalogue.names:
            found = self._catalogue.find(name)
            if found is not None and found != self._shown.get(name):
                self._register(name, found)
                if name == self._app.theme:
                    self._repaint()
        for problem in problems:
            if problem not in self._problems:
                self._warn(f"{problem.text}. The theme stays unchanged.")
        self._problems = tuple(problems)

    def _use(self, name: str, theme: Theme) -> None:
        self._register(name, theme)
        self._app.theme = name

    def _register(self, name: str, theme: Theme) -> None:
        self._shown[name] = theme
        self._app.register_theme(theme)

    def _report_unwatched(self, reason: str) -> None:
        self._warn(f"Themes are no longer watched ({reason}). They stay as they are; restart to apply changes.")

    def _report_polling(self, reason: str) -> None:
        self._warn(f"The system no longer reports changes of themes ({reason}). The files are checked once a second.")

    def _warn_unknown(self, name: str) -> None:
        self._warn(f"No theme {name!r}; the themes are {', '.join(self.choices)}")

    def _warn(self, text: str) -> None:
        self._app.notify(text, title="Theme", severity="warning")
