"""The providers for other APIs than that of Anthropic: servers that speak those of OpenAI, and models in a cloud.

Their SDKs are extras, and are loaded with the first request.
"""

from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tui_agent.protocol.endpoint import LIBRARIES
from tui_agent.protocol.errors import ProviderError
from tui_agent.protocol.programs import install_command
from tui_agent.providers.anthropic_provider import AnthropicProvider, EndpointTraits
from tui_agent.providers.model_catalog import ModelTarget
from tui_agent.providers.provider_failures import ErrorFactory
from tui_agent.providers.response_decoder import ResponseDecoder

from .chat_completions_api import NEWER_LIMIT, ChatDecoder, ChatRequestBuilder
from .responses_api import ResponsesDecoder, ResponsesRequestBuilder

if TYPE_CHECKING:
    from tui_agent.providers.endpoint_client import EndpointClient, SdkResponse

_OWN_HOST = "api.openai.com"


class OpenAiProvider(AnthropicProvider):
    """Provider for one model of a server of the Chat Completions API."""

    builder_type = ChatRequestBuilder

    def __init__(self, model: str, *, base_url: str, endpoint: EndpointTraits, **options: Any) -> None:
        """Store the settings, as `AnthropicProvider` does; send and load nothing."""
        if urlsplit(base_url).hostname != _OWN_HOST:
            endpoint = replace(endpoint, drop=endpoint.drop | {NEWER_LIMIT})
        # No server of these APIs counts the tokens of a request.
        endpoint = replace(endpoint, counts_tokens=False)
        super().__init__(model, base_url=_with_version(base_url), endpoint=endpoint, **options)

    def import_sdk(self) -> "type[EndpointClient]":
        from .openai_sdk import OpenAiClient

        return OpenAiClient

    def missing_sdk(self, error: ImportError) -> ProviderError:
        return missing_extra("openai", self.model.name, error)

    def decoder(self, errors: ErrorFactory, answer: "SdkResponse", is_taken: Callable[[str], bool]) -> ResponseDecoder:
        return ChatDecoder(errors, answer.request_id, is_taken, answer.content_type, self._found_reasoning)

    def _found_reasoning(self, name: str) -> None:
        if isinstance(self._builder, ChatRequestBuilder):
            self._builder.reasoning_field = name


class ResponsesProvider(OpenAiProvider):
    """Provider for one model of a server of the Responses API."""

    builder_type = ResponsesRequestBuilder

    def import_sdk(self) -> "type[EndpointClient]":
        from .openai_sdk import ResponsesClient

        return ResponsesClient

    def decoder(self, errors: ErrorFactory, answer: "SdkResponse", is_taken: Callable[[str], bool]) -> ResponseDecoder:
        return ResponsesDecoder(errors, answer.request_id, is_taken, answer.content_type)


def missing_extra(extra: str, model: str, error: ImportError) -> ProviderError:
    """Return the error for a package of an extra that is not installed, or cannot be loaded."""
    what = f"{model} needs the extra `{extra}`, which is not installed"
    if not isinstance(error, ModuleNotFoundError):
        what = f"{model} needs the extra `{extra}`, which cannot be loaded ({error})"
    return ErrorFactory().write("unavailable", what=what, advice=f"install it with: {install_command(extra)}")


def _with_version(address: str) -> str:
    """Return the address below which the API is; servers of one's own have it below `/v1`."""
    return address if urlsplit(address).path.strip("/") else f"{address.rstrip('/')}/v1"


class CloudProvider(AnthropicProvider):
    """Provider for one model in a cloud, whose credentials come from where its other tools have them."""

    def __init__(self, target: ModelTarget, **options: Any) -> None:
        """Store the settings, as `AnthropicProvider` does; send and load nothing."""
        self._endpoint = target.endpoint
        super().__init__(target.name, **options)

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
