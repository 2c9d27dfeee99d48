"""An open session without the services beside it: changed settings apply only when a test says so."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

from tui_agent.workbench.configuration.launch_options import LaunchOptions
from tui_agent.workbench.workbench import Workbench


@asynccontextmanager
async def open_quietly(options: LaunchOptions, *, watched: bool = True) -> AsyncGenerator[Workbench]:
    """Open a session, and close it with the context."""
    async with AsyncExitStack() as stack:
        yield await Workbench.build(options, stack, watched=watched)
