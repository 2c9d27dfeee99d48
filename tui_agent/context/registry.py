"""Named layers of the system prompt (S4-27 … S4-32).

Any part of the program may set its own layer; the text is composed on each read. The layers of the agent loop have
reserved names, and priorities that put stable layers before changing ones, so that a provider can cache the prefix."""

import itertools
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from tui_agent.protocol.callbacks import FailureReport, Listener, log_failure
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.messages import FrozenModel, JsonObject, UserBlock, joined_text
from tui_agent.protocol.provider import SystemPart
from tui_agent.protocol.value_checks import expect_items, expect_kind

SEPARATOR = "\n\n"

# Not the time: two changes within a tick of it would have no order.
_clock = itertools.count()


class ContextLayer(FrozenModel):
    """A named part of the prompt (S4-27)."""

    name: str
    content: str | tuple[UserBlock, ...]
    priority: int = 50
    """Lower comes earlier."""
    tags: tuple[str, ...] = ("system",)
    owner: str = ""
    merge_parent: bool = False
    """True if the parent's layer of this name comes first; False if this one replaces it."""
    metadata: JsonObject = Field(default_factory=dict)

    @property
    def text(self) -> str:
        """The text of the content; other blocks are left out."""
        return self.content if isinstance(self.content, str) else joined_text(self.content)


class RegistrySnapshot(FrozenModel):
    """A registry's own layers, oldest change first, without parent and listeners."""

    layers: tuple[ContextLayer, ...] = ()


@dataclass(frozen=True, slots=True)
class LayerChange:
    """A layer was set or removed, here or in an ancestor."""

    name: str
    kind: Literal["set", "removed"]
    registry: "ContextRegistry"
    """The registry that has or had the layer."""


class ContextRegistry:
    """Layers by name, over the layers of an optional parent."""

    def __init__(self, layers: Iterable[ContextLayer] = ()) -> None:
        self._layers: dict[str, ContextLayer] = {}
        self._changed_at: dict[str, int] = {}
        self._listeners: list[Listener[LayerChange]] = []
        self._report: FailureReport | None = None
        # A registry that agents share must not keep each of them alive.
        self._children: weakref.WeakSet[ContextRegistry] = weakref.WeakSet()
        self._parent: ContextRegistry | None = None
        for layer in expect_items("ContextRegistry.layers", layers, None, "a list of ContextLayer"):
            self.set(layer)

    @property
    def parent(self) -> "ContextRegistry | None":
        """The registry whose layers lie below this one's; None: there is none."""
        return self._parent

    def set(self, layer: ContextLayer) -> bool:
        """Set a layer under its name. Return True if that changed anything.

        Raises:
            ConfigurationError: `layer` is not a ContextLayer.
        """
        expect_kind("a layer of a ContextRegistry", layer, ContextLayer, "a ContextLayer")
        if self._layers.get(layer.name) == layer:
            return False
        self._layers[layer.name] = layer
        self._changed_at[layer.name] = next(_clock)
        self._notify(LayerChange(layer.name, "set", self))
        return True

    def remove(self, name: str) -> ContextLayer | None:
        """Remove this registry's layer of that name and return it; None if there is none."""
        layer = self._layers.pop(name, None)
        if layer is not None:
            del self._changed_at[name]
            self._notify(LayerChange(name, "removed", self))
        return layer

    def get(self, name: str) -> ContextLayer | None:
        """Return the effective layer of a name: this registry's, else the nearest ancestor's; None if none has it."""
        if name in self._layers:
            return self._layers[name]
        return self._parent.get(name) if self._parent else None

    def layers(self, tag: str | None = None, *, include_parent: bool = True) -> tuple[ContextLayer, ...]:
        """Return the effective layers, sorted by priority (lowest first), then time of change, then name (S4-28).

        Args:
            tag: only layers with this tag; None: all.
            include_parent: False to leave out the layers of ancestors.
        """
        in_force = self._in_force(include_parent)
        chosen = (
            (layer.priority, changed_at, layer.name, layer)
            for layer, changed_at in in_force.values()
            if tag is None or tag in layer.tags
        )
        return tuple(layer for *_, layer in sorted(chosen, key=lambda item: item[:3]))

    def flat(self, tag: str | None = None, *, include_parent: bool = True, separator: str = SEPARATOR) -> str:
        """Return the joined text of the effective layers; with a tag, only of those that have it. Empty layers are
        skipped.

        `flat(tag="system")` is the system prompt.
        """
        texts = (layer.text for layer in self.layers(tag, include_parent=include_parent))
        return separator.join(text for text in texts if text)

    def set_parent(self, parent: "ContextRegistry | None") -> None:
        """Put this registry's layers over those of `parent` and report the parent's changes here, too (S4-29).

        Raises:
            ConfigurationError: `parent` is this registry or lies over it.
        """
        ancestor = parent
        while ancestor is not None:
            if ancestor is self:
                raise ConfigurationError("a context registry cannot be its own ancestor; its parent was not changed")
            ancestor = ancestor._parent
        if self._parent is not None:
            self._parent._children.discard(self)
        self._parent = parent
        if parent is not None:
            parent._children.add(self)

    def listen(self, listener: Callable[[LayerChange], object]) -> Callable[[], None]:
        """Call `listener` with each change here and in ancestors; return a function that removes it.

        If a listener raises, the others are still called, and the change stays. Its first failure is reported: as a
        `warning` event if the registry or a descendant belongs to an agent, else in the log.
        """
        registered = Listener(listener)
        self._listeners.append(registered)

        def stop() -> None:
            if registered in self._listeners:
                self._listeners.remove(registered)

        return stop

    def report_failures(self, report: FailureReport) -> None:
        """Report failures of listeners to `report`, in place of an earlier function."""
        self._report = report

    def snapshot(self) -> RegistrySnapshot:
        """Return this registry's own layers."""
        names = sorted(self._layers, key=lambda name: self._changed_at[name])
        return RegistrySnapshot(layers=tuple(self._layers[name].model_copy(deep=True) for name in names))

    def copy(self) -> "ContextRegistry":
        """Return an independent copy over the same parent, without listeners (S4-24)."""
        twin = ContextRegistry()
        twin._layers = {name: layer.model_copy(deep=True) for name, layer in self._layers.items()}
        twin._changed_at = dict(self._changed_at)
        twin.set_parent(self._parent)
        return twin

    def _in_force(self, include_parent: bool) -> dict[str, tuple[ContextLayer, int]]:
        """Return each effective layer with its time of change; children replace or extend the parent's (S4-30)."""
        found = self._parent._in_force(True) if include_parent and self._parent else {}
        for name, layer in self._layers.items():
            below = found[name][0] if layer.merge_parent and name in found else None
            found[name] = (_merged(below, layer), self._changed_at[name])
        return found

    def _notify(self, change: LayerChange) -> None:
        for listener in list(self._listeners):
            crash = listener.notify(change)
            if crash is not None:
                (self._nearest_report() or log_failure)(listener.name, crash)
        # A copy, because a listener may give a registry another parent.
        for child in list(self._children):
            child._notify(change)

    def _nearest_report(self) -> FailureReport | None:
        """Return this registry's report function, else a descendant's: an agent's layers may lie over shared ones."""
        if self._report is not None:
            return self._report
        return next(filter(None, (child._nearest_report() for child in self._children)), None)


def _merged(below: ContextLayer | None, layer: ContextLayer) -> ContextLayer:
    """Return the layer with the text of `below` in front."""
    if below is None:
        return layer
    text = SEPARATOR.join(part for part in (below.text, layer.text) if part)
    return layer.model_copy(update={"content": text})


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
    """Set a reserved layer for an `owner`, or remove it if `text` is empty. Return True if anything changed.

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
