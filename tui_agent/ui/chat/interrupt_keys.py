"""Letters pressed over the interrupt menu: an answer, or text for the composer."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Literal, TypeAlias

from textual.events import Key, Paste

from tui_agent.ui.base.commands import commands_for
from tui_agent.ui.composer.prompt_area import PromptArea
from tui_agent.ui.dialogs.answer_rules import PAUSE_SECONDS, TypedRun

Interrupt: TypeAlias = Literal["cancel", "stop", "now"]
"""Cancel the run, end it after this step, or cancel it and send the queued messages."""
_CHOICES: Mapping[str, Interrupt] = {"interrupt.cancel": "cancel", "interrupt.stop": "stop", "interrupt.now": "now"}


class InterruptKeys:
    """Holds an answer letter until a pause has passed; if another letter follows before, both are text."""

    def __init__(self, entry: PromptArea, clock: Callable[[], float], act: Callable[[Interrupt], None]) -> None:
        self._entry = entry
        self._run = TypedRun[Key]()
        self._clock = clock
        self._act = act

    def take(self, event: Key | Paste) -> bool:
        """Hold an answer letter and return True; before any other event, decide about the letter that is held."""
        composer = self._entry.composer
        is_open = self._entry.menu.is_open and self._entry.screen.focused is composer
        # On a busy machine the timer may be late.
        if self._run.is_over(self._clock()):
            self._settle()
        if isinstance(event, Key) and event.is_printable and is_open:
            choice = self._choice_of(event)
            if not self._run.keys and choice is None:
                self._entry.close_menu()
                return False
            letter = "leads" if choice is not None else "none"
            if self._run.press(self._clock(), event, event.key, letter, counts=True) == "hold":
                self._entry.set_timer(PAUSE_SECONDS, partial(self._settle_behind_keys, event))
            else:
                self._type()
            return True
        if isinstance(event, Key) and event.key == "escape" and is_open:
            # The second `esc` cancels the run, and a letter that is held takes no effect any more.
            self._run.end()
        elif isinstance(event, Key) and not event.is_printable and is_open and event.key != "backspace":
            self._settle()
        else:
            self._type()
        return False

    def _settle_behind_keys(self, key: Key) -> None:
        """Settle once every key that was pressed so far has arrived."""
        # Another letter may be held by then.
        self._entry.app.call_later(lambda: self._settle() if self._run.held is key else None)

    def _settle(self) -> None:
        """Let the held letter take effect; it is text if the menu has closed meanwhile."""
        key = self._run.held
        choice = self._choice_of(key) if key is not None and self._entry.menu.is_open else None
        if choice is None:
            self._type()
        else:
            self._run.end()
            self._act(choice)

    def _choice_of(self, key: Key) -> Interrupt | None:
        """Return the choice of a key; None if the menu does not offer one."""
        names = (entry.id for entry in commands_for("interrupt") if key.key in entry.keys)
        choice: Interrupt | None = next((_CHOICES[name] for name in names), None)
        # With an empty queue the menu does not show this answer.
        return None if choice == "now" and not self._entry.menu.waiting else choice

    def _type(self) -> None:
        if held := self._run.end():
            self._entry.type_text(held)
