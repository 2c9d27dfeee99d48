"""Shipped facts about models and their servers (windows, prices, profiles), and the endpoint behind a model's name.

Prices are in dollars per million tokens, and only given if the published price is a single number.
"""

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from urllib.parse import urlsplit

from tui_agent.protocol.endpoint import CLOUDS, ONLY_IN, Endpoint, EndpointModel
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.provider import ModelInfo, ThinkingForm

DEMO_MODEL = "offline-demo"
"""Name of the scripted model behind `--demo`."""

_OWN_CEILING = 64_000
"""Default for the longest answer in tokens; a limit of 128,000 suits batch work more than a conversation."""

_UNKNOWN_WINDOW = 64_000
"""Context window assumed for models of other vendors, the least that local servers are advised to configure."""


@dataclass(frozen=True, slots=True)
class _Row:
    """One model, or a family of models."""

    window: int
    output: int
    prices: tuple[float, float] | None
    thinking: ThinkingForm


_LARGE = 1_000_000
_TABLE: dict[str, _Row] = {
    "claude-fable-5-2": _Row(_LARGE, 128_000, (8.0, 40.0), "always"),
    "claude-fable-5-1": _Row(_LARGE, 128_000, (10.0, 50.0), "always"),
    "claude-fable-5": _Row(_LARGE, 128_000, (10.0, 50.0), "always"),
    "claude-mythos-5": _Row(_LARGE, 128_000, (10.0, 50.0), "always"),
    "claude-opus-5-5": _Row(_LARGE, 128_000, (4.0, 20.0), "always"),
    "claude-opus-5": _Row(_LARGE, 128_000, (5.0, 25.0), "adaptive"),
    "claude-opus-4-8": _Row(_LARGE, 128_000, (5.0, 25.0), "adaptive"),
    "claude-opus-4-7": _Row(_LARGE, 128_000, (5.0, 25.0), "adaptive"),
    "claude-opus-4-6": _Row(_LARGE, 128_000, (5.0, 25.0), "adaptive"),
    "claude-opus-4-5": _Row(200_000, 64_000, (5.0, 25.0), "budget"),
    "claude-sonnet-5-5": _Row(_LARGE, 128_000, (2.0, 10.0), "adaptive"),
    "claude-sonnet-5": _Row(_LARGE, 128_000, (2.0, 10.0), "adaptive"),
    "claude-sonnet-4-6": _Row(_LARGE, 128_000, (3.0, 15.0), "adaptive"),
    "claude-sonnet-4-5": _Row(200_000, 64_000, (3.0, 15.0), "budget"),
    "claude-haiku-5-5": _Row(_LARGE, 128_000, None, "adaptive"),
    "claude-haiku-4-5": _Row(200_000, 64_000, (1.0, 5.0), "budget"),
}
_WITHOUT_XHIGH = frozenset({"claude-opus-4-6", "claude-sonnet-4-6"})
_FAMILY = _Row(200_000, 32_000, None, "adaptive")
"""A model of the same vendor that is newer than this table."""
_OTHER_FAMILIES = {
    "gpt-5-chat": _Row(128_000, 16_384, None, "none"),
    "gpt-5": _Row(400_000, 128_000, None, "adaptive"),
    "gpt-4.1": _Row(1_047_576, 32_768, None, "none"),
    "gpt-4o": _Row(128_000, 16_384, None, "none"),
    "o3": _Row(200_000, 100_000, None, "adaptive"),
    "o4-mini": _Row(200_000, 100_000, None, "adaptive"),
}
"""Families of another vendor, by the beginning of their names."""
_UNKNOWN_MODEL = _Row(_UNKNOWN_WINDOW, 8_192, None, "budget")

_PREFIX = re.compile(r"^(?:[a-z]{2,6}\.)?anthropic[./]")
_SUFFIX = re.compile(r"(?:[-@]\d{8})?(?:-v\d+(?::\d+)?)?$|-latest$")


def model_info(name: str) -> ModelInfo:
    """Return the facts about a model; for an unknown name conservative values and no price."""
    if name == DEMO_MODEL:
        return ModelInfo(name, 200_000, 8_192, 0.0, 0.0, "offline_demo")
    row = _row(name)
    prices = row.prices or (None, None)
    return ModelInfo(name, row.window, row.output, prices[0], prices[1], thinking=row.thinking)


def knows(name: str) -> bool:
    """Return True if the table has a model or its family; else `model_info` assumes the facts about it."""
    return name == DEMO_MODEL or _row(name) is not _UNKNOWN_MODEL


def takes_xhigh(name: str) -> bool:
    """True if a model has the effort `xhigh`: the large ones since Opus 4.7, and newer ones than this table."""
    plain = _SUFFIX.sub("", _PREFIX.sub("", name.strip().lower()))
    return plain.startswith("claude-") and _row(name).thinking != "budget" and plain not in _WITHOUT_XHIGH


def is_of_vendor(name: str) -> bool:
    """True for the models of the vendor of the Messages API, on any platform."""
    return _PREFIX.sub("", name.strip().lower()).startswith("claude-")


def known_models() -> tuple[str, ...]:
    """Return the names of the models in the table."""
    return tuple(_TABLE)


def default_max_tokens(info: ModelInfo) -> int:
    """Return the longest answer to request by default, in tokens."""
    return min(info.max_output_tokens, _OWN_CEILING)


def _row(name: str) -> _Row:
    plain = _SUFFIX.sub("", _PREFIX.sub("", name.strip().lower()))
    if plain in _TABLE:
        return _TABLE[plain]
    if plain.startswith("claude-"):
        return _FAMILY
    return next((row for family, row in _OTHER_FAMILIES.items() if plain.startswith(family)), _UNKNOWN_MODEL)


def model_of_family(name: str, present: str) -> str:
    """Return the model for a name such as `haiku`: the newest of that family; any other name is that of a model.

    A family is not known to endpoints of other vendors: there it stands for the present model.
    """
    newest = next((model for model in _TABLE if model.startswith(f"claude-{name.strip().lower()}-")), None)
    if newest is None:
        return name
    return newest if _PREFIX.sub("", present).startswith("claude-") else present


ANTHROPIC = "anthropic"
"""Profile of the API itself, whose key comes from the environment as its SDK defines it."""

_EXAMPLE = "llamacpp"
"""Profile of the server that is named if nothing says which one it is."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Defaults of an endpoint."""

    name: str
    title: str
    endpoint: Endpoint
    port: int | None = None
    """Port of a local server; None for a remote one."""
    advice: str = ""
    """Setting of the server without which agents do not work well."""
    start: str = ""
    """Command that starts the server at `port`."""
    start_at: str = ""
    """Command that starts it at `{port}`."""


@dataclass(frozen=True, slots=True)
class ModelTarget:
    """A model and the endpoint that has it."""

    provider: str
    name: str
    """Name that the endpoint knows."""
    endpoint: Endpoint
    """With the defaults of its profile; has a `base_url`."""

    @property
    def reference(self) -> str:
        """The model's name in settings and on the screen."""
        return f"{self.provider}/{self.name}"

    @property
    def info(self) -> ModelInfo:
        """Facts about the model: those configured, the rest from the table."""
        entry = next((model for model in self.endpoint.models if model.name == self.name), None)
        info = model_info(self.name)
        if self.provider != ANTHROPIC:
            # The table has the prices of the API itself.
            info = replace(info, input_price=None, output_price=None)
        if self.endpoint.kind == "openai" and not knows(self.name):
            # These servers take an effort, and no budget of tokens.
            info = replace(info, thinking="adaptive")
        return configured_info(replace(info, name=self.reference), entry)


@cache
def shipped_profiles() -> Mapping[str, Profile]:
    """Return the shipped profiles by name. Reads a file at the first call."""
    text = files("tui_agent.providers").joinpath("profiles.toml").read_text("utf-8")
    found: dict[str, Profile] = {}
    for name, values in tomllib.loads(text).items():
        title, port, advice = values.pop("title"), values.pop("port", None), values.pop("advice", "")
        start, start_at = values.pop("start", ""), values.pop("start_at", "")
        found[name] = Profile(name, title, Endpoint.model_validate(values), port, advice, start, start_at)
    return found


def how_to_start(address: str, profile: str | None = None) -> str:
    """Return how to start a server of this machine; without a profile, the one that usually has its port."""
    port, known = urlsplit(address).port or 80, shipped_profiles()
    found = known.get(profile or "") or next((one for one in known.values() if one.port == port), None)
    if found is None or not found.start:
        return f"start it there, such as with `{known[_EXAMPLE].start_at.format(port=port)}`"
    command = found.start if port == found.port else found.start_at.format(port=port)
    return f"start {found.title} there (`{command}`)"


def complete_endpoint(name: str, endpoint: Endpoint | None) -> Endpoint:
    """Return an endpoint with the defaults of its profile.

    Raises:
        ConfigurationError: no profile has the name it gives, nothing gives its address, or a setting has no effect with
            its kind.
    """
    wanted = name if endpoint is None or endpoint.profile is None else endpoint.profile
    profile = shipped_profiles().get(wanted)
    if profile is None and endpoint is not None and endpoint.profile is not None:
        known = ", ".join(shipped_profiles())
        raise ConfigurationError(f"`providers.{name}.profile`: no profile {wanted!r}; there are {known}")
    own = {} if endpoint is None else {key: getattr(endpoint, key) for key in endpoint.model_fields_set}
    base = profile.endpoint if profile is not None else Endpoint()
    if endpoint is not None and "kind" in own and endpoint.kind != base.kind and base.base_url is not None:
        # The rest of a profile is about its API.
        base = Endpoint(base_url=f"{base.base_url}/v1", key_env=base.key_env)
    made = base.model_copy(update=own)
    if made.base_url is None and made.kind not in CLOUDS:
        raise ConfigurationError(f"`providers.{name}`: `base_url` is missing; no shipped profile has this name")
    if idle := next((key for key in own if own[key] and made.kind not in ONLY_IN.get(key, made.kind)), None):
        raise ConfigurationError(f"`providers.{name}.{idle}` has no effect with the kind {made.kind!r}")
    if "base_url" in own and "key_env" not in own:
        # The key of the profile belongs to the profile's address.
        made = made.model_copy(update={"key_env": None})
    return made


def find_target(reference: str, endpoints: Mapping[str, Endpoint], *, own_address: bool = False) -> ModelTarget | None:
    """Return the model that `PROVIDER/MODEL` names; None for a model of the default endpoint.

    With `own_address`, the user set the address of the default endpoint. Its models may have any names, so a name has
    an endpoint only if that is configured.

    Raises:
        ConfigurationError: no endpoint has this name, or its configuration is incomplete.
    """
    provider, slash, name = reference.strip().partition("/")
    if not slash:
        return None
    if provider in endpoints:
        return ModelTarget(provider, _named(provider, name), complete_endpoint(provider, endpoints[provider]))
    if own_address:
        return None
    if provider not in shipped_profiles():
        known = [*endpoints, *(one for one in shipped_profiles() if one not in endpoints)]
        near = difflib.get_close_matches(provider, known, n=1)
        hint = f"did you mean {near[0]}/{name}?" if near else f"there are {', '.join(known)}"
        raise ConfigurationError(f"no provider {provider!r} for the model {reference!r}; {hint}")
    return ModelTarget(provider, _named(provider, name), complete_endpoint(provider, None))


def configured_info(info: ModelInfo, entry: EndpointModel | None) -> ModelInfo:
    """Return the facts about a model, those of its entry in the settings first; None: it has no entry."""
    if entry is None:
        return info
    window = entry.window or info.context_window
    # With the share at which a conversation is compacted, the longest answer must fit into the window.
    output = entry.max_output or min(info.max_output_tokens, max(window // 8, 1))
    return replace(
        info,
        context_window=window,
        max_output_tokens=output,
        input_price=info.input_price if entry.input_price is None else entry.input_price,
        output_price=info.output_price if entry.output_price is None else entry.output_price,
        cache_read_price=entry.cache_read_price,
        cache_write_price=entry.cache_write_price,
        thinking=entry.thinking or info.thinking,
    )


def _named(provider: str, name: str) -> str:
    if not name:
        raise ConfigurationError(f"the model {provider + '/'!r} has no name; as in {provider}/NAME")
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings:
    """Address, credential, headers and time limits."""

    api_key: str | None = field(repr=False)
    auth_token: str | None = field(repr=False)
    """Another form of credential; at most one of the two is set."""
    base_url: str | None
    """Address of the endpoint; None for that of the SDK."""
    headers: Mapping[str, str] = field(repr=False)
    connect_timeout: float
    silence_timeout: float
    """Seconds without a byte until a request is abandoned."""
    isolated: bool
    """True to send no credential and no header that the environment sets for another endpoint."""
