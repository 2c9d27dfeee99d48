"""A service of sessions for tests of the app."""

from typing import Any, NoReturn

from textual.screen import ModalScreen

from tui_agent.protocol.errors import ConfigurationError, SessionError
from tui_agent.protocol.facts.screen_facts import FirstPage
from tui_agent.ui.bridge.agent_bridge import AgentBridge
from tui_agent.ui.chat.chat_options import ChatOptions, OpenedSession, SessionTarget
from tui_agent.workbench.sessions.session_launch import NextSession


class FakeList(ModalScreen[str | None]):
    """Stands where the list of sessions would be."""

    def __init__(self, current: str, words: str) -> None:
        super().__init__()
        self.asked = (current, words)


class FakeService:
    """Knows one other session, `two`."""

    def __init__(self) -> None:
        self.prepared: list[SessionTarget] = []
        self.started: list[OpenedSession] = []
        self.refusal = ""
        self.replay_faults: list[Exception] = []

    async def first_page(self) -> FirstPage:
        return FirstPage()

    async def keep_theme(self, name: str, /) -> str:
        return name

    def list_screen(self, current: str, words: str, /) -> FakeList:
        return FakeList(current, words)

    async def find(self, words: str, /) -> str | None:
        if words == "nothing":
            raise SessionError("No session of this folder has “nothing”.")
        return {"two": "two", "one": "one"}.get(words)

    async def replay(self, name: str, options: ChatOptions, /) -> NoReturn:
        raise self.replay_faults[int(name)]

    async def prepare(self, target: SessionTarget, /) -> OpenedSession:
        if self.refusal:
            raise SessionError(self.refusal)
        self.prepared.append(target)
        options: Any = None
        return OpenedSession(AgentBridge(), NextSession(options, None, "model", ""))

    def start(self, opened: OpenedSession, /) -> None:
        self.started.append(opened)


class PageService(FakeService):
    """Has the content of the page."""

    def __init__(self, page: FirstPage, kept: list[str] | None = None, refusal: str = "") -> None:
        super().__init__()
        self.page, self.kept, self.refusal = page, [] if kept is None else kept, refusal

    async def first_page(self) -> FirstPage:
        return self.page

    async def keep_theme(self, name: str, /) -> str:
        if self.refusal:
            raise ConfigurationError(self.refusal)
        self.kept.append(name)
        return "config.toml"
