"""Settings of the connections to one endpoint."""

from collections.abc import Mapping
from dataclasses import dataclass, field


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
