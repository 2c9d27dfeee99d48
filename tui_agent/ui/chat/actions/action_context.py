"""Parts of the chat that command actions use, and the ways in which they report."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from textual.content import Content

from tui_agent.protocol.errors import TuiAgentError
from tui_agent.ui.base.app_type import AnyScreen
from tui_agent.ui.bridge.agent_bridge import AgentBridge
from tui_agent.ui.chat.chat_options import ChatOptions
from tui_agent.ui.composer.composer import Composer
from tui_agent.ui.dialogs.text_page import TextPage

if TYPE_CHECKING:
    # The first screen must not wait until the engine is loaded.
    from tui_agent.workbench.workbench import Workbench

Handlers: TypeAlias = Mapping[str, Callable[[str], bool | None]]
"""Actions by id of their command; each takes the argument, and returns False if that is missing or unknown."""


@dataclass(frozen=True, slots=True)
class ActionContext:
    """Parts of the chat that actions use."""

    screen: AnyScreen
    """Shows pages and messages, and runs work beside the screen."""
    bridge: AgentBridge
    """The connection to the agent."""
    options: ChatOptions
    """Theme names and clock."""
    composer: Composer
    """Receives messages that an action returns to the user."""
    show_pending_agent: Callable[[], object]
    """Called after a change that has to wait until the agent is loaded."""

    def bench(self) -> "Workbench | None":
        """Return the open session; without one, say why and return None."""
        if self.bridge.bench is None:
            self.say(self.bridge.no_bench, wrong=True)
        return self.bridge.bench

    def say(self, text: str, *, wrong: bool = False) -> None:
        """Show a short message for a few seconds; `wrong` marks a refusal."""
        self.screen.notify(text, severity="warning" if wrong else "information", markup=False)

    def show_page(self, title: str, text_at: Callable[[int], Content], *, follows: bool = False) -> None:
        """Open a page of text, which `text_at` returns for a width in columns; with `follows` it may change."""
        self.screen.app.push_screen(TextPage(title, text_at, follows=follows))

    def start(self, name: str, work: Coroutine[object, object, None]) -> None:
        """Start work beside the screen, and show what it refuses."""
        self.screen.run_worker(self._finish(work), name=name, group=name, exit_on_error=False)

    async def _finish(self, work: Coroutine[object, object, None]) -> None:
        try:
            await work
        except TuiAgentError as error:
            self.say(str(error), wrong=True)
