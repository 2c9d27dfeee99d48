"""The engine behind the screen: put together once the first screen is painted, and served until the screen is gone."""

import asyncio
import gc
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from tui_agent.agent import AgentLoop
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.cancellation import PROGRAM_QUIT
from tui_agent.ui.bridge.agent_bridge import AgentBridge

from .build_engine import open_engine
from .launch_options import LaunchOptions
from .live_settings import with_live_settings
from .rule_impact import RuleImpact

if TYPE_CHECKING:
    # Loaded where something is recorded only.
    from tui_agent.recording import RecordingSink

RUN_END_TIMEOUT = 4.0
"""Seconds that a run gets to end when the app is left in the middle of it."""


async def serve(
    options: LaunchOptions,
    bridge: AgentBridge,
    show_theme: Callable[[str], None],
    screen_gone: Callable[[], Awaitable[object]],
    sink: "RecordingSink | None" = None,
) -> None:
    """Opens the bridge to an engine and keeps it until the screen is gone; what runs then is ended and kept.

    Raises:
        ConfigurationError: settings, rules or credentials are missing or wrong; nothing was started.
        SessionError: the session cannot be opened.
    """
    async with open_engine(options, watched=True, resume_pending_calls=True, sink=sink) as engine:
        grants = RuleImpact(engine.loop, engine.policy, engine.locations, options.cwd)
        bridge.open(
            engine.loop,
            engine.bus,
            engine.past,
            rewinding=engine.rewinder,
            grants=grants,
            left_running=engine.left_running,
        )
        gc.freeze()  # What is loaded by now stays; looking through it again and again would cost every call and frame.
        await with_live_settings(engine, options, screen_gone, show_theme)
        await _run_over(engine.loop, engine.bus)


async def _run_over(loop: AgentLoop, bus: EventBus) -> None:
    """Ends the run that the app left behind and waits for its end, so that the journal tells how it ended."""
    if not loop.running:
        return
    with bus.subscribe() as heard:
        loop.abort(PROGRAM_QUIT)
        try:
            async with asyncio.timeout(RUN_END_TIMEOUT):
                async for _ in heard.batches():
                    if not loop.running:
                        return
        except TimeoutError:
            logging.getLogger(__name__).warning("a run did not end within %g s", RUN_END_TIMEOUT)
