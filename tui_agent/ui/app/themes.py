"""Themes: files that define all colours, chosen by name and read again when one changes. A broken file causes a
message, never a crash."""

import asyncio
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from textual.color import Color, ColorParseError
from textual.theme import BUILTIN_THEMES, Theme

import tui_agent
from tui_agent.protocol.background import run_service
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.file_watch import WatchedFiles, watch_files
from tui_agent.protocol.regular_file import read_regular_file, read_regular_file_async
from tui_agent.protocol.setting_files import parse_toml

if TYPE_CHECKING:
    from .base_app import BaseApp

DEFAULT_THEME = "dark"
"""Name of the theme that is used if none is chosen."""

AUTO_THEME, LIGHT_THEME = "auto", "light"
"""The name that follows the terminal's background, and the theme for a light one; a dark one gets the default theme."""

THEME_NAME = r"[a-z0-9][a-z0-9-]*"
"""Pattern of theme names; a path does not match it."""

_STYLE_WORDS = frozenset(
    ("none", "not", "bold", "b", "dim", "d", "italic", "i", "underline", "u", "reverse", "r", "strike", "s", "auto")
)


def _colour(value: str) -> str:
    """Check that Textual can parse the colour."""
    try:
        Color.parse(value)
    except ColorParseError:
        raise ValueError(f"{value!r} is not a colour; use #rrggbb or the name of one") from None
    return value


def _variable(value: str) -> str:
    """Check the value of a style variable: colours, percentages and text styles."""
    for word in value.split():
        if word not in _STYLE_WORDS and not (word.endswith("%") and word[:-1].isdecimal()):
            _colour(word)
    if not value.strip():
        raise ValueError("is empty; use a colour or a text style such as bold")
    return value


Colour = Annotated[str, AfterValidator(_colour)]
Variable = Annotated[str, AfterValidator(_variable)]


class ThemeColours(BaseModel):
    """`[colors]`: colours by purpose."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    primary: Colour
    """Active and selected parts: the running call, the cursor, focus."""
    secondary: Colour | None = None
    """Unobtrusive parts: frames, numbers."""
    accent: Colour | None = None
    """Steering, and the user's messages."""
    success: Colour | None = None
    warning: Colour | None = None
    """Parts that need the user."""
    error: Colour | None = None
    foreground: Colour | None = None
    background: Colour | None = None
    surface: Colour | None = None
    """Dialogs and the composer."""
    panel: Colour | None = None
    """Bars and raised parts."""
    boost: Colour | None = None


class ThemeFile(BaseModel):
    """One theme file."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    name: str = Field(pattern=rf"^{THEME_NAME}$")
    """Name by which the user selects it."""
    dark: bool = True
    ansi: bool = False
    """True if it uses the terminal's own sixteen colours."""
    colors: ThemeColours
    variables: Mapping[str, Variable] = Field(default_factory=dict[str, str])
    """Values for single Textual style variables, such as `footer-key-foreground`."""

    def to_theme(self) -> Theme:
        """Return the theme as a Textual theme."""
        colours = {name: value for name, value in self.colors.model_dump().items() if value is not None}
        variables = dict(self.variables)
        if self.ansi:
            # Textual's own style sheets use variables that only its own ANSI themes define.
            variables = {**BUILTIN_THEMES["ansi-dark" if self.dark else "ansi-light"].variables, **variables}
        return Theme(name=self.name, dark=self.dark, ansi=self.ansi, variables=variables, **colours)


@dataclass(frozen=True, slots=True)
class ThemeProblem:
    """A theme file that was not used."""

    path: Path
    text: str
    """Message with file and field."""


class ThemeCatalogue:
    """All themes, each in its last valid version."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = tuple(folders)
        """Folders of theme files; a theme in a later folder replaces one of the same name."""
        self.more: Callable[[], Sequence[Path]] = tuple
        """Returns further files, `NAME.toml` each, which replace no theme of a folder. Blocks."""
        self._themes: dict[str, Theme] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the themes that have been read."""
        return tuple(self._themes)

    @property
    def watched(self) -> WatchedFiles:
        """Files to watch for new and changed themes."""
        return WatchedFiles(directories=self.folders, ending=".toml")

    def find(self, name: str) -> Theme | None:
        """Return the theme of this name; None if no usable file has it. Blocks, but reads only files of this name."""
        if not re.fullmatch(THEME_NAME, name):
            return None
        for folder in reversed(self.folders):
            path = folder / f"{name}.toml"
            # The last folder first, because its theme replaces those of the same name.
            if name not in self._themes and os.path.isfile(path):
                self._take(((path, _content(path)),))
        if name not in self._themes:
            self._take_more((path, _content(path)) for path in self.more() if path.stem == name)
        return self._themes.get(name)

    async def read_all(self) -> tuple[ThemeProblem, ...]:
        """Read every file again, and return the problems; a broken file keeps the last valid version."""
        contents = [(path, await _content_async(path)) for path in await asyncio.to_thread(self._paths)]
        problems = await asyncio.to_thread(self._take, contents)
        more = [(path, await _content_async(path)) for path in await asyncio.to_thread(self.more)]
        return (*problems, *await asyncio.to_thread(self._take_more, more))

    def _paths(self) -> list[Path]:
        return [path for folder in self.folders for path in sorted(folder.glob("*.toml"))]

    def _take(self, contents: Iterable[tuple[Path, bytes | OSError]]) -> tuple[ThemeProblem, ...]:
        """Take the themes of files that were read; return a problem for each file without a usable one."""
        problems: list[ThemeProblem] = []
        for _, theme in _parsed(contents, problems):
            self._themes[theme.name] = theme
        return tuple(problems)

    def _take_more(self, contents: Iterable[tuple[Path, bytes | OSError]]) -> tuple[ThemeProblem, ...]:
        """Take the themes of further files whose names are free; return a problem for each unusable file."""
        problems: list[ThemeProblem] = []
        for path, theme in _parsed(contents, problems):
            if theme.name != path.stem:
                problems.append(ThemeProblem(path, f"theme {path}: name: must be {path.stem!r}, like the file"))
            else:
                # The user's own file wins over that of a plugin.
                self._themes.setdefault(theme.name, theme)
        return tuple(problems)


def _parsed(
    contents: Iterable[tuple[Path, bytes | OSError]], problems: list[ThemeProblem]
) -> Iterator[tuple[Path, Theme]]:
    """Yield the usable themes; add a problem for each other file."""
    for path, content in contents:
        try:
            yield path, _parse_theme(path, content)
        except ConfigurationError as error:
            problems.append(ThemeProblem(path, str(error)))


def theme_for(name: str, *, light: bool) -> str:
    """Return the name of a theme; `auto` is the one for a light or dark terminal."""
    if name != AUTO_THEME:
        return name
    return LIGHT_THEME if light else DEFAULT_THEME


def read_theme(path: Path) -> Theme:
    """Read a theme file.

    Raises:
        ConfigurationError: it cannot be read; the message names file, field and expected value.
    """
    return _parse_theme(path, _content(path))


def _content(path: Path) -> bytes | OSError:
    """Return the content of a file, or why it cannot be read."""
    try:
        return read_regular_file(str(path))
    except OSError as error:
        return error


async def _content_async(path: Path) -> bytes | OSError:
    """Return the content of a file, or why it cannot be read, without blocking the event loop."""
    try:
        return await read_regular_file_async(str(path))
    except OSError as error:
        return error


def _parse_theme(path: Path, content: bytes | OSError) -> Theme:
    """Return the theme in a file.

    Raises:
        ConfigurationError: as for `read_theme`.
    """
    if isinstance(content, OSError):
        raise ConfigurationError(f"theme {path} cannot be read: {content.strerror or content}") from content
    try:
        record = parse_toml(content)
    except ValueError as error:
        raise ConfigurationError(f"theme {path}: {error}") from error
    try:
        return ThemeFile.model_validate(record).to_theme()
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise ConfigurationError(f"theme {path}: {field}: {first['msg'].removeprefix('Value error, ')}") from error


def shipped_themes() -> Path:
    """Return the folder of the built-in themes, in an installation or in a checkout."""
    package = Path(tui_agent.__file__).parent
    installed = package / "themes"
    return installed if installed.is_dir() else package.parent / "themes"


class LiveThemes:
    """The themes of one app."""

    def __init__(
        self, app: "BaseApp[None]", catalogue: ThemeCatalogue, first: str, repaint: Callable[[], object]
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
        """Read all themes now and after each change of a file, until cancelled.

        A file that becomes unusable keeps the last theme that it had, and a message names the fault.
        """
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
