"""Import of a model's SDK before the first request needs it."""

import os
from contextlib import suppress

from tui_agent.protocol.engine_imports import IMPORTING
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.providers.anthropic_provider import load_sdk
from tui_agent.settings import Settings

from .configuration.named_endpoints import target_of


def load_sdk_of(settings: Settings) -> None:
    """Import the SDK of the model that the settings name. Blocks; the first request reports what is missing."""
    try:
        with IMPORTING:
            target = target_of(settings, os.environ)
    except ConfigurationError:
        return
    if target is None or target.endpoint.kind != "openai":
        load_sdk()
        return
    with suppress(ImportError):
        import tui_agent.providers.kinds.openai_sdk  # noqa: F401  # pyright: ignore[reportUnusedImport]
