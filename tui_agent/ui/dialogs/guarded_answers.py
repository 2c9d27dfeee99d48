"""A dialog without a composer: what is typed but no answer keeps its answers from counting for a moment."""

from collections.abc import Callable, Mapping
from typing import Protocol

from textual.dom import DOMNode
from textual.events import Key, MouseDown, MouseMove, MouseUp, Paste

from .answer_clicks import AnswerClicks
from .answer_guard import AnswerGuard


class _GuardedScreen(Protocol):
    guard: AnswerGuard
    clicks: AnswerClicks

    @property
    def app(self) -> DOMNode: ...

    @property
    def active_bindings(self) -> Mapping[str, object]: ...

    def call_after_refresh(self, callback: Callable[[], None], /) -> object: ...


class GuardedAnswers:
    """Mixin of a screen with a `guard`, which it informs of the first drawing, of other keys and of pastes.

    A click on an answer, which `clicks` finds, acts as its key.
    """

    def on_mount(self: _GuardedScreen) -> None:
        """Let answers count a moment after everything was drawn."""
        self.clicks.begin(self.app)
        self.call_after_refresh(self.guard.drawn)

    def on_key(self: _GuardedScreen, event: Key) -> None:
        """Let no answer count after a key that means nothing here: the user is typing something else."""
        if event.key not in self.active_bindings:
            self.guard.disturbed()

    def on_paste(self: _GuardedScreen, event: Paste) -> None:
        """Ignore a paste, which never answers."""
        event.stop()
        self.guard.disturbed()

    def on_mouse_move(self: _GuardedScreen, event: MouseMove) -> None:
        """Follow the pointer."""
        self.clicks.take(event)

    def on_mouse_down(self: _GuardedScreen, event: MouseDown) -> None:
        """Follow the button."""
        self.clicks.take(event)

    def on_mouse_up(self: _GuardedScreen, event: MouseUp) -> None:
        """Run the action of the answer that was clicked."""
        self.clicks.take(event)
