"""Inputs of the user as typed: skills and command files that they name (`/NAME`), and files to attach (`@PATH`)."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tui_agent.agent import AgentLoop
from tui_agent.protocol.messages import TextBlock, UserMessage
from tui_agent.protocol.prompt_command import PromptCommand
from tui_agent.protocol.reports import AgentRunReport

from .sessions.prompt_files import PromptFiles

if TYPE_CHECKING:
    # Imported at run time only by a session with such files.
    from .typed_definitions import TypedDefinitions


class SessionPrompts:
    """Passes inputs on to the agent, with skills and command files expanded, and the files of prompts attached."""

    def __init__(self, agent: AgentLoop, definitions: "TypedDefinitions | None", files: PromptFiles) -> None:
        """
        Args:
            agent: the agent.
            definitions: skills and command files; None: there are none.
            files: reads the files to attach.
        """
        self._agent = agent
        self._definitions = definitions
        self._files = files

    @property
    def commands(self) -> Sequence[PromptCommand]:
        """The `/` commands of skills and command files."""
        return () if self._definitions is None else self._definitions.commands

    async def run(self, text: str, *, typed: bool) -> AgentRunReport | None:
        """Run an input to its end, with the files that it names; None if a command of a command file was cancelled.

        Args:
            text: the input.
            typed: True if the user typed it: a mention in other text must not send what the agent may not read.

        Raises:
            ConfigurationError: a rule denies reading a file.
            ToolError: a file cannot be sent.
        """
        files = await self._files.attached(text, typed=typed)
        return await self.run_message(
            text, lambda prompt: UserMessage(content=(TextBlock(text=prompt), *files)) if files else prompt
        )

    async def run_message(self, text: str, message: Callable[[str], str | UserMessage]) -> AgentRunReport | None:
        """Run an input to its end; `message` returns the message for the prompt that it stands for."""
        if self._definitions is not None and self._definitions.knows(text):
            return await self._definitions.run(text, message)
        return await self._agent.run(message(text))

    def steer(self, text: str) -> UserMessage:
        """Queue a steering message for the current run."""
        return self._agent.steer(self.expanded(text))

    def follow_up(self, text: str) -> UserMessage:
        """Queue a message for a turn of its own."""
        return self._agent.follow_up(self.expanded(text))

    def needs_own_run(self, text: str) -> bool:
        """True if a text runs a command file that cannot be a message to a run."""
        return self._definitions is not None and self._definitions.needs_own_run(text)

    def expanded(self, text: str) -> str:
        """Return the message for a text that needs no run of its own.

        Raises:
            ConfigurationError: it needs a run of its own.
        """
        return text if self._definitions is None else self._definitions.expanded(text)
