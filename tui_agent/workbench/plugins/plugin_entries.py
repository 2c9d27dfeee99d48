"""Entry points of installed packages that add something to tui-agent, and which of them may be used.

Everything here is read from the packages' metadata: no code of a package runs.
"""

import hashlib
import importlib.util
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Literal

from tui_agent.protocol.endpoint import ENDPOINT_NAME
from tui_agent.protocol.visible_text import escaped
from tui_agent.settings import Settings

PluginKind = Literal["tool", "provider", "hook", "theme"]

GROUPS: Mapping[str, PluginKind] = {
    "tui_agent.tools": "tool",
    "tui_agent.providers": "provider",
    "tui_agent.hooks": "hook",
    "tui_agent.themes": "theme",
}
"""Groups of entry points."""
ALL = "*"
"""Entry of `plugins.disabled` for all plugins."""

OTHER_TOOLS = ("agent", "skill", "find_tools")
"""Names of tui-agent's tools beside those of `tools`."""

_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_THEME_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
_BROKEN = (OSError, ValueError, LookupError, AttributeError, TypeError, ImportError, RuntimeError)
"""Errors of metadata that were edited or damaged, or of a finder of modules."""


@dataclass(frozen=True, slots=True)
class PluginEntry:
    """One entry point."""

    kind: PluginKind
    name: str
    target: str
    """`MODULE:OBJECT`; for a theme, the package that has the file."""
    distribution: str
    """Name of the package in the package index."""
    version: str
    location: Path
    """Directory that the package is installed in."""
    fingerprint: str
    """Version, and hash of the list of installed files."""

    @property
    def shown(self) -> str:
        """Kind, name and package in one line, for messages."""
        return f"{self.title} of {self.package}"

    @property
    def title(self) -> str:
        """Kind and name, for messages."""
        return _one_line(f"{self.kind} {self.name}")

    @property
    def package(self) -> str:
        """Package and version, for messages."""
        return _one_line(f"{self.distribution} {self.version}")

    def load(self) -> object:
        """Import the object. Runs code of the package, which may raise anything.

        Raises:
            ImportError: it raises `KeyboardInterrupt`, which would otherwise end the program as if the user had.
        """
        try:
            return metadata.EntryPoint(self.name, self.target, "").load()
        except KeyboardInterrupt as error:
            raise ImportError("it was interrupted (KeyboardInterrupt)") from error


@dataclass(frozen=True, slots=True)
class Plugin:
    """An entry point, and whether a start uses it."""

    entry: PluginEntry
    is_disabled: bool = False
    """True if `plugins.disabled` names it."""
    problem: str = ""
    """Reason why it is not used; empty if it is, or if it is disabled."""

    @property
    def is_used(self) -> bool:
        """True if a start uses it."""
        return not self.is_disabled and not self.problem


@cache
def installed_entries() -> tuple[PluginEntry, ...]:
    """Return the entry points of all installed packages, sorted; read once per process.

    A package that is installed while the program runs thus takes effect at the next start. Blocks.
    """
    found: dict[str, tuple[PluginEntry, ...]] = {}
    for distribution in metadata.distributions():
        try:
            entries = tuple(_entries_of(distribution))
        except _BROKEN:
            continue
        if entries:
            # Of two versions, Python imports the one that it finds first.
            found.setdefault(_normal(entries[0].distribution), entries)
    every = [entry for entries in found.values() for entry in entries]
    return tuple(sorted(every, key=lambda entry: (_normal(entry.distribution), entry.kind, entry.name)))


def find_plugins(settings: Settings, root: Path) -> tuple[Plugin, ...]:
    """Return the plugins, each with the reason if it is not used. Blocks."""
    disabled = [_normal_reference(text) for text in settings.plugins.disabled]
    found = [
        Plugin(entry, is_disabled=True)
        if _is_disabled(entry, disabled)
        else Plugin(entry, problem=_name_problem(entry, settings) or _place_problem(entry, root))
        for entry in installed_entries()
    ]
    return tuple(_without_duplicate(plugin, found) for plugin in found)


def unknown_references(settings: Settings) -> tuple[str, ...]:
    """Return the entries of `plugins.disabled` that name no plugin. Blocks."""
    entries = installed_entries()
    return tuple(
        text
        for text in settings.plugins.disabled
        if text != ALL and not any(_is_disabled(entry, [_normal_reference(text)]) for entry in entries)
    )


def plugin_tool_names() -> tuple[str, ...]:
    """Return the names of the tools of all plugins, used or not, because rules may name them. Blocks."""
    return tuple(entry.name for entry in installed_entries() if entry.kind == "tool")


def has_provider(name: str) -> bool:
    """True if a plugin, used or not, offers models named `NAME/MODEL`. Blocks."""
    return any(entry.kind == "provider" and entry.name == name for entry in installed_entries())


def theme_files(settings: Settings, root: Path) -> tuple[Path, ...]:
    """Return the theme files of the plugins in use. Blocks."""
    used = [plugin.entry for plugin in find_plugins(settings, root) if plugin.is_used and plugin.entry.kind == "theme"]
    return tuple(path for entry in used if (path := theme_file(entry)) is not None)


def theme_file(entry: PluginEntry) -> Path | None:
    """Return the file of a theme; None if the package or the file does not exist. Blocks."""
    top, *below = entry.target.split(".")
    for folder in _places_of(top):
        path = folder.joinpath(*below, f"{entry.name}.toml")
        if path.is_file():
            return path
    return None


def _entries_of(distribution: metadata.Distribution) -> Iterator[PluginEntry]:
    # Most packages have no entry point for tui-agent, and parsing their other metadata takes time.
    if not any(group in (distribution.read_text("entry_points.txt") or "") for group in GROUPS):
        return
    files = distribution.read_text("RECORD") or ""
    # The list has a hash of each file, so that its own hash tells any change without reading them.
    digest = hashlib.sha256(files.encode("utf-8", "replace")).hexdigest()[:16]
    facts = distribution.metadata
    name, version = (str(facts.get_all(key, ["unknown"])[0]) for key in ("Name", "Version"))
    location = Path(str(distribution.locate_file("")))
    for point in distribution.entry_points:
        if (kind := GROUPS.get(point.group)) is not None:
            yield PluginEntry(kind, point.name, point.value, name, version, location, f"{version} {digest}")


def _name_problem(entry: PluginEntry, settings: Settings) -> str:
    """Return why a plugin cannot have its name; empty if it can."""
    match entry.kind:
        case "tool" if _TOOL_NAME.fullmatch(entry.name) is None:
            return "the name of a tool has at most 64 letters, digits, _ and -"
        case "tool" if entry.name in _own_tools() or entry.name.startswith("mcp__"):
            return "tui-agent has a tool of this name"
        case "provider" if ENDPOINT_NAME.fullmatch(entry.name) is None:
            return "the name of a provider has letters, digits, -, _ and ."
        case "provider" if entry.name in settings.providers:
            return "your settings have an endpoint of this name"
        case "provider" if entry.name in _own_providers():
            return "tui-agent knows an endpoint of this name"
        case "theme" if _THEME_NAME.fullmatch(entry.name) is None:
            return "the name of a theme has small letters, digits and -"
        case "theme" if ":" in entry.target:
            return f"its entry point must name a package with the file {entry.name}.toml, without `:`"
        case _:
            return ""


def _place_problem(entry: PluginEntry, root: Path) -> str:
    """Return why the files of a plugin are not used; empty if they are."""
    top, *below = entry.target.partition(":")[0].strip().split(".")
    # As a real path: the agent could make a link that leads into it.
    workspace = os.path.realpath(root)
    tops = _places_of(top)
    # Any of them may be a link.
    inner = (place.joinpath(*below[:depth]) for place in tops for depth in range(len(below) + 1))
    files = (file for place in inner for file in (place, place / "__init__.py", place.with_suffix(".py")))
    if any(os.path.commonpath((os.path.realpath(place), workspace)) == workspace for place in (entry.location, *files)):
        return "it lies in the workspace, which the agent can change; install it elsewhere"
    if not tops:
        return f"no module is named {top}"
    if entry.kind == "theme" and theme_file(entry) is None:
        return f"{entry.target} has no file {entry.name}.toml"
    return ""


def _without_duplicate(plugin: Plugin, found: Sequence[Plugin]) -> Plugin:
    """Return the plugin, which is not used if another one has its kind and name: neither may replace the other."""
    entry = plugin.entry
    # Hooks may share a name: all of them are asked.
    if not plugin.is_used or entry.kind == "hook":
        return plugin
    # The order of installation must not decide.
    same = [
        other.entry.distribution
        for other in found
        if other.is_used and (other.entry.kind, other.entry.name) == (entry.kind, entry.name) and other is not plugin
    ]
    if not same:
        return plugin
    return replace(plugin, problem=f"{', '.join(same)} has a {entry.kind} of this name, too; disable one of them")


def _places_of(module: str) -> tuple[Path, ...]:
    """Return the file of a module, or the directories of a package, without importing it; empty if there is none."""
    try:
        spec = importlib.util.find_spec(module)
    except _BROKEN:
        return ()
    if spec is None:
        return ()
    if spec.submodule_search_locations is not None:
        return tuple(Path(place) for place in spec.submodule_search_locations)
    return () if spec.origin is None else (Path(spec.origin),)


def _one_line(text: str) -> str:
    return escaped(" ".join(text.split()))


def _own_tools() -> frozenset[str]:
    # Imported here, because the first paint does not need the tools.
    from tui_agent.tools import BUILT_IN_TOOLS, JOB_TOOLS, WEB_TOOLS

    return frozenset((*BUILT_IN_TOOLS, *JOB_TOOLS, *WEB_TOOLS, *OTHER_TOOLS))


def _own_providers() -> frozenset[str]:
    from tui_agent.providers.model_catalog import shipped_profiles

    return frozenset(shipped_profiles())


def _is_disabled(entry: PluginEntry, disabled: Sequence[str]) -> bool:
    package = _normal(entry.distribution)
    return any(text in (ALL, package, f"{package}:{entry.name}") for text in disabled)


def _normal_reference(text: str) -> str:
    package, colon, name = text.partition(":")
    return f"{_normal(package)}{colon}{name.strip()}"


def _normal(name: str) -> str:
    """Return the name of a package in the form in which two spellings of it are equal."""
    return re.sub(r"[-_.]+", "-", name.strip()).lower()
