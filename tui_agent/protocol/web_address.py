"""The host of a web address, as every part of the program reads it, and the proxy that the environment names for it."""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from .errors import ConfigurationError


def host_of(url: str) -> str | None:
    """Return the host of a web address in lower case, or None where programs may disagree about the host."""
    if not url.isascii() or any(letter <= " " or letter in "\\\x7f" for letter in url):
        return None
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not host or "@" in parts.netloc or "%" in parts.netloc:
        return None
    return host.rstrip(".") or None


_SCHEMES = {"socks": "socks5", **{name: name for name in ("http", "https", "socks5", "socks5h")}}
"""Known schemes of proxies, with those to use for them."""
_NAME = re.compile(r"\.?[\w*-]+(?:\.[\w*-]+)*\.?")


@dataclass(frozen=True, slots=True)
class WebProxy:
    """A proxy, and the variable that sets it."""

    url: str
    """Its address, which may contain a user name and a password."""
    variable: str

    def __str__(self) -> str:
        """Return its address without user name and password, and its variable."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]} (set by {self.variable})"


@dataclass(frozen=True, slots=True)
class ProxyChoice:
    """The proxy for one address."""

    proxy: WebProxy | None = None
    unread: str = ""
    """Sentence about entries of `NO_PROXY` that cannot be read; empty without any."""


def find_proxy(address: str, environment: Mapping[str, str] | None = None) -> ProxyChoice:
    """Return the proxy for a web address by the environment; None in it for a direct connection.

    Raises:
        ConfigurationError: the variable names something that is not a usable proxy; the text names the variable.
    """
    variables = os.environ if environment is None else environment
    target = urlsplit(address)
    names = (f"{target.scheme}_proxy", "all_proxy")
    found = next(_set_variables(names, variables), None) or _system_proxy(target.scheme, target.netloc, variables)
    if found is None:
        return ProxyChoice()
    variable, entries = next(_set_variables(("no_proxy",), variables), ("NO_PROXY", ""))
    port = target.port or (443 if target.scheme == "https" else 80)
    answers = {entry: _covers(entry, target.hostname or "", port) for entry in re.split(r"[\s,;]+", entries.strip())}
    unread = [repr(entry) for entry, answer in answers.items() if answer is None]
    problem = f"{variable}: {', '.join(unread)} cannot be read and has no effect." if unread else ""
    return ProxyChoice(None if any(answers.values()) else WebProxy(_proxy_url(*found), found[0]), problem)


def _system_proxy(scheme: str, netloc: str, variables: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the proxy of the system's own settings, which only macOS has, with the name of its place."""
    if sys.platform != "darwin" or variables is not os.environ:
        return None
    import urllib.request

    url = urllib.request.getproxies().get(scheme)
    return None if url is None or urllib.request.proxy_bypass(netloc) else ("the network settings of macOS", url)


def _set_variables(names: tuple[str, ...], variables: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the variables that are set, with their values; lower case first, as curl does."""
    for name in names:
        for spelling in (name, name.upper()):
            # A web server passes the header `Proxy` of a request to its programs as `HTTP_PROXY`.
            is_header = spelling == "HTTP_PROXY" and "REQUEST_METHOD" in variables
            if (value := variables.get(spelling, "").strip()) and not is_header:
                yield spelling, value


def _proxy_url(variable: str, value: str) -> str:
    url = value if "://" in value else f"http://{value}"
    try:
        parts = urlsplit(url)
        usable = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
        parts = urlsplit("")
    scheme = _SCHEMES.get(parts.scheme)
    if not usable or scheme is None:
        # The value stays out of the message: it may contain a password.
        raise ConfigurationError(
            f"{variable} does not name a usable proxy, such as http://host:8080 or socks5://host:1080; correct or "
            "unset it, or name the server in NO_PROXY"
        )
    return parts._replace(scheme=scheme, path="", query="", fragment="").geturl()


def _covers(entry: str, host: str, port: int) -> bool | None:
    """Return True if an entry of `NO_PROXY` covers a host; None if the entry cannot be read."""
    if entry in ("", "*"):
        return entry == "*"
    name, wanted = _split_port(entry.partition("://")[2] or entry)
    if wanted is not None and wanted != port:
        return False
    try:
        network = ip_network(name, strict=False)
    except ValueError:
        if _NAME.fullmatch(name) is None or re.fullmatch(r"[\d.]+", name):
            return None
        domain, plain = name.removeprefix("*").strip(".").lower(), host.rstrip(".").lower()
        return plain == domain or plain.endswith(f".{domain}") or fnmatchcase(plain, domain)
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return address in network


def _split_port(entry: str) -> tuple[str, int | None]:
    """Return host and port of an entry such as `[::1]:8080`, `host:80` or `fd00::/8`."""
    found = re.fullmatch(r"\[(?P<inner>[^\]]*)\](?:/(?P<bits>\d+))?(?::(?P<port>\d+))?", entry)
    if found is not None:
        bits = f"/{found['bits']}" if found["bits"] else ""
        return found["inner"] + bits, int(found["port"]) if found["port"] else None
    host, colon, port = entry.partition(":")
    return (host, int(port)) if colon and port.isdigit() else (entry.rstrip("/"), None)
