"""The base of all screens that ask: a printable key is an answer or text for the composer, and answers can be clicked.

Keys are sorted as soon as the app passes them on, so that none is lost or overtaken while a dialog closes. An answer
that ends a question closes its dialog at once, so that the next question can be read; the owner of `TypedKeys` lets it
take effect after the pause.
"""

from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic
from typing import Any, ClassVar, TypeAlias

from textual import getters
from textual.dom import DOMNode
from textual.errors import NoWidget
from textual.events import Event, Key, MouseDown, MouseEvent, MouseMove, MouseUp, Paste
from textual.geometry import Region
from textual.screen import ModalScreen, ScreenResultType
from textual.timer import Timer
from textual.widget import Widget

from tui_agent.ui.base.app_type import any_app
from tui_agent.ui.base.command_type import Command, Where
from tui_agent.ui.base.commands import bindings_for, command, commands_for
from tui_agent.ui.text.rows_view import Build, RowsView, command_at

from .answer_rules import PAUSE_SECONDS, SEEN_SECONDS, AnswerGuard, AnswerPointer, Letter, TypedRun, Verdict

Typed: TypeAlias = Key | Paste
TAKES_BACK = ("escape", "backspace", "ctrl+c")
"""Keys that take answers back which have not taken effect."""
EARLY = "This key does not count yet: the question has only just appeared."
NOTHING = "This key does nothing here."
INPUT_SECONDS = 0.05
"""Seconds between two looks for input that a busy machine has not passed on yet."""
ALONE = "An answer is one letter alone; what else you type here is dropped."


class TypedKeys:
    """Keys typed over questions that share a composer; dialogs that follow one another share them."""

    def __init__(self, clock: Callable[[], float], host: DOMNode | None = None) -> None:
        """Create keys for dialogs without a composer, which drop text; `host` has the timer, else the dialog has it."""
        self.clock = clock
        """Monotonic seconds."""
        self.run = TypedRun[Key]()
        """The keys since the last pause."""
        self._host = host
        self._timer: Timer | None = None

    def time_of(self, event: Typed) -> float:
        """Return when a key was pressed, in seconds on `clock`: a busy app handles it later.

        Another clock than the monotonic one, as in a test, knows only the present.
        """
        return min(event.time, self.clock()) if self.clock is monotonic else self.clock()

    def composer_region(self) -> Region:
        """Return the place of the composer; a click on it leaves the question."""
        return Region()

    def type_text(self, typed: Sequence[Typed]) -> None:
        """Type keys and pastes into the composer, and recall the answers among them."""

    def take_back(self) -> bool:
        """Take back all answers that have not taken effect; return True if there was one."""
        self.run.end()
        return False

    def settle(self) -> None:
        """Let the answers take effect: a pause has passed, or another key ends the run."""
        self.run.end()

    def wait(self, screen: "QuestionScreen[Any]") -> None:
        """Settle after the pause, unless another key is pressed before."""
        if self._timer is not None:
            self._timer.stop()
        self._check_in(PAUSE_SECONDS, screen, self.run.last)

    def _check_in(self, seconds: float, screen: "QuestionScreen[Any]", key: Key | None) -> None:
        # Behind the keys that a busy app may have in its queue.
        check = partial(self._settle_behind, screen, key)
        self._timer = (self._host or screen).set_timer(seconds, partial(screen.app.call_later, check))

    def _settle_behind(self, screen: "QuestionScreen[Any]", key: Key | None) -> None:
        if key is None or self.run.last is not key:
            return
        if getattr(screen.app, "input_waits", False):
            # The rest of a text may be in it.
            self._check_in(INPUT_SECONDS, screen, key)
        else:
            (screen.settle if screen.is_current else self.settle)()


class AnswerRow(RowsView):
    """Rows of answers, redrawn whenever they begin or cease to count."""

    has_answers = True

    def __init__(
        self,
        build: Build,
        clock: Callable[[], float],
        changed: Callable[[], None] = lambda: None,
        *,
        at_once: bool = False,
        id: str | None = None,  # noqa: A002
    ) -> None:
        """Create the rows with a guard; `changed` is called whenever answers begin to wait, or a reason is shown."""
        super().__init__(build, id=id)
        self.guard = AnswerGuard(clock, self._check, at_once=at_once)
        """Decides if the question was seen long enough."""
        self.at_cursor = ""
        """Action of the answer that enter gives; empty until the user moves to one."""
        self._changed = changed
        self._timer: Timer | None = None

    def _check(self) -> None:
        self._changed()
        self._wait()

    def _wait(self) -> None:
        if self._timer is not None:
            self._timer.stop()
        self.redraw()
        # No key is pressed meanwhile: the answers become bright by themselves.
        if not self.guard.armed:
            self._timer = self.set_timer(SEEN_SECONDS, self._wait)


class QuestionScreen(ModalScreen[ScreenResultType]):
    """A screen that asks."""

    app = getters.app(any_app)
    # A focused widget would get keys before they are sorted.
    AUTO_FOCUS = ""
    WHERE: ClassVar[Where]
    """The screen's part of the table of commands, which has its keys."""
    SELECTS: ClassVar[frozenset[str]] = frozenset()
    """Actions that answer nothing; their keys act at once."""
    CLICKED: ClassVar[frozenset[str]] = frozenset()
    """Actions that a click on their label runs, too."""
    TYPES: ClassVar[bool] = True
    """True if text closes the dialog and goes to the composer."""

    def __init_subclass__(cls) -> None:
        if hasattr(cls, "WHERE"):
            cls.BINDINGS = [*bindings_for(cls.WHERE)]
        super().__init_subclass__()

    def __init__(self, row: AnswerRow, keys: TypedKeys) -> None:
        super().__init__()
        self.row = row
        """Its answers."""
        self.guard = guard = row.guard
        """Decides if the question was seen long enough."""
        self.keys = keys
        """Keys typed over this question and those before."""
        self.answered_by: Key | None = None
        """The key that gave the answer; None: none did, or it can no longer be recalled."""
        self._pointer = AnswerPointer(lambda: guard.asked_at, guard.clock)

    def on_mount(self) -> None:
        """Let answers count a moment after everything was drawn."""
        # The very click that gives the window the focus may be on an answer.
        self.watch(self.app, "app_focus", self._pointer.focused, init=False)
        self.call_after_refresh(self.guard.drawn)

    def ask_anew(self) -> None:
        """Ignore answers until what is shown now has been drawn and a quiet moment has passed."""
        self.guard.withdrawn()
        self.call_after_refresh(self.guard.drawn)

    # --- what a dialog defines ----------------------------------------------------------------------------------------

    def ends(self, action: str) -> bool:
        """Return True if an action ends the question."""
        return False

    def refusal(self, action: str) -> str:
        """Return why an action of the screen is impossible now; empty if it is possible."""
        return ""

    @property
    def text_field(self) -> Widget | None:
        """The field in which the user types at present; None if keys are answers."""
        return None

    def leave_to_type(self, *typed: Typed) -> None:
        """Close without an answer; what was typed goes to the composer."""
        if not self.TYPES:
            # The run stays a text until a pause: its last letter does not answer.
            self.keys.wait(self)
            self.guard.explain(ALONE)
            return
        everything = (*self.keys.run.end(), *typed)
        # An answer among the same keys may have closed it already.
        if self.is_current:
            self.dismiss(None)
        self.keys.type_text(everything)

    # --- keys ---------------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Let the answers take effect: a pause has passed, or another key ends the run."""
        held = self.keys.run.held
        self.keys.settle()
        action = self._action_of(held) if held is not None and self.is_current else None
        if action is None:
            return
        if reason := self._reason(action):
            # Something else is asked by now.
            self.guard.explain(reason)
        else:
            self._act(action)

    def _forward_event(self, event: Event) -> None:
        # The only place that sees each key at once and in order; a handler would see it after the dialog has closed.
        if event.is_forwarded or not isinstance(event, Key | Paste | MouseEvent):
            super()._forward_event(event)
        elif isinstance(event, MouseEvent):
            if not (isinstance(event, MouseDown) and self._leaves_for_composer(event)):
                action = self._clicked(event)
                super()._forward_event(event)
                if action is not None:
                    self.keys.settle()
                    self._act(action)
        elif not self._takes(event):
            super()._forward_event(event)

    def _takes(self, event: Key | Paste) -> bool:
        """Handle an event if it is text or an answer key; return False for any other."""
        # A reason is about the last key alone.
        self.guard.explain("")
        if (field := self.text_field) is not None:
            # The field lost the focus, but the user still types into it.
            self.set_focus(field)
            field._forward_event(event)
        elif isinstance(event, Paste):
            # Its first letter may be that of an answer, and the user has not read the rest.
            self.leave_to_type(event)
        elif event.is_printable:
            if self.keys.run.is_over(self.keys.time_of(event)):
                self.settle()
            self._press(event)
        elif event.key in TAKES_BACK:
            return self.keys.take_back()
        else:
            # A user does not page in the middle of a text: a letter before this key was an answer.
            hastens = event.key == "enter" and bool(self.keys.run.keys)
            self.settle()
            return hastens
        return True

    def _press(self, key: Key) -> None:
        action = self._action_of(key)
        verdict = self.sort(key, action)
        if verdict == "text":
            self.leave_to_type()
            return
        self.keys.wait(self)
        if verdict == "dead" and action is not None:
            self.guard.explain(self._reason(action))
        if verdict == "act" and action is not None:
            self.answered_by = key
            self._act(action)

    def sort(self, key: Key, action: str | None) -> Verdict:
        """Add a printable key, bound to `action` if that is not None, to the run; return what becomes of it."""
        letter: Letter = "leads"
        if action is None:
            letter = "none"
        elif not self.check_action(action, ()):
            letter = "dead"
        elif action in self.SELECTS:
            letter = "selects"
        elif self.refusal(action):
            letter = "dead"
        elif self.ends(action):
            letter = "ends"
        at = self.keys.time_of(key)
        return self.keys.run.press(at, key, key.key, letter, counts=self.guard.counts_at(at))

    def _reason(self, action: str) -> str:
        """Return why the key of an action does nothing now; empty if it does something."""
        if not self.check_action(action, ()):
            return self.refusal(action) or NOTHING
        if action in self.SELECTS:
            return ""
        return self.refusal(action) if self.guard.armed else EARLY

    def _action_of(self, key: Key) -> str | None:
        """Return the action of a printable key, an enabled one first; None if it has none on this screen."""
        # Two commands may have the same key, each at another step.
        names = [entry.action_name for entry in commands_for(self.WHERE) if key.key in entry.keys]
        return next((name for name in names if self.check_action(name, ())), names[0] if names else None)

    def _act(self, action: str) -> None:
        getattr(self, f"action_{action}")()

    # --- cursor -------------------------------------------------------------------------------------------------------

    @property
    def answers(self) -> Sequence[str]:
        """Actions of the answers on the screen, in their order."""
        return ()

    def action_next_answer(self) -> None:
        """Move the cursor to the next answer."""
        self._move_cursor(1)

    def action_previous_answer(self) -> None:
        """Move the cursor to the answer before."""
        self._move_cursor(-1)

    def action_choose_answer(self) -> None:
        """Give the answer at the cursor."""
        action = self.row.at_cursor
        if not action:
            self.guard.explain(f"{command(f'{self.WHERE}.next_answer').key_text} moves to an answer first.")
        elif reason := self._reason(action):
            self.guard.explain(reason)
        else:
            self._act(action)

    def _move_cursor(self, by: int) -> None:
        answers = self.answers
        # Nothing is preselected, so that enter alone never answers.
        start = answers.index(self.row.at_cursor) if self.row.at_cursor in answers else -1 if by > 0 else 0
        self.row.at_cursor = answers[(start + by) % len(answers)]
        self.guard.explain("")
        self.row.redraw()

    # --- clicks -------------------------------------------------------------------------------------------------------

    def _leaves_for_composer(self, event: MouseDown) -> bool:
        """Leave the question if the click is on the composer below it."""
        x, y = event.screen_x, event.screen_y
        # In a low window the dialog covers the composer.
        is_composer = (x, y) in self.keys.composer_region() and self.get_widget_at(x, y)[0] is self
        if is_composer and self.text_field is None:
            self.leave_to_type()
            return True
        return False

    def _clicked(self, event: MouseEvent) -> str | None:
        """Follow the pointer; return the action of the answer that it has clicked."""
        x, y = event.screen_offset
        row, entry = self._answer_at(x, y)
        action = entry.action_name if entry is not None and entry.action_name in self.CLICKED else None
        if isinstance(event, MouseMove):
            if (row, entry) != self._answer_at(x - event.delta_x, y - event.delta_y):
                self._pointer.came()
            if row is not None:
                row.styles.pointer = "default" if action is None else "pointer"
        elif isinstance(event, MouseDown) and event.button == 1:
            reason = self._click_reason(action) if row is not None else ""
            self._pointer.press(action if not reason else None)
            if entry is not None and action is None:
                text = f"Press {entry.key_text}: a click does not give this answer."
                self.notify(text, severity="warning", markup=False)
            elif reason:
                self.guard.explain(reason)
        elif isinstance(event, MouseUp) and self._pointer.release(action):
            # The question may have changed while the button was down.
            return action if not self._click_reason(action) else None
        return None

    def _click_reason(self, action: str | None) -> str:
        """Return why a click does nothing now; empty if it acts, or is on no answer of a question that was seen."""
        if action is None:
            return "" if self.guard.armed else EARLY
        in_text = bool(self.keys.run.keys) and not self.keys.run.is_over(self.keys.clock())
        if in_text or not self._pointer.counts:
            return EARLY
        return "" if self.text_field is not None else self._reason(action)

    def _answer_at(self, x: int, y: int) -> tuple[RowsView | None, Command | None]:
        """Return the answers at a place of the screen, and the command of the one whose label is there."""
        try:
            row, region = self.get_widget_at(x, y)
        except NoWidget:
            return None, None
        if not isinstance(row, RowsView) or not row.has_answers:
            return None, None
        return row, command_at(self, self.WHERE, row.line_at(y - region.y + row.scroll_offset.y), x - region.x)
