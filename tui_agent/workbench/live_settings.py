"""The settings of an open session: their meanings, changes of the user's file, and files that apply once they change.

Rules apply also to calls that wait for an approval.
"""

import ast
import asyncio
import errno
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin
from urllib.parse import urlsplit

from pydantic.fields import FieldInfo

from tui_agent import settings as definitions
from tui_agent.agent import AgentLoop
from tui_agent.permissions import PermissionPolicy
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import Noticed, Warned
from tui_agent.protocol.facts.page_facts import SettingFact, SettingFacts, SettingKind, SettingSource
from tui_agent.protocol.file_watch import WatchedFiles, watch_files
from tui_agent.protocol.messages import JsonObject, is_object
from tui_agent.protocol.regular_file import read_regular_file_async
from tui_agent.protocol.setting_files import parse_toml
from tui_agent.settings import (
    PROJECT_FILE,
    LoadedSettings,
    Locations,
    RuleSetting,
    Settings,
    check_value,
    fields_of,
    key_names,
    only_at_start,
    value_of,
    variable_of,
)

from .agent_setup import apply_settings
from .configuration.effective_settings import load_effective_settings
from .configuration.launch_options import LaunchOptions
from .configuration.permission_rules import check_folder, parse_rules
from .configuration.user_settings import read_user_file, store_setting
from .session_folders import SETTING, SessionFolders
from .session_models import SessionModels

_WITHOUT_EFFECT = "Without effect"
"""Begin of the meaning of a setting that is only accepted; it is listed where the user's file has it."""
_ADDRESSES = ("base_url", "otel.endpoint")
"""URLs, which may contain a password or a key."""
_COMMANDS = ("key_command",)
"""Command lines, which may contain a key."""


class SessionSettings:
    """Lists the settings, and changes the user's file; the running program notices the change as any other."""

    def __init__(self, locations: Locations, options: LaunchOptions) -> None:
        self._locations = locations
        self._options = options

    async def read(self) -> SettingFacts:
        """Return all settings as the files, the environment and the options set them now.

        Raises:
            ConfigurationError: a file is broken.
        """
        return await asyncio.to_thread(self._read)

    async def change(self, key: str, typed: str | None, /, *, seen: bytes) -> None:
        """Store a value in the user's file.

        Args:
            key: the dotted key of a setting that `read` returns.
            typed: the value as the user types it; None removes it from the file.
            seen: content of the file when the user decided.

        Raises:
            ConfigurationError: the value is wrong, or the file cannot be written or has changed; nothing was changed.
        """
        value = None if typed is None else _value_of_text(_kind_of(_field_of(key)), typed)
        if value is not None:
            check_value(key, value)
        await asyncio.to_thread(store_setting, self._locations.user_file, key, value, seen=seen)

    def _read(self) -> SettingFacts:
        path = self._locations.user_file
        try:
            content = read_user_file(path)
            own = parse_toml(content)
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"{path}: {error}") from error
        loaded = load_effective_settings(self._options, self._locations)
        kept = (key for key in key_names() if _is_in(own, key) or not meanings()[key].startswith(_WITHOUT_EFFECT))
        facts = tuple(self._fact(key, loaded, own) for key in kept)
        return SettingFacts(facts, _short(str(path)), content)

    def _fact(self, key: str, loaded: LoadedSettings, own: JsonObject) -> SettingFact:
        field = _field_of(key)
        kind = _kind_of(field)
        value = loaded.rules if key == "permissions.rules" else value_of(loaded.settings, key)
        source, origin = self._origin_of(key, loaded)
        return SettingFact(
            key,
            kind,
            _shown(key, value),
            _shown(key, value_of(Settings(), key)),
            source,
            origin,
            meanings().get(key, ""),
            _choices_of(field),
            "" if key in (*_ADDRESSES, *_COMMANDS) or kind == "table" else _text_of(value),
            _is_in(own, key),
            key in only_at_start(),
            self._refusal(key, kind, source, origin),
        )

    def _refusal(self, key: str, kind: SettingKind, source: SettingSource, origin: str) -> str:
        """Return why a setting cannot be changed here, and where it can; empty if it can."""
        if kind == "table":
            pages = {"permissions.rules": "/permissions shows the rules. ", "mcp": "/mcp shows the servers. "}
            file = _short(str(self._locations.user_file))
            return f"It has several parts: change it in {file}. {pages.get(key, '')}".rstrip()
        match source:
            case "project":
                return f"The project sets it in {origin}, and that comes before your file."
            case "environment":
                return f"{origin} sets it, and that comes before your file."
            case "option":
                return "An option of this start sets it, and that comes before your file."
            case _:
                return ""

    def _origin_of(self, key: str, loaded: LoadedSettings) -> tuple[SettingSource, str]:
        """Return the layer of the value in force and its origin; of a table, those of its first value."""
        table = (origin for one, origin in loaded.origins.items() if one.startswith(f"{key}."))
        origin = loaded.origins.get(key) or next(table, "")
        match origin:
            case "":
                return "default", ""
            case "environment":
                return "environment", variable_of(key, os.environ)
            case "command line":
                return "option", ""
            case _:
                is_own = origin.startswith(str(self._locations.user_file))
                return "your file" if is_own else "project", _short(origin)


@cache
def meanings() -> Mapping[str, str]:
    """Return the meaning of each dotted key: the docstring of its field. Blocks."""
    found: dict[tuple[str, str], str] = {}
    for one in ast.parse(inspect.getsource(definitions)).body:
        body = one.body if isinstance(one, ast.ClassDef) else []
        for field, text in pairwise(body):
            match field, text:
                case ast.AnnAssign(target=ast.Name(name)), ast.Expr(value=ast.Constant(value=str(words))):
                    assert isinstance(one, ast.ClassDef)
                    found[one.name, name] = " ".join(words.replace("`", "").split())
                case _:
                    pass
    return {key: found.get((model.__name__, name), "") for key, model, name in fields_of()}


def _field_of(key: str) -> FieldInfo:
    return next(model.model_fields[name] for one, model, name in fields_of() if one == key)


def _types_of(field: FieldInfo) -> list[Any]:
    """Return the types of the values of a setting, without that of None."""
    annotation: Any = field.annotation
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    types = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    return [one for one in types if one is not NoneType]


def _kind_of(field: FieldInfo) -> SettingKind:
    (kind, *_) = _types_of(field)
    if kind is bool:
        return "switch"
    if _choices_of(field):
        return "choice"
    if kind in (int, float):
        return "number"
    if kind is str:
        return "text"
    return "list" if get_origin(kind) is tuple and get_args(kind)[0] is str else "table"


def _choices_of(field: FieldInfo) -> tuple[str, ...]:
    (kind, *_) = _types_of(field)
    if get_origin(kind) is Literal:
        return get_args(kind)
    return tuple(one.value for one in kind) if isinstance(kind, type) and issubclass(kind, Enum) else ()


def _value_of_text(kind: SettingKind, typed: str) -> object:
    """Return the value that a text stands for; a wrong one stays a text, which the check of the file refuses."""
    text = typed.strip()
    if kind == "switch":
        return {"true": True, "false": False}.get(text, text)
    if kind == "list":
        return [part for part in map(str.strip, text.split(",")) if part]
    if kind == "number":
        for read in (int, float):
            try:
                return read(text)
            except ValueError:
                pass
    return text


def _text_of(value: object) -> str:
    """Return a value as the user would type it."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case tuple():
            return ", ".join(map(str, value))  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType]
        case float() if value.is_integer():
            return str(int(value))
        case Enum():
            return str(value.value)
        case _:
            return str(value)


def _shown(key: str, value: object) -> str:
    """Return a value for reading, without what may be a secret."""
    if value is None or value == "":
        return "not set"
    if key in _COMMANDS:
        return "set, not shown"
    if key in _ADDRESSES and isinstance(value, str):
        parts = urlsplit(value)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    if is_object(value) or isinstance(value, tuple):
        names = [one if isinstance(one, str) else "" for one in value]  # pyright: ignore[reportUnknownVariableType]
        return (", ".join(names) if all(names) else f"{len(names)} in force") or "none"
    return _text_of(value)


def _short(path: str) -> str:
    """Return a path with `~` for the home directory."""
    home = os.path.expanduser("~")
    return f"~{path.removeprefix(home)}" if path.startswith(f"{home}/") else path


def _is_in(values: JsonObject, key: str) -> bool:
    below: object = values
    for name in key.split("."):
        if not is_object(below) or name not in below:
            return False
        below = below[name]
    return True


UseOnScreen: TypeAlias = Callable[[Settings, LoadedSettings], Sequence[str]]
"""Applies the settings of the screen after a change; returns warnings about those that cannot be applied."""


class LiveSettings:
    """Current settings of an open session, and the means to replace them."""

    def __init__(
        self,
        options: LaunchOptions,
        loaded: LoadedSettings,
        loop: AgentLoop,
        policy: PermissionPolicy,
        folders: SessionFolders,
        models: SessionModels,
        use_on_screen: UseOnScreen | None = None,
    ) -> None:
        self._options = options
        self._loaded = loaded
        self._loop = loop
        self._policy = policy
        self._folders = folders
        self._models = models
        self._use_on_screen = use_on_screen
        self._locations = Locations.of_user()
        self._files = (self._locations.user_file, options.cwd / PROJECT_FILE)
        # Not read here: a file may have changed since the settings were loaded.
        self._contents: tuple[bytes | None, ...] | None = None

    async def watch(self) -> None:
        """Apply the settings after each change of their files, until cancelled."""
        await watch_files(WatchedFiles(self._files), self.read_again, self._warn_of_polling)

    def give_up(self, reason: str) -> None:
        """Warn that changes of the files are no longer noticed."""
        text = f"Settings are no longer watched ({reason}). They stay as they are; restart to apply changes."
        self._loop.bus.publish(Warned(code="settings_unwatched", text=text))

    def _warn_of_polling(self, reason: str) -> None:
        text = f"The system no longer reports changes of settings ({reason}). The files are checked once a second."
        self._loop.bus.publish(Noticed(code="settings_checked", text=text))

    async def read_again(self) -> None:
        """Apply the settings if the files have changed; if they are wrong, publish a warning and change nothing."""
        try:
            contents = tuple([await _content(file) for file in self._files])
        except OSError:
            return  # No descriptor is free. The next check reads the files again.
        if contents == self._contents:
            return
        self._contents = contents
        try:
            loaded = await asyncio.to_thread(load_effective_settings, self._options, self._locations)
            rules = self._kept_rules(loaded)
            layers = parse_rules(rules)
        except ConfigurationError as error:
            self._loop.bus.publish(Warned(code="settings_broken", text=f"{error}. The settings stay unchanged."))
            return
        before, self._loaded = self._loaded, LoadedSettings(loaded.settings, loaded.origins, rules, loaded.files)
        self._use(before.settings, loaded)
        await self._add_folders(before.settings, loaded.settings)
        self._policy.set_rules(layers)
        mode = loaded.settings.permissions.mode
        if mode is not before.settings.permissions.mode:
            self._loop.set_mode(mode, by="settings")
        self._loop.gate.reconsider()
        if rules != before.rules:
            text = f"The settings were reloaded: {len(rules)} permission rules are in force."
            self._loop.bus.publish(Noticed(code="settings_read", text=text))

    def _use(self, before: Settings, loaded: LoadedSettings) -> None:
        """Apply everything but rules and mode, and publish which changes wait for the next start."""
        after = loaded.settings
        try:
            apply_settings(self._loop, self._options, before, after)
            self._models.use_settings(before, after)
        except ConfigurationError as error:
            self._loop.bus.publish(Warned(code="settings_broken", text=f"{error}. The model stays unchanged."))
        problems = self._use_on_screen(before, loaded) if self._use_on_screen is not None else ()
        late = [key for key in only_at_start() if value_of(before, key) != value_of(after, key)]
        if set(before.permissions.folders) - set(after.permissions.folders):
            late.append(SETTING)
        if late:
            text = f"Changed in the settings: {', '.join(late)}. This takes effect at the next start."
            self._loop.bus.publish(Noticed(code="settings_later", text=text))
        for text in problems:
            self._loop.bus.publish(Warned(code="left_out", text=text))

    async def _add_folders(self, before: Settings, after: Settings) -> None:
        """Add the new folders to the workspace; one that is no longer listed stays until the next start."""
        for name in after.permissions.folders:
            if name in before.permissions.folders:
                continue
            try:
                path = Path(os.path.expanduser(name))
                folder = await asyncio.to_thread(check_folder, path, self._options.cwd)
            except ConfigurationError as error:
                self._loop.bus.publish(Warned(code="left_out", text=f"`permissions.folders`: {error}."))
                continue
            if folder not in self._folders.in_force:
                self._folders.join(folder)

    def _kept_rules(self, loaded: LoadedSettings) -> tuple[RuleSetting, ...]:
        """Return the new rules, and those of the current ones that stay: the rules of the offline model's tour, and the
        deny and ask rules of a project whose settings are no longer trusted, or gone."""
        current = self._loaded.rules
        tour = tuple(rule for rule in current if rule.origin == "--demo")
        lost_project = any(rule.layer == "project" for rule in current) and not any(
            file.name == PROJECT_FILE.name and file != self._locations.user_file for file in loaded.files
        )
        # A change of the project's settings must never loosen the rules of a running agent.
        stay = tuple(rule for rule in current if rule.layer == "project" and lost_project and rule.verdict != "allow")
        if lost_project and loaded.ignored:
            text = f"{loaded.ignored[0]}. Restart tui-agent to decide about them."
            self._loop.bus.publish(Warned(code="settings_untrusted", text=text))
        return (*loaded.rules, *stay, *tour)


async def _content(file: Path) -> bytes | None:
    try:
        return await read_regular_file_async(str(file))
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise
        return None
