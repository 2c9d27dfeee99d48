"""Base of all apps: the user's keys, the terminal driver, and the last line of defence against control characters.

Textual's own keymap also drops other bindings of the same key, and cannot remove one. `RemappableApp` replaces the
bindings of each widget and screen instead, when it is registered and when the keys change.

Text is sanitised where it enters the screen (`sanitiser.py`). The filter here runs after every widget, also Textual's
own: a missed call of the sanitiser leaves a gap in a line instead of a terminal command (safety promise 17).
"""

import os
import re
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import cache
from itertools import chain
from typing import Any, TypeVar

from rich.cells import cell_len
from rich.console import RenderableType
from rich.segment import Segment
from textual import on
from textual.app import App
from textual.binding import Binding, BindingsMap
from textual.color import Color
from textual.dom import DOMNode
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Event, InputEvent, Resize
from textual.filter import LineFilter
from textual.keys import key_to_character
from textual.notifications import SeverityLevel
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input, TextArea

from tui_agent.ui.base.app_type import AnyScreen
from tui_agent.ui.base.commands import COMMANDS, all_commands, has_own_keys, use_keys
from tui_agent.ui.text.sanitiser import sanitise

from .frame_painter import FramePainter
from .terminal_driver import TerminalDriver, copy_sequence, hand_to_tmux
from .terminal_input import BackgroundReported, InputIgnored

Result = TypeVar("Result")

THIN_SCROLLBARS = """
* {
    scrollbar-size-vertical: 1;
}
"""
"""Style of every scrollbar; part of each app's `CSS`, because style sheets of apps are not inherited."""

_CONTROL_CHARACTERS = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
"""Controls, characters that hide or reorder others, and lone surrogates, which cannot be encoded."""


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

    async def _check_bindings(self, key: str, priority: bool = False) -> bool:
        # A text field gets its letters without a search: Textual copies the bindings of all widgets around it.
        field = self.focused
        is_text = isinstance(field, TextArea) and field.check_consume_key(key, key_to_character(key))
        if priority and is_text and field is not None and key not in field._bindings.key_to_bindings:
            return False
        return await super()._check_bindings(key, priority)

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
        if entry.where in ("app", "chat") and entry.keys != default[entry.id]
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


class BaseApp(RemappableApp[Result]):
    """An app that no outside text can use to control the terminal (safety promise 17)."""

    CSS = THIN_SCROLLBARS
    _knows_ignored = False

    def __init__(self, *, light: bool = False) -> None:
        """Create the app; `light` is True if the terminal is believed to have a light background."""
        super().__init__()
        self.light = light
        """True if the terminal has a light background."""
        self._filters.append(ControlCharacterFilter())
        self._painter = FramePainter()

    @property
    def follows_terminal(self) -> bool:
        """True if the theme depends on the terminal's background."""
        return False

    @property
    def input_waits(self) -> bool:
        """True if the terminal has sent input that the app has not received."""
        driver = self._driver
        return isinstance(driver, TerminalDriver) and driver.is_terminal and driver.input_waits

    def show_background(self) -> None:
        """Use the theme for `light`, which the terminal has reported."""

    def ask_background(self) -> None:
        """Ask the terminal for its background if the theme depends on it."""
        if self.follows_terminal and isinstance(self._driver, TerminalDriver):
            self._driver.ask_background()

    @on(BackgroundReported)
    def _background_reported(self, event: BackgroundReported) -> None:
        self.light = event.light
        self.show_background()

    @on(InputIgnored)
    def _input_ignored(self, event: InputIgnored) -> None:
        if not self._knows_ignored:
            self._knows_ignored = True
            self.notify(f"Input that could not be read was ignored ({event.reason}). Nothing else was lost.")

    async def on_event(self, event: Event) -> None:
        """Let no frame wait after an input."""
        if isinstance(event, InputEvent):
            AnyScreen.pace.note_input()
        await super().on_event(event)

    def get_driver_class(self) -> type[Driver]:
        """Return the driver of the terminal; in a browser and in tests another one."""
        chosen = super().get_driver_class()
        if chosen.__name__ == "WebDriver":
            # Imported here because a terminal needs none of it.
            from .browser_driver import BrowserDriver

            return BrowserDriver
        return TerminalDriver if chosen is LinuxDriver else chosen

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        # Textual offers no public way to change what it writes.
        frame: Any = renderable if self.is_inline else self._painter.frame(renderable)
        if isinstance(field := self.focused, TextArea | Input):
            # Input methods draw at the terminal's cursor, and Textual moves it only with the caret, not with the field.
            self.cursor_position = field.cursor_screen_offset
        super()._display(screen, frame)  # pyright: ignore[reportUnknownMemberType]

    @on(Resize)
    def _forget_frame(self) -> None:
        # A terminal may move or lose its contents when its size changes.
        self._painter.forget()

    @on(Driver.SignalResume)
    def _repaint_after_resume(self) -> None:
        # The terminal is empty after `ctrl+z`, and Textual sees no change that it would have to draw.
        self.action_repaint()

    def action_repaint(self) -> None:
        """Write the whole screen again."""
        self._painter.forget()
        self.refresh(layout=True)

    def action_toggle_mouse(self) -> None:
        """Give the mouse to the terminal, or use it again."""
        if isinstance(driver := self._driver, TerminalDriver):
            driver.use_mouse(not driver.uses_mouse)
            self.notify("The mouse is tui-agent's." if driver.uses_mouse else "The mouse is the terminal's.")

    def use_mouse(self, wanted: bool) -> None:
        """Take reports of the mouse from the terminal, or none."""
        if isinstance(self._driver, TerminalDriver):
            self._driver.use_mouse(wanted)

    @contextmanager
    def lend_terminal(self) -> Generator[None]:
        """Give the terminal to another program; the app continues behind it, and redraws everything at the end.

        Raises:
            SuspendNotSupported: the app has no terminal of its own.
        """
        driver = self._driver
        with self.suspend():
            if isinstance(driver, TerminalDriver):
                driver.lent = True
            try:
                yield
            finally:
                if isinstance(driver, TerminalDriver):
                    driver.lent = False

    def abandon_terminal(self) -> None:
        """Leave the terminal alone if the program is suspended: it is resumed only to exit. For signal handlers."""
        if isinstance(self._driver, TerminalDriver):
            self._driver.leaving = True

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """Show a short message, sanitised and never as markup."""
        super().notify(sanitise(message), title=sanitise(title), severity=severity, timeout=timeout, markup=False)

    def copy_to_clipboard(self, text: str) -> None:
        """Copy a text, also from inside tmux and screen; lone surrogates become question marks."""
        driver = self._driver
        if not (isinstance(driver, TerminalDriver) and driver.is_terminal):
            super().copy_to_clipboard(text.encode("utf-8", "replace").decode("utf-8"))
            return
        # Text fields of the app paste from here.
        self._clipboard = text
        driver.write(copy_sequence(text, os.environ))
        if "TMUX" in os.environ:
            # A daemon, because tmux may hang and no one waits for it.
            threading.Thread(target=hand_to_tmux, args=(text,), name="tmux-copy", daemon=True).start()


class ControlCharacterFilter(LineFilter):
    """Replaces control characters by blanks of the same width, and removes links."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments of one row without control characters and links."""
        if not any(_needs_filter(segment) for segment in segments):
            return segments
        return [_filtered(segment) if _needs_filter(segment) else segment for segment in segments]


def plain(text: str) -> str:
    """Return the text without control characters, as wide as before."""
    return _CONTROL_CHARACTERS.sub(lambda match: " " * max(0, cell_len(match[0])), text)


def _needs_filter(segment: Segment) -> bool:
    text, style, _ = segment
    if not text.isascii() or not text.isprintable():
        return _CONTROL_CHARACTERS.search(text) is not None or (style is not None and style.link is not None)
    return style is not None and style.link is not None


def _filtered(segment: Segment) -> Segment:
    text, style, control = segment
    if style is not None and style.link is not None:
        style = style.update_link(None)
    return Segment(plain(text), style, control)
