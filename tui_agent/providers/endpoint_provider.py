"""The provider for a model of a named endpoint."""

from tui_agent.protocol.background import IMPORTING
from tui_agent.protocol.endpoint import CLOUDS

from .anthropic_provider import AnthropicProvider, CacheSetting, EndpointTraits, KeySource
from .endpoint_profiles import ModelTarget


def provider_for(
    target: ModelTarget,
    *,
    api_key: str | None = None,
    auth_token: str | None = None,
    key_source: KeySource | None = None,
    cache: CacheSetting = True,
) -> AnthropicProvider:
    """Return the provider for a model of a named endpoint, which gets these credentials and no others.

    Libraries of other APIs are imported only for a model that needs one; they know only one kind of key.
    """
    endpoint, token = target.endpoint, auth_token or api_key
    if endpoint.kind in CLOUDS:
        with IMPORTING:
            from tui_agent.providers.kinds.other_providers import CloudProvider

        return CloudProvider(target, auth_token=token, key_source=key_source)
    counts, profile = endpoint.count_tokens is not False, endpoint.profile or target.provider
    traits = EndpointTraits(target.info, frozenset(endpoint.drop), counts, profile)
    if endpoint.kind == "openai":
        with IMPORTING:
            from tui_agent.providers.kinds.other_providers import OpenAiProvider, ResponsesProvider

        return (ResponsesProvider if endpoint.api == "responses" else OpenAiProvider)(
            target.name,
            base_url=endpoint.base_url or "",
            endpoint=traits,
            auth_token=token,
            headers=endpoint.headers,
            extra_body=endpoint.extra_body,
            key_source=key_source,
        )
    version = {"anthropic-version": endpoint.anthropic_version} if endpoint.anthropic_version else {}
    return AnthropicProvider(
        target.name,
        api_key=api_key,
        auth_token=auth_token,
        base_url=endpoint.base_url,
        headers={**version, **endpoint.headers},
        betas=endpoint.betas,
        extra_body=endpoint.extra_body,
        key_source=key_source,
        cache=cache,
        endpoint=traits,
    )
