"""An app whose commands have the user's keys.

Textual's own keymap also drops other bindings of the same key, and cannot remove one. This app replaces the bindings of
each widget and screen instead, when it is registered and when the keys change.
"""

from collections.abc import Mapping
from functools import cache
from itertools import chain
from typing import TypeVar

from textual.app import App
from textual.binding import Binding, BindingsMap
from textual.dom import DOMNode
from textual.widget import Widget
from textual.widgets import Input, TextArea

from tui_agent.ui.base.commands import COMMANDS, all_commands, has_own_keys, use_keys

Result = TypeVar("Result")


class RemappableApp(App[Result]):
    """An app whose commands have the keys of the table of commands, also after these have changed."""

    def __init__(self) -> None:
        super().__init__()
        if has_own_keys():
            self._rebind(self)

    def use_keys(self, keys: Mapping[str, tuple[str, ...]]) -> None:
        """Use other keys for some commands, by id, and the default ones for all others."""
        use_keys(keys)
        for node in (self, *self._registry):
            self._rebind(node)
        self.refresh_bindings()
        for screen in self.screen_stack:
            for widget in (screen, *screen.walk_children(Widget)):
                widget.refresh()

    def _register_child(self, parent: DOMNode, child: Widget, before: int | None, after: int | None) -> None:
        # Every widget and screen passes here before its first key.
        super()._register_child(parent, child, before, after)
        if has_own_keys():
            self._rebind(child)

    def _rebind(self, node: DOMNode) -> None:
        """Bind a node's commands to the keys in force.

        Its other bindings stay, unless the user gave their key to a command of the whole chat.
        """
        own = {binding.id: binding for _, binding in type(node)._merge_bindings() if binding.id}
        commands = [entry for entry in all_commands() if entry.id in own]
        taken: dict[str, list[Binding]] = {}
        for entry in commands:
            for key in entry.keys:
                taken.setdefault(key, []).append(own[entry.id].with_key(key))
        ids, claimed = {entry.id for entry in commands}, _claimed()
        others: dict[str, list[Binding]] = {}
        for key, binding in chain(_text_bindings(type(node)), node._bindings):
            if binding.id not in ids and key not in taken and key not in claimed and binding not in others.get(key, ()):
                others.setdefault(key, []).append(binding)
        node._bindings = BindingsMap.from_keys({**others, **taken})


def _claimed() -> set[str]:
    """Return the keys that the user gave to commands of the whole chat: no widget may keep them for itself."""
    default = {entry.id: entry.keys for entry in COMMANDS}
    return {
        key
        for entry in all_commands()
        if entry.where in ("everywhere", "chat") and entry.keys != default[entry.id]
        for key in entry.keys
    }


@cache
def _text_bindings(node_type: type[DOMNode]) -> BindingsMap:
    """Return what the keys of a text field do without commands, which comes back when a command gives its key up."""
    keys: dict[str, list[Binding]] = {}
    for base in reversed(node_type.__mro__ if issubclass(node_type, TextArea | Input) else ()):
        if issubclass(base, DOMNode):
            own = BindingsMap(base.__dict__.get("BINDINGS", [])).key_to_bindings
            keys.update({key: found for key, bound in own.items() if (found := [b for b in bound if not b.id])})
    return BindingsMap.from_keys(keys)
