"""The credentials of the SDK's profiles, for programs without a key. Importing this module takes most of a second."""

from collections.abc import AsyncGenerator, Mapping

import httpx2
from anthropic import AnthropicError, AsyncAnthropic

from .provider_failures import CredentialError


class SdkProfile:
    """The profile, or the workload identity, that the SDK finds."""

    def __init__(self, base_url: str | None) -> None:
        """Look for credentials.

        Raises:
            CredentialError: they cannot be read.
        """
        try:
            self._client = AsyncAnthropic(base_url=base_url)
        except AnthropicError as error:
            raise CredentialError(str(error)) from error
        inner = self._client.custom_auth
        self.auth = None if inner is None else _ProfileAuth(inner)
        """The credentials; None if the SDK finds none."""
        self.base_url = str(self._client.base_url)

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of the SDK's requests, some of which depend on the profile."""
        return {name: value for name, value in self._client.default_headers.items() if isinstance(value, str)}

    async def aclose(self) -> None:
        """Close the connections that fetched tokens."""
        await self._client.close()


class _ProfileAuth(httpx2.Auth):
    """The SDK's own, which fetches and renews tokens, with our error."""

    def __init__(self, inner: httpx2.Auth) -> None:
        self._inner = inner

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        try:
            async for signed in self._inner.async_auth_flow(request):
                yield signed
        except AnthropicError as error:
            raise CredentialError(str(error)) from error
