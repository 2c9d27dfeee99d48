"""Settings from files, environment and command line, each value with its origin.

Later layers override earlier ones: defaults < user < project < environment < options. Permission rules are not
overridden: the rules of all layers are kept, each with its origin, because a later layer must not undo an earlier deny.
Settings libraries replace lists and record no origins, so this module merges the layers itself.
"""

import difflib
import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args
from urllib.parse import urlsplit

import platformdirs
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)

from tui_agent.protocol.endpoint import ENDPOINT_NAME, CacheLifetime, Endpoint, EndpointModel, expect_extra_fields
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.facts.screen_facts import STATUS, TITLE, StatusItem, TitleItem
from tui_agent.protocol.messages import JsonObject, is_array, is_object
from tui_agent.protocol.permissions import PermissionMode, Verdict
from tui_agent.protocol.programs import script_reader_of_line
from tui_agent.protocol.regular_file import read_regular_file, refusal, target_outside
from tui_agent.protocol.server_entries import SERVER_NAME, LanguageServer, ToolServer
from tui_agent.protocol.setting_files import parse_toml
from tui_agent.protocol.trial import TrialSetting

APP_NAME = "tui-agent"
ENVIRONMENT_PREFIX = "TUI_AGENT_"
HOME_VARIABLE = "TUI_AGENT_HOME"
"""Environment variable that puts all of tui-agent's files into one directory."""
PROJECT_FILE = Path(".tui-agent") / "config.toml"

AUTO_THEME = "auto"
"""Theme setting for `light` or `dark`, like the terminal."""

MOST = 10**15
"""Maximum of whole-number settings."""

_OWN = "never from a project"
"""Mark of settings that a project must not set: it could send the key elsewhere, run commands, weaken approvals and the
sandbox, or change what the user's keys do."""
_LATER = "at the next start"
"""Mark of settings whose changes take effect at the next start."""


def is_web_address(text: str) -> bool:
    """True if the text is an http or https URL with a host."""
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and not re.search(r"\s", text)
    except ValueError:
        return False


_ATTRIBUTES = {"pass": "passed"}
"""Attributes of keys that are words of Python."""

LayerName = Literal["defaults", "user", "project", "environment", "options", "other agents"]


def _address(value: str | None) -> str | None:
    """Return the URL, or raise ValueError."""
    if value is not None and not is_web_address(value):
        raise ValueError(f"{value!r} is not a URL such as https://host/path")
    return value


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class PermissionSettings(_Section):
    """`[permissions]`"""

    mode: Annotated[PermissionMode, _OWN] = PermissionMode.ASK
    """Decision for calls that no rule decides."""
    rules: tuple[tuple[Verdict, str], ...] = ()
    """Ordered rules such as `["allow", "bash(git status:*)"]`."""
    rule_resolution: Annotated[Literal["first_match", "severity"], _OWN, _LATER] = "first_match"
    """Rule that decides within one list. Across the lists of several layers, the strictest verdict wins."""
    unknown_targets: Annotated[Literal["ask", "allow"], _OWN] = "ask"
    """Without effect: the targets of a command no longer count. Accepted so that older files can be read."""
    secret_files: Annotated[tuple[str, ...] | None, _OWN, _LATER] = None
    """Patterns of files that a call reads only with an answer or by a rule; None for `.env` and the like, an empty list
    for none."""
    folders: Annotated[tuple[str, ...], _OWN] = ()
    """Folders that count as part of the workspace: read like it, changed under the same rules."""
    editor_servers: Annotated[Literal["ask", "allow", "deny"], _OWN, _LATER] = "ask"
    """Answer to tool servers that an editor names for its session (`tui-agent acp`)."""


class BudgetSettings(_Section):
    """`[budget]`: limits of one run, which ends after the step that reaches one."""

    tokens: int | None = Field(default=None, gt=0, le=MOST)
    """Most input and output tokens of one run."""
    cost_usd: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Most US dollars of one run, if the model's price is known."""
    seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Most seconds of one run, without the time the user takes to answer."""


class HookSettings(_Section):
    """One `[[hooks]]`: a command that decides about calls."""

    on: Literal["before_tool", "after_tool", "after_tool_observer"]
    """The event at which the command runs: before a call, to allow or deny it; after a call, to change its result; or
    after a call, only to observe it."""
    command: str = Field(min_length=1)
    """Command line for bash, run in the working directory. Exit code 0 lets the call continue, 2 denies it with stderr
    as the reason."""
    timeout: float = Field(default=30.0, gt=0, allow_inf_nan=False)
    """Seconds after which the command is killed and counts as failed."""
    strict: bool = False
    """True to withhold the result if an `after_tool` command fails."""
    fail_open: bool = False
    """True to let the call continue if a `before_tool` command fails."""

    @field_validator("command")
    @classmethod
    def _expect_no_bare_interpreter(cls, command: str) -> str:
        if (reader := script_reader_of_line(command)) is not None:
            raise ValueError(f"{reader} would run its input as a script; name the script that it is to run")
        return command


def _is_own_machine(host: str) -> bool:
    # Imported only for such a setting.
    from ipaddress import ip_address

    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


class NotifySettings(_Section):
    """One `[[notify]]`: sends each question that waits for the user elsewhere. It has one of the first three."""

    command: str = ""
    """Command line for bash that gets the question as JSON on stdin; it may run as long as the question waits."""
    url: str = ""
    """URL that gets the question as JSON by POST; it may answer as late as the question waits."""
    ntfy: str = ""
    """URL of a topic of an ntfy server, which gets the question as text."""
    name: str = ""
    """Name for rows and the journal; empty for the host or the command."""
    answers: bool = False
    """True to accept an answer: it allows or denies one call and never stores a rule."""
    token_env: str = ""
    """Name of a variable with a token for the server, sent as `Authorization: Bearer`."""
    after: float = Field(default=10.0, ge=0, allow_inf_nan=False)
    """Seconds that a question waits for an answer here before it is sent."""
    timeout: float = Field(default=600.0, gt=0, le=86_400, allow_inf_nan=False)
    """Seconds until a command is killed, and no answer counts any more."""

    @property
    def label(self) -> str:
        """The name, or what it sends to."""
        address = self.url or self.ntfy
        return self.name or (urlsplit(address).hostname or "url" if address else Path(self.command.split()[0]).name)

    @model_validator(mode="after")
    def _has_one_target(self) -> Self:
        targets = [value for value in (self.command.strip(), self.url, self.ntfy) if value]
        if len(targets) != 1:
            raise ValueError("a notifier has one of command, url and ntfy")
        if self.command and (reader := script_reader_of_line(self.command)) is not None:
            raise ValueError(f"{reader} would run its input as a script; name the script that it is to run")
        if not self.command:
            _address(targets[0])
        if self.answers and self.ntfy:
            raise ValueError("ntfy only informs: everyone who knows its topic could answer; use a command or a url")
        if self.answers and self.url.startswith("http:") and not _is_own_machine(urlsplit(self.url).hostname or ""):
            raise ValueError("answers of another machine need https")
        return self


class ModelSettings(_Section):
    """`[models]`: models for parts of the work."""

    small: Annotated[str, _OWN, _LATER] = ""
    """Model for compaction, for questions about fetched pages and for sub-agents that ask for it; empty for the model
    of the session."""
    fallback: Annotated[str, _OWN, _LATER] = ""
    """Model that answers the rest of a run whose model stays overloaded; empty for none."""


def _references(value: object) -> object:
    """Return the parts of a text with commas, the form of an environment variable."""
    return tuple(part.strip() for part in value.split(",")) if isinstance(value, str) else value


def _trial_setting(value: object) -> object:
    """Return the value of `sandbox` for one of its former names."""
    return "required" if value == "bwrap" else value


class PluginSettings(_Section):
    """`[plugins]`"""

    disabled: Annotated[tuple[str, ...], BeforeValidator(_references), _OWN, _LATER] = ()
    """Plugins that are not used: `PACKAGE`, `PACKAGE:NAME`, or `*` for all."""


class EnvSettings(_Section):
    """`[env]`"""

    passed: Annotated[tuple[str, ...], BeforeValidator(_references), _OWN, _LATER] = Field(default=(), alias="pass")
    """Variables that commands, hooks and tool servers inherit although they look like secrets, also in the sandbox."""


class WebSettings(_Section):
    """`[web]`"""

    search: Annotated[bool, _OWN, _LATER] = False
    """True to offer the tool `web_search` where the endpoint can search."""


class OtelSettings(_Section):
    """`[otel]`: spans for a collector of OpenTelemetry."""

    endpoint: Annotated[str | None, _OWN, _LATER] = None
    """URL that receives spans by OTLP over HTTP, such as `http://localhost:4318/v1/traces`."""

    _is_address = field_validator("endpoint")(_address)


class UiSettings(_Section):
    """`[ui]`"""

    theme: str = AUTO_THEME
    """Name of a theme, which is the file name without `.toml`; `auto` is light or dark, like the terminal."""
    notifications: Annotated[Literal["off", "bell", "osc9", "auto"], _LATER] = "auto"
    """Signal of a terminal without focus once the agent waits for the user or ends a run."""
    mouse: Annotated[bool, _OWN] = True
    """False to leave the mouse to the terminal, for its own selection."""
    vim_keys: Annotated[bool, _OWN] = False
    """True for the modes of vim while typing."""
    status: Annotated[tuple[StatusItem, ...], _OWN] = STATUS
    """Facts of the status line after the state, in order: `step`, `context`, `cost`, `time`, `tokens`, `model`, `mode`,
    `folder`, `branch`, `command`."""
    status_command: Annotated[str, _OWN, _LATER] = ""
    """Command line for bash whose first line of output is the fact `command`."""
    title: Annotated[tuple[TitleItem, ...], _OWN] = TITLE
    """Parts of the terminal's title, in order: `state`, `folder`, `model`, `mode`, `program`; none for no title."""
    reduced_motion: Annotated[bool, _LATER] = False
    """No spinners and no animations; also `TUI_AGENT_REDUCED_MOTION=1`."""


def _keys_of(value: object) -> object:
    """Return the keys of one command; a text contains one key, or none if it is empty."""
    keys: object = [value] if isinstance(value, str) else value
    if not is_array(keys) or not all(isinstance(key, str) for key in keys):
        raise ValueError('not a key such as "ctrl+k", a list of keys, or "" for no key')
    return tuple(key for key in keys if key)


def _flat(value: object) -> object:
    """Return nested tables as one: TOML reads `chat.search` without quotes as a table in a table."""
    return dict(_flat_items(value)) if is_object(value) else value


def _flat_items(table: JsonObject, prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in table.items():
        if is_object(value):
            yield from _flat_items(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _endpoints(value: object) -> dict[str, Endpoint]:
    """Return the endpoints. Their schema is built only if there are some: every start builds that of the settings."""
    if not is_object(value):
        raise ValueError("not a table")
    if wrong := next((name for name in value if ENDPOINT_NAME.fullmatch(name) is None), None):
        raise ValueError(f"{wrong!r} is not a name of letters, digits, -, _ and .")
    return TypeAdapter(dict[str, Endpoint]).validate_python(value) if value else {}


KeySettings = Annotated[dict[str, Annotated[tuple[str, ...], BeforeValidator(_keys_of)]], BeforeValidator(_flat)]
"""`[keys]`: keys of each command by its id."""


class Settings(_Section):
    """All settings, merged."""

    model: str = "claude-sonnet-5-5"
    """Model name, any that the endpoint accepts."""
    effort: Literal["default", "off", "low", "medium", "high", "xhigh", "max"] = "default"
    """Amount of thinking; `default` leaves it to the provider."""
    base_url: Annotated[str | None, _OWN, _LATER] = None
    """Endpoint of a Messages API; if not set, `ANTHROPIC_BASE_URL`."""
    key_command: Annotated[str, _OWN, _LATER] = ""
    """Command line for bash that prints the key of this endpoint; it runs again once after a 401 or 403."""
    key_lifetime: Annotated[float | None, _OWN, _LATER] = Field(default=None, gt=0, allow_inf_nan=False)
    """Seconds after which `key_command` runs again before a request; if not set, only once the server refuses the
    key."""
    betas: Annotated[tuple[str, ...], BeforeValidator(_references), _OWN, _LATER] = ()
    """Values of the header `anthropic-beta` for this endpoint."""
    extra_body: Annotated[dict[str, Any], _OWN, _LATER] = Field(default_factory=dict[str, Any])
    """More fields of each request to this endpoint."""
    max_tokens: int | None = Field(default=None, gt=0, le=MOST)
    """Maximum tokens of an answer; if not set, the model's limit."""
    cache_lifetime: Annotated[CacheLifetime, _LATER] = "5m"
    """Time for which the endpoint keeps the beginning of a request in its cache. An hour costs more to write."""
    strategy: str = "auto"
    """Scheduling of calls: auto, sequential, parallel or batched:N."""
    max_steps: int | None = Field(default=None, gt=0, le=MOST)
    """Maximum steps of one run; if not set, unlimited on the screen and 16 headless."""
    tool_timeout: float = Field(default=30.0, gt=0, allow_inf_nan=False)
    """Timeout in seconds, for tools without one of their own."""
    output_disk_limit: Annotated[int, _LATER] = Field(default=1024**3, ge=0)
    """Disk space in bytes for long outputs of one session's commands, at most 256 MiB for each."""
    sandbox: Annotated[TrialSetting, BeforeValidator(_trial_setting), _OWN, _LATER] = "auto"
    """Shell commands in a trial: with `auto`, those that no rule and no mode lets outside, where one works; with
    `required` (or `bwrap`), none runs without one; with `off`, none runs in one."""
    sandbox_network: Annotated[bool, _OWN, _LATER] = False
    """True to give commands in a trial access to the network."""
    env: EnvSettings = EnvSettings()
    append_system: str = ""
    """Text appended to the system prompt."""
    budget: BudgetSettings = BudgetSettings()
    permissions: PermissionSettings = PermissionSettings()
    hooks: Annotated[tuple[HookSettings, ...], _OWN, _LATER] = ()
    """Commands that decide about calls, in order."""
    notify: Annotated[tuple[NotifySettings, ...], _OWN, _LATER] = ()
    """Commands and URLs that get the questions which wait for the user."""
    hook_files: Annotated[bool, _OWN, _LATER] = True
    """True to run the hooks of `.claude/settings.json`, yours and those of a trusted project."""
    ui: UiSettings = UiSettings()
    otel: OtelSettings = OtelSettings()
    keys: Annotated[KeySettings, _OWN] = Field(default_factory=dict[str, tuple[str, ...]])
    """Keys that replace those of commands, by the id of the command."""
    mcp: Annotated[dict[str, ToolServer], _LATER] = Field(default_factory=dict[str, ToolServer])
    """Tool servers by name. Those of a project start only once they were accepted."""
    lsp: Annotated[dict[str, LanguageServer], _LATER] = Field(default_factory=dict[str, LanguageServer])
    """Language servers by name. Those of a project start only once they were accepted."""
    providers: Annotated[dict[str, Endpoint], PlainValidator(_endpoints), _OWN, _LATER] = Field(
        default_factory=dict[str, Endpoint]
    )
    """Endpoints by name, for models named `PROVIDER/MODEL`."""
    models: ModelSettings = ModelSettings()
    plugins: PluginSettings = PluginSettings()
    web: WebSettings = WebSettings()

    @field_validator("mcp", "lsp")
    @classmethod
    def _has_server_names(cls, value: dict[str, Any]) -> dict[str, Any]:
        if wrong := next((name for name in value if SERVER_NAME.fullmatch(name) is None), None):
            raise ValueError(f"{wrong!r} is not a name of letters, digits, - and single _")
        return value

    @field_validator("strategy")
    @classmethod
    def _is_strategy(cls, value: str) -> str:
        if re.fullmatch(r"auto|sequential|parallel|batched:[1-9][0-9]{0,8}", value) is None:
            raise ValueError(f"{value!r} is not auto, sequential, parallel or batched:N")
        return value

    _is_address = field_validator("base_url")(_address)
    _is_extra = field_validator("extra_body")(expect_extra_fields)


@dataclass(frozen=True, slots=True)
class Locations:
    """Directories of tui-agent's files. It writes nowhere else outside the workspace."""

    config_dir: Path
    """Directory of the user's settings, themes and instructions."""
    state_dir: Path
    """Directory of sessions and logs; mode 0700."""

    @property
    def user_file(self) -> Path:
        """Settings file of the user."""
        return self.config_dir / "config.toml"

    @property
    def sessions_dir(self) -> Path:
        """Directory of the session journals, which have mode 0600."""
        return self.state_dir / "sessions"

    @property
    def log_dir(self) -> Path:
        """Directory of the log files."""
        return self.state_dir / "log"

    @property
    def user_themes_dir(self) -> Path:
        """Directory of the user's themes."""
        return self.config_dir / "themes"

    @property
    def own_directories(self) -> tuple[Path, ...]:
        """All of these directories, links resolved."""
        return tuple(Path(os.path.realpath(path)) for path in (self.config_dir, self.state_dir))

    @classmethod
    def of_user(cls, environment: Mapping[str, str] = os.environ) -> "Locations":
        """Return the locations of the current user. `TUI_AGENT_HOME` puts them all into one directory."""
        home = environment.get(HOME_VARIABLE)
        if home:
            return cls(Path(home) / "config", Path(home) / "state")
        return cls(platformdirs.user_config_path(APP_NAME), platformdirs.user_state_path(APP_NAME))


@dataclass(frozen=True, slots=True)
class ProjectTrust:
    """Trust in the settings of a project."""

    digest: str | None = None
    """`content_digest` of the settings the user trusted; None for any content."""
    allows: bool = False
    """True if the user accepted its allow rules and tool servers, too; otherwise only the rest applies."""


@dataclass(frozen=True, slots=True)
class RuleSetting:
    """One permission rule with its origin."""

    verdict: Verdict
    text: str
    origin: str
    """`FILE:LINE`, or the name of the option."""
    layer: LayerName


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """The merged settings with the origin of each value."""

    settings: Settings
    origins: Mapping[str, str]
    """Origin of each dotted key that is not a default."""
    rules: tuple[RuleSetting, ...] = ()
    """Rules of all layers, in the order of the layers and of each list."""
    files: tuple[Path, ...] = ()
    """Files that were read."""
    ignored: tuple[str, ...] = ()
    """Messages about settings that were found and not applied."""
    unknown_variables: tuple[str, ...] = ()
    """Messages about unknown `TUI_AGENT_*` variables, with the closest known name."""


@dataclass(frozen=True, slots=True)
class _Layer:
    name: LayerName
    values: JsonObject
    source: str
    """Path of the file, or a name such as `environment`."""
    lines: Mapping[str, int] = field(default_factory=dict[str, int])
    """Line of each dotted key."""
    dropped: frozenset[tuple[str, str]] = frozenset()
    """Text and origin of each allow rule that is not applied."""

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
    own: bool = True,
) -> LoadedSettings:
    """Read and merge all layers. Blocks.

    Args:
        locations: directories of the user's files.
        project: the working directory; its settings apply as far as `trust` allows.
        trust: the user's answer about the project; None to apply nothing of it.
        environment: variables; None for those of the process. `TUI_AGENT_MODEL` sets `model`, `TUI_AGENT_UI__THEME`
            sets `ui.theme`.
        options: values from the command line, nested like the file.
        option_rules: rules from the command line, in order.
        own: False to leave out the user's file.

    Raises:
        ConfigurationError: a key is unknown, a value has the wrong type, or a file is broken; the text has file, line
            and the closest key.
    """
    layers: list[_Layer] = []
    ignored: list[str] = []
    user = _file_layer("user", locations.user_file) if own else None
    if user is not None:
        layers.append(user)
    if project is not None and (found := _project_layer(project, trust, ignored)):
        layers.append(found)
        ignored.extend(_drop_known_servers(found, user))
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


def settings_mistakes(
    locations: Locations, project: Path, environment: Mapping[str, str]
) -> tuple[list[str], list[str], list[RuleSetting]]:
    """Return every mistake of the user's file and the environment, those of the project's file, trusted or not, and the
    rules of both files. A missing file has none. Blocks."""
    mistakes: list[list[str]] = [[], []]
    rules: list[RuleSetting] = []

    def add(at: int, read: Callable[[], _Layer | None]) -> None:
        try:
            layer = read()
        except ConfigurationError as error:
            mistakes[at].append(str(error))
            return
        if layer is None:
            return
        mistakes[at] += _mistakes(layer)
        with suppress(ValidationError):  # The rules themselves are among the mistakes.
            rules.extend(_rules_of([layer]))

    add(0, lambda: _file_layer("user", locations.user_file))
    add(0, lambda: _environment_layer(environment))
    path = project / PROJECT_FILE
    if not target_outside(path, project):
        add(1, lambda: _file_layer("project", path))
    return mistakes[0], mistakes[1], rules


def check_value(key: str, value: object) -> None:
    """Check the value of a dotted key.

    Raises:
        ConfigurationError: a settings file with it would be refused; the text has the reason alone.
    """
    values: JsonObject = {}
    _put(values, key, value)
    try:
        Settings.model_validate(values)
    except ValidationError as error:
        raise ConfigurationError(error.errors()[0]["msg"].removeprefix("Value error, ")) from error


def check_content(path: Path, content: bytes) -> None:
    """Check the content of a settings file before it is written.

    Raises:
        ConfigurationError: a start would refuse the file; the text has file, line and the closest key.
    """
    _check(_layer_of("user", path, content))


def content_digest(content: bytes) -> str:
    """Return the hash of a settings file, by which `ProjectTrust` refers to its content."""
    return hashlib.sha256(content).hexdigest()


def fields_of(model: type[BaseModel] = Settings, prefix: str = "") -> Iterator[tuple[str, type[BaseModel], str]]:
    """Yield dotted key, section and attribute of each setting, in the order of their definition."""
    for name, info in model.model_fields.items():
        section = info.annotation
        if isinstance(section, type) and issubclass(section, BaseModel):
            yield from fields_of(section, f"{prefix}{name}.")
        else:
            yield f"{prefix}{info.alias or name}", model, name


def key_names() -> list[str]:
    """Return all dotted keys, in the order of their definition."""
    return [key for key, _, _ in fields_of()]


def never_from_project() -> list[str]:
    """Return the keys of settings that a project must not set."""
    return _marked(_OWN)


def only_at_start() -> list[str]:
    """Return the keys of settings whose changes take effect at the next start."""
    return _marked(_LATER)


def _marked(mark: str) -> list[str]:
    return [key for key, model, name in fields_of() if mark in model.model_fields[name].metadata]


def value_of(settings: Settings, key: str) -> object:
    """Return the value of a dotted key.

    Raises:
        AttributeError: no setting has this key.
    """
    value: object = settings
    for name in key.split("."):
        value = getattr(value, _ATTRIBUTES.get(name, name))
    return value


def _file_layer(name: LayerName, path: Path) -> _Layer | None:
    """Return the layer of a file; None if it does not exist."""
    content = _content(path)
    return None if content is None else _layer_of(name, path, content)


def _project_layer(project: Path, trust: ProjectTrust | None, ignored: list[str]) -> _Layer | None:
    """Return the project's settings that apply; add messages about the others to `ignored`."""
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
        ignored.append(f"{path}: not applied, because it changed since you trusted it")
        return None
    layer = _layer_of("project", path, content)
    _check(layer)
    taken = [key for key in never_from_project() if _take(layer.values, key)]
    ignored.extend(f"{layer.origin_of(key)}: `{key}`: not applied, because a project cannot set it" for key in taken)
    model: object = layer.values.get("model")
    if isinstance(model, str) and "/" in model and _take(layer.values, "model"):
        ignored.append(f"{layer.origin_of('model')}: `model`: not applied, because a project cannot choose an endpoint")
    refused = [key for key in ("mcp", "lsp") if not trust.allows and _take(layer.values, key)]
    reason = "not applied, because you did not accept its servers"
    ignored.extend(f"{layer.origin_of(key)}: `{key}`: {reason}" for key in refused)
    rules = _rules_of([layer])
    dropped = [] if trust.allows else [rule for rule in rules if rule.verdict == "allow"]
    ignored.extend(f"{rule.origin}: allow {rule.text}: not applied, because you did not accept it" for rule in dropped)
    return replace(layer, dropped=frozenset((rule.text, rule.origin) for rule in dropped))


def _drop_known_servers(project: _Layer, user: _Layer | None) -> list[str]:
    """Remove the project's servers whose names are the user's: they would get what the user allowed theirs."""
    known: list[str] = []
    for section in ("mcp", "lsp"):
        servers: object = project.values.get(section, {})
        own: object = {} if user is None else user.values.get(section, {})
        both = sorted(set(servers) & set(own)) if is_object(servers) and is_object(own) else []
        known += [f"{section}.{name}" for name in both]
    for key in known:
        _take(project.values, key)
    reason = "not applied, because you have a server of this name"
    return [f"{project.origin_of(key)}: `{key}`: {reason}" for key in known]


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
    """Return the layer of the `TUI_AGENT_*` variables."""
    values: JsonObject = {}
    for variable, key in _variables().items():
        if environment.get(variable):
            _put(values, key, environment[variable])
    return _Layer("environment", values, "environment")


def variable_of(key: str, environment: Mapping[str, str]) -> str:
    """Return the environment variable that sets a dotted key; empty if none does."""
    # The last one wins.
    names = [variable for variable, name in _variables().items() if name == key and environment.get(variable)]
    return names[-1] if names else ""


def _variables() -> dict[str, str]:
    """Return the key of each variable that sets one."""
    known = {ENVIRONMENT_PREFIX + key.upper().replace(".", "__"): key for key in key_names()}
    for tables in ("PERMISSIONS__RULES", "KEYS", "LSP", "MCP", "PROVIDERS", "EXTRA_BODY"):
        del known[f"{ENVIRONMENT_PREFIX}{tables}"]
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
            words.append(f"{variable}: unknown variable{hint}")
    return words


def _check(layer: _Layer) -> None:
    """Validate one layer alone, so that an error names its file."""
    if found := _mistakes(layer):
        raise ConfigurationError(found[0])


def _mistakes(layer: _Layer) -> list[str]:
    """Return every mistake of a layer, with its origin and the closest key."""
    try:
        Settings.model_validate(layer.values)
    except ValidationError as error:
        found: list[str] = []
        for one in error.errors():
            inner = one.get("ctx", {}).get("error")
            if isinstance(inner, ValidationError):
                found += [_mistake(layer, (*one["loc"], *below["loc"]), dict(below)) for below in inner.errors()]
            else:
                found.append(_mistake(layer, one["loc"], dict(one)))
        return found
    return []


def _mistake(layer: _Layer, loc: tuple[int | str, ...], error: Mapping[str, Any]) -> str:
    wrong = ".".join(str(part) for part in loc)
    origin = _origin_near(layer, loc)
    if error["type"] == "extra_forbidden":
        near = difflib.get_close_matches(wrong, [*key_names(), *_sections(), *_keys_beside(loc)], n=1)
        hint = f"; did you mean `{near[0]}`?" if near else ""
        return f"{origin}: unknown key `{wrong}`{hint}"
    return f"{origin}: `{wrong}`: {error['msg'].removeprefix('Value error, ')}"


def _origin_near(layer: _Layer, loc: Sequence[int | str]) -> str:
    """Return the origin of the innermost key that an error is about and whose line is known."""
    exact = ".".join(str(part) for part in loc)
    names = [part for part in loc if isinstance(part, str)]
    keys = (".".join(names[:end]) for end in range(len(names), 0, -1))
    return layer.origin_of(next((key for key in (exact, *keys) if key in layer.lines), exact))


def _keys_beside(loc: Sequence[int | str]) -> list[str]:
    """Return the keys of the server, the endpoint or the model that an error is about; none for something else."""
    kinds: dict[str, type[BaseModel]] = {"mcp": ToolServer, "lsp": LanguageServer, "providers": Endpoint}
    kind = kinds.get(str(loc[0]))
    if kind is None or len(loc) < 3:
        return []
    if kind is Endpoint and loc[2] == "models" and len(loc) > 4:
        kind = EndpointModel
    prefix = ".".join(str(part) for part in loc[:-1])
    return [f"{prefix}.{key}" for key in kind.model_fields]


def _rules_of(layers: Sequence[_Layer]) -> list[RuleSetting]:
    """Return the rules of the file layers, with their lines."""
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
    """Return the line of each key and rule of a TOML text.

    A line-by-line search, good enough for error messages: `tomllib` reports no positions.
    """
    lines: dict[str, int] = {}
    table = ""
    rules = 0
    entries = Counter[str]()
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*(\[+)\s*([\w.\-\"]+)\s*\]+", line)
        if header and "=" not in line and "," not in line:
            name = header.group(2).replace('"', "")
            lines.setdefault(name, number)
            if header.group(1) == "[[":
                entries[name] += 1
                name = f"{name}.{entries[name] - 1}"
                lines.setdefault(name, number)
            table = f"{name}."
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
    """Remove a dotted key; return True if it was there."""
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
