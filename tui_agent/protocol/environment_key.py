"""The credential that the environment has for an address: key and token may be for different servers."""

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

DEFAULT_ADDRESS = "https://api.anthropic.com"


def is_own_api(address: str | None) -> bool:
    """True if an address is that of the API itself, not of a gateway; None is the API's."""
    host = _origin(address or DEFAULT_ADDRESS)[1]
    return host == "anthropic.com" or host.endswith(".anthropic.com")


def environment_credential(
    base_url: str | None, environment: Mapping[str, str] | None = None
) -> tuple[str | None, str | None]:
    """Return the key and the token for an address, by default that of `ANTHROPIC_BASE_URL`; at most one of them.

    The API itself gets `ANTHROPIC_API_KEY`, else `ANTHROPIC_AUTH_TOKEN`. A gateway gets the token if there is one, and
    then never the key; but a token that comes with another gateway's address in `ANTHROPIC_BASE_URL` is not for it.
    """
    variables = os.environ if environment is None else environment
    key, token = variables.get("ANTHROPIC_API_KEY") or None, variables.get("ANTHROPIC_AUTH_TOKEN") or None
    gateway = variables.get("ANTHROPIC_BASE_URL") or None
    address = base_url or gateway
    if token and gateway and not is_own_api(gateway) and _origin(gateway) != _origin(address or ""):
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
