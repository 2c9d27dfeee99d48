"""The HTTP client of the Messages API. It imports httpx2, and is itself imported in a thread, never at start-up.

It sends the SDK's request without the SDK, whose 3,000 modules take most of a second to import: only the
credentials in the SDK's own profiles need it. The answer's bytes are read as they arrive.
"""

import json
import os
import socket
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Self
from urllib.request import getproxies, proxy_bypass

import httpx2

from tui_agent import __version__
from tui_agent.protocol.errors import ProviderError, ProviderErrorKind

from .provider_failures import BROKE_OFF, CredentialError, ErrorFactory

if TYPE_CHECKING:
    # Imported at run time only by a program without a key.
    from .sdk_profile import SdkProfile

API_VERSION = "2026-10-21"
"""Version of the API that requests ask for; headers of the settings may name another one."""
_ADDRESS = "https://api.anthropic.com"
_PATH = b"/v1/messages"
_EVENT_STREAM = "text/event-stream"
_LIMITS = httpx2.Limits(max_connections=1000, max_keepalive_connections=100)
_KEEP_ALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPALIVE": 60, "TCP_KEEPINTVL": 60, "TCP_KEEPCNT": 5}
"""Options of a connection by their names, of which each system has some: a dead one is noticed after six minutes."""


class MessagesClient:
    """One pool of connections to one server, without retries: one call is one attempt."""

    def __init__(
        self,
        *,
        api_key: str | None,
        auth_token: str | None,
        base_url: str | None,
        headers: Mapping[str, str],
        connect_timeout: float,
        silence_timeout: float,
    ) -> None:
        """Create the client; send nothing.

        Without `api_key` and `auth_token` the credentials are those of the environment, else of the SDK's profiles.

        Raises:
            ProviderError: there are no credentials, or the address is invalid.
        """
        self._secret = api_key or auth_token or _variable("API_KEY") or _variable("AUTH_TOKEN")
        self._profile: SdkProfile | None = None
        failure: ProviderError | None = None
        try:
            address = base_url or _variable("BASE_URL") or ""
            own_headers = httpx2.Headers(_custom_headers() | dict(headers))
            if not (self._secret or _has_credential(own_headers)):
                self._profile = _find_profile(address)
                address = address or self._profile.base_url
            self._connect(address or _ADDRESS, own_headers, httpx2.Timeout(silence_timeout, connect=connect_timeout))
        except (CredentialError, httpx2.InvalidURL, ImportError, ValueError, OSError) as error:
            advice = "check the key and the base URL"
            failure = ErrorFactory(_known(self._secret)).write("unavailable", _root_cause(error), advice=advice)
        if failure is not None:
            raise failure
        self._connect_timeout, self._silence_timeout = connect_timeout, silence_timeout
        self.errors = ErrorFactory(_known(self._secret), _shown(self._url))
        """Writer of this client's errors, which knows its secrets."""

    def _connect(self, address: str, own_headers: httpx2.Headers, timeout: httpx2.Timeout) -> None:
        """Create the pool, which connects with the first request."""
        base = httpx2.URL(address)
        self._url = base.copy_with(raw_path=base.raw_path.rstrip(b"/") + _PATH)
        headers = httpx2.Headers(
            {
                "accept": "application/json",
                "content-type": "application/json",
                "user-agent": f"tui-agent/{__version__}",
                "anthropic-version": API_VERSION,
            }
        )
        if self._secret:
            headers["authorization"] = f"Bearer {self._secret}"
        if self._profile is not None:
            headers.update(self._profile.headers)
        headers.update(own_headers)
        options = [
            (socket.IPPROTO_TCP, getattr(socket, name), value)
            for name, value in _KEEP_ALIVE.items()
            if hasattr(socket, name)
        ]
        transport = httpx2.AsyncHTTPTransport(
            verify=_trust_for(base),
            limits=_LIMITS,
            proxy=_proxy_of(base),
            socket_options=[(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), *options],
        )
        # Redirects are not followed: they would send the conversation to any address.
        self._client = httpx2.AsyncClient(
            transport=transport, headers=headers, timeout=timeout, auth=self._profile and self._profile.auth
        )

    @property
    def has_credentials(self) -> bool:
        """True if requests have a credential."""
        return _has_credential(self._client.headers) or self._client.auth is not None

    async def open(self, body: bytes) -> "MessagesResponse":
        """Send one request and wait for the headers of its answer.

        Raises:
            ProviderError: the request failed, or the answer is not an event stream.
        """
        try:
            response = await self._client.send(self._client.build_request("POST", self._url, content=body), stream=True)
            if response.is_success:
                return await self._checked(response)
            await response.aread()
            failure = self._refusal(response)
        except (httpx2.ConnectTimeout, httpx2.PoolTimeout):
            failure = self.errors.write("network", f"no connection within {self._connect_timeout:g} s")
        except httpx2.TimeoutException:
            failure = self.errors.write("timeout", f"nothing arrived for {self._silence_timeout:g} s")
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            lost = isinstance(error, httpx2.RemoteProtocolError | httpx2.ReadError | httpx2.WriteError)
            what = f"The connection to the model's server at {self.errors.address} was lost" if lost else ""
            failure = self.errors.write("network", _root_cause(error), what=what)
        except ValueError as error:
            failure = self.errors.write("unavailable", _root_cause(error), advice="check the settings")
        except CredentialError as error:
            failure = self.errors.write("authentication", _root_cause(error), what="The SDK's profile gives no key")
        raise failure

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose()
        if self._profile is not None:
            await self._profile.aclose()

    async def _checked(self, response: httpx2.Response) -> "MessagesResponse":
        answer = MessagesResponse(response, self.errors, self._silence_timeout)
        kind = str(response.headers.get("content-type", ""))
        if not kind.startswith(_EVENT_STREAM):
            await response.aclose()
            words = f"its content type is {kind or 'missing'}, not {_EVENT_STREAM}"
            raise answer.failure("bad_response", words)
        return answer

    def _refusal(self, response: httpx2.Response) -> ProviderError:
        """Return the error of an answer with any other status than success, whose body was read."""
        status, headers = response.status_code, response.headers
        location = headers.get("location", "") if 300 <= status < 400 else ""
        if location:
            return self.errors.of_redirect(status, str(response.request.url), location, headers)
        body: object = response.text.strip()
        with suppress(ValueError, RecursionError):
            body = json.loads(response.text)
        return self.errors.of_status(status, body, headers)


class MessagesResponse:
    """The bytes of one answer. Leaving its context closes the connection, unless the answer was read to its end."""

    def __init__(self, response: httpx2.Response, errors: ErrorFactory, silence_timeout: float) -> None:
        self._response = response
        self._errors = errors
        self._silence_timeout = silence_timeout
        self.broken: ProviderError | None = None
        """The failure that cut the answer's HTTP body; None if it is whole."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._response.aclose()

    @property
    def request_id(self) -> str | None:
        """Id of this answer, for questions to the server's owner."""
        return self._response.headers.get("request-id")

    def failure(self, kind: ProviderErrorKind, words: str, what: str = "") -> ProviderError:
        """Return an error in the middle of this answer."""
        status = self._response.status_code
        return self._errors.write(kind, words, what=what, status=status, request_id=self.request_id)

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the bytes as they arrive; if they are cut off, `broken` has the failure afterwards."""
        try:
            async with aclosing(self._response.aiter_bytes()) as chunks:
                async for chunk in chunks:
                    yield chunk
        except httpx2.TimeoutException:
            words = f"nothing arrived for {self._silence_timeout:g} s"
            self.broken = self.failure("timeout", words, BROKE_OFF)
        except httpx2.RemoteProtocolError:
            self.broken = self.failure("stream_cut", "the server closed the connection")
        except (httpx2.HTTPError, httpx2.StreamError, OSError) as error:
            self.broken = self.failure("stream_cut", _root_cause(error))


def _variable(name: str) -> str | None:
    return os.environ.get(f"ANTHROPIC_{name}") or None


def _custom_headers() -> dict[str, str]:
    """Return the headers that the environment adds: one in each line."""
    lines = (line.partition(":") for line in os.environ.get("ANTHROPIC_CUSTOM_HEADERS", "").split("\n"))
    return {name.strip(): value.strip() for name, colon, value in lines if colon}


def _has_credential(headers: httpx2.Headers) -> bool:
    return bool(headers.get("authorization") or headers.get("x-api-key"))


def _find_profile(address: str) -> "SdkProfile":
    """Return the SDK's credentials for an address; an empty one is that of the profile. Blocks most of a second."""
    from .sdk_profile import SdkProfile

    return SdkProfile(address or None)


def _trust_for(address: httpx2.URL) -> ssl.SSLContext:
    """Return the system's certificates; none for plain HTTP, such as that of the offline model. Blocks."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if address.scheme == "http" else httpx2.create_ssl_context()


def _proxy_of(address: httpx2.URL) -> str | None:
    """Return the address of the environment's proxy for an address."""
    proxies = getproxies()
    proxy = proxies.get(address.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(address.host if address.port is None else f"{address.host}:{address.port}"):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _known(*secrets: str | None) -> tuple[str, ...]:
    return tuple(secret for secret in secrets if secret)


def _shown(url: httpx2.URL) -> str:
    """Return an address without user name, password and path."""
    port = f":{url.port}" if url.port else ""
    return f"{url.scheme}://{url.host}{port}"


def _root_cause(error: BaseException) -> str:
    """Return the message of the innermost error: outer ones only say that something failed."""
    inner: BaseException | None = error
    while inner is not None:
        error, inner = inner, inner.__cause__ or inner.__context__
    if isinstance(error, ConnectionError) and error.errno:
        # The loop's own text repeats the address as a Python tuple.
        return os.strerror(error.errno)
    return str(error) or type(error).__name__
