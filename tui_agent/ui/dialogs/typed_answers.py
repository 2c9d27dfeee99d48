"""Letters pressed over a question: an answer, or text for the composer; and clicks on its answers.

An answer key takes effect only if no other printable key follows within `SETTLE_SECONDS`. If one does, or if a key
means nothing in the dialog, all of them are text: the dialog folds, and the composer receives them. A key that comes
before answers count is neither: it is dropped if the user presses it again, pages or waits, and text if other letters
follow. A key that types nothing, such as page down, decides at once; escape and backspace take the letter back.

A click on the label of an answer acts as its key, except for answers that take more than one key.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, TypeAlias

from textual import getters
from textual.events import Event, Key, MouseDown, MouseEvent, Paste
from textual.geometry import Region
from textual.screen import ModalScreen, ScreenResultType
from textual.timer import Timer
from textual.widget import Widget

from tui_agent.ui.base.app_type import any_app
from tui_agent.ui.base.command_type import Where
from tui_agent.ui.base.commands import commands_for

from .answer_clicks import AnswerClicks
from .answer_guard import AnswerGuard

SETTLE_SECONDS = 0.2
"""Seconds without another printable key after which an answer key takes effect."""
EARLY_SECONDS = 1.0
"""Seconds for which a key that came too early is still the beginning of a text."""

Typed: TypeAlias = Key | Paste


class TypedKeys:
    """Printable keys whose meaning is not decided yet. Pure."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._held: list[Key] = []
        self._counts = False
        self._pressed_at = float("-inf")

    @property
    def held(self) -> tuple[Key, ...]:
        """The keys that are not decided yet, oldest first."""
        return tuple(self._held)

    @property
    def answer(self) -> Key | None:
        """The answer key that takes effect unless another printable key follows."""
        return self._held[-1] if self._counts and self._held else None

    @property
    def may_begin_text(self) -> bool:
        """True if the user may be in the middle of a text: the last key was pressed only a moment ago."""
        return bool(self._held) and (self._counts or self._clock() - self._pressed_at < SETTLE_SECONDS)

    def press(self, key: Key, *, answers: bool, counts: bool) -> bool:
        """Add a printable key; return False if it and all held keys are text.

        Args:
            key: the key.
            answers: True if it is an answer key of the dialog.
            counts: True if an answer counts now.
        """
        self._forget_early(key)
        may_answer = answers and not self._held
        self._held.append(key)
        self._counts = may_answer and counts
        self._pressed_at = self._clock()
        return may_answer

    def take(self) -> tuple[Key, ...]:
        """Return all held keys and forget them."""
        held, self._held, self._counts = self.held, [], False
        return held

    def _forget_early(self, key: Key) -> None:
        """Forget keys that came too early if the user tries again, or pressed them long ago."""
        if self._held and not self._counts:
            pause = self._clock() - self._pressed_at
            if pause >= EARLY_SECONDS or (pause >= SETTLE_SECONDS and key.key == self._held[-1].key):
                self.take()


@dataclass(frozen=True, slots=True)
class TextTarget:
    """The composer, as a dialog over it sees it."""

    region: Callable[[], Region]
    """Returns its place on the screen."""
    take: Callable[[Sequence[Typed]], None]
    """Closes the dialog for the time being and types the keys and pastes into the composer."""


NOWHERE = TextTarget(Region, lambda _: None)
"""Target for a dialog without a composer: text is dropped."""


class TypedAnswers(ModalScreen[ScreenResultType]):
    """A screen that asks: its printable keys answer, unless they are text for the composer.

    Keys are sorted as soon as the app passes them on, so that none is lost or overtaken while the dialog closes.
    """

    app = getters.app(any_app)
    AUTO_FOCUS = ""
    WHERE: ClassVar[Where]
    """The screen's part of the table of commands."""
    IMMEDIATE: ClassVar[frozenset[str]] = frozenset()
    """Actions that only read or select; their keys act at once."""
    UNGUARDED: ClassVar[frozenset[str]] = frozenset()
    """Actions that answer nothing and also act before answers count."""
    CLICKED: ClassVar[frozenset[str]] = frozenset()
    """Actions that a click on their label runs, too."""

    def __init__(self, guard: AnswerGuard, clock: Callable[[], float], target: TextTarget) -> None:
        """Create the screen.

        Args:
            guard: decides whether an answer counts.
            clock: monotonic seconds.
            target: the composer.
        """
        super().__init__()
        self.guard = guard
        """Decides whether an answer counts."""
        self.keys = TypedKeys(clock)
        """Keys whose meaning is not decided yet."""
        self._target = target
        self._timer: Timer | None = None
        self._clicks = AnswerClicks(self, guard, self.WHERE, self.CLICKED, self._may_click)

    def on_mount(self) -> None:
        """Let answers count a moment after everything was drawn."""
        self._clicks.begin(self.app)
        self.call_after_refresh(self.guard.drawn)

    @property
    def was_drawn(self) -> bool:
        """True if the question is on the screen, so that the quiet moment before answers has begun."""
        return self.guard.was_drawn

    @property
    def text_field(self) -> Widget | None:
        """The field in which the user types at present."""
        return None

    def settle(self) -> None:
        """Let the answer key, if there is one, take effect: no other printable key has followed."""
        key = self.keys.answer
        action = self._action_of(key) if key is not None else None
        if key is None or action is None:
            return
        self.keys.take()
        if self.guard.armed or action in self.UNGUARDED:
            self._act(action)
        else:
            # Something else is asked by now.
            self.guard.note_early()

    def leave_to_type(self, *typed: Typed) -> None:
        """Close without an answer; what was typed goes to the composer."""
        everything = (*self.keys.take(), *typed)
        if self.is_current:
            self.dismiss(None)
        self._target.take(everything)

    def _forward_event(self, event: Event) -> None:
        # The only place that sees each key at once and in order; a handler would see it after the dialog has closed.
        if event.is_forwarded or not isinstance(event, Key | Paste | MouseEvent):
            super()._forward_event(event)
        elif isinstance(event, MouseEvent):
            if not (isinstance(event, MouseDown) and self._takes(event)):
                action = self._clicks.follow(event)
                super()._forward_event(event)
                if action is not None:
                    self.keys.take()
                    self._act(action)
        elif not self._takes(event):
            super()._forward_event(event)

    def _may_click(self, action: str | None) -> bool:
        """Return True if a click counts now, as a key would; never in the middle of a text."""
        counts = self.guard.armed or action in self.UNGUARDED or self.text_field is not None
        return counts and not self.keys.may_begin_text

    def _takes(self, event: Key | Paste | MouseDown) -> bool:
        """Handle an event if it is text or an answer key; return False for any other."""
        if isinstance(event, MouseDown):
            clicked = self.text_field is None and self._is_composer(event.screen_x, event.screen_y)
            if clicked:
                self.leave_to_type()
            return clicked
        if (field := self.text_field) is not None:
            # The field lost the focus, but the user still types into it.
            self.set_focus(field)
            field._forward_event(event)
        elif isinstance(event, Paste):
            self.leave_to_type(event)
        elif event.is_printable:
            self._press(event)
        else:
            # A user does not page in the middle of a text: a letter before this key was an answer, or came too early.
            if event.key not in ("escape", "backspace"):
                self.settle()
            self.keys.take()
            return False
        return True

    def _press(self, key: Key) -> None:
        action = self._action_of(key)
        if action in self.IMMEDIATE and not self.keys.may_begin_text:
            self.keys.take()
            self._act(action)
            return
        counts = self.guard.armed or action in self.UNGUARDED
        if not self.keys.press(key, answers=action is not None, counts=counts):
            self.leave_to_type()
        elif counts:
            if self._timer is not None:
                self._timer.stop()
            self._timer = self.set_timer(SETTLE_SECONDS, partial(self._settle_behind_keys, key))
        else:
            self.guard.note_early()

    def _settle_behind_keys(self, key: Key) -> None:
        """Settle once every key that was pressed so far has arrived: a busy app may have keys in its queue."""
        self.app.call_later(lambda: self.settle() if self.is_current and self.keys.answer is key else None)

    def _action_of(self, key: Key) -> str | None:
        """Return the action of a printable key; None if it has none at present."""
        names = (entry.action_name for entry in commands_for(self.WHERE) if key.key in entry.keys)
        return next((name for name in names if self.check_action(name, ())), None)

    def _act(self, action: str) -> None:
        getattr(self, f"action_{action}")()

    def _is_composer(self, x: int, y: int) -> bool:
        return (x, y) in self._target.region() and self.get_widget_at(x, y)[0] is self
