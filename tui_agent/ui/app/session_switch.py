"""Switching to another session: the questions before it, and the new chat screen."""

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from textual.screen import Screen

from tui_agent.protocol.background import run_service
from tui_agent.protocol.facts.history_tail import HistoryTail
from tui_agent.ui.bridge.agent_bridge import NOT_READY, AgentBridge
from tui_agent.ui.chat.app_requests import SessionRequested
from tui_agent.ui.chat.chat_options import ChatOptions, FirstPageService
from tui_agent.ui.chat.screen_state import ScreenState
from tui_agent.ui.composer.prompt_area import PromptArea
from tui_agent.ui.dialogs.confirm_screen import ConfirmScreen

from .base_app import BaseApp

ONE_SESSION = "Sessions cannot be switched here. Quit, and start tui-agent --resume."
MOST_MESSAGES = 9_999
"""Highest number for `/fork`."""


@dataclass(frozen=True, slots=True)
class SessionTarget:
    """A session to switch to."""

    session_id: str | None
    """None for a new one."""
    demo: bool = False
    """True for a new session with the offline model."""


@dataclass(frozen=True, slots=True)
class OpenedSession:
    """A session whose engine is about to be built."""

    bridge: AgentBridge
    """Queues what the user types until the engine is there."""
    glimpse: HistoryTail | None
    """Its last events; None for a new session."""
    model: str
    """Model name until an event reports one."""
    label: str
    """Text beside the model's name."""


class SessionService(FirstPageService, Protocol):
    """Finds sessions and builds their engines. Its coroutines raise `TuiAgentError` if they fail."""

    def list_screen(self, current: str, words: str, /) -> Screen[str]:
        """Return the screen that lists the sessions. It returns the id of the chosen one.

        Args:
            current: id of the session on the screen.
            words: first text of the search.
        """
        ...

    async def find(self, words: str, /) -> str | None:
        """Return the only session with this id or these words in its title; None if there are several."""
        ...

    async def prepare(self, target: SessionTarget, /) -> OpenedSession:
        """Check that a session can be opened, and return it."""
        ...

    def start(self, opened: OpenedSession, /) -> None:
        """End the present engine, and build that of a prepared session, in the background."""
        ...


class Chat(Protocol):
    """The chat screen, as far as switching needs it."""

    options: ChatOptions
    bridge: AgentBridge
    state: ScreenState
    entry: PromptArea

    @property
    def is_active(self) -> bool:
        """True if no other screen covers it."""
        ...


ChatT = TypeVar("ChatT", bound=Chat)


class SessionSwitcher(Generic[ChatT]):
    """Shows another session in place of the present one."""

    def __init__(
        self,
        app: BaseApp[None],
        service: SessionService | None,
        chat: Callable[[], ChatT],
        new_chat: Callable[[AgentBridge, ChatOptions], ChatT],
        replace_chat: Callable[[ChatT], Awaitable[None]],
    ) -> None:
        """Create it.

        Args:
            app: shows the questions.
            service: None where sessions cannot be switched: in an embedded app.
            chat: returns the present chat.
            new_chat: returns a chat for another session.
            replace_chat: shows another chat in its place.
        """
        self._app = app
        self._service = service
        self._chat = chat
        self._new_chat = new_chat
        self._replace_chat = replace_chat

    def receive(self, request: SessionRequested) -> None:
        """Do what the user asks for, or say why that is not possible."""
        bridge = self._chat().bridge
        if self._service is None:
            self._say(ONE_SESSION)
        elif bridge.status.pending:
            self._say(NOT_READY)
        elif request.kind == "resume" and request.argument:
            self._work(self._find(self._service, request.argument))
        elif request.kind == "resume":
            self._list(self._service, "")
        elif request.kind == "fork":
            self._work(self._fork(request.argument))
        elif request.kind == "demo" and self._chat().options.label:
            self._say("This is the offline model already. Say: give me the tour")
        elif request.kind == "clear" and not self._chat().state.begun:
            self._say("The conversation is empty already.")
        else:
            self._leave_for(SessionTarget(None, demo=request.kind == "demo"))

    # --- which session ------------------------------------------------------------------------------------------------

    def _list(self, service: SessionService, words: str) -> None:
        self._app.push_screen(service.list_screen(self._chat().bridge.session_id, words), self._chosen)

    def _chosen(self, session_id: str | None) -> None:
        if session_id is None:
            return
        if session_id == self._chat().bridge.session_id:
            self._say("You are in this session.")
        else:
            self._leave_for(SessionTarget(session_id))

    async def _find(self, service: SessionService, words: str) -> None:
        found = await service.find(words)
        if found is None:
            self._list(service, words)
        else:
            self._chosen(found)

    async def _fork(self, argument: str) -> None:
        bridge = self._chat().bridge
        if argument and not (argument.isascii() and argument.isdecimal() and 0 < int(argument) <= MOST_MESSAGES):
            self._say("/fork copies the whole session; /fork 2 leaves out your last two messages.")
        elif bridge.status.running:
            self._say("The agent is working. /fork copies the session when it is done.")
        elif (bench := bridge.bench) is None or bench.rewind is None:
            self._say("This session is not saved, so it cannot be copied.")
        else:
            at_seq, left_out = None, ""
            if argument:
                moments = [moment for moment in await bench.rewind.points() if moment.is_turn]
                if int(argument) > len(moments):
                    self._say(f"This session has only {len(moments)} messages of yours. Nothing was copied.")
                    return
                moment = moments[int(argument) - 1]
                at_seq, left_out = moment.seq, moment.text
            copy = await bench.commands.fork(at_seq)
            note = f"You are in a copy, session {copy}. /resume {bridge.session_id} returns to the original."
            await self._switch(SessionTarget(copy), note, left_out)

    # --- leaving ------------------------------------------------------------------------------------------------------

    def _leave_for(self, target: SessionTarget) -> None:
        """Switch, after a question if that ends or loses something."""
        bridge, chat = self._chat().bridge, self._chat()
        lost: list[str] = []
        if bridge.status.running:
            lost.append("The agent is working here. Its run is cancelled; results so far and queued messages are kept.")
        if (not bridge.is_saved or chat.state.status.unsaved) and chat.state.begun:
            lost.append("This session is not saved: its conversation is lost.")
        if not lost:
            self._work(self._switch(target))
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self._work(self._switch(target))

        clock = chat.options.surroundings.clock
        question = ConfirmScreen("Leave this session?", " ".join(lost), "leave it", clock=clock, no="stay")
        self._app.push_screen(question, answered)

    async def _switch(self, target: SessionTarget, note: str = "", draft: str = "") -> None:
        if self._service is None:
            return
        chat = self._chat()
        left, is_saved = chat.bridge.session_id, chat.bridge.is_saved and chat.state.begun
        opened = await self._service.prepare(target)
        if not note and is_saved and target.session_id is None:
            note = f"New session. /resume {left} returns to the one before, which is saved."
        elif not note and is_saved:
            note = f"/resume {left} returns to the session before, which is saved."
        self.show(opened, note, draft)

    # --- the new screen -----------------------------------------------------------------------------------------------

    def show(self, opened: OpenedSession, note: str = "", draft: str = "") -> None:
        """Show a prepared session in place of the present one; the draft stays.

        Args:
            opened: the session.
            note: message above the composer until the user types.
            draft: text for the composer, in front of the draft.
        """
        old = self._chat()
        options = replace(old.options, glimpse=opened.glimpse, prompt=None, model=opened.model, label=opened.label)
        if old.bridge.status.mode != opened.bridge.status.mode:
            opened.bridge.set_mode(old.bridge.status.mode)
        chat = self._new_chat(opened.bridge, options)
        # Keys that the user typed before are on their way to the old composer.
        old.entry.after_typed_keys(lambda: self._app.call_later(self._replace, chat, opened, note, draft))

    async def _replace(self, chat: ChatT, opened: OpenedSession, note: str, draft: str) -> None:
        old = self._chat()
        while not old.is_active:
            await self._app.pop_screen()
        old.bridge.detach()
        if old.entry.composer.searching:
            old.entry.composer.action_close_suggestions()
        await self._replace_chat(chat)
        if text := "\n".join(part for part in (draft, old.entry.composer.draft) if part.strip()):
            chat.entry.composer.put_back(text)
        if note:
            chat.entry.refusal.show(note, chat.entry.composer.text, is_offer=True)
        if self._service is not None:
            self._service.start(opened)

    # --- reporting ----------------------------------------------------------------------------------------------------

    def _work(self, work: Coroutine[object, object, None]) -> None:
        self._app.run_worker(self._guarded(work), group="session", exclusive=True, exit_on_error=False)

    async def _guarded(self, work: Awaitable[None]) -> None:
        await run_service("switching sessions", work, self._say)

    def _say(self, text: str) -> None:
        self._app.notify(text, severity="warning")
