"""The provider for Anthropic's Messages API and for every compatible server.

Credentials stay in this module (S4-7). One call of `stream` is one attempt: the agent loop retries, so that the user
sees it. `prepare` loads the SDK in a thread; importing this module does not load it.
"""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from types import NoneType
from typing import TYPE_CHECKING, get_args
from urllib.parse import urlsplit

from tui_agent.protocol.background import reason_of
from tui_agent.protocol.endpoint import environment_credential, expect_extra_fields
from tui_agent.protocol.errors import ConfigurationError, ProviderError
from tui_agent.protocol.provider import ModelInfo, ModelRequest, StreamEnded, StreamEvent
from tui_agent.protocol.value_checks import (
    expect_choice,
    expect_flag,
    expect_kind,
    expect_seconds,
    expect_whole,
    wrong_kind,
)

from .error_details import refusal_subject
from .model_catalog import ConnectionSettings, default_max_tokens, model_info
from .provider_failures import BROKE_OFF, ErrorFactory
from .refused_fields import BETA_FIELD, VERSION_FIELD, Refusal, dropped_text, refused_fields, statements
from .request_builder import CacheSetting, RequestBuilder, RequestSettings, ThinkingMode, countable
from .response_decoder import ResponseDecoder

if TYPE_CHECKING:
    from .anthropic_sdk import SdkClient
    from .endpoint_client import EndpointClient, SdkResponse

_NO_KEY = "No key was found"
_NO_KEY_ADVICE = "set ANTHROPIC_API_KEY, or try `tui-agent --demo`, which needs none"
_PLACEHOLDER_TOKEN = "none"
"""Auth token for a user's own server that needs none: the SDK sends no request without a credential."""


@dataclass(frozen=True, slots=True)
class KeySource:
    """Source of keys that expire."""

    ask: Callable[[], Awaitable[str]]
    """Returns a key, or raises a `ProviderError`; called again once after a 401 or 403."""
    lifetime: float | None = None
    """Seconds after which it is called again before a request."""


_PINGS = 2
"""Silences after which an answer is abandoned that only sends pings: some models think for minutes without a word."""

_HOUR_PRICE = 2.0
"""Price of a token that is written to the cache for an hour, in prices of an input token."""

_DRAIN_SECONDS = 0.5
"""Seconds to wait for the end of a complete answer, so that its connection can be reused."""

_OLDEST_VERSION = "2023-06-01"
"""Version of the API for servers that refuse a newer one."""

_BUILD_OFF_LOOP = 400
"""Number of new messages above which a request is built in a thread, as after resuming a long session."""


def load_sdk() -> "type[SdkClient]":
    """Import the SDK and return its client. Blocks: about half a second.

    Raises:
        ImportError, OSError, MemoryError: this is not possible now.
    """
    from .anthropic_sdk import SdkClient

    return SdkClient


@dataclass(frozen=True, slots=True)
class EndpointTraits:
    """Facts about a model of a named endpoint, which has a `base_url`."""

    info: ModelInfo
    """Facts about the model; its name there is that for the screen."""
    drop: frozenset[str] = frozenset()
    """Fields that requests leave out."""
    counts_tokens: bool = True
    """True if the endpoint counts the tokens of a request."""
    profile: str | None = None
    """Name of the profile of its server."""


class AnthropicProvider:
    """Provider for one model of the Messages API. Implements `protocol.provider.ModelProvider`.

    Subclasses speak other APIs, or reach this one through another client of the SDK.
    """

    builder_type: type[RequestBuilder] = RequestBuilder
    """Writer of the requests."""

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        auth_token: str | None = None,
        base_url: str | None = None,
        max_tokens: int | None = None,
        thinking: ThinkingMode = "default",
        cache: CacheSetting = True,
        headers: Mapping[str, str] | None = None,
        betas: Sequence[str] = (),
        extra_body: Mapping[str, object] | None = None,
        key_source: KeySource | None = None,
        connect_timeout: float = 10.0,
        silence_timeout: float = 300.0,
        endpoint: EndpointTraits | None = None,
    ) -> None:
        """Store the settings; send and load nothing.

        Args:
            model: any name the server knows.
            api_key, auth_token: at most one. Without both, the SDK looks for credentials in the environment and its
                profiles; with a `base_url`, requests may also go without.
            base_url: address without `/v1`; None: `ANTHROPIC_BASE_URL`, or the API's own.
            max_tokens, thinking: longest answer in tokens, and reasoning mode, of requests that set neither.
            cache: use the prompt cache, `"1h"` for an hour; turn it off for servers that do not know `cache_control`.
            headers, betas, extra_body: headers, values of the header `anthropic-beta`, and more fields of each request.
            key_source: has the key, instead of `api_key` and `auth_token`.
            connect_timeout, silence_timeout: seconds to connect, and without a byte; with pings alone, twice as many.
            endpoint: facts about a named endpoint, which gets no credential and no header of the environment.

        Raises:
            ConfigurationError: no model, two credentials, a password in the address, or an argument of the wrong kind.
        """
        _check_settings(model, base_url, max_tokens, thinking, cache, connect_timeout, silence_timeout)
        _check_credentials(api_key=api_key, auth_token=auth_token)
        traits = endpoint or EndpointTraits(model_info(model))
        self.model: ModelInfo = _priced(traits.info, cache)
        self._profile, self._counts_tokens = traits.profile, traits.counts_tokens
        self._settings = ConnectionSettings(
            api_key=_sendable(api_key),
            auth_token=_sendable(auth_token),
            base_url=_plain_address(base_url),
            headers=_sendable_headers(headers),
            connect_timeout=connect_timeout,
            silence_timeout=silence_timeout,
            isolated=endpoint is not None,
        )
        limit, extra = max_tokens or default_max_tokens(self.model), _extra_fields(extra_body)
        self._builder = self.builder_type(
            RequestSettings(model, limit, thinking, self.model.thinking, cache, traits.drop, tuple(betas), extra)
        )
        self._warnings: list[str] = []
        self.on_notice: Callable[[str], object] | None = None
        """Called with a notice for the user, such as that requests leave out a field that the endpoint refuses."""
        self.on_warning: Callable[[str], object] | None = None
        """Called with a warning for the user, such as that something that they set has no effect."""
        self._hosts: dict[asyncio.AbstractEventLoop, _LoopClient] = {}
        self._key_source, self._key, self._key_since, self._closed = key_source, "", 0.0, False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model.name!r})"

    async def prepare(self) -> None:
        """Load the SDK and its certificates in a thread, without connecting. May be called any number of times.

        Raises:
            ProviderError: no key is set, or the SDK cannot be loaded.
        """
        await self._ready()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Stream one answer in one attempt; closing the iterator closes the connection.

        Raises:
            ProviderError: the request failed; apart from cancellation nothing else is raised.
        """
        client = await self._ready()
        answer, is_taken = await self._open_with_key(client, request)
        try:
            # Closing the iterator must close the connection at once, not when the garbage collector comes.
            async with answer, aclosing(answer.chunks()) as chunks:
                fold = self.decoder(client.errors, answer, is_taken)
                # The HTTP client's timeout begins anew with each ping, so the silence is measured in events, too.
                heard, limit = time.monotonic(), self._settings.silence_timeout * _PINGS
                async for chunk in chunks:
                    before = fold.events
                    for fact in fold.facts(chunk):
                        if isinstance(fact, StreamEnded):
                            # Before the event: its receiver may close this iterator with it.
                            await _drain(chunks)
                        yield fact
                    if fold.complete:
                        return
                    if fold.events > before:
                        heard = time.monotonic()
                    elif time.monotonic() - heard > limit:
                        raise answer.failure("timeout", f"nothing but pings for {limit:g} s", BROKE_OFF)
                for fact in fold.finish(is_whole=answer.broken is None):
                    yield fact
                if not fold.complete:
                    raise answer.broken or answer.failure("stream_cut", "it ended before the model had finished")
        except ProviderError as error:
            if error.kind == "invalid_request" and not error.subject:
                # Gateways that stream from another server report its refusal within the answer.
                error.subject = refusal_subject([error.summary], (await self._build(request))[0])
            raise

    async def count_tokens(self, request: ModelRequest) -> int | None:
        """Return the input tokens of a request as the endpoint counts them; None if it does not count.

        An endpoint that fails once is not asked again.

        Raises:
            ProviderError: the SDK cannot be loaded, or no key is set.
        """
        if not self._counts_tokens:
            return None
        client = await self._ready()
        body, _ = await self._build(request)
        counted = await client.count_tokens(countable(body))
        # Each later request would wait for the same refusal.
        self._counts_tokens = counted is not None
        return counted

    async def list_models(self, limit: int = 200) -> tuple[str, ...]:
        """Return the names of the models that the endpoint lists, in its order, at most `limit`.

        Raises:
            ProviderError: it does not list them, the SDK cannot be loaded, or no key is set.
        """
        return await (await self._ready()).list_models(limit)

    async def aclose(self) -> None:
        """Close all connections; the provider cannot be used afterwards."""
        # First, so that a request that waits for the lock opens no new connection.
        self._closed = True
        await self.disconnect()

    async def disconnect(self) -> None:
        """Close the connections of the running event loop; the next request opens new ones."""
        here = self._here()
        async with here.loading:
            client, here.client = here.client, None
            if client is not None:
                await client.aclose()

    def import_sdk(self) -> "type[EndpointClient]":
        """Import the SDK and return its client. Blocks.

        Raises:
            ImportError, OSError, MemoryError: this is not possible now.
        """
        return load_sdk()

    def missing_sdk(self, error: ImportError) -> ProviderError:
        """Return the error for an SDK that cannot be imported."""
        reason = f"the anthropic package cannot be loaded ({error})"
        return ErrorFactory().write("unavailable", reason, advice="install tui-agent again")

    def decoder(self, errors: ErrorFactory, answer: "SdkResponse", is_taken: Callable[[str], bool]) -> ResponseDecoder:
        """Return the parser of one answer."""
        return ResponseDecoder(errors, answer.request_id, is_taken, answer.content_type)

    async def _ready(self) -> "EndpointClient":
        here = self._here()
        async with here.loading:
            # One at a time: two first requests would load the SDK twice and open two pools.
            if self._closed:
                raise ErrorFactory().write("unavailable", "the provider was closed", advice="create another one")
            if here.client is None:
                here.client = await asyncio.to_thread(self._load)
                self._warnings += here.client.warnings
            if self._key_source is not None:
                age, lifetime = time.monotonic() - self._key_since, self._key_source.lifetime
                if not self._key or (lifetime is not None and age >= lifetime):
                    await self._take_key(self._key_source)
                if here.client.key != self._key:
                    here.client.use_key(self._key)
        self._warn()
        return here.client

    def _warn(self, *warnings: str) -> None:
        """Pass warnings on, or keep them until someone reads them."""
        self._warnings += warnings
        if self.on_warning is not None:
            waiting, self._warnings = self._warnings, []
            for warning in waiting:
                self.on_warning(warning)

    async def _open_with_key(
        self, client: "EndpointClient", request: ModelRequest
    ) -> "tuple[SdkResponse, Callable[[str], bool]]":
        """Send a request; with another key if the server refuses the one of the key source, which may have expired."""
        sent = client.key
        try:
            return await self._open(client, request)
        except ProviderError as error:
            if self._key_source is None or error.status not in (401, 403):
                raise
        async with self._here().loading:
            # Another request may have fetched a new key while this one waited for the lock.
            if client.key == sent:
                if self._key == sent:
                    await self._take_key(self._key_source)
                client.use_key(self._key)
        return await self._open(client, request)

    async def _take_key(self, source: KeySource) -> None:
        self._key, self._key_since = await source.ask(), time.monotonic()

    def _here(self) -> "_LoopClient":
        """Return the client of the running loop, and drop those of loops that were closed."""
        loop = asyncio.get_running_loop()
        if loop not in self._hosts:
            self._hosts = {other: host for other, host in self._hosts.items() if not other.is_closed()}
            self._hosts[loop] = _LoopClient()
        return self._hosts[loop]

    def _load(self) -> "EndpointClient":
        """Import the SDK and create its client. Blocks: about a second, and a tenth for reading the certificates."""
        try:
            make = self.import_sdk()
        except ImportError as error:
            raise self.missing_sdk(error) from error
        except (OSError, MemoryError) as error:
            reason = f"the package of the model's SDK cannot be loaded now ({reason_of(error)})"
            raise ErrorFactory().write("unavailable", reason) from error
        try:
            client = self._connect(make)
        except (OSError, MemoryError) as error:
            reason = f"no connection can be prepared ({reason_of(error)})"
            raise ErrorFactory().write("unavailable", reason) from error
        if not client.has_credentials:
            raise client.errors.write("authentication", what=_NO_KEY, advice=_NO_KEY_ADVICE)
        return client

    def _connect(self, make: "type[EndpointClient]") -> "EndpointClient":
        key, token = self._credential()
        client = make(replace(self._settings, api_key=key, auth_token=token))
        client.errors = replace(client.errors, profile=self._profile)
        return client

    def _credential(self) -> tuple[str | None, str | None]:
        """Return the key and the token of requests, at most one of them; without both, the SDK looks in its profiles.

        With a token, it does not look there: the credentials of profiles must not go to another address.
        """
        given = self._settings
        if given.api_key or given.auth_token or given.isolated:
            return given.api_key, given.auth_token
        if self._key_source is not None:
            # Each request has the key of the source.
            return None, _PLACEHOLDER_TOKEN
        key, token = environment_credential(given.base_url)
        is_own_server = given.base_url or os.environ.get("ANTHROPIC_BASE_URL")
        return key, token or (_PLACEHOLDER_TOKEN if is_own_server and not key else None)

    async def _open(
        self, client: "EndpointClient", request: ModelRequest
    ) -> "tuple[SdkResponse, Callable[[str], bool]]":
        """Send a request, without the fields that the endpoint turns out to refuse.

        Returns:
            The answer, and a function that returns True for an id that the calls of the request already use.

        Raises:
            ProviderError: the request failed. If that is not about a field, later requests have all fields again.
        """
        added: frozenset[str] = frozenset()
        while True:
            body, is_taken = await self._build(request)
            settings = self._builder.settings  # Those of this body: another request may change them meanwhile.
            dropped = settings.drop
            version = _OLDEST_VERSION if VERSION_FIELD in dropped else None
            answer = await client.open(body, version, () if BETA_FIELD in dropped else settings.betas)
            if not isinstance(answer, Refusal):
                if added & {BETA_FIELD, *settings.extra}:
                    self._warn(dropped_text(self.model.name, added))
                elif added and self.on_notice is not None:
                    self.on_notice(dropped_text(self.model.name, added))
                return answer, is_taken
            # A builder of its own: the shared one may have other settings by now.
            sent = self.builder_type(settings).optional_fields(request) | ({VERSION_FIELD} - dropped)
            refused = refused_fields(answer.body, sent, settings.betas)
            if not refused:
                # The refusal was about something else, so what did not help is sent again.
                await self._leave_out(self._builder.settings.drop - added)
                answer.failure.subject = refusal_subject(statements(answer.body), body)
                raise answer.failure
            added |= refused - self._builder.settings.drop
            await self._leave_out(self._builder.settings.drop | refused)

    async def _leave_out(self, fields: frozenset[str]) -> None:
        async with self._here().building:
            if fields != self._builder.settings.drop:
                self._builder.leave_out(fields)

    async def _build(self, request: ModelRequest) -> tuple[bytes, Callable[[str], bool]]:
        """Return the body of a request, and a function that returns True for an id its calls already use."""
        async with self._here().building:
            # The lock is needed although there is one event loop: the builder keeps JSON, and this may run in a thread.
            if self._builder.unsent(request) > _BUILD_OFF_LOOP:
                body = await asyncio.to_thread(self._builder.build, request)
            else:
                body = self._builder.build(request)
            return body, self._builder.call_lookup(request.conversation_id)


@dataclass(slots=True)
class _LoopClient:
    """The client of one event loop: connections and locks belong to their loop, and each `asyncio.run` has its own."""

    client: "EndpointClient | None" = None
    loading: asyncio.Lock = field(default_factory=asyncio.Lock)
    building: asyncio.Lock = field(default_factory=asyncio.Lock)


def _check_settings(
    model: object,
    base_url: object,
    max_tokens: object,
    thinking: object,
    cache: object,
    connect_timeout: float,
    silence_timeout: float,
) -> None:
    expect_seconds("AnthropicProvider.connect_timeout", connect_timeout, or_zero=True)
    expect_seconds("AnthropicProvider.silence_timeout", silence_timeout, or_zero=True)
    expect_kind("AnthropicProvider.model", model, str, "the name of a model")
    if not str(model).strip():
        raise ConfigurationError("the model's name is empty")
    expect_kind("AnthropicProvider.base_url", base_url, (str, NoneType), "an address or None")
    if max_tokens is not None:
        expect_whole("AnthropicProvider.max_tokens", max_tokens, 1)
    expect_choice("AnthropicProvider.thinking", thinking, get_args(ThinkingMode))
    if cache != "1h":
        expect_flag("AnthropicProvider.cache", cache)


def _priced(info: ModelInfo, cache: CacheSetting) -> ModelInfo:
    """Return the facts about a model with the price of what is written to its cache for an hour."""
    if cache != "1h" or info.input_price is None or info.cache_write_price is not None:
        return info
    return replace(info, cache_write_price=info.input_price * _HOUR_PRICE)


def _extra_fields(fields: Mapping[str, object] | None) -> dict[str, object]:
    expect_kind("AnthropicProvider.extra_body", fields, (Mapping, NoneType), "a mapping of names to values, or None")
    try:
        return expect_extra_fields(dict(fields or {}))
    except ValueError as error:
        raise ConfigurationError(f"AnthropicProvider.extra_body: {error}") from error


def _check_credentials(**credentials: object) -> None:
    for name, value in credentials.items():
        if value is not None and not isinstance(value, str):
            # The message must not contain the value, which is a secret.
            raise ConfigurationError(f"AnthropicProvider.{name} must be text or None, not of {type(value)}")
    if credentials["api_key"] and credentials["auth_token"]:
        raise ConfigurationError("give an API key or an auth token, not both")


async def _drain(chunks: AsyncGenerator[bytes, None]) -> None:
    """Read to the end of a complete answer, so that its connection returns to the pool."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for _ in chunks:
                pass


def _plain_address(address: str | None) -> str | None:
    """Return the address if it contains no password, which logs and errors would repeat.

    Raises:
        ConfigurationError: it contains one, or is not an address.
    """
    try:
        known_user = urlsplit(address or "").username
    except ValueError as error:
        raise ConfigurationError(f"the base URL is not valid: {error}") from error
    if known_user is not None:
        raise ConfigurationError("the base URL contains a user name or password; use a key or an auth token instead")
    return address


def _sendable_headers(headers: Mapping[str, str] | None) -> dict[str, str]:
    """Return a copy of the headers.

    Raises:
        ConfigurationError: they are not a mapping of text to text.
    """
    expect_kind("AnthropicProvider.headers", headers, (Mapping, NoneType), "a mapping of names to texts, or None")
    for name, value in (headers or {}).items():
        for text in (name, value):
            if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance] — callers may be untyped
                raise wrong_kind(f"AnthropicProvider.headers[{name!r}]", "text", text)
    return dict(headers or {})


def _sendable(secret: str | None) -> str | None:
    """Return a credential without surrounding whitespace; None for an empty one.

    Raises:
        ConfigurationError: it has characters that a header cannot contain; the message does not repeat it.
    """
    plain = (secret or "").strip()
    # The HTTP library would refuse it, too, with an error that repeats the key.
    if not plain.isascii() or not plain.isprintable() or " " in plain:
        raise ConfigurationError("the key contains spaces, line breaks or other invalid characters; copy it again")
    return plain or None
