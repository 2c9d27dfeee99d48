"""A session behind the screen whose subjects a test chooses; all others are empty."""

from collections.abc import Sequence
from typing import Any

from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.facts.page_facts import RulesInForce


class Empty:
    """Any subject of a session in which nothing happened."""

    commands = ()

    def list(self) -> tuple[()]:
        return ()

    def tools(self) -> tuple[()]:
        return ()

    def in_force(self) -> RulesInForce:
        return RulesInForce()

    def are_named_in(self, text: str, /) -> bool:
        return False

    async def open_page(self, address: str, /) -> str:
        return address

    async def find(self, text: str, /) -> tuple[()]:
        return ()

    async def head(self, path: str, line: int = 1, /) -> str:
        return ""

    async def attachment(self, path: str, /, *, typed: bool) -> None:
        return None

    async def work_tree(self) -> None:
        return None

    def facts(self) -> tuple[()]:
        return ()

    def knows(self, text: str, /) -> bool:
        return False

    needs_own_run = asks_what_to_review = knows

    def expanded(self, text: str, /) -> str:
        return text

    async def add(self, text: str, session_id: str, /) -> None:
        return None


class FakeBench:
    """Has the subjects of `Workbench` that the screen uses."""

    grants: Any = None
    leftovers: Any = None
    rewind: Any = None

    def __init__(
        self, agent: Any, events: EventBus | None = None, past: Sequence[Envelope] = (), **subjects: Any
    ) -> None:
        self.agent = agent
        self.events = events if events is not None else EventBus()
        self.past = past
        empty = Empty()
        self.rules: Any = empty
        self.definitions: Any = empty
        self.jobs: Any = empty
        self.servers: Any = empty
        self.hooks: Any = empty
        self.models: Any = empty
        self.commands: Any = empty
        self.prompt_history: Any = empty
        self.files: Any = empty
        self.symbols: Any = empty
        self.attachments: Any = empty
        self.__dict__.update(subjects)

    @property
    def slash_commands(self) -> tuple[Any, ...]:
        return (*self.definitions.commands, *self.servers.commands, *self.models.commands)


def bench_of(agent: Any, events: EventBus | None = None, past: Sequence[Envelope] = (), **subjects: Any) -> Any:
    """Return a session with an agent, whose other subjects are empty but for those of the test."""
    return FakeBench(agent, events, past, **subjects)
