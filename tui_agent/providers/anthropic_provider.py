"""Models behind the Messages API: Anthropic's own, and every server that speaks it.

Credentials live here and nowhere else (S4-7). One call of `stream` is one attempt: the loop retries, so that a person
sees it. `prepare` loads the SDK in a thread; importing this module does not.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from types import NoneType
from typing import TYPE_CHECKING, get_args
from urllib.parse import urlsplit

from tui_agent.protocol.background import reason_of
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.provider import ModelInfo, ModelRequest, StreamEnded, StreamEvent
from tui_agent.protocol.value_checks import (
    expect_choice,
    expect_flag,
    expect_kind,
    expect_seconds,
    expect_whole,
    wrong_kind,
)

from .model_table import default_max_tokens, model_info, thinking_form
from .provider_failures import ErrorFactory
from .request_builder import RequestBuilder, RequestSettings, ThinkingMode
from .response_decoder import ResponseDecoder

if TYPE_CHECKING:
    from .anthropic_sdk import SdkClient

_NO_KEY = "no key was found; set ANTHROPIC_API_KEY, or try `tui-agent --demo`, which needs none"
_PLACEHOLDER_TOKEN = "none"
"""Signs requests to an address of the person's own that asks for no key: the SDK sends nothing unsigned."""

_DRAIN_SECONDS = 0.5
"""How long to wait for the end of a complete answer, so that its connection can be used again."""

_BUILD_OFF_LOOP = 400
"""New messages from which a request is built in a thread: a long session was resumed."""


class AnthropicProvider:
    """Streams answers of one model. Implements `protocol.provider.ModelProvider`."""

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        auth_token: str | None = None,
        base_url: str | None = None,
        max_tokens: int | None = None,
        thinking: ThinkingMode = "default",
        cache: bool = True,
        headers: Mapping[str, str] | None = None,
        connect_timeout: float = 10.0,
        silence_timeout: float = 300.0,
    ) -> None:
        """Sends nothing and loads nothing.

        Args:
            model: any name the server knows.
            api_key, auth_token: at most one; without both the SDK's own ways apply (environment, profiles), but an
                address of one's own may also go without.
            base_url: address without `/v1`; None: `ANTHROPIC_BASE_URL`, or the API's own.
            max_tokens: longest answer where a request does not say.
            thinking: what a request without a budget says of reasoning.
            cache: whether to use the prompt cache; off for servers that do not know `cache_control`.
            headers: sent along with each request, such as another `anthropic-version`.
            connect_timeout: seconds until a connection stands.
            silence_timeout: seconds without a single byte after which an answer is given up.

        Raises:
            ConfigurationError: no model, two credentials or one that cannot be sent, a password in the address,
                or an argument of the wrong kind.
        """
        expect_kind("AnthropicProvider.model", model, str, "the name of a model")
        for name, value in (("api_key", api_key), ("auth_token", auth_token)):
            if value is not None and not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance] — callers may be untyped
                # The value itself stays out of the text: it is a secret.
                raise ConfigurationError(f"AnthropicProvider.{name} must be text or None, not of {type(value)}")
        expect_kind("AnthropicProvider.base_url", base_url, (str, NoneType), "an address or None")
        if max_tokens is not None:
            expect_whole("AnthropicProvider.max_tokens", max_tokens, 1)
        expect_choice("AnthropicProvider.thinking", thinking, get_args(ThinkingMode))
        expect_flag("AnthropicProvider.cache", cache)
        expect_seconds("AnthropicProvider.connect_timeout", connect_timeout, or_zero=True)
        expect_seconds("AnthropicProvider.silence_timeout", silence_timeout, or_zero=True)
        if not model.strip():
            raise ConfigurationError("the model's name is empty")
        if api_key and auth_token:
            raise ConfigurationError("give an API key or an auth token, not both")
        self.model: ModelInfo = model_info(model)
        self._api_key = _sendable(api_key)
        self._auth_token = _sendable(auth_token)
        self._base_url = _plain_address(base_url)
        self._headers = _sendable_headers(headers)
        self._connect_timeout = connect_timeout
        self._silence_timeout = silence_timeout
        limit = max_tokens or default_max_tokens(self.model)
        self._builder = RequestBuilder(RequestSettings(model, limit, thinking, thinking_form(model), cache))
        self._hosts: dict[asyncio.AbstractEventLoop, _LoopClient] = {}
        self._closed = False

    def __repr__(self) -> str:
        return f"AnthropicProvider({self.model.name!r})"

    async def prepare(self) -> None:
        """Loads the SDK and its certificates in a thread; connects nowhere. May be called any number of times.

        Raises:
            ProviderError: there is no key, or the SDK cannot be loaded.
        """
        await self._ready()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """One attempt at one answer; closing the iterator closes the connection.

        Raises:
            ProviderError: and nothing else but cancellation.
        """
        client = await self._ready()
        body, is_taken = await self._build(request)
        async with await client.open(body) as answer, aclosing(answer.chunks()) as chunks:
            fold = ResponseDecoder(client.errors, answer.request_id, is_taken)
            async for chunk in chunks:
                for fact in fold.facts(chunk):
                    if isinstance(fact, StreamEnded):
                        await _drain(chunks)
                    yield fact
                if fold.complete:
                    return
            for fact in fold.finish():
                yield fact
            if not fold.complete:
                raise answer.broken or answer.failure("stream_cut", "it ended before the model was done")

    async def aclose(self) -> None:
        """Closes all connections; the provider cannot be used afterwards."""
        self._closed = True
        await self.disconnect()

    async def disconnect(self) -> None:
        """Close the connections of the running event loop; the next request opens new ones."""
        here = self._here()
        async with here.loading:
            client, here.client = here.client, None
            if client is not None:
                await client.aclose()

    async def _ready(self) -> "SdkClient":
        here = self._here()
        async with here.loading:
            if self._closed:
                raise ErrorFactory().write("unavailable", "the provider was closed")
            if here.client is None:
                here.client = await asyncio.to_thread(self._load)
            return here.client

    def _here(self) -> "_LoopClient":
        """Return the client of the running loop, and drop those of loops that were closed."""
        loop = asyncio.get_running_loop()
        if loop not in self._hosts:
            self._hosts = {other: host for other, host in self._hosts.items() if not other.is_closed()}
            self._hosts[loop] = _LoopClient()
        return self._hosts[loop]

    def _load(self) -> "SdkClient":
        """Runs in a thread: importing the SDK takes a second, reading the certificates a tenth."""
        try:
            from .anthropic_sdk import SdkClient
        except ImportError as error:
            reason = f"the anthropic package cannot be loaded ({error}); install tui-agent again"
            raise ErrorFactory().write("unavailable", reason) from error
        except (OSError, MemoryError) as error:
            reason = f"the anthropic package cannot be loaded now ({reason_of(error)})"
            raise ErrorFactory().write("unavailable", reason) from error
        try:
            client = self._connect(SdkClient)
        except (OSError, MemoryError) as error:
            reason = f"no connection can be prepared ({reason_of(error)})"
            raise ErrorFactory().write("unavailable", reason) from error
        if not client.has_credentials:
            raise client.errors.write("authentication", _NO_KEY)
        return client

    def _connect(self, make: "type[SdkClient]") -> "SdkClient":
        return make(
            api_key=self._api_key,
            auth_token=self._auth_token or self._placeholder(),
            base_url=self._base_url,
            headers=self._headers,
            connect_timeout=self._connect_timeout,
            silence_timeout=self._silence_timeout,
        )

    def _placeholder(self) -> str | None:
        """What signs requests when nobody gave a key: nothing, unless the address is the person's own.

        Credentials that the SDK would find in its profiles belong to its own address and must not go elsewhere.
        """
        known = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
        if self._api_key or not self._base_url or any(os.environ.get(name) for name in known):
            return None
        return _PLACEHOLDER_TOKEN

    async def _build(self, request: ModelRequest) -> tuple[bytes, Callable[[str], bool]]:
        """The body of a request, and who knows its calls; off the loop where much is new."""
        async with self._here().building:
            if self._builder.unsent(request) > _BUILD_OFF_LOOP:
                body = await asyncio.to_thread(self._builder.build, request)
            else:
                body = self._builder.build(request)
            return body, self._builder.call_lookup(request.conversation_id)


@dataclass(slots=True)
class _LoopClient:
    """The client of one event loop: connections and locks are bound to their loop, and `asyncio.run` makes a new loop
    each time."""

    client: "SdkClient | None" = None
    loading: asyncio.Lock = field(default_factory=asyncio.Lock)
    building: asyncio.Lock = field(default_factory=asyncio.Lock)


async def _drain(chunks: AsyncGenerator[bytes, None]) -> None:
    """Reads what is left of a complete answer, which is nothing."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for _ in chunks:
                pass


def _plain_address(address: str | None) -> str | None:
    """The address, unless it holds a password, which logs and errors would repeat.

    Raises:
        ConfigurationError: it does, or is no address.
    """
    try:
        known_user = urlsplit(address or "").username
    except ValueError as error:
        raise ConfigurationError(f"the base URL is not valid: {error}") from error
    if known_user is not None:
        raise ConfigurationError("the base URL holds a user name or password; give a key or an auth token instead")
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
    """A credential without blanks around it; None for an empty one.

    Raises:
        ConfigurationError: it holds what no header can; the text does not repeat it.
    """
    plain = (secret or "").strip()
    if not plain.isascii() or not plain.isprintable() or " " in plain:
        raise ConfigurationError("the key holds blanks, line ends or letters that cannot be sent; copy it again")
    return plain or None
