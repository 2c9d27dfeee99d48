"""Named layers of the system prompt: who says what, in which order (S4-27 … S4-32).

Any part of the program may write its own layer; the composed text is made when it is asked for.
"""

import itertools
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from tui_agent.protocol.callbacks import FailureReport, Listener, log_failure
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.messages import FrozenModel, JsonObject, UserBlock, joined_text
from tui_agent.protocol.value_checks import expect_items, expect_kind

SEPARATOR = "\n\n"

_clock = itertools.count()


class ContextLayer(FrozenModel):
    """A named piece of the prompt (S4-27)."""

    name: str
    content: str | tuple[UserBlock, ...]
    priority: int = 50
    """Lower comes earlier."""
    tags: tuple[str, ...] = ("system",)
    owner: str = ""
    merge_parent: bool = False
    """Where the parent has a layer of this name: say both, the parent's first. Otherwise this one replaces it."""
    metadata: JsonObject = Field(default_factory=dict)

    @property
    def text(self) -> str:
        """The content's text; other blocks have no place in a system prompt."""
        return self.content if isinstance(self.content, str) else joined_text(self.content)


class RegistrySnapshot(FrozenModel):
    """A registry's own layers, oldest change first; parents and listeners are not part of it."""

    layers: tuple[ContextLayer, ...] = ()


@dataclass(frozen=True, slots=True)
class LayerChange:
    """A layer was set or removed, here or in an ancestor."""

    name: str
    kind: Literal["set", "removed"]
    registry: "ContextRegistry"
    """The registry that holds, or held, the layer."""


class ContextRegistry:
    """Layers by name, over the layers of an optional parent."""

    def __init__(self, layers: Iterable[ContextLayer] = ()) -> None:
        self._layers: dict[str, ContextLayer] = {}
        self._changed_at: dict[str, int] = {}
        self._listeners: list[Listener[LayerChange]] = []
        self._report: FailureReport | None = None
        self._children: weakref.WeakSet[ContextRegistry] = weakref.WeakSet()
        self._parent: ContextRegistry | None = None
        for layer in expect_items("ContextRegistry.layers", layers, None, "a list of ContextLayer"):
            self.set(layer)

    @property
    def parent(self) -> "ContextRegistry | None":
        """The registry whose layers lie below this one's."""
        return self._parent

    def set(self, layer: ContextLayer) -> bool:
        """Write a layer under its name; one that is already so is left alone. Return True if anything changed.

        Raises:
            ConfigurationError: it is not a ContextLayer.
        """
        expect_kind("a layer of a ContextRegistry", layer, ContextLayer, "a ContextLayer")
        if self._layers.get(layer.name) == layer:
            return False
        self._layers[layer.name] = layer
        self._changed_at[layer.name] = next(_clock)
        self._tell(LayerChange(layer.name, "set", self))
        return True

    def remove(self, name: str) -> ContextLayer | None:
        """Takes this registry's layer of that name away and returns it; None if it has none."""
        layer = self._layers.pop(name, None)
        if layer is not None:
            del self._changed_at[name]
            self._tell(LayerChange(name, "removed", self))
        return layer

    def get(self, name: str) -> ContextLayer | None:
        """The layer in force under a name: this registry's, else the nearest ancestor's."""
        if name in self._layers:
            return self._layers[name]
        return self._parent.get(name) if self._parent else None

    def layers(self, tag: str | None = None, *, include_parent: bool = True) -> tuple[ContextLayer, ...]:
        """The layers in force, in the order they are composed: priority, then time of change, then name (S4-28)."""
        in_force = self._in_force(include_parent)
        chosen = (
            (layer.priority, changed_at, layer.name, layer)
            for layer, changed_at in in_force.values()
            if tag is None or tag in layer.tags
        )
        return tuple(layer for *_, layer in sorted(chosen, key=lambda item: item[:3]))

    def flat(self, tag: str | None = None, *, include_parent: bool = True, separator: str = SEPARATOR) -> str:
        """The text of the layers in force, joined; with a tag, only of those that carry it. Empty layers leave no gap.

        `flat(tag="system")` is the system prompt.
        """
        texts = (layer.text for layer in self.layers(tag, include_parent=include_parent))
        return separator.join(text for text in texts if text)

    def set_parent(self, parent: "ContextRegistry | None") -> None:
        """Puts this registry's layers over those of `parent`, whose changes are told here, too (S4-29).

        Raises:
            ConfigurationError: `parent` is this registry or lies over it.
        """
        ancestor = parent
        while ancestor is not None:
            if ancestor is self:
                raise ConfigurationError("a context registry cannot be its own ancestor; its parent was left as it was")
            ancestor = ancestor._parent
        if self._parent is not None:
            self._parent._children.discard(self)
        self._parent = parent
        if parent is not None:
            parent._children.add(self)

    def listen(self, listener: Callable[[LayerChange], object]) -> Callable[[], None]:
        """Call `listener` with each change here and in ancestors; return a function that removes it.

        If a listener raises, the others are still called, and the change stays. Its first failure is reported: as a
        `warning` event if the registry or one below it belongs to an agent, else in the log.
        """
        registered = Listener(listener)
        self._listeners.append(registered)

        def stop() -> None:
            if registered in self._listeners:
                self._listeners.remove(registered)

        return stop

    def report_failures(self, report: FailureReport) -> None:
        """Call `report` with failures of listeners from now on, instead of the function set before."""
        self._report = report

    def snapshot(self) -> RegistrySnapshot:
        """This registry's own layers, to be kept."""
        names = sorted(self._layers, key=lambda name: self._changed_at[name])
        return RegistrySnapshot(layers=tuple(self._layers[name].model_copy(deep=True) for name in names))

    def copy(self) -> "ContextRegistry":
        """The same layers over the same parent, without listeners; changes in either do not reach the other (S4-24)."""
        twin = ContextRegistry()
        twin._layers = {name: layer.model_copy(deep=True) for name, layer in self._layers.items()}
        twin._changed_at = dict(self._changed_at)
        twin.set_parent(self._parent)
        return twin

    def _in_force(self, include_parent: bool) -> dict[str, tuple[ContextLayer, int]]:
        """Each layer in force with the time it was changed; children replace or extend their parent's (S4-30)."""
        found = self._parent._in_force(True) if include_parent and self._parent else {}
        for name, layer in self._layers.items():
            below = found[name][0] if layer.merge_parent and name in found else None
            found[name] = (_merged(below, layer), self._changed_at[name])
        return found

    def _tell(self, change: LayerChange) -> None:
        for listener in list(self._listeners):
            crash = listener.notify(change)
            if crash is not None:
                (self._nearest_report() or log_failure)(listener.name, crash)
        for child in list(self._children):
            child._tell(change)

    def _nearest_report(self) -> FailureReport | None:
        """Return this registry's report, else that of a registry below: an agent's layers may lie over shared ones."""
        if self._report is not None:
            return self._report
        return next(filter(None, (child._nearest_report() for child in self._children)), None)


def _merged(below: ContextLayer | None, layer: ContextLayer) -> ContextLayer:
    """The layer with the text of the one below it in front; as it is where there is none."""
    if below is None:
        return layer
    text = SEPARATOR.join(part for part in (below.text, layer.text) if part)
    return layer.model_copy(update={"content": text})
