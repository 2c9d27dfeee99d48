"""Puts an agent together from options, settings and a session: the one place that knows all parts."""

import asyncio
import os
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent import __version__
from tui_agent.agent import AgentLoop, AgentLoopConfig, AgentTool, Budget
from tui_agent.agent.system_prompt import DEFAULT_SYSTEM
from tui_agent.context import ContextLayer
from tui_agent.execution import (
    ApprovalGate,
    Auto,
    Batched,
    ExecutionOptions,
    Parallel,
    Sequential,
    Strategy,
)
from tui_agent.permissions import PermissionPolicy
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import Noticed, UsageUpdated, Warned
from tui_agent.protocol.messages import Usage
from tui_agent.protocol.provider import ModelProvider
from tui_agent.providers import DEMO_MODEL, AnthropicProvider
from tui_agent.rewind import Rewinder
from tui_agent.session import JournalWriter, SessionStore, StoredSession
from tui_agent.session.store import CONTENTS_NAME
from tui_agent.settings import LoadedSettings, Locations, RuleSetting, Settings
from tui_agent.tools.content_store import ContentStore

from .controlling_terminal import say_error
from .credentials import Credentials
from .effective_settings import prepare_settings
from .hooks_command import command_hooks
from .launch_options import LaunchOptions
from .leftover_commands import LeftoverCommands
from .loop_watchdog import log_loop_stalls
from .orphan_reaper import adopt_orphans
from .project_trust import folder_trust
from .rules_and_tools import built_in_tools, parse_rules, policy_of, sandbox_of
from .session_choice import find_session_to_resume
from .session_facts import session_facts

if TYPE_CHECKING:
    # Loaded where something is recorded only.
    from tui_agent.recording import RecordingSink

HEADLESS_MAX_STEPS = 16
"""Steps of a run without a screen, where nothing else is set (C35)."""
ONLY_AT_START = (
    "base_url",
    "hooks",
    "output_disk_limit",
    "sandbox",
    "sandbox_network",
    "permissions.rule_resolution",
    "ui.reduced_motion",
)
"""Settings that are not changed while the agent works."""
APPENDED_LAYER = "user.append"
APPENDED_PRIORITY = 20
"""Behind the system prompt, before everything that changes."""


@dataclass(frozen=True, slots=True)
class Engine:
    """An agent that is ready to run, and what a front end needs beside it."""

    loop: AgentLoop
    bus: EventBus
    policy: PermissionPolicy
    left_running: LeftoverCommands | None
    """Commands that still run because tui-agent was killed; None for a session that is new or not saved."""
    rewinder: Rewinder | None
    """Goes back to earlier moments; None where nothing is kept."""
    gate: ApprovalGate
    keep: Callable[[], Awaitable[None]] | None
    """Returns once everything told so far is in the journal; None where nothing is kept."""
    past: Iterator[Envelope]
    """What was told before. To be taken once: a long past takes a lot of memory."""
    loaded: LoadedSettings
    locations: Locations
    ask: Callable[[Settings], ModelProvider]
    """Makes the provider for other settings; it is closed with the engine.

    Raises:
        ConfigurationError: there is no key.
    """


@asynccontextmanager
async def open_engine(
    options: LaunchOptions, *, watched: bool, resume_pending_calls: bool = False, sink: "RecordingSink | None" = None
) -> AsyncGenerator[Engine]:
    """An engine for as long as the context is open; leaving it writes the journal and closes connections.

    Args:
        options: what the command line asked for.
        watched: whether somebody sees questions and can answer them; else what would be asked is denied.
        resume_pending_calls: True if the first run resumes the calls that waited for an approval at the end.
        sink: notes what the model sends.

    Raises:
        ConfigurationError: settings, rules or credentials are missing or wrong; nothing was started.
        SessionOpenError: another program has the session open.
        SessionError: the session cannot be opened.
    """
    locations, loaded = prepare_settings(options)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(log_loop_stalls())
        await stack.enter_async_context(adopt_orphans())
        provider, loaded = await _provider(options, loaded, stack, sink)
        rules = parse_rules(loaded.rules)
        session, archive = await asyncio.to_thread(_open_session, options, locations, stack)
        bus = EventBus(session.origin(), first_seq=session.next_seq)
        recorder = None
        if session.path is not None:
            expected = session.size if session.resumed else None
            recorder = JournalWriter(bus, session.path, expected_size=expected)
            stack.callback(_report_unsaved_session, recorder)
            await stack.enter_async_context(recorder)
        # What nobody keeps is not taken up: the next program would do it once more.
        resume_pending_calls = resume_pending_calls and session.path is not None
        left = session.resumable_conversation if resume_pending_calls else None
        keep = recorder.flush_or_warn if recorder is not None else None
        session.announce(bus, __version__, resume_pending_calls=resume_pending_calls)
        left_running = _left_running(options, session, bus)
        if left_running is not None:
            await left_running.warn()
        if session.resumed and session.path is None:
            bus.publish(Noticed(code="not_kept", text="Nothing that is said from here on is kept."))
        folder = await asyncio.to_thread(folder_trust, options.cwd, locations, given=options.trust)
        unseen = await asyncio.to_thread(_ui_setting_warnings, loaded, locations) if options.print_mode else ()
        for words in (*loaded.unknown_variables, *loaded.ignored, *folder.left_out, *unseen):
            bus.publish(Warned(code="left_out", text=words))
        spent = _spent(session)
        sandbox = sandbox_of(loaded.settings, locations, archive)
        policy = policy_of(
            loaded, rules, options.cwd, locations, archive, sandbox=sandbox, is_trusted=folder.is_trusted
        )
        _restore_grants(policy, session.grants(options.cwd), bus)
        gate = ApprovalGate(interactive=watched)
        contents = ContentStore(archive / CONTENTS_NAME) if session.path is not None else None
        private = (locations.config_dir, locations.state_dir)
        tools = built_in_tools(
            options.cwd,
            archive,
            sandbox,
            contents,
            private,
            output_limit=loaded.settings.output_disk_limit,
            warn=lambda text: bus.publish(Warned(code="output_disk_limit", text=text)),
        )
        loop = AgentLoop(
            AgentLoopConfig(
                provider=provider,
                tools=tools,
                system=options.system or DEFAULT_SYSTEM,
                context=await session_facts(options.cwd, policy, tools),
                layers=(*_appended(loaded.settings), *folder.instructions),
                workspace=options.cwd,
                bus=bus,
                policy=policy,
                gate=gate,
                hooks=command_hooks(loaded.settings.hooks, options.cwd),
                options=_execution(loaded.settings, archive),
                history=session.messages if left is None else left.messages,
                open_calls=() if left is None else left.calls,
                compactions=session.compactions,
                waiting=session.waiting,
                max_steps=_max_steps(options, loaded.settings),
                budget=Budget(**dict(loaded.settings.budget)),
                max_tokens=loaded.settings.max_tokens,
                session_id=session.id,
                before_effects=keep,
                before_requests=keep,
                usage=spent.total,
                cost=spent.cost,
            )
        )
        loop.add_tool(AgentTool(loop))
        past = iter(session.envelopes)
        rewinder = _rewinder(loop, bus, recorder, session.path, contents, options.cwd)
        del session, left
        yield Engine(
            loop=loop,
            bus=bus,
            policy=policy,
            left_running=left_running,
            rewinder=rewinder,
            gate=gate,
            keep=recorder.flush if recorder is not None else None,
            past=past,
            loaded=loaded,
            locations=locations,
            ask=lambda settings: _recorded_provider(_model(settings, stack), sink),
        )


def apply_settings(engine: Engine, options: LaunchOptions, before: Settings, after: Settings) -> None:
    """Puts those settings to use that may change while the agent works; the rest waits for the next start.

    Limits, model and prompt hold from the next request on, the way calls run from the next answer on.

    Raises:
        ConfigurationError: there is no key for another model; everything else is in use.
    """
    loop = engine.loop
    loop.config.max_steps = _max_steps(options, after)
    loop.config.budget = Budget(**dict(after.budget))
    loop.config.max_tokens = after.max_tokens
    if (after.strategy, after.tool_timeout) != (before.strategy, before.tool_timeout):
        loop.set_options(_execution(after, loop.config.options.archive_dir))
    if after.append_system != before.append_system:
        loop.history.registry.remove(APPENDED_LAYER)
        for layer in _appended(after):
            loop.history.registry.set(layer)
    if after.model != before.model and not options.demo:
        loop.provider = engine.ask(after)


def strategy_of(name: str) -> Strategy:
    """The strategy a setting names; the settings have checked the name."""
    match name.partition(":"):
        case ("sequential", _, _):
            return Sequential()
        case ("parallel", _, _):
            return Parallel()
        case ("batched", _, size):
            return Batched(int(size))
        case _:
            return Auto()


def _ui_setting_warnings(loaded: LoadedSettings, locations: Locations) -> tuple[str, ...]:
    """Return the warnings of the screen about settings that only it uses. Blocks."""
    if "ui.theme" not in loaded.origins:
        return ()
    # The import takes a tenth of a second; without a theme in the settings it is not needed.
    from .theme_validation import wrong_theme_setting

    words = wrong_theme_setting(loaded, locations)
    return () if words is None else (words,)


async def _provider(
    options: LaunchOptions, loaded: LoadedSettings, stack: AsyncExitStack, sink: "RecordingSink | None"
) -> tuple[ModelProvider, LoadedSettings]:
    """The model, and the settings with the rules the offline model's tour brings."""
    if not options.demo:
        return _recorded_provider(_model(loaded.settings, stack), sink), loaded
    from tui_agent.providers.demo import DemoServer

    server = await stack.enter_async_context(DemoServer())
    provider = AnthropicProvider(DEMO_MODEL, auth_token=server.token, base_url=server.base_url)
    stack.push_async_callback(provider.aclose)
    tour = tuple(RuleSetting(verdict, text, "--demo", "options") for verdict, text in server.rules)
    return _recorded_provider(provider, sink), replace(loaded, rules=(*loaded.rules, *tour))


def _recorded_provider(provider: ModelProvider, sink: "RecordingSink | None") -> ModelProvider:
    """The provider; what it sends goes on sink where there is one."""
    if sink is None:
        return provider
    from tui_agent.providers.recorded_streams import RecordingProvider

    return RecordingProvider(provider, lambda note: sink.note("stream", note))


def _model(settings: Settings, stack: AsyncExitStack) -> AnthropicProvider:
    """The provider these settings ask for, closed with the stack."""
    found = Credentials.needed(os.environ, settings.base_url)
    provider = AnthropicProvider(
        settings.model, api_key=found.api_key, auth_token=found.auth_token, base_url=found.base_url
    )
    stack.push_async_callback(provider.aclose)
    return provider


def _open_session(options: LaunchOptions, locations: Locations, stack: AsyncExitStack) -> tuple[StoredSession, Path]:
    """The session to begin or go on with, and where its long output goes; blocks."""
    store = SessionStore(locations.sessions_dir)
    past = _past_session(options, store)
    if not options.keep_session:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="tui-agent-"))
        session = StoredSession.ephemeral(options.cwd) if past is None else replace(past, path=None)
        files = Path(directory)
    else:
        session = past or store.create(options.cwd, options.session_id)
        files = store.files_path(session.id)
    session.fold()
    return session, files


def _past_session(options: LaunchOptions, store: SessionStore) -> StoredSession | None:
    """The session to go on with; None for a new one."""
    if not options.continue_last and options.resume is None:
        return None
    return store.load(find_session_to_resume(options, store)[0])


def _report_unsaved_session(recorder: JournalWriter) -> None:
    """The last word on a session whose end could not be kept; nobody listens to events any more."""
    if recorder.lost:
        words = f"tui-agent: the end of this session is not kept, {recorder.lost} events of it are lost"
        say_error(f"{words}: {recorder.path} could not be written until the end.")


def _restore_grants(policy: PermissionPolicy, rules: Sequence[str], bus: EventBus) -> None:
    """Takes the rules that a person gave for this session up again, and says so."""
    taken: list[str] = []
    for rule in rules:
        try:
            policy.grant(rule, "session")
        except ConfigurationError:
            continue  # The call is asked about again.
        taken += rule.splitlines()
    if taken:
        bus.publish(Noticed(code="grants_kept", text=f"Allowed for this session before: {', '.join(taken)}."))


def _left_running(options: LaunchOptions, session: StoredSession, bus: EventBus) -> LeftoverCommands | None:
    """Return the commands that earlier runs of the session left; None if another program may have the session open."""
    if not session.resumed or session.path is None:
        return None
    offer = f"`tui-agent sessions end-processes {session.id}`" if options.print_mode else "/jobs kill"
    return LeftoverCommands(session.lost_processes, bus, offer)


def _rewinder(
    loop: AgentLoop,
    bus: EventBus,
    recorder: JournalWriter | None,
    journal: Path | None,
    contents: ContentStore | None,
    root: Path,
) -> Rewinder | None:
    """What goes back to earlier moments; without a journal nobody knows them."""
    if recorder is None or contents is None or journal is None:
        return None
    return Rewinder(loop, bus, journal, recorder.flush, contents, root.resolve())


def _spent(session: StoredSession) -> UsageUpdated:
    """What the session has used so far."""
    told = (envelope.event for envelope in reversed(session.envelopes))
    nothing = UsageUpdated(delta=Usage(), total=Usage())
    return next((event for event in told if isinstance(event, UsageUpdated)), nothing)


def _max_steps(options: LaunchOptions, settings: Settings) -> int | None:
    return settings.max_steps or (HEADLESS_MAX_STEPS if options.print_mode else None)


def _execution(settings: Settings, archive: Path | None) -> ExecutionOptions:
    return ExecutionOptions(
        strategy=strategy_of(settings.strategy), tool_timeout=settings.tool_timeout, archive_dir=archive
    )


def _appended(settings: Settings) -> tuple[ContextLayer, ...]:
    """What stands behind the system prompt, as a layer."""
    if not settings.append_system:
        return ()
    return (
        ContextLayer(
            name=APPENDED_LAYER,
            content=settings.append_system,
            priority=APPENDED_PRIORITY,
            tags=("system",),
            owner="user",
        ),
    )
