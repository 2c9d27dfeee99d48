"""The conversation of one unit in the ordinary chat. Typing steers the unit; escape leads back to all units."""

from tui_agent.ui.chat.chat_options import ChatOptions
from tui_agent.ui.chat.chat_screen import ChatScreen
from tui_agent.ui.chat.screen_state import ScreenState

from .unit_bridge import UnitBridge
from .unit_questions import UnitQuestions


class UnitChat(ChatScreen):
    """The chat of a unit. Its dialogs ask the questions of all units."""

    def __init__(self, bridge: UnitBridge, options: ChatOptions, questions: UnitQuestions) -> None:
        """Create the chat of one unit.

        Args:
            bridge: the connection to the unit.
            options: the settings of the screen.
            questions: the open questions of all units.
        """
        super().__init__(bridge, options)
        self.unit = bridge
        """The connection to the unit."""
        self._questions = questions
        self.approvals.show(questions)
        self.bars.line.back = "all units"
        self.entry.queue.is_fixed = True
        self.entry.idle_text = self.entry.composer.placeholder = "This unit takes no messages: it does not run"

    def show_state(self, state: ScreenState) -> None:
        """Show another state; the questions stay those of all units."""
        super().show_state(state)
        self.approvals.show(self._questions)

    def action_interrupt(self) -> None:
        """Uncover the conversation, else return to the composer, else to all units."""
        if self.body.drawer_open:
            self.body.close_drawer()
        elif self.focused is not self.entry.composer:
            self.focus_composer()
        else:
            self.dismiss(None)
