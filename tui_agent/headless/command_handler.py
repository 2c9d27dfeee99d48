"""Takes the orders that come in line by line and passes them on to the agent."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import assert_never

from tui_agent.protocol.errors import ConfigurationError, TuiAgentError

from .agent_port import Agent
from .input_commands import (
    ApprovalCommand,
    FollowUpCommand,
    InputCommand,
    InterruptCommand,
    ModeCommand,
    StopCommand,
    UserCommand,
    parse_command,
)
from .pipes import InputLine, LineReader


class PromptQueue:
    """Prompts that wait for their run, first in, first out."""

    def __init__(self) -> None:
        self._prompts: deque[str] = deque()
        self._closed = False
        self._changed = asyncio.Event()
        self._begun = asyncio.Event()

    def put(self, prompt: str) -> None:
        """Asks for a run."""
        self._prompts.append(prompt)
        self._begun.clear()
        self._changed.set()

    def close(self, *, discard: bool = False) -> None:
        """No more prompts come; with `discard` those that wait are forgotten."""
        self._closed = True
        if discard:
            self._prompts.clear()
        self._changed.set()

    async def next(self) -> str | None:
        """The next prompt; None once no more come."""
        while not self._prompts and not self._closed:
            self._changed.clear()
            await self._changed.wait()
        return self._prompts.popleft() if self._prompts else None

    def mark_started(self) -> None:
        """The run of the prompt that was taken last is on."""
        self._begun.set()

    async def begun(self) -> None:
        """Returns once the run of the prompt that was put last is on, or is over already."""
        await self._begun.wait()


class CommandHandler:
    """Obeys orders, one after another, until the input ends."""

    def __init__(self, agent: Agent, prompts: PromptQueue, complain: Callable[[str, int], None]) -> None:
        """Prepares.

        Args:
            agent: who is told.
            prompts: where new runs are asked for.
            complain: told in a sentence what was wrong with an order, and the number of its line, from 1.
        """
        self._agent = agent
        self._prompts = prompts
        self._complain = complain

    async def serve(self, lines: LineReader) -> None:
        """Obeys every line; a bad one is named and skipped."""
        number = 0
        while (line := await lines.next()) is not None:
            number += 1
            if line.strip():
                await self._handle_line(line, number)

    async def _handle_line(self, line: InputLine, number: int) -> None:
        try:
            if line.too_long:
                raise ConfigurationError(f"it is longer than {len(line)} bytes")
            await self._handle_command(parse_command(line.removeprefix(b"\xef\xbb\xbf")))
        except TuiAgentError as error:
            self._complain(f"Line {number} of the input was skipped: {error}", number)

    async def _handle_command(self, order: InputCommand) -> None:
        match order:
            case UserCommand(text=text):
                if self._agent.running:
                    self._agent.steer(text)
                else:
                    await self._start(text)
            case FollowUpCommand(text=text):
                if self._agent.running:
                    self._agent.follow_up(text)
                else:
                    await self._start(text)
            case ApprovalCommand(request_id=request_id):
                if not self._agent.resolve_approval(request_id, order.answer):
                    raise ConfigurationError(f"no question with the id {request_id!r} waits for an answer")
            case InterruptCommand():
                if self._agent.running:
                    self._agent.abort("interrupted by the client")
            case StopCommand():
                if self._agent.running:
                    self._agent.stop()
            case ModeCommand(mode=mode):
                self._agent.set_mode(mode, "user")
            case _:
                assert_never(order)

    async def _start(self, text: str) -> None:
        """Asks for a run and waits for its beginning, so that the next order finds it running."""
        self._prompts.put(text)
        await self._prompts.begun()
