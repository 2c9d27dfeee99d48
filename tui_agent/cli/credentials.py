"""Key and endpoint, from the environment as the SDK defines them; never from a project (safety §2.3)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.settings import is_web_address


@dataclass(frozen=True, slots=True)
class Credentials:
    """What the provider signs its requests with. Secrets are kept out of the representation."""

    api_key: str | None = field(default=None, repr=False)
    auth_token: str | None = field(default=None, repr=False)
    base_url: str | None = field(default=None, repr=False)
    """Endpoint; None is the API's own. It may hold a secret, too."""

    @classmethod
    def of_environment(cls, environment: Mapping[str, str], base_url: str | None) -> "Credentials":
        """`ANTHROPIC_API_KEY`, else `ANTHROPIC_AUTH_TOKEN`; the endpoint: the settings', else `ANTHROPIC_BASE_URL`.

        Raises:
            ConfigurationError: the endpoint of the environment is no address.
        """
        key = environment.get("ANTHROPIC_API_KEY") or None
        token = None if key else environment.get("ANTHROPIC_AUTH_TOKEN") or None
        endpoint = base_url or environment.get("ANTHROPIC_BASE_URL") or None
        if endpoint is not None and not is_web_address(endpoint):
            # Not shown: it may be the key, put into the wrong variable.
            raise ConfigurationError("ANTHROPIC_BASE_URL holds no address such as https://host/path")
        return cls(key, token, endpoint)

    @classmethod
    def needed(cls, environment: Mapping[str, str], base_url: str | None) -> "Credentials":
        """Those requests can be sent with.

        Raises:
            ConfigurationError: there are none, or the endpoint of the environment is no address.
        """
        found = cls.of_environment(environment, base_url)
        if not found.usable:
            raise ConfigurationError(
                "no key: set ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for an endpoint of your own, "
                "or try the offline model with --demo"
            )
        return found

    @property
    def usable(self) -> bool:
        """Whether requests can be sent: an endpoint of one's own may need no key."""
        return bool(self.api_key or self.auth_token or self.base_url)

    @property
    def host(self) -> str:
        """The endpoint without what may be a secret in it: user name, password, path, query."""
        if self.base_url is None:
            return "the API's own"
        parts = urlsplit(self.base_url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"

    @property
    def words(self) -> str:
        """Where the key comes from, without the key."""
        if self.api_key:
            return "ANTHROPIC_API_KEY is set"
        return "ANTHROPIC_AUTH_TOKEN is set" if self.auth_token else f"none, and {self.host} may need none"
