"""The layers the loop itself writes, and how layers become the parts of a request (S4-31, S4-32).

Priorities keep what never changes in front of what does, so that a provider can cache the prefix.
"""

from tui_agent.protocol.provider import SystemPart

from .registry import SEPARATOR, ContextLayer, ContextRegistry

SYSTEM_LAYER = "agentloop.system"
"""Who the agent is; priority 10."""

LEGACY_LAYER = "_legacy_system"
"""What `ConversationHistory.system = …` writes; priority 50."""

OUTPUT_LAYER = "agentloop.output"
"""The format of the final answer; priority 60."""

CONTEXT_LAYER = "agentloop.context"
"""What is true of this task only; priority 100."""

PRIORITIES = {SYSTEM_LAYER: 10, LEGACY_LAYER: 50, OUTPUT_LAYER: 60, CONTEXT_LAYER: 100}

DYNAMIC_PRIORITY = 100
"""Layers from this priority on are expected to change; those before are the cacheable prefix."""


def write_layer(registry: ContextRegistry, name: str, text: str, owner: str) -> bool:
    """Writes one of the reserved layers, or removes it where `text` is empty. Returns whether anything changed.

    Raises:
        KeyError: `name` is not one of the reserved layers.
    """
    if not text:
        return registry.remove(name) is not None
    return registry.set(ContextLayer(name=name, content=text, priority=PRIORITIES[name], owner=owner))


def layer_text(registry: ContextRegistry, name: str) -> str:
    """What a layer says; empty where there is none of that name."""
    layer = registry.get(name)
    return layer.text if layer else ""


def system_parts(registry: ContextRegistry) -> tuple[SystemPart, ...]:
    """The system prompt in at most two parts, the stable one first; together they read as `flat(tag="system")`."""
    stable: list[str] = []
    dynamic: list[str] = []
    for layer in registry.layers("system"):
        if layer.text:
            (dynamic if layer.priority >= DYNAMIC_PRIORITY else stable).append(layer.text)
    parts = (SystemPart(SEPARATOR.join(stable)), SystemPart(SEPARATOR.join(dynamic), stable=False))
    return tuple(part for part in parts if part.text)
