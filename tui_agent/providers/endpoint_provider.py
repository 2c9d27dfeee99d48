"""The provider for a model of a named endpoint."""

from typing import Any

from tui_agent.protocol.background import IMPORTING
from tui_agent.protocol.endpoint import CLOUDS

from .anthropic_provider import AnthropicProvider, CacheSetting, EndpointTraits, KeySource
from .model_catalog import ModelTarget


def provider_for(
    target: ModelTarget,
    *,
    api_key: str | None = None,
    auth_token: str | None = None,
    key_source: KeySource | None = None,
    cache: CacheSetting = True,
) -> AnthropicProvider:
    """Return the provider for a model of a named endpoint, which gets these credentials and no others.

    Libraries of other APIs are imported only for a model that needs one. Give at most one credential; without any,
    requests have none, or that of the cloud's own tools.

    Raises:
        ConfigurationError: a credential or a part of the endpoint's configuration cannot be used.
    """
    endpoint = target.endpoint
    version = {"anthropic-version": endpoint.anthropic_version} if endpoint.anthropic_version else {}
    # The profile names the program to start if nothing answers, which a cloud does not have.
    profile = None if endpoint.kind in CLOUDS else endpoint.profile or target.provider
    options: dict[str, Any] = {
        "base_url": endpoint.base_url,
        "headers": {**version, **endpoint.headers},
        "betas": endpoint.betas,
        "extra_body": endpoint.extra_body,
        "key_source": key_source,
        "endpoint": EndpointTraits(target.info, frozenset(endpoint.drop), endpoint.count_tokens is not False, profile),
    }
    if endpoint.kind == "messages":
        return AnthropicProvider(target.name, api_key=api_key, auth_token=auth_token, cache=cache, **options)
    with IMPORTING:
        from .kinds import other_providers

    # The other APIs have one kind of key.
    options["auth_token"] = auth_token or api_key
    if endpoint.kind in CLOUDS:
        return other_providers.CloudProvider(target, **options)
    make = other_providers.ResponsesProvider if endpoint.api == "responses" else other_providers.OpenAiProvider
    return make(target.name, **options)
