"""The settings in force with their meanings, and changes of the user's file."""

import ast
import asyncio
import inspect
import os
from collections.abc import Mapping
from enum import Enum
from functools import cache
from itertools import pairwise
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from urllib.parse import urlsplit

from pydantic.fields import FieldInfo

from tui_agent import settings as definitions
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.facts.page_facts import SettingFact, SettingFacts, SettingKind, SettingSource
from tui_agent.protocol.messages import JsonObject, is_object
from tui_agent.protocol.setting_files import parse_toml
from tui_agent.settings import (
    LoadedSettings,
    Locations,
    Settings,
    check_value,
    fields_of,
    key_names,
    only_at_start,
    value_of,
    variable_of,
)

from .configuration.effective_settings import load_effective_settings
from .configuration.launch_options import LaunchOptions
from .configuration.user_settings import read_user_file, store_setting

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
