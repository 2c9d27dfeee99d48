"""Theme files: all built-in ones are valid and legible, and a broken one causes a message."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from textual.color import Color, ColorParseError

from tests.support.broken_files import NO_TEXT, NO_TOML, NOT_A_FILE
from tests.support.table import table
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.ui.app.themes import ThemeCatalogue, read_theme, shipped_themes

GOOD = 'name = "mine"\n[colors]\nprimary = "#336699"\n'


def write(folder: Path, text: str, name: str = "mine") -> Path:
    path = folder / f"{name}.toml"
    path.write_text(text)
    return path


def contrast(one: Color, other: Color) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: Color) -> float:
    def linear(part: float) -> float:
        return part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4

    red, green, blue = (linear(part) for part in colour.normalized)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


async def test_the_four_built_in_themes_are_valid() -> None:
    shelf = ThemeCatalogue((shipped_themes(),))

    assert await shelf.read_all() == ()
    assert sorted(shelf.names) == ["ansi", "dark", "high-contrast", "light"]


def colours_of(name: str) -> dict[str, Color]:
    """Return every colour of a shipped theme by the name of its variable."""
    variables = read_theme(shipped_themes() / f"{name}.toml").to_color_system().generate()
    found: dict[str, Color] = {}
    for role, value in variables.items():
        with suppress(ColorParseError):
            found[role] = Color.parse(value)
    return found


GROUNDS = ("background", "surface", "panel")
HINTS = ("text-muted", "text-disabled", "secondary", "footer-key-foreground", "link-color")
EDGES = ("border", "border-blurred", "scrollbar", "scrollbar-hover", "scrollbar-active")
TEXTS = ("primary", "accent", "success", "warning", "error", "foreground", *HINTS)


PALETTES = {
    "xterm": ("#000000", "#e5e5e5", "#00cd00", "#cdcd00", "#7f7f7f", "#ff0000", "#5c5cff", "#ff00ff"),
    "vga": ("#000000", "#aaaaaa", "#00aa00", "#aa5500", "#555555", "#ff5555", "#5555ff", "#ff55ff"),
    "tango": ("#2e3436", "#d3d7cf", "#4e9a06", "#c4a000", "#555753", "#ef2929", "#729fcf", "#ad7fa8"),
    "solarized": ("#002b36", "#839496", "#859900", "#b58900", "#002b36", "#cb4b16", "#839496", "#6c71c4"),
    "solarized light": ("#fdf6e3", "#657b83", "#859900", "#b58900", "#002b36", "#cb4b16", "#839496", "#6c71c4"),
    "light": ("#ffffff", "#000000", "#00a600", "#999900", "#666666", "#e50000", "#0000ff", "#e500e5"),
}
"""Colours of common terminals: those of `SHOWN`."""

SHOWN = ("ground", "default", "green", "yellow", "bright_black", "bright_red", "bright_blue", "bright_magenta")


@table(("name", "least"), [("dark", 4.5), ("light", 4.5), ("high-contrast", 7.0)])
def test_texts_hints_borders_and_the_row_under_the_cursor_have_enough_contrast(name: str, least: float) -> None:
    colours = colours_of(name)
    needed = {
        **{(role, ground): least for role in TEXTS for ground in GROUNDS},
        **{(role, f"block-cursor-{part}background"): 4.5 for role in TEXTS for part in ("", "blurred-")},
        **{(role, ground): 2.0 for role in EDGES for ground in GROUNDS},
    }

    assert [pair for pair, ratio in needed.items() if contrast(colours[pair[0]], colours[pair[1]]) < ratio] == []


@table("palette", PALETTES)
def test_hints_and_keys_of_the_terminals_colours_stay_legible_in_common_palettes(palette: str) -> None:
    shown = dict(zip(SHOWN, map(Color.parse, PALETTES[palette]), strict=True))
    variables = read_theme(shipped_themes() / "ansi.toml").to_color_system().generate()

    def seen(role: str) -> float:
        return contrast(shown[variables[role].removeprefix("ansi_")], shown["ground"])

    texts = ("text-muted", "text-disabled", "primary", "footer-key-foreground", "accent", "success", "warning", "error")
    # Solarized has no sixteen colours for text: its bright blue is its text for a dark ground.
    assert {role: seen(role) for role in texts if seen(role) < 2.9} == {}
    assert {role: seen(role) for role in ("border", "border-blurred", "scrollbar") if seen(role) < 2.0} == {}


@table(
    ("text", "field"),
    [
        ('name = "mine"\n[colors]\nprimary = "blurple"\n', "colors.primary"),
        ('name = "Mine!"\n[colors]\nprimary = "red"\n', "name"),
        ('name = "mine"\n[colors]\n', "colors.primary"),
        ('name = "mine"\n[colors]\nprimary = "red"\nshiny = "red"\n', "colors.shiny"),
        (GOOD + '[variables]\n"border" = "very red"\n', "variables.border"),
        (GOOD + '[variables]\n"border" = " "\n', "variables.border"),
    ],
)
def test_an_error_names_file_and_field(tmp_path: Path, text: str, field: str) -> None:
    path = write(tmp_path, text)

    with pytest.raises(ConfigurationError) as raised:
        read_theme(path)

    assert str(path) in str(raised.value)
    assert field in str(raised.value)


@table("put", [*NOT_A_FILE.values(), *NO_TEXT.values(), *NO_TOML.values()])
async def test_any_odd_file_is_one_problem_and_keeps_the_last_theme(
    tmp_path: Path, put: Callable[[Path], None]
) -> None:
    path = write(tmp_path, GOOD)
    shelf = ThemeCatalogue((tmp_path,))
    assert await shelf.read_all() == ()
    path.unlink()
    put(path)

    [problem] = await shelf.read_all()

    assert problem.text.startswith(f"theme {path}")
    assert shelf.find("mine") is not None
    assert ThemeCatalogue((tmp_path,)).find("mine") is None


@table("name", ["", "..", "../mine", "/mine", "a\0b", "x" * 5_000, "Mine", "\ud800"])
def test_an_invalid_name_finds_no_theme(tmp_path: Path, name: str) -> None:
    write(tmp_path.parent, GOOD)

    assert ThemeCatalogue((tmp_path,)).find(name) is None


def test_a_theme_of_the_user_replaces_a_built_in_one_unless_it_is_broken(tmp_path: Path) -> None:
    shelf = ThemeCatalogue((shipped_themes(), tmp_path))
    path = write(tmp_path, "colors = 3", "dark")
    assert shelf.find("dark") is not None

    path.write_text(
        'name = "dark"\nansi = true\n[colors]\nprimary = "#336699"\n'
        '[variables]\n"border" = "#112233 50%"\n"block-cursor-text-style" = "bold reverse"\n'
    )
    found = ThemeCatalogue((shipped_themes(), tmp_path)).find("dark")

    assert found is not None
    assert (found.primary, found.variables["block-cursor-text-style"]) == ("#336699", "bold reverse")
    # Textual asks for these in a theme of the terminal's colours.
    assert {"ansi-background", "ansi-foreground"} <= set(found.to_color_system().generate())


async def test_further_files_add_themes_and_replace_none(tmp_path: Path) -> None:
    own, more = tmp_path / "own", tmp_path / "more"
    paths = [more / f"{name}.toml" for name in ("dark", "extra", "sly", "mine")]
    for folder in (own, more):
        folder.mkdir()
    for path in paths:
        path.write_text(f'name = "{"dark" if path.stem == "sly" else path.stem}"\n[colors]\nprimary = "#123456"\n')
    (own / "other.toml").write_text('name = "mine"\n[colors]\nprimary = "#abcdef"\n')
    asked: list[str] = []

    def files() -> list[Path]:
        asked.append("")
        return paths

    shelf = ThemeCatalogue((shipped_themes(), own))
    shelf.more = files
    assert shelf.find("light") is not None
    assert asked == [], "only for a name that no folder has"

    extra, sly = shelf.find("extra"), shelf.find("sly")
    problems = await shelf.read_all()

    assert (extra and extra.primary, sly) == ("#123456", None)
    assert [problem.text for problem in problems] == [f"theme {more / 'sly.toml'}: name: must be 'sly', like the file"]
    assert {name: theme.primary for name in ("extra", "mine") if (theme := shelf.find(name))} == {
        "extra": "#123456",
        "mine": "#abcdef",
    }
    assert (dark := shelf.find("dark")) is not None
    assert dark.primary != "#123456"
