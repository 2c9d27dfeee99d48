"""Configuration of an endpoint and of the models it has, and the credential that the environment has for an address."""

import os
import re
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field, field_validator

from .messages import FrozenModel
from .provider import ThinkingForm
from .web_address import host_of

EndpointKind: TypeAlias = Literal["messages", "openai", "bedrock", "vertex", "foundry"]
"""API of an endpoint: the Messages API, one of those of OpenAI, or the Messages API in a cloud."""

CLOUDS: frozenset[str] = frozenset({"bedrock", "vertex", "foundry"})
"""Kinds whose address and credentials the SDK finds in the environment."""

LIBRARIES = {"openai": "openai", "bedrock": "boto3", "vertex": "google.auth"}
"""Libraries that kinds need; the extra with one has the name of its kind."""

ENDPOINT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
"""Names of endpoints, the first part of `PROVIDER/MODEL`."""

CacheLifetime: TypeAlias = Literal["5m", "1h"]
"""Time for which an endpoint keeps the beginning of a request in its cache."""

NEEDED_FIELDS = frozenset({"model", "messages", "max_tokens", "stream"})
"""Fields without which a request is none, so that no configuration leaves them out."""

BUILT_FIELDS = NEEDED_FIELDS | {"system", "tools"}
"""Fields that tui-agent writes, so that no configuration adds them."""


def expect_extra_fields(value: dict[str, Any]) -> dict[str, Any]:
    """Return fields that a configuration adds to requests.

    Raises:
        ValueError: tui-agent writes one of them itself.
    """
    if wrong := next((name for name in value if name in BUILT_FIELDS), None):
        raise ValueError(f"{wrong!r} is a field that tui-agent writes itself")
    return value


ONLY_IN: dict[str, frozenset[str]] = {
    "api": frozenset({"openai"}),
    "region": frozenset({"bedrock", "vertex"}),
    "project": frozenset({"vertex"}),
    "anthropic_version": frozenset({"messages", "foundry"}),
    "betas": CLOUDS | {"messages"},
    "count_tokens": frozenset({"messages", "vertex", "foundry"}),
    "web_search": frozenset({"messages", "vertex", "foundry"}),
}
"""Settings that not every kind has, with the kinds that do."""

_STRICT = ConfigDict(frozen=True, extra="forbid", defer_build=True)
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_MOST = 10**9


class EndpointModel(FrozenModel):
    """One entry of `models`. Fields that are not set come from the table of known models. Prices are US dollars for a
    million tokens."""

    model_config = _STRICT

    name: str = Field(min_length=1)
    """Name that the endpoint knows."""
    window: int | None = Field(default=None, ge=1_024, le=_MOST)
    """Size of the context window in tokens."""
    max_output: int | None = Field(default=None, ge=1, le=_MOST)
    """Longest answer in tokens."""
    input_price: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Price of input that is not cached."""
    output_price: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Price of output."""
    cache_read_price: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Price of input from the prompt cache; if not set, a tenth of `input_price`."""
    cache_write_price: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Price of input that is written to the prompt cache; if not set, 1.25 times `input_price`."""
    thinking: ThinkingForm | None = None
    """Form of its reasoning setting."""


class Endpoint(FrozenModel):
    """One `[providers.NAME]`: an endpoint."""

    model_config = _STRICT

    profile: str | None = None
    """Name of the shipped profile with its defaults; if not set, the profile of the same name."""
    kind: EndpointKind = "messages"
    """Its API."""
    api: Literal["chat", "responses"] = "chat"
    """API of kind `openai`: Chat Completions, or Responses."""
    region: str | None = Field(default=None, min_length=1)
    """Region of Bedrock or Vertex; if not set, that of the environment."""
    project: str | None = Field(default=None, min_length=1)
    """Project of Vertex; if not set, that of the environment."""
    base_url: str | None = None
    """Address without `/v1`; for `openai`, it may have one."""
    key_env: str | None = Field(default=None, min_length=1)
    """Variable of the environment with the key, which is sent to this endpoint only; without it none is sent."""
    headers: dict[str, str] = Field(default_factory=dict[str, str])
    """Headers of each request."""
    models: tuple[EndpointModel, ...] = ()
    """Models to list, with their limits and prices. Others can be used by name."""
    drop: tuple[str, ...] = ()
    """Fields that requests leave out because the endpoint refuses them."""
    anthropic_version: str | None = Field(default=None, pattern=r"^\d{4}-\d{2}-\d{2}$")
    """Value of the header `anthropic-version`; if not set, that of the SDK."""
    count_tokens: bool | None = None
    """True if the endpoint counts the tokens of a request."""
    web_search: bool | None = None
    """True if the endpoint has the server-side tool `web_search`."""
    key_command: str = ""
    """Command line for bash that prints the key; it runs again once after a 401 or 403."""
    key_lifetime: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Seconds after which `key_command` runs again before a request."""
    cache_lifetime: CacheLifetime | None = None
    """Time for which the endpoint keeps the beginning of a request; if not set, as the settings say."""
    betas: tuple[str, ...] = ()
    """Values of the header `anthropic-beta`."""
    extra_body: dict[str, Any] = Field(default_factory=dict[str, Any])
    """More fields of each request."""

    @property
    def place(self) -> str:
        """Its address; for a cloud, whose address the environment decides, its kind."""
        return self.base_url or self.kind

    @field_validator("base_url")
    @classmethod
    def _is_address(cls, value: str | None) -> str | None:
        if value is not None and host_of(value) is None:
            raise ValueError("not a URL such as http://localhost:8080, without user name and password")
        return value

    _is_extra = field_validator("extra_body")(expect_extra_fields)

    @field_validator("drop")
    @classmethod
    def _can_be_dropped(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if name in NEEDED_FIELDS or _WORD.fullmatch(name) is None:
                raise ValueError(f"{name!r} is not a field that a request can leave out")
        return value


DEFAULT_ADDRESS = "https://api.anthropic.com"


def is_own_api(address: str | None) -> bool:
    """True if an address is that of the API itself, not of a gateway; None is the API's."""
    host = _origin(address or DEFAULT_ADDRESS)[1]
    return host == "anthropic.com" or host.endswith(".anthropic.com")


def environment_credential(
    base_url: str | None, environment: Mapping[str, str] | None = None
) -> tuple[str | None, str | None]:
    """Return the key and the token for an address, at most one of them; the other, or both, are None.

    Without an address it is that of `ANTHROPIC_BASE_URL`, or the API's own; without an environment, the process's. An
    empty variable counts as unset.

    The API itself gets `ANTHROPIC_API_KEY`, else `ANTHROPIC_AUTH_TOKEN`. A gateway gets the token if there is one, and
    then never the key; but a token that comes with another gateway's address in `ANTHROPIC_BASE_URL` is not for it.
    """
    variables = os.environ if environment is None else environment
    key, token = variables.get("ANTHROPIC_API_KEY") or None, variables.get("ANTHROPIC_AUTH_TOKEN") or None
    gateway = variables.get("ANTHROPIC_BASE_URL") or None
    address = base_url or gateway
    if token and gateway and not is_own_api(gateway) and _origin(gateway) != _origin(address or ""):
        # It belongs to the gateway that the environment names.
        token = None
    if is_own_api(address):
        return (key, None) if key else (None, token)
    return (None, token) if token else (key, None)


def _origin(address: str) -> tuple[str, str, int | None]:
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return "", "", None
    return parts.scheme, parts.hostname or "", port or {"http": 80, "https": 443}.get(parts.scheme)
