"""Makes the agent of a session from options and settings, and applies settings that change while it works."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

from tui_agent.agent import AgentLoop, AgentLoopConfig, Budget
from tui_agent.agent.loop_config import DEFAULT_SYSTEM
from tui_agent.agent.output_format import SchemaFormat
from tui_agent.context import ContextLayer, ConversationHistory
from tui_agent.execution import ApprovalGate, Auto, Batched, ExecutionOptions, Parallel, Sequential, Strategy
from tui_agent.permissions import PermissionPolicy
from tui_agent.protocol.tool import Tool
from tui_agent.settings import Settings
from tui_agent.tools import BackgroundJobs

from .configuration.launch_options import LaunchOptions
from .launch import Launch
from .opened_session import OpenedSession
from .session_hooks import hooks_of
from .sessions.session_facts import session_facts
from .sessions.side_requests import SideRequests

HEADLESS_MAX_STEPS = 16
"""Default step limit of a run without a screen, where no user watches it."""
APPENDED_LAYER = "user.append"
APPENDED_PRIORITY = 20
"""Position of this layer: after the system prompt, before everything that changes."""


async def open_agent(
    launch: Launch,
    session: OpenedSession,
    policy: PermissionPolicy,
    gate: ApprovalGate,
    tools: Sequence[Tool],
    layers: Sequence[ContextLayer],
    side: SideRequests,
    jobs: BackgroundJobs,
) -> AgentLoop:
    """Return the agent with the conversation of the session.

    Args:
        layers: instructions, and the list of skills.
        side: gets the agent as its `loop`.
        jobs: the background commands; from now on their notices go to the agent that started them.
    """
    options, settings, stored, only = launch.options, launch.settings, session.stored, launch.is_offered
    tools = [*tools, *launch.plugins.tools]
    pending = stored.resumable_conversation if session.resumes_calls else None
    messages = stored.messages if pending is None else pending.messages
    flush = session.journal.flush_or_warn if session.journal is not None else None
    spent = session.usage
    # A long conversation takes a while, and keys come first.
    history = await asyncio.to_thread(ConversationHistory, messages, id=stored.id)
    config = AgentLoopConfig(
        provider=launch.provider,
        tools=tools,
        system=options.system or DEFAULT_SYSTEM,
        only_tools=only,
        output=None if options.extras.answer_schema is None else SchemaFormat(options.extras.answer_schema),
        context=await session_facts(options.cwd, policy, [one for one in tools if only is None or only(one.name)]),
        layers=(*_appended_layers(settings), *layers),
        workspace=options.cwd,
        bus=session.bus,
        policy=policy,
        gate=gate,
        hooks=hooks_of(launch),
        options=_execution_options(settings, session.archive),
        history=history,
        open_calls=() if pending is None else pending.calls,
        compactions=stored.compactions,
        waiting=stored.waiting,
        max_steps=_max_steps(options, settings),
        summary_provider=side.small if side.has_small else None,
        fallback_provider=side.fallback if side.has_fallback else None,
        budget=Budget(**dict(settings.budget)),
        max_tokens=settings.max_tokens,
        session_id=stored.id,
        before_effects=_effect_recorder(jobs.settled, flush),
        before_requests=session.journal.flush_outcomes if session.journal is not None else None,
        effects_published=jobs.settled,
        usage=spent.total,
        cost=spent.cost,
    )
    side.loop = loop = AgentLoop(config)
    jobs.notify = partial(_notify_agent, loop)
    if stored.resumed and (lost := stored.lost_jobs):
        loop.notify(f"These background commands ended with the program that ran them: {', '.join(lost)}.")
    return loop


def _effect_recorder(
    settled: Callable[[], Awaitable[None]], flush: Callable[[], Awaitable[None]] | None
) -> Callable[[], Awaitable[None]]:
    """Return the function that runs before effects; it lives as long as the agent, so it must not hold the past."""

    async def record_effects() -> None:
        # The look at the files after a command must not see what the next call does.
        await settled()
        if flush is not None:
            await flush()

    return record_effects


def apply_settings(loop: AgentLoop, options: LaunchOptions, before: Settings, after: Settings) -> None:
    """Apply those settings that may change while the agent works; the others wait for the next start.

    Limits and prompt take effect with the next request, the execution of calls with the next response.
    """
    loop.config.max_steps = _max_steps(options, after)
    loop.config.budget = Budget(**dict(after.budget))
    loop.config.max_tokens = after.max_tokens
    if (after.strategy, after.tool_timeout) != (before.strategy, before.tool_timeout):
        loop.set_options(_execution_options(after, loop.config.options.archive_dir))
    if after.append_system != before.append_system:
        loop.history.registry.remove(APPENDED_LAYER)
        for layer in _appended_layers(after):
            loop.history.registry.set(layer)


def _notify_agent(loop: AgentLoop, name: str, text: str) -> None:
    """Leave a notice for the model of an agent; if this sub-agent has ended, for the main one's."""
    agents = [loop]
    while agents and agents[0].origin.agent_id != name:
        agents = [*agents[1:], *agents[0].children.values()]
    (agents[0] if agents else loop).notify(text)


def _max_steps(options: LaunchOptions, settings: Settings) -> int | None:
    return settings.max_steps or (HEADLESS_MAX_STEPS if options.print_mode else None)


def _execution_options(settings: Settings, archive: Path | None) -> ExecutionOptions:
    return ExecutionOptions(
        strategy=_parse_strategy(settings.strategy),
        stream_tools="allowed",
        tool_timeout=settings.tool_timeout,
        archive_dir=archive,
    )


def _parse_strategy(name: str) -> Strategy:
    """Return the strategy of this name, which the settings have checked."""
    match name.partition(":"):
        case ("sequential", _, _):
            return Sequential()
        case ("parallel", _, _):
            return Parallel()
        case ("batched", _, size):
            return Batched(int(size))
        case _:
            return Auto()


def _appended_layers(settings: Settings) -> tuple[ContextLayer, ...]:
    """Return the layer of `append_system`, if set."""
    if not settings.append_system:
        return ()
    layer = ContextLayer(
        name=APPENDED_LAYER,
        content=settings.append_system,
        priority=APPENDED_PRIORITY,
        tags=("system",),
        owner="user",
    )
    return (layer,)
