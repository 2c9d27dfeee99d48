"""The prompts of the project for the screen. A recording has the prompts of its own session only."""

from collections.abc import Callable

from .exchange import Exchange, Query
from .services import PromptMemory

HIDDEN_PROMPT = "[prompt of another session]"
"""Replaces the prompts of other sessions in a recording."""


class PromptQueries:
    """Reads and keeps prompts through an exchange."""

    def __init__(self, exchange: Exchange, memory: PromptMemory | None, session_id: Callable[[], str]) -> None:
        """
        Args:
            exchange: records the answers, or returns recorded ones.
            memory: keeps the prompts; None: they are not kept, or this is a replay.
            session_id: returns the id of the current session.
        """
        self.exchange = exchange
        self.memory = memory
        """Keeps the prompts; None: they are not kept."""
        self._session_id = session_id

    async def add(self, text: str) -> None:
        """Add a prompt that was sent in the current session."""
        if self.memory is not None:
            await self.memory.add(text, self._session_id())

    async def find(self, text: str) -> tuple[str, ...]:
        """Return the prompts that contain a text, the newest first."""
        found = await self.memory.find(text) if self.memory is not None else ()
        recorded = self._note_found(text, self._without_others(found))
        return found if self.exchange.is_live else recorded

    async def all(self) -> tuple[str, ...]:
        """Return all prompts, the oldest first."""
        prompts = await self.memory.all() if self.memory is not None else ()
        recorded = self._note_all(self._without_others(prompts))
        return prompts if self.exchange.is_live else recorded

    async def earlier_draft(self) -> str:
        """Return the draft that was not sent because the program did not end properly; empty if there is none."""
        draft = await self.memory.earlier_draft() if self.memory is not None else ""
        recorded = self._note_draft(HIDDEN_PROMPT if draft else "")
        return draft if self.exchange.is_live else recorded

    def _without_others(self, prompts: tuple[str, ...]) -> tuple[str, ...]:
        own = self.memory.texts_of(self._session_id()) if self.memory is not None else frozenset[str]()
        return tuple(prompt if prompt in own else HIDDEN_PROMPT for prompt in prompts)

    @Query("find_prompts", (), about=("text",), lasting=True)
    def _note_found(self, text: str, prompts: tuple[str, ...]) -> tuple[str, ...]:
        return prompts

    @Query("all_prompts", (), lasting=True)
    def _note_all(self, prompts: tuple[str, ...]) -> tuple[str, ...]:
        return prompts

    @Query("earlier_draft", "")
    def _note_draft(self, draft: str) -> str:
        return draft
