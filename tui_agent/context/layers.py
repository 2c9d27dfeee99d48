"""Context layers reserved for the agent loop, and the parts of the system prompt (S4-31, S4-32).

Priorities put stable layers before changing ones, so that a provider can cache the prefix.
"""

from tui_agent.protocol.provider import SystemPart

from .registry import SEPARATOR, ContextLayer, ContextRegistry

SYSTEM_LAYER = "agentloop.system"
"""Identity and task of the agent; priority 10."""

LEGACY_LAYER = "_legacy_system"
"""Layer that `ConversationHistory.system = …` sets; priority 50."""

OUTPUT_LAYER = "agentloop.output"
"""Format of the final answer; priority 60."""

CONTEXT_LAYER = "agentloop.context"
"""Facts of the current task; priority 100."""

PRIORITIES = {SYSTEM_LAYER: 10, LEGACY_LAYER: 50, OUTPUT_LAYER: 60, CONTEXT_LAYER: 100}

DYNAMIC_PRIORITY = 100
"""Layers of this priority or above may change between requests; those below form the cacheable prefix."""


def write_layer(registry: ContextRegistry, name: str, text: str, owner: str) -> bool:
    """Set a reserved layer, or remove it if `text` is empty. Return True if anything changed.

    Raises:
        KeyError: `name` is not one of the reserved layers.
    """
    if not text:
        return registry.remove(name) is not None
    return registry.set(ContextLayer(name=name, content=text, priority=PRIORITIES[name], owner=owner))


def layer_text(registry: ContextRegistry, name: str) -> str:
    """Return the text of a layer; empty if it does not exist."""
    layer = registry.get(name)
    return layer.text if layer else ""


def system_parts(registry: ContextRegistry) -> tuple[SystemPart, ...]:
    """Return the system prompt in at most two parts, the stable one first; joined they equal `flat(tag="system")`."""
    stable: list[str] = []
    dynamic: list[str] = []
    for layer in registry.layers("system"):
        if layer.text:
            (dynamic if layer.priority >= DYNAMIC_PRIORITY else stable).append(layer.text)
    parts = (SystemPart(SEPARATOR.join(stable)), SystemPart(SEPARATOR.join(dynamic), stable=False))
    return tuple(part for part in parts if part.text)
