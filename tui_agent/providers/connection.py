"""The connection to a model's server: its proxy, its certificates, and what its failures mean.

Imported with the SDK, never at start-up.
"""

import errno
import os
import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from ipaddress import ip_address
from typing import cast
from urllib.parse import urlsplit

import httpx2

from tui_agent.protocol.errors import ConfigurationError, ProviderError
from tui_agent.protocol.web_address import WebProxy, find_proxy

from .model_catalog import how_to_start
from .provider_failures import ErrorFactory

_GROUP: type[BaseException] = BaseExceptionGroup
_MORE_AUTHORITIES = ("NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""Variables with more certificate authorities, which users of other programs have set."""
_AUTHORITIES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
_BEFORE_PROXY = (httpx2.ProxyError, httpx2.ConnectError, httpx2.ConnectTimeout)
_PROXY_REFUSES = re.compile(
    r"^4(?!08|25|29)\d\d\b|AUTHENTICATION|username/password|not allowed|malformed", re.IGNORECASE
)
"""Answers of a proxy that it would repeat."""
_SECRET_NAME = re.compile(r"auth|key|token|secret|cookie|password", re.IGNORECASE)
_WRONG_HOST, _WRONG_TIME = (62, 64), (9, 10)
"""Codes of OpenSSL for certificates that no further authority helps."""


@dataclass(frozen=True, slots=True)
class Network:
    """The environment's settings for connections to one address."""

    context: ssl.SSLContext
    proxy: WebProxy | None
    warnings: tuple[str, ...] = ()
    """Sentences about variables that could not be used in whole."""

    @property
    def proxy_url(self) -> str | None:
        """Address of the proxy with its credentials; None without a proxy."""
        return None if self.proxy is None else self.proxy.url


def network_for(address: str) -> Network:
    """Return the proxy and, for TLS, the certificate authorities for an address. Blocks: 0.1 s to read those.

    Raises:
        ConfigurationError: a variable names a proxy or certificates that cannot be used; the text names it.
    """
    choice = find_proxy(address)
    addresses = (address, "" if choice.proxy is None else choice.proxy.url)
    if any(each.lower().startswith("https:") for each in addresses):
        context, problem = _tls_context()
    else:
        # The authorities take 3 MB.
        context, problem = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ""
    if choice.proxy is not None and choice.proxy.url.startswith("socks") and find_spec("socksio") is None:
        raise ConfigurationError(
            f"the proxy {choice.proxy} needs the package socksio; install tui-agent again, or unset the variable"
        )
    return Network(context, choice.proxy, tuple(filter(None, (choice.unread, problem))))


def _tls_context() -> tuple[ssl.SSLContext, str]:
    """Return the context that checks certificates, and sentences about files that could not be read."""
    try:
        context = httpx2.create_ssl_context()
    except OSError as error:
        named = next((name for name in _AUTHORITIES if os.environ.get(name)), None)
        if named is None:
            raise
        raise ConfigurationError(f"{named}: {os.environ[named]} has no certificates that can be read") from error
    problems: list[str] = []
    for name in _MORE_AUTHORITIES:
        if more := os.environ.get(name):
            try:
                context.load_verify_locations(**{"capath" if os.path.isdir(more) else "cafile": more})
            except OSError as error:
                problems.append(f"{name}: {more} cannot be read ({error.strerror or error}); it has no effect.")
    return context, " ".join(problems)


def network_of(address: str) -> Network:
    """Return what `network_for` does, for a client that raises provider errors. Blocks.

    Raises:
        ProviderError: a variable names a proxy or certificates that cannot be used.
    """
    try:
        return network_for(address)
    except ConfigurationError as error:
        what = f"No connection is possible: {error}"
        raise ErrorFactory().write("unavailable", what=what, advice="then start again") from None


def secret_values(headers: Mapping[str, str]) -> list[str]:
    """Return the values of the headers that may contain a credential."""
    return [value for name, value in headers.items() if _SECRET_NAME.search(name)]


def proxy_secrets(proxy: WebProxy | None) -> tuple[str, ...]:
    """Return the secret parts of a proxy's address: user and password together, and the password; empty without any."""
    parts = urlsplit("" if proxy is None else proxy.url)
    return tuple(filter(None, (parts.netloc.rpartition("@")[0], parts.password)))


def root_cause(error: BaseException) -> str:
    """Return the message of the innermost error: outer ones only say that something failed."""
    inner = list(_causes(error))[-1]
    if isinstance(inner, ConnectionError) and inner.errno:
        # The loop's own text repeats the address as a Python tuple.
        return os.strerror(inner.errno)
    return str(inner) or type(inner).__name__


def connection_failure(errors: ErrorFactory, error: Exception, proxy: WebProxy | None) -> ProviderError:
    """Return the error for a request that no server answered; it is not retryable if nothing can change by itself.

    `proxy` is the one that the request went through; None: it went directly.
    """
    causes = list(_causes(error))
    for cause in causes:
        # Before the other causes: around it are errors that only say that no connection was made.
        if isinstance(cause, ssl.SSLError):
            return _tls_failure(errors, cause)
    refused = any(isinstance(cause, OSError) and cause.errno == errno.ECONNREFUSED for cause in causes)
    unknown = any(isinstance(cause, socket.gaierror) and cause.errno == socket.EAI_NONAME for cause in causes)
    words = root_cause(error)
    if proxy is not None and (isinstance(error.__cause__, _BEFORE_PROXY) or any(map(_is_of_socks, causes))):
        is_final = refused or unknown or _PROXY_REFUSES.search(words) is not None
        advice = f"correct or unset {proxy.variable}, or name the server in NO_PROXY"
        what = f"The proxy {proxy} does not connect to {errors.address}"
        return errors.write("unavailable" if is_final else "network", words, what=what, advice=advice)
    if unknown:
        what = f"The host of the model's server at {errors.address} is not known"
        return errors.write("unavailable", words, what=what, advice="check the base URL and the network")
    if refused and is_loopback(errors.address):
        what = f"No server answers at {errors.address}"
        advice = f"{how_to_start(errors.address, errors.profile)}, then try again"
        return errors.write("unavailable", words, what=what, advice=advice)
    lost = isinstance(error.__cause__, httpx2.RemoteProtocolError | httpx2.ReadError | httpx2.WriteError)
    what = f"The connection to the model's server at {errors.address} was lost" if lost else ""
    if lost and proxy is not None:
        what = f"{what} by the proxy {proxy}"
    return errors.write("network", words, what=what)


def _is_of_socks(error: BaseException) -> bool:
    """True for an answer of a proxy that is not of the SOCKS protocol."""
    return type(error).__module__.partition(".")[0] == "socksio"


def is_loopback(address: str) -> bool:
    """True if an address is one of this machine."""
    host = urlsplit(address).hostname or ""
    try:
        found = ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    return found.is_loopback or found.is_unspecified


def _tls_failure(errors: ErrorFactory, error: ssl.SSLError) -> ProviderError:
    if not isinstance(error, ssl.SSLCertVerificationError):
        what = f"The server at {errors.address} does not speak TLS as expected"
        advice = "use http:// in the base URL if the server has no certificate, and check the proxy"
        return errors.write("unavailable", error.reason or str(error), what=what, advice=advice)
    advice = f"set SSL_CERT_FILE to a file with the certificate of its authority ({_MORE_AUTHORITIES[0]} is read, too)"
    if error.verify_code in _WRONG_HOST:
        advice = "check the host in the base URL"
    elif error.verify_code in _WRONG_TIME:
        advice = "check the clock of this machine, or have the certificate renewed"
    what = f"The certificate of the server at {errors.address} cannot be trusted"
    return errors.write("unavailable", error.verify_message, what=what, advice=advice)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes, outer ones first; of several at once the first."""
    yield error
    grouped = cast("BaseExceptionGroup[BaseException]", error).exceptions if isinstance(error, _GROUP) else ()
    inner = next(iter(grouped), None) or error.__cause__ or error.__context__
    if inner is not None:
        yield from _causes(inner)
