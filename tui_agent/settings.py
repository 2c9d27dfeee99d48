"""Options from files, environment and command line, each with the layer it came from.

Layers, later ones over earlier: defaults < user < project < environment < options. Permission rules are not merged like
that: every layer's rules are kept, each with its origin, because a later layer must not undo an earlier deny (C17).
The settings library that could merge the scalars replaces lists and keeps no origins, so this page does it itself.
"""

import difflib
import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, get_args
from urllib.parse import urlsplit

import platformdirs
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.messages import JsonObject, is_object
from tui_agent.protocol.permissions import PermissionMode, Verdict
from tui_agent.protocol.regular_file import parse_toml, read_regular_file
from tui_agent.protocol.repository_files import refusal, target_outside

APP_NAME = "tui-agent"
ENVIRONMENT_PREFIX = "TUI_AGENT_"
HOME_VARIABLE = "TUI_AGENT_HOME"
"""Puts all our files into one directory."""
PROJECT_FILE = Path(".tui-agent") / "config.toml"

MOST = 10**15
"""Largest whole number that a setting accepts."""

NEVER_FROM_PROJECT = (
    "base_url",
    "permissions.mode",
    "permissions.rule_resolution",
    "sandbox",
    "sandbox_network",
    "hooks",
)
"""Settings that would let a project send the key elsewhere, run commands, or loosen what is asked or bounds them."""


def is_web_address(text: str) -> bool:
    """Whether requests could be sent there: a server that speaks http or https."""
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and not re.search(r"\s", text)
    except ValueError:
        return False


LayerName = Literal["defaults", "user", "project", "environment", "options"]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class PermissionSettings(_Section):
    """`[permissions]`"""

    mode: PermissionMode = PermissionMode.ASK
    """What happens to a call that no rule decides."""
    rules: tuple[tuple[Verdict, str], ...] = ()
    """Ordered rules such as `["allow", "bash(git status:*)"]`."""
    rule_resolution: Literal["first_match", "severity"] = "first_match"
    """How rules of one list are combined; lists of different layers always give the strictest verdict."""


class BudgetSettings(_Section):
    """`[budget]`: most that one run may use; it ends after the step that reached a limit."""

    tokens: int | None = Field(default=None, gt=0, le=MOST)
    """Tokens read and written."""
    cost_usd: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Dollars, where the model's price is known."""
    seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Time, without what a person took to answer."""


class HookSettings(_Section):
    """One `[[hooks]]`: a command that is asked about calls (C47)."""

    on: Literal["before_tool", "after_tool", "after_tool_observer"]
    """What it is asked: may the call run, what is its result, or nothing: it only hears of the end."""
    command: str = Field(min_length=1)
    """Run by bash in the working directory; exit code 0 lets a call go on, 2 denies it with what is on stderr."""
    timeout: float = Field(default=30.0, gt=0, allow_inf_nan=False)
    """Seconds, then it is killed and has failed."""
    strict: bool = False
    """Whether a call is denied if the command fails."""


class UiSettings(_Section):
    """`[ui]`"""

    theme: str = "dark"
    """Name of a theme file, without its ending."""
    reduced_motion: bool = False
    """No spinners and no animations; also `TUI_AGENT_REDUCED_MOTION=1`."""


class Settings(_Section):
    """Every setting there is, merged."""

    model: str = "claude-sonnet-5-5"
    """Name of the model; any name the endpoint knows."""
    base_url: str | None = None
    """Endpoint of a Messages API; `ANTHROPIC_BASE_URL` when not set. Never taken from a project."""
    max_tokens: int | None = Field(default=None, gt=0, le=MOST)
    """Longest answer in tokens; the model's own limit when not set."""
    strategy: str = Field(default="auto", pattern=r"^(auto|sequential|parallel|batched:[1-9][0-9]{0,8})$")
    """When calls run: auto, sequential, parallel or batched:N."""
    max_steps: int | None = Field(default=None, gt=0, le=MOST)
    """Steps of one run; not limited on the screen, 16 headless, when not set."""
    tool_timeout: float = Field(default=30.0, gt=0, allow_inf_nan=False)
    """Seconds for tools that do not keep their own time."""
    output_disk_limit: int = Field(default=1024**3, ge=0)
    """Disk space in bytes for long outputs of one session's commands, at most 256 MiB for each."""
    sandbox: Literal["off", "bwrap"] = "off"
    """What shell commands run in: `bwrap` is bubblewrap, without which they are refused. Never taken from a project."""
    sandbox_network: bool = False
    """Whether commands in the sandbox may use the network. Never taken from a project."""
    append_system: str = ""
    """Text put behind the system prompt."""
    budget: BudgetSettings = BudgetSettings()
    permissions: PermissionSettings = PermissionSettings()
    hooks: tuple[HookSettings, ...] = ()
    """Commands that are asked about calls, in order. Never taken from a project."""
    ui: UiSettings = UiSettings()

    @field_validator("base_url")
    @classmethod
    def _is_address(cls, value: str | None) -> str | None:
        if value is not None and not is_web_address(value):
            raise ValueError(f"{value!r} is no address such as https://host/path")
        return value


@dataclass(frozen=True, slots=True)
class Locations:
    """Where our files are. Nothing else outside the workspace is ever written."""

    config_dir: Path
    """The user's settings, themes and instructions."""
    state_dir: Path
    """Sessions and logs; 0700."""

    @property
    def user_file(self) -> Path:
        """The user's settings."""
        return self.config_dir / "config.toml"

    @property
    def sessions_dir(self) -> Path:
        """One journal a session; 0600."""
        return self.state_dir / "sessions"

    @property
    def log_dir(self) -> Path:
        """Log files."""
        return self.state_dir / "log"

    @property
    def user_themes_dir(self) -> Path:
        """The user's own themes."""
        return self.config_dir / "themes"

    @classmethod
    def of_user(cls, environment: Mapping[str, str]) -> "Locations":
        """The places of the person who runs this; `TUI_AGENT_HOME` puts them all into one directory."""
        home = environment.get(HOME_VARIABLE)
        if home:
            return cls(Path(home) / "config", Path(home) / "state")
        return cls(platformdirs.user_config_path(APP_NAME), platformdirs.user_state_path(APP_NAME))


@dataclass(frozen=True, slots=True)
class ProjectTrust:
    """How far a person trusts what a project brings."""

    digest: str | None = None
    """`content_digest` of the settings the answer was about; None: whatever they are."""
    allows: bool = False
    """Its allow rules were accepted, too; without that a project's rules only tighten."""
    instructions: str | None = None
    """`content_digest` of the instructions the answer was about; None: whatever they are."""


@dataclass(frozen=True, slots=True)
class RuleSetting:
    """One permission rule as it was written."""

    verdict: Verdict
    text: str
    origin: str
    """`FILE:LINE`, or the option or variable it came from."""
    layer: LayerName


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """The merged settings, and where each value came from."""

    settings: Settings
    origins: Mapping[str, str]
    """Dotted key → origin, for every key that is not a default."""
    rules: tuple[RuleSetting, ...] = ()
    """All layers' rules, in layer order, each list in its own order."""
    files: tuple[Path, ...] = ()
    """Files that were read."""
    ignored: tuple[str, ...] = ()
    """What was found and not applied, in words."""
    unknown_variables: tuple[str, ...] = ()
    """`TUI_AGENT_*` variables that name no setting, with the nearest one that does, in words."""


@dataclass(frozen=True, slots=True)
class _Layer:
    name: LayerName
    values: JsonObject
    source: str
    """File, or words such as `environment`."""
    lines: Mapping[str, int] = field(default_factory=dict[str, int])
    """Dotted key → line."""
    dropped: frozenset[tuple[str, str]] = frozenset()
    """Text and origin of allow rules that are not applied."""

    def origin_of(self, key: str) -> str:
        line = self.lines.get(key)
        return self.source if line is None else f"{self.source}:{line}"


def load_settings(
    locations: Locations,
    *,
    project: Path | None = None,
    trust: ProjectTrust | None = None,
    environment: Mapping[str, str] | None = None,
    options: JsonObject | None = None,
    option_rules: Sequence[tuple[Verdict, str]] = (),
) -> LoadedSettings:
    """Reads and merges all layers.

    Args:
        locations: where the user's file is.
        project: the working directory; its settings are found, and applied as far as it is trusted.
        trust: what a person said about the project; None: nothing of it is applied.
        environment: variables; `TUI_AGENT_MODEL` sets `model`, `TUI_AGENT_UI__THEME` sets `ui.theme`.
        options: values from the command line, nested like the file.
        option_rules: rules from the command line, in order.

    Raises:
        ConfigurationError: an unknown key, a wrong type, a broken file; with file, line and the nearest key.
    """
    layers: list[_Layer] = []
    ignored: list[str] = []
    user = _file_layer("user", locations.user_file)
    if user is not None:
        layers.append(user)
    if project is not None and (found := _project_layer(project, trust, ignored)):
        layers.append(found)
    variables = os.environ if environment is None else environment
    layers.append(_environment_layer(variables))
    layers.append(_Layer("options", options or {}, "command line"))

    for layer in layers:
        _check(layer)
    merged: JsonObject = {}
    origins: dict[str, str] = {}
    for layer in layers:
        _merge(merged, layer.values)
        origins.update({key: layer.origin_of(key) for key in _leaves(layer.values)})
    rules = [*_rules_of(layers), *(RuleSetting(v, text, f"--{v}", "options") for v, text in option_rules)]
    files = tuple(Path(layer.source) for layer in layers if layer.name in ("user", "project"))
    unknown = tuple(_unknown_variables(variables))
    return LoadedSettings(Settings.model_validate(merged), origins, tuple(rules), files, tuple(ignored), unknown)


def content_digest(content: bytes) -> str:
    """What stands for the content of a settings file in an answer about it."""
    return hashlib.sha256(content).hexdigest()


def key_names(model: type[BaseModel] = Settings, prefix: str = "") -> list[str]:
    """Every dotted key there is, in order."""
    names: list[str] = []
    for name, info in model.model_fields.items():
        section = info.annotation
        if isinstance(section, type) and issubclass(section, BaseModel):
            names += key_names(section, f"{prefix}{name}.")
        else:
            names.append(f"{prefix}{name}")
    return names


def value_of(settings: Settings, key: str) -> object:
    """The value of a dotted key."""
    value: object = settings
    for name in key.split("."):
        value = getattr(value, name)
    return value


def _file_layer(name: LayerName, path: Path) -> _Layer | None:
    """The layer of one file; None where there is none."""
    content = _content(path)
    return None if content is None else _layer_of(name, path, content)


def _project_layer(project: Path, trust: ProjectTrust | None, ignored: list[str]) -> _Layer | None:
    """What of a project's settings is applied; the rest is told in `ignored`."""
    path = project / PROJECT_FILE
    if not os.path.exists(path):
        return None
    if outside := target_outside(path, project):
        ignored.append(refusal(path, outside))
        return None
    if trust is None:
        ignored.append(f"{path}: not applied, because this folder is not trusted")
        return None
    content = _content(path)
    if content is None or target_outside(path, project):
        return None
    if trust.digest is not None and trust.digest != content_digest(content):
        ignored.append(f"{path}: not applied, because it is another one than the one that was trusted")
        return None
    layer = _layer_of("project", path, content)
    _check(layer)
    taken = [key for key in NEVER_FROM_PROJECT if _take(layer.values, key)]
    ignored.extend(f"{layer.origin_of(key)}: `{key}` is never taken from a project" for key in taken)
    rules = _rules_of([layer])
    dropped = [] if trust.allows else [rule for rule in rules if rule.verdict == "allow"]
    ignored.extend(f"{rule.origin}: allow {rule.text}: not applied, because it was not accepted" for rule in dropped)
    return replace(layer, dropped=frozenset((rule.text, rule.origin) for rule in dropped))


def _content(path: Path) -> bytes | None:
    try:
        return read_regular_file(str(path))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error}") from error


def _layer_of(name: LayerName, path: Path, content: bytes) -> _Layer:
    try:
        values = parse_toml(content)
    except ValueError as error:
        raise ConfigurationError(f"{path}: {error}") from error
    return _Layer(name, values, str(path), _key_lines(content.decode("utf-8-sig")))


def _environment_layer(environment: Mapping[str, str]) -> _Layer:
    """`TUI_AGENT_*` variables that name a setting."""
    values: JsonObject = {}
    for variable, key in _variables().items():
        if environment.get(variable):
            _put(values, key, environment[variable])
    return _Layer("environment", values, "environment")


def _variables() -> dict[str, str]:
    """The variables that set something, and what."""
    known = {ENVIRONMENT_PREFIX + key.upper().replace(".", "__"): key for key in key_names()}
    del known[f"{ENVIRONMENT_PREFIX}PERMISSIONS__RULES"]
    return known | {
        f"{ENVIRONMENT_PREFIX}THEME": "ui.theme",
        f"{ENVIRONMENT_PREFIX}REDUCED_MOTION": "ui.reduced_motion",
        f"{ENVIRONMENT_PREFIX}PERMISSION_MODE": "permissions.mode",
    }


def _unknown_variables(environment: Mapping[str, str]) -> list[str]:
    known = [variable.removeprefix(ENVIRONMENT_PREFIX) for variable in (*_variables(), HOME_VARIABLE)]
    words: list[str] = []
    for variable in sorted(environment):
        name = variable.removeprefix(ENVIRONMENT_PREFIX)
        if name != variable and name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {ENVIRONMENT_PREFIX}{near[0]}?" if near else ""
            words.append(f"{variable}: no setting has this name{hint}")
    return words


def _check(layer: _Layer) -> None:
    """Validates one layer alone, so that an error names the file it is in."""
    try:
        Settings.model_validate(layer.values)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"] if isinstance(part, str) and part in _all_names())
        wrong = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            near = difflib.get_close_matches(wrong, [*key_names(), *_sections()], n=1)
            hint = f"; did you mean `{near[0]}`?" if near else ""
            raise ConfigurationError(f"{layer.origin_of(wrong)}: unknown key `{wrong}`{hint}") from error
        raise ConfigurationError(f"{layer.origin_of(key)}: `{wrong}`: {first['msg']}") from error


def _rules_of(layers: Sequence[_Layer]) -> list[RuleSetting]:
    """The rules of every file layer, with their lines."""
    found: list[RuleSetting] = []
    for layer in layers:
        section: object = layer.values.get("permissions")
        if not is_object(section):
            continue
        start = layer.lines.get("permissions.rules")
        for place, (verdict, text) in enumerate(PermissionSettings.model_validate(section).rules):
            line = layer.lines.get(f"permissions.rules[{place}]", start)
            origin = layer.source if line is None else f"{layer.source}:{line}"
            if verdict != "allow" or (text, origin) not in layer.dropped:
                found.append(RuleSetting(verdict, text, origin, layer.name))
    return found


def _key_lines(text: str) -> dict[str, int]:
    """Line of each key of a TOML text, and of each rule: what an error message needs, no second parser."""
    lines: dict[str, int] = {}
    table = ""
    rules = 0
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[+\s*([\w.\-\"]+)\s*\]+", line)
        if header and "=" not in line and "," not in line:
            table = header.group(1).replace('"', "") + "."
            lines.setdefault(table[:-1], number)
            continue
        pair = re.match(r"\s*([\w.\-\"]+)\s*=", line)
        if pair:
            lines.setdefault(table + pair.group(1).replace('"', ""), number)
        for _ in re.finditer(rf"\[\s*[\"'](?:{'|'.join(get_args(Verdict))})[\"']\s*,", line):
            lines[f"permissions.rules[{rules}]"] = number
            rules += 1
    return lines


def _merge(into: JsonObject, values: JsonObject) -> None:
    for key, value in values.items():
        below: object = into.get(key)
        if is_object(value) and is_object(below):
            _merge(below, value)
        elif is_object(value):
            into[key] = {}
            _merge(into[key], value)
        else:
            into[key] = value


def _put(values: JsonObject, key: str, value: object) -> None:
    *sections, name = key.split(".")
    for section in sections:
        values = values.setdefault(section, {})
    values[name] = value


def _take(values: JsonObject, key: str) -> bool:
    """Takes a dotted key out; whether it was there."""
    *sections, name = key.split(".")
    for section in sections:
        below: object = values.get(section)
        if not is_object(below):
            return False
        values = below
    return values.pop(name, None) is not None


def _leaves(values: JsonObject, prefix: str = "") -> list[str]:
    found: list[str] = []
    for key, value in values.items():
        found += _leaves(value, f"{prefix}{key}.") if is_object(value) else [f"{prefix}{key}"]
    return found


def _sections() -> list[str]:
    return sorted({key.split(".")[0] for key in key_names() if "." in key})


def _all_names() -> set[str]:
    return {part for key in key_names() for part in key.split(".")}
