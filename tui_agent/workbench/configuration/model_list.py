"""The models that the user can choose: those of the configured endpoints, and the known ones of the API itself."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.facts.page_facts import ModelFact
from tui_agent.protocol.provider import ModelInfo
from tui_agent.providers.model_catalog import known_models, knows, model_info
from tui_agent.settings import Settings

from .effective_settings import Credentials
from .named_endpoints import has_own_address

_DEFAULT = "Anthropic"


def listed_models(
    settings: Settings, current: ModelInfo, offered: Mapping[str, Sequence[str]] = MappingProxyType({})
) -> tuple[ModelFact, ...]:
    """Return the models by endpoint, beginning with that of the session; wrong configurations are left out.

    Args:
        current: the model of the next request.
        offered: names that endpoints list themselves, by the name of the endpoint, empty for the default one.

    Raises:
        ConfigurationError: the endpoint of the environment is not a URL.
    """
    default, named = _default_models(settings), _named_models(settings)
    for provider, names in offered.items():
        into = named if provider else default
        known = {fact.name for fact in into}
        into += (fact for name in names if (fact := _offered(provider, name, settings)).name not in known)
    listed = {fact.name for fact in (*default, *named)}
    if current.name not in listed:
        provider, slash, _ = current.name.partition("/")
        fact = _fact(
            provider if slash and not has_own_address(settings, os.environ) else _default_name(settings),
            current,
            current,
        )
        (named if fact.provider not in (_DEFAULT, _default_name(settings)) else default).append(fact)
    facts = [_marked(fact, current) for fact in (*default, *named)]
    groups = list(dict.fromkeys(fact.provider for fact in sorted(facts, key=lambda fact: not fact.is_current)))
    return tuple(sorted(facts, key=lambda fact: groups.index(fact.provider)))


def configured_models(settings: Settings) -> tuple[ModelFact, ...]:
    """Return the known models of the API, unless the settings have another address for it, and those of endpoints."""
    return (*_default_models(settings), *_named_models(settings))


def known_profiles(settings: Settings) -> tuple[str, ...]:
    """Return the names of the shipped profiles that the settings do not configure."""
    from tui_agent.providers.model_catalog import shipped_profiles

    return tuple(name for name in shipped_profiles() if name not in settings.providers)


def _default_models(settings: Settings) -> list[ModelFact]:
    if has_own_address(settings, os.environ):
        return []
    return [_fact(_DEFAULT, model_info(name), None) for name in known_models()]


def _named_models(settings: Settings) -> list[ModelFact]:
    facts: list[ModelFact] = []
    if not settings.providers:
        return facts
    from tui_agent.providers.model_catalog import find_target

    for provider, endpoint in settings.providers.items():
        for entry in endpoint.models:
            try:
                target = find_target(f"{provider}/{entry.name}", settings.providers)
            except ConfigurationError:
                break
            if target is not None:
                facts.append(_fact(provider, target.info, None, has_window=entry.window is not None))
    return facts


def endpoint_name(settings: Settings, model: str) -> str:
    """Return the name of the endpoint that a model belongs to; empty for the default endpoint."""
    provider, slash, _ = model.partition("/")
    is_named = slash and (provider in settings.providers or not has_own_address(settings, os.environ))
    return provider if is_named else ""


def endpoint_title(settings: Settings, endpoint: str) -> str:
    """Return an endpoint's name for reading.

    Raises:
        ConfigurationError: the endpoint of the environment is not a URL.
    """
    return endpoint or _default_name(settings)


def _offered(provider: str, name: str, settings: Settings) -> ModelFact:
    """Return the fact about a model that an endpoint lists; what is not known of it has conservative values."""
    full = f"{provider}/{name}" if provider else name
    info = model_info(name)
    if provider:
        from tui_agent.providers.model_catalog import find_target

        try:
            target = find_target(full, settings.providers)
        except ConfigurationError:
            target = None
        info = target.info if target is not None else info
    return _fact(endpoint_title(settings, provider), replace(info, name=full), None)


def _default_name(settings: Settings) -> str:
    return (
        Credentials.of_environment(os.environ, settings.base_url).host
        if has_own_address(settings, os.environ)
        else _DEFAULT
    )


def _fact(provider: str, info: ModelInfo, current: ModelInfo | None, *, has_window: bool = False) -> ModelFact:
    is_current = current is not None and info.name == current.name
    name = info.name.removeprefix(f"{provider}/")
    prices = info.input_price, info.output_price
    return ModelFact(provider, info.name, info.context_window, *prices, is_current, not has_window and not knows(name))


def _marked(fact: ModelFact, current: ModelInfo) -> ModelFact:
    if fact.name != current.name:
        return fact
    # The session's own facts: its settings may be older.
    return replace(_fact(fact.provider, current, current), is_assumed=fact.is_assumed)
