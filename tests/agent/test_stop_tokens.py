"""A token ends one await and leaves everything else as it was."""

import asyncio

import pytest

from tui_agent.agent.stop_tokens import unless_cancelled
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import OperationCancelledError


async def test_cancelling_the_task_wins_over_the_token() -> None:
    token = CancellationToken()

    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(_outcome(token, asyncio.Event().wait()))
        await asyncio.sleep(0)
        token.cancel("both")
        waiting.cancel()

    assert waiting.cancelled()


async def test_a_timeout_of_the_work_itself_is_not_mistaken_for_the_token() -> None:
    async def work() -> None:
        raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        await unless_cancelled(CancellationToken(), work())


async def _outcome(token: CancellationToken, work: object) -> str:
    try:
        await unless_cancelled(token, work)
    except OperationCancelledError as error:
        return f"cancelled: {error}"
    return "done"
