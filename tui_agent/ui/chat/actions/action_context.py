"""Parts of the chat that command actions use, and the ways in which they report."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from textual.content import Content
from textual.screen import Screen

from tui_agent.protocol.errors import TuiAgentError
from tui_agent.ui.base.app_type import AnyScreen
from tui_agent.ui.bridge.agent_bridge import AgentBridge
from tui_agent.ui.chat.chat_options import ChatOptions
from tui_agent.ui.composer.composer import Composer
from tui_agent.ui.dialogs.text_page import TextPage

if TYPE_CHECKING:
    # The first screen must not wait until the engine is loaded.
    from tui_agent.ui.dialogs.chooser_page import ChooserPage, Item
    from tui_agent.workbench.workbench import Workbench

Handlers: TypeAlias = Mapping[str, Callable[[str], object]]
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

    def say(self, text: str, *, wrong: bool = False) -> None:
        """Show a short message for a few seconds; `wrong` marks a refusal."""
        self.screen.notify(text, severity="warning" if wrong else "information", markup=False)


class ActionGroup:
    """Actions of one subject. One that raises a `TuiAgentError` shows it as a refusal."""

    handlers: Handlers
    """Actions by id of their command."""

    def __init__(self, context: ActionContext) -> None:
        self._context = context
        self._say = context.say
        self._screen, self._bridge = context.screen, context.bridge
        self._options, self._composer = context.options, context.composer
        self._clock = context.options.surroundings.clock

    @property
    def _bench(self) -> "Workbench":
        """The open session.

        Raises:
            TuiAgentError: there is none.
        """
        return self._bridge.open_bench

    def _push(self, page: Screen[Any], chosen: Callable[[Any], None] | None = None) -> None:
        """Open a page; `chosen` gets what it returns."""
        self._screen.app.push_screen(page, chosen)

    def _tell(self, refusal: str, done: str) -> None:
        """Say that something is done, unless it was refused."""
        if refusal:
            raise TuiAgentError(refusal)
        self._say(done)

    def _list(
        self,
        title: str,
        items: "Callable[[], Sequence[Item]]",
        state: str,
        chosen: Callable[[str], None],
        **more: Any,
    ) -> "ChooserPage":
        """Open a page of choices; `chosen` gets the id of the one that the user takes."""
        # Pages are loaded on demand.
        from tui_agent.ui.dialogs.chooser_page import ChooserPage

        page = ChooserPage(title, items, state, **more)
        self._push(page, lambda name: None if name is None else chosen(name))
        return page

    def _list_facts(self, title: str, items: "Callable[[], Sequence[Item]]", state: str, **more: Any) -> None:
        """Open a page of facts, each of which opens in full."""
        self._list(title, items, state, lambda _: None, opens=True, **more)

    def _show_page(self, title: str, text_at: Callable[[int], Content], *, follows: bool = False) -> None:
        """Open a page of text, which `text_at` returns for a width in columns; with `follows` it may change."""
        self._push(TextPage(title, text_at, follows=follows))

    def _start(self, name: str, work: Coroutine[object, object, None]) -> None:
        """Start work beside the screen, and show what it refuses."""
        # On the screen, not the page that asks: the work continues when that is closed.
        self._screen.run_worker(self._finish(work), name=name, group=name, exit_on_error=False)

    async def _finish(self, work: Coroutine[object, object, None]) -> None:
        try:
            await work
        except TuiAgentError as error:
            self._say(str(error), wrong=True)
