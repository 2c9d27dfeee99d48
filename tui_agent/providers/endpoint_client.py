"""Connection pools of one endpoint, whatever SDK they have; imported with an SDK, never at start-up."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace

from .provider_failures import ErrorFactory
from .refused_fields import Refusal
from .sdk_response import SdkResponse


class EndpointClient(ABC):
    """Connections to one endpoint, without retries: one call is one attempt."""

    errors: ErrorFactory
    """Writer of this client's errors, which knows its secrets."""
    warnings: tuple[str, ...] = ()
    """Sentences for the user about variables that could not be used in whole."""
    _key: str | None = None

    @abstractmethod
    def __init__(
        self,
        *,
        api_key: str | None,
        auth_token: str | None,
        base_url: str | None,
        headers: Mapping[str, str],
        connect_timeout: float,
        silence_timeout: float,
        isolated: bool = False,
    ) -> None:
        """Create the SDK's client; send nothing.

        Args:
            api_key, auth_token: credentials, at most one.
            base_url: address of the endpoint; None for that of the SDK.
            headers: headers of each request.
            connect_timeout: seconds to connect.
            silence_timeout: seconds without a byte until a request is abandoned.
            isolated: send no credential and no header that the environment sets for another endpoint.

        Raises:
            ProviderError: there are no credentials, or the address is invalid.
        """

    @property
    def has_credentials(self) -> bool:
        """True if requests can be sent."""
        return True

    @property
    def key(self) -> str | None:
        """The key of `use_key`; None before its first call."""
        return self._key

    def use_key(self, key: str) -> None:
        """Send this key from now on."""
        self._key = key
        self.errors = replace(self.errors, secrets=(*self.errors.secrets, key))

    @abstractmethod
    async def open(self, body: bytes, version: str | None = None, betas: Iterable[str] = ()) -> SdkResponse | Refusal:
        """Send one request and wait for the headers of its answer.

        Args:
            body: the request, as JSON.
            version: value of the header `anthropic-version`; None for that of the client.
            betas: values of the header `anthropic-beta`.

        Returns:
            The answer, or the refusal of a request that the server calls invalid.

        Raises:
            ProviderError: the request failed.
        """

    async def count_tokens(self, body: bytes) -> int | None:
        """Return the number of input tokens of a request as the server counts them; None if it does not."""
        del body
        return None

    @abstractmethod
    async def list_models(self, limit: int) -> tuple[str, ...]:
        """Return the ids of the models that the server lists, in its order, at most `limit`.

        Raises:
            ProviderError: the server does not list them.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Close all connections."""
