"""A service of sessions for tests of the app."""

from textual.screen import ModalScreen

from tui_agent.protocol.errors import SessionError
from tui_agent.ui.app.session_switch import OpenedSession, SessionTarget
from tui_agent.ui.bridge.agent_bridge import AgentBridge
from tui_agent.ui.chat.first_page_data import FirstPage


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

    async def prepare(self, target: SessionTarget, /) -> OpenedSession:
        if self.refusal:
            raise SessionError(self.refusal)
        self.prepared.append(target)
        return OpenedSession(AgentBridge(), None, "model", "")

    def start(self, opened: OpenedSession, /) -> None:
        self.started.append(opened)
