"""The provider for models in a cloud: Bedrock, Vertex and Foundry, through their clients of the SDK."""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from tui_agent.protocol.endpoint import LIBRARIES
from tui_agent.protocol.errors import ProviderError
from tui_agent.providers.anthropic_provider import AnthropicProvider, EndpointTraits, KeySource
from tui_agent.providers.endpoint_profiles import ModelTarget

from .openai_provider import missing_extra

if TYPE_CHECKING:
    from tui_agent.providers.endpoint_client import EndpointClient


class CloudProvider(AnthropicProvider):
    """Provider for one model in a cloud, whose credentials come from where its other tools have them."""

    def __init__(
        self, target: ModelTarget, *, auth_token: str | None = None, key_source: KeySource | None = None
    ) -> None:
        endpoint = target.endpoint
        version = {"anthropic-version": endpoint.anthropic_version} if endpoint.anthropic_version else {}
        self._endpoint = endpoint
        super().__init__(
            target.name,
            auth_token=auth_token,
            base_url=endpoint.base_url,
            headers={**version, **endpoint.headers},
            betas=endpoint.betas,
            extra_body=endpoint.extra_body,
            key_source=key_source,
            endpoint=EndpointTraits(target.info, frozenset(endpoint.drop), endpoint.count_tokens is not False),
        )

    def import_sdk(self) -> "type[EndpointClient]":
        library = LIBRARIES.get(self._endpoint.kind)
        if library is not None and find_spec(library) is None:
            raise ModuleNotFoundError(library)
        from .cloud_sdk import client_for

        return client_for(self._endpoint)

    def missing_sdk(self, error: ImportError) -> ProviderError:
        if self._endpoint.kind in LIBRARIES:
            return missing_extra(self._endpoint.kind, self.model.name, error)
        return super().missing_sdk(error)
