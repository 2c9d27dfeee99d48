"""Builds an agent from options, settings and a session, with everything that a front end needs beside it."""

import asyncio
import importlib
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import click

from tui_agent import __version__
from tui_agent.agent import AgentLoop, AgentLoopConfig, AgentTool, Budget
from tui_agent.agent.output_format import SchemaFormat
from tui_agent.agent.system_prompt import DEFAULT_SYSTEM
from tui_agent.context import ContextLayer, ConversationHistory
from tui_agent.execution import (
    ApprovalGate,
    Auto,
    Batched,
    ExecutionOptions,
    Parallel,
    Sequential,
    Strategy,
)
from tui_agent.git.protected_tree import ProtectedTree
from tui_agent.permissions import PermissionPolicy, Rule
from tui_agent.permissions.commands.safe_commands import safe_commands
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.errors import SessionWriteError
from tui_agent.protocol.events import Noticed, SessionRenamed, SessionSaveFailed, Warned
from tui_agent.protocol.installation import install_command
from tui_agent.protocol.lazy_events import drop_superseded
from tui_agent.protocol.provider import ModelProvider
from tui_agent.protocol.repository_files import branch_of
from tui_agent.protocol.tool import Tool
from tui_agent.protocol.tool_thread import run_shielded_in_thread
from tui_agent.protocol.visible_text import escaped
from tui_agent.rewind import Rewinder
from tui_agent.session import JournalWriter, StoredSession
from tui_agent.session.store import CONTENTS_NAME
from tui_agent.session.stored_session import lost_jobs
from tui_agent.settings import LoadedSettings, Locations, Settings
from tui_agent.tools import BackgroundJobs, PresentPlanTool
from tui_agent.tools.content_store import ContentStore
from tui_agent.trial.trials import Trials

from .build_provider import ProviderBuilder
from .built_in_tools import built_in_tools, offered_tools, own_directories
from .configuration.definition_files import own_definitions
from .configuration.effective_settings import prepare_settings
from .configuration.found_hooks import own_hooks
from .configuration.launch_options import LaunchOptions
from .configuration.named_secrets import withhold_named_secrets
from .configuration.permission_rules import added_folders, build_policy, kept_folders, parse_rules
from .configuration.project_trust import SERVERS_FILE, FolderTrust, folder_trust, without_files
from .hook_commands import command_hooks
from .leftover_commands import LeftoverCommands, adopt_orphans
from .plugins.plugin_loader import LoadedPlugins, load_plugins, plugin_news
from .review_command import PromptDefinitions
from .session_trials import TrialRules, session_trials
from .sessions.model_choice import ModelChoice
from .sessions.recordings import record_journal
from .sessions.resume import open_session, resolve_continue, restore_session_rules, usage_of
from .sessions.session_facts import session_facts
from .sessions.side_requests import SideRequests

if TYPE_CHECKING:
    # Imported at run time only by a program that has servers, hook files, skills, command files or sub-agents.
    from tui_agent.definitions.records import Definitions
    from tui_agent.lsp.language_servers import LanguageServers
    from tui_agent.mcp.server_pool import ServerPool

    from .file_hooks import FileHooks
    from .live_session import LiveSession
    from .tool_servers import ServerAnswers

ScreenProblems: TypeAlias = Callable[[LaunchOptions, LoadedSettings], Sequence[str]]
"""Returns warnings about settings of the screen that cannot be applied. Blocks."""

HEADLESS_MAX_STEPS = 16
"""Default step limit of a run without a screen, where no user watches it."""
SAFE_START = (
    "Safe start: settings, hooks, tool servers, skills, commands, sub-agents, instructions and plugins are not used, "
    "neither yours nor those of this folder. Rules that deny or ask still count."
)
APPENDED_LAYER = "user.append"
APPENDED_PRIORITY = 20
"""Position of this layer: after the system prompt, before everything that changes."""


@dataclass(frozen=True, slots=True)
class Engine:
    """An agent that is ready to run, and what a front end needs beside it."""

    loop: AgentLoop
    bus: EventBus
    policy: PermissionPolicy
    leftover_commands: LeftoverCommands | None
    """Commands that are still running since tui-agent was killed; None for a session that is new or not saved."""
    rewinder: Rewinder | None
    """Restores earlier moments; None without a journal."""
    gate: ApprovalGate
    flush_journal: Callable[[], Awaitable[None]] | None
    """Returns once every event so far is in the journal; None without one."""
    past_events: Iterator[Envelope]
    """Earlier events of the session without superseded ones, parsed as they are read."""
    loaded: LoadedSettings
    locations: Locations
    jobs: BackgroundJobs
    """Commands that run in the background."""
    choice: ModelChoice
    """Model and effort that the user chose."""
    definitions: PromptDefinitions
    """Skills, command files and `/review`, which the user can type."""
    servers: "ServerPool | None"
    """The tool servers; None: none is configured."""
    file_hooks: "FileHooks | None"
    """Hooks of hook files; None: there are none."""
    plugins: LoadedPlugins
    """Plugins of installed packages."""
    make_provider: Callable[[Settings], ModelProvider]
    """Makes the provider for other settings; it is closed with the engine.

    Raises:
        ConfigurationError: no key is set.
    """
    side: SideRequests
    """Asks models beside the conversation."""
    live: "LiveSession | None"
    """Shows the session to the user's other programs; None without a journal or a user."""


@dataclass(frozen=True, slots=True)
class _Start:
    """Inputs of the engine's parts. Deleted once the parts are built, because a long session takes much memory."""

    options: LaunchOptions
    locations: Locations
    loaded: LoadedSettings
    session: StoredSession
    archive: Path
    """Directory for long tool output."""
    contents: ContentStore | None
    """Contents of files before their changes; None without a journal."""
    bus: EventBus
    journal: JournalWriter | None
    trials: Trials
    trial_rules: TrialRules
    protected: ProtectedTree
    jobs: BackgroundJobs
    plugins: LoadedPlugins
    resumes_calls: bool
    """True if the first run resumes the calls that waited for an approval."""
    unsaved: str
    """Reason why the disk refuses the session; empty if it does not."""


@asynccontextmanager
async def open_engine(
    options: LaunchOptions,
    *,
    watched: bool,
    resume_pending_calls: bool = False,
    screen_problems: ScreenProblems | None = None,
) -> AsyncGenerator[Engine]:
    """Build an engine; when the context closes, write the journal and close connections.

    Args:
        options: the command line.
        watched: True if a user can answer approval requests; otherwise they are denied.
        resume_pending_calls: True if the first run resumes the calls that waited for an approval at the end.
        screen_problems: finds mistakes in the settings of the screen, which only a front end knows.

    Raises:
        ConfigurationError: settings, rules or credentials are missing or wrong; nothing was started.
        SessionOpenError: another program has the session open.
        SessionError: the session cannot be opened.
    """
    async with AsyncExitStack() as stack:
        yield await _build(stack, options, screen_problems, watched=watched, resume=resume_pending_calls)


async def _build(
    stack: AsyncExitStack, options: LaunchOptions, problems: ScreenProblems | None, *, watched: bool, resume: bool
) -> Engine:
    """Build an engine from top to bottom; what it opens is closed with `stack`."""
    locations, loaded = prepare_settings(options)
    withhold_named_secrets(loaded.settings)
    await stack.enter_async_context(adopt_orphans())
    # Folders, model and rules come first: if one of them is wrong, no file of a session is touched.
    # In a thread: a folder may be on a file system that does not answer, and the screen shares the event loop.
    given = options.folders
    options = replace(options, folders=await asyncio.to_thread(added_folders, options, loaded.settings))
    plugins = await asyncio.to_thread(load_plugins, loaded.settings, options.cwd)
    providers = ProviderBuilder(stack, plugins)
    provider, options, loaded = await providers.build_first(options, loaded)
    rules = parse_rules(loaded.rules)
    only = offered_tools(options.extras.tools)
    start = await _open_session(options, locations, loaded, plugins, stack, resume=resume)
    await _announce(start, provider, stack)
    leftover = await _warn_of_leftovers(start)
    folder = await _publish_notices(start, problems)
    policy = await _policy(start, rules, folder, given)
    definitions, layers = await asyncio.to_thread(_definitions, folder, locations, own=not options.extras.is_safe)
    gate, live = _gate(start, watched=watched)
    side = SideRequests(loaded.settings, None if options.demo else providers.build)
    languages = await _open_language_servers(start, stack)
    config = await _loop_config(start, provider, policy, gate, layers, side, languages, only)
    servers, answers = await _open_servers(start, folder, policy, config, stack)
    loop = AgentLoop(config)
    if answers is not None:
        answers.loop = loop
    file_hooks = await _open_file_hooks(start, folder, loop, stack, watched=watched)
    _check_edits(languages, loop, start.contents)
    return Engine(
        loop=loop,
        bus=start.bus,
        policy=policy,
        leftover_commands=leftover,
        rewinder=await _rewinder(start, loop),
        gate=gate,
        flush_journal=start.journal.flush if start.journal is not None else None,
        past_events=drop_superseded(start.session.envelopes),
        loaded=loaded,
        locations=locations,
        jobs=start.jobs,
        choice=_choice(start, loop, providers),
        definitions=_connect(start, loop, definitions, providers, side),
        servers=servers,
        file_hooks=file_hooks,
        plugins=plugins,
        make_provider=providers.build,
        side=side,
        live=live,
    )


# --- session ----------------------------------------------------------------------------------------------------------


async def _open_session(
    options: LaunchOptions,
    locations: Locations,
    loaded: LoadedSettings,
    plugins: LoadedPlugins,
    stack: AsyncExitStack,
    *,
    resume: bool,
) -> _Start:
    """Open the session and its journal, before anything is published."""
    options = await asyncio.to_thread(resolve_continue, options, locations)
    unsaved = ""
    try:
        session, files = await asyncio.to_thread(open_session, options, locations, save=options.keep_session)
        bus, journal = await _open_journal(session, stack)
    except SessionWriteError as error:
        unsaved = f"{error} This session runs without being saved."
        session, files = await asyncio.to_thread(open_session, options, locations, save=False)
        bus, journal = await _open_journal(session, stack)
    if options.extras.record is not None:
        await record_journal(options.extras.record, session, bus, stack)
    archive = files or await asyncio.to_thread(_temporary_archive, locations, stack)
    contents = ContentStore(archive / CONTENTS_NAME) if journal is not None else None
    protected = ProtectedTree(options.cwd.resolve(), own_directories(locations))
    rules = TrialRules(options.cwd)
    async with asyncio.TaskGroup() as group:
        # Read here, beside the test of the trial: the first decision would block the event loop for it.
        group.create_task(asyncio.to_thread(safe_commands))
        trials = await asyncio.to_thread(
            session_trials, options.cwd, loaded.settings, locations, session, archive, rules
        )
    stack.push_async_callback(run_shielded_in_thread, trials.close)
    jobs = BackgroundJobs(bus.publish, first_number=session.background_jobs + 1)
    await stack.enter_async_context(jobs)
    return _Start(
        options,
        locations,
        loaded,
        session,
        archive,
        contents,
        bus,
        journal,
        trials,
        rules,
        protected,
        jobs,
        plugins,
        # A journal must record that calls were resumed, or the next program would resume them once more.
        resume and journal is not None,
        unsaved,
    )


async def _open_journal(session: StoredSession, stack: AsyncExitStack) -> tuple[EventBus, JournalWriter | None]:
    """Return the session's bus, and the writer of its journal; None for a session that is not saved.

    Raises:
        SessionOpenError: another program has the session open.
        SessionWriteError: the journal cannot be written.
        SessionError: it changed since it was read.
    """
    bus = EventBus(session.origin(), first_seq=session.next_seq)
    if session.path is None:
        return bus, None
    journal = JournalWriter(bus, session.path, expected_size=session.size if session.resumed else None)
    stack.callback(_report_unsaved_events, journal)
    return bus, await stack.enter_async_context(journal)


def _temporary_archive(locations: Locations, stack: AsyncExitStack) -> Path:
    """Return a directory for long output that `stack` removes. On a full disk it is one that does not exist: commands
    run, and their results say why long output was not saved."""
    try:
        return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tui-agent-")))
    except OSError:
        return locations.state_dir / "unsaved"


def _warn_of_unknown_price(start: _Start, provider: ModelProvider) -> None:
    model = provider.model
    if start.loaded.settings.budget.cost_usd is not None and model.output_price is None:
        text = f"The price of {model.name} is unknown, so the cost limit has no effect."
        start.bus.publish(Warned(code="left_out", text=text))


async def _export_spans(start: _Start, stack: AsyncExitStack) -> None:
    """Send spans to the collector of the settings, if there is one."""
    endpoint = start.loaded.settings.otel.endpoint
    if endpoint is None:
        return
    try:
        exporter = await asyncio.to_thread(importlib.import_module, "tui_agent.tracing.span_exporter")
    except ImportError:
        text = f"No spans are sent to `otel.endpoint`: install the exporter with: {install_command('otel')}"
        start.bus.publish(Warned(code="left_out", text=text))
        return
    await stack.enter_async_context(exporter.SpanStream.to_collector(start.bus, endpoint, __version__))


async def _announce(start: _Start, provider: ModelProvider, stack: AsyncExitStack) -> None:
    """Publish the first events of the session, and remove the layers that it reports as discarded."""
    branch = await asyncio.to_thread(branch_of, start.options.cwd)
    resumes = start.resumes_calls
    if abandoned := start.session.abandoned_layers(resume_pending_calls=resumes):
        await asyncio.to_thread(_discard_layers, start.trials, abandoned)
    start.session.announce(start.bus, __version__, branch=branch, resume_pending_calls=resumes)
    if start.options.extras.title:
        start.bus.publish(SessionRenamed(id=start.session.id, title=start.options.extras.title))
    if start.unsaved:
        start.bus.publish(SessionSaveFailed(id=start.session.id, error=start.unsaved))
    await _export_spans(start, stack)
    _warn_of_unknown_price(start, provider)


def _discard_layers(trials: Trials, calls: Sequence[str]) -> None:
    """Remove the layers of calls whose question no one answers any more. Blocks."""
    for call_id in calls:
        if (waiting := trials.waiting(call_id)) is not None:
            waiting[0].discard()


def _notify_agent(loop: AgentLoop, name: str, text: str) -> None:
    """Leave a notice for the model of an agent; if this sub-agent has ended, for the main one's."""
    agents = [loop]
    while agents and agents[0].origin.agent_id != name:
        agents = [*agents[1:], *agents[0].children.values()]
    (agents[0] if agents else loop).notify(text)


def _definitions(
    folder: FolderTrust, locations: Locations, *, own: bool
) -> "tuple[Definitions | None, tuple[ContextLayer, ...]]":
    """Return the skills, commands and sub-agents in force, and the instructions with the list of skills. Blocks."""
    found = (*(own_definitions(locations) if own else ()), *folder.definitions)
    if not found:
        return None, folder.instructions
    from .typed_definitions import catalogue_layers, definitions_in_force

    definitions = definitions_in_force(found)
    return definitions, (*folder.instructions, *catalogue_layers(definitions))


def _connect(
    start: _Start,
    loop: AgentLoop,
    definitions: "Definitions | None",
    providers: ProviderBuilder,
    side: SideRequests,
) -> PromptDefinitions:
    """Give the agent its tools for sub-agents and skills, and the reports of background commands, also of lost ones.

    Returns:
        The definitions as the user types them.
    """
    typed, profiles = None, ()
    side.loop = loop
    if definitions is not None:
        from .typed_definitions import NamedModels, TypedDefinitions, give_definitions

        models = NamedModels(loop, start.loaded.settings, side)
        typed, profiles = (
            TypedDefinitions(loop, definitions, models),
            give_definitions(loop, definitions, models),
        )
    loop.add_tool(AgentTool(loop, profiles))
    loop.add_tool(PresentPlanTool(lambda: loop.policy.mode, partial(loop.set_mode, by="user")))
    bus = start.bus
    providers.on_notice = lambda text: bus.publish(Noticed(code="field_dropped", text=text))
    providers.on_warning = lambda text: bus.publish(Warned(code="endpoint_setting", text=text))
    start.jobs.notify = partial(_notify_agent, loop)
    if start.session.resumed and (lost := lost_jobs(start.session.envelopes)):
        loop.notify(f"These background commands ended with the program that ran them: {', '.join(lost)}.")
    return PromptDefinitions(loop, typed)


async def _open_servers(
    start: _Start, folder: FolderTrust, policy: PermissionPolicy, config: AgentLoopConfig, stack: AsyncExitStack
) -> "tuple[ServerPool | None, ServerAnswers | None]":
    """Start the tool servers in the background, and let the agent use their tools; None if there are none.

    Returns:
        The servers, and the answers to their questions, which need the agent.
    """
    options = start.options
    if options.mcp_config is None and not start.loaded.settings.mcp and not (options.cwd / SERVERS_FILE).exists():
        return None, None
    # Imported here so that a start without servers does not wait for it.
    from .tool_servers import ServerAnswers, configured_servers, open_servers, server_parts

    servers, notes = await asyncio.to_thread(configured_servers, options, folder, start.loaded)
    for note in notes:
        start.bus.publish(Warned(code="left_out", text=note))
    answers = ServerAnswers()
    parts = server_parts(options.cwd, start.bus, start.locations, answers.functions)
    opened = open_servers(servers, parts, policy, lambda: config.provider.model.context_window)
    pool = await stack.enter_async_context(opened)
    config.update_tools = None if pool is None else pool.update
    return pool, answers


async def _open_language_servers(start: _Start, stack: AsyncExitStack) -> "LanguageServers | None":
    """Return the language servers, which start when they are needed; None if there are none."""
    # The offline model needs none, as with tool servers.
    if not start.loaded.settings.lsp or start.options.demo:
        return None
    # Imported here so that a start without servers does not wait for it.
    from .code_servers import open_language_servers

    servers = start.loaded.settings.lsp
    opened = open_language_servers(servers, start.options.cwd, start.trials, start.bus.publish)
    return await stack.enter_async_context(opened)


def _check_edits(languages: "LanguageServers | None", loop: AgentLoop, contents: ContentStore | None) -> None:
    """Have the language servers check the files that calls change."""
    if languages is not None:
        from .code_servers import check_edits

        check_edits(languages, loop, contents)


def _gate(start: _Start, *, watched: bool) -> "tuple[ApprovalGate, LiveSession | None]":
    """Return the gate, whose questions `[[notify]]` and the user's other programs ask, too, and what these see.

    Without a user, only notifiers that may answer are asked, in their place.
    """
    gate, live = ApprovalGate(interactive=watched), None
    session, cwd = start.session, start.options.cwd
    if watched and session.path is not None:
        from .live_session import LiveSession

        live = LiveSession(session.path, session.id, cwd, start.bus)
        gate.approver = live.ask
    notifiers = [one for one in start.loaded.settings.notify if watched or one.answers]
    if notifiers:
        # Imported here so that a start without notifiers does not wait for it.
        from .notifiers import Notifiers

        programs = live.ask if live is not None else None
        gate.approver = Notifiers(notifiers, session.id, cwd, start.bus, watched=watched, programs=programs).ask
    return gate, live


async def _open_file_hooks(
    start: _Start, folder: FolderTrust, loop: AgentLoop, stack: AsyncExitStack, *, watched: bool
) -> "FileHooks | None":
    """Give the agent the hooks of hook files that may run, until the stack closes; None if there are none."""
    if not start.loaded.settings.hook_files:
        return None

    own, project = await asyncio.to_thread(own_hooks, start.options.cwd), folder.hooks
    for text in (
        *([folder.hooks_refusal] if folder.hooks_refusal else ()),
        *own.broken,
        *project.broken,
        *project.links,
        *own.missing_guards,
        *project.missing_guards,
    ):
        start.bus.publish(Warned(code="left_out", text=text))
    if not (own.hooks or project.hooks):
        return None
    # Imported here so that a start without hook files does not wait for it.
    from .file_hooks import FileHooks

    source = "resume" if start.session.resumed else "startup"
    variables = start.jobs.variables
    hooks = FileHooks(own, project, loop, start.archive, watched=watched, source=source, variables=variables)
    await stack.enter_async_context(hooks.serve())
    return hooks


def _report_unsaved_events(journal: JournalWriter) -> None:
    """Report on standard error how many events the journal lacks: when it closes, no one receives events any more."""
    if journal.lost:
        text = f"the end of this session was not saved: {journal.lost} events could not be written to {journal.path}."
        click.echo(escaped(f"tui-agent: {text}"), err=True)


async def _warn_of_leftovers(start: _Start) -> LeftoverCommands | None:
    """Publish which commands of earlier runs are still running; None if another program may have the session open."""
    session = start.session
    if not session.resumed or session.path is None:
        return None
    end = f"`tui-agent sessions end-processes {session.id}`" if start.options.without_screen else "/jobs kill"
    leftover = LeftoverCommands(session.lost_processes, start.bus, end)
    await leftover.warn()
    return leftover


async def _publish_notices(start: _Start, screen_problems: ScreenProblems | None) -> FolderTrust:
    """Publish everything about this start that the user should know, and return which files of the folder apply."""
    options, loaded, locations = start.options, start.loaded, start.locations
    if start.session.resumed and not options.keep_session:
        start.bus.publish(Noticed(code="not_kept", text="This session will not be saved from here on."))
    if options.notice:
        start.bus.publish(Warned(code="open_elsewhere", text=options.notice))
    folder = await asyncio.to_thread(folder_trust, options.cwd, locations, given=options.trust)
    wrong = () if screen_problems is None else await asyncio.to_thread(screen_problems, options, loaded)
    if options.extras.is_safe:
        folder = without_files(folder)
        start.bus.publish(Noticed(code="safe_start", text=SAFE_START))
    for text in (*loaded.unknown_variables, *loaded.ignored, *folder.left_out, *wrong):
        start.bus.publish(Warned(code="left_out", text=text))
    for text in start.plugins.problems:
        start.bus.publish(Warned(code="left_out", text=text))
    if news := await asyncio.to_thread(plugin_news, start.plugins.plugins, locations):
        start.bus.publish(Noticed(code="plugins_changed", text=news))
    return folder


def _choice(start: _Start, loop: AgentLoop, providers: ProviderBuilder) -> ModelChoice:
    """Return model and effort to begin with: those chosen in the session, unless `--model` names another model."""
    settings = start.loaded.settings
    choice = ModelChoice(loop, start.bus, settings, providers.build)
    if not start.options.demo:
        model, effort = start.session.chosen_model
        given = start.options.settings
        choice.begin("" if "model" in given else model, (effort if "effort" not in given else "") or settings.effort)
    return choice


# --- policy and rewinder ----------------------------------------------------------------------------------------------


async def _policy(
    start: _Start, rules: Sequence[Sequence[Rule]], folder: FolderTrust, given: Sequence[Path]
) -> PermissionPolicy:
    """Return the policy, with the grants and folders that the session still has."""
    session, root = start.session, start.options.cwd
    kept = await asyncio.to_thread(kept_folders, start.bus, root, given, session.folders(root))
    policy = build_policy(
        start.loaded,
        rules,
        root,
        start.locations,
        start.archive,
        folders=(*start.options.folders, *kept),
        trial=start.trials.facts,
        temporary=start.trials.temporary,
        is_trusted=folder.is_trusted,
    )
    start.trial_rules.policy = policy
    restore_session_rules(policy, session.grants(root), session.restrictions, start.bus)
    return policy


async def _rewinder(start: _Start, loop: AgentLoop) -> Rewinder | None:
    """Return the rewinder; None without a journal, from which it reads the earlier moments."""
    if start.journal is None or start.contents is None or start.session.path is None:
        return None
    root = start.options.cwd.resolve()
    journal, jobs = start.journal, start.jobs

    async def keep() -> None:
        await jobs.settled()
        await journal.flush()

    rewinder = Rewinder(loop, start.bus, start.session.path, keep, start.contents, root)
    await asyncio.to_thread(rewinder.remove_leftovers, start.session.envelopes)
    return rewinder


# --- loop, and its settings -------------------------------------------------------------------------------------------


async def _loop_config(
    start: _Start,
    provider: ModelProvider,
    policy: PermissionPolicy,
    gate: ApprovalGate,
    instructions: Sequence[ContextLayer],
    side: SideRequests,
    languages: "LanguageServers | None",
    only: Callable[[str], bool] | None,
) -> AgentLoopConfig:
    options, settings, session, bus = start.options, start.loaded.settings, start.session, start.bus
    pending = session.resumable_conversation if start.resumes_calls else None
    flush = start.journal.flush_or_warn if start.journal is not None else None
    spent = usage_of(session)
    messages = session.messages if pending is None else pending.messages
    # A long conversation takes a while, and keys come first.
    history = await asyncio.to_thread(ConversationHistory, messages, id=session.id)
    tools = [*_built_in_tools(start, policy, side, languages), *start.plugins.tools]
    hooks = command_hooks(settings.hooks, options.cwd)
    start.plugins.add_hooks(hooks)
    return AgentLoopConfig(
        provider=provider,
        tools=tools,
        system=options.system or DEFAULT_SYSTEM,
        only_tools=only,
        output=None if options.extras.answer_schema is None else SchemaFormat(options.extras.answer_schema),
        context=await session_facts(options.cwd, policy, [one for one in tools if only is None or only(one.name)]),
        layers=(*_appended_layers(settings), *instructions),
        workspace=options.cwd,
        bus=bus,
        policy=policy,
        gate=gate,
        hooks=hooks,
        options=_execution_options(settings, start.archive),
        history=history,
        open_calls=() if pending is None else pending.calls,
        compactions=session.compactions,
        waiting=session.waiting,
        max_steps=_max_steps(options, settings),
        summary_provider=side.small if side.has_small else None,
        fallback_provider=side.fallback if side.has_fallback else None,
        budget=Budget(**dict(settings.budget)),
        max_tokens=settings.max_tokens,
        session_id=session.id,
        before_effects=_effect_recorder(start.jobs.settled, flush),
        before_requests=start.journal.flush_outcomes if start.journal is not None else None,
        effects_published=start.jobs.settled,
        usage=spent.total,
        cost=spent.cost,
    )


def _built_in_tools(
    start: _Start, policy: PermissionPolicy, side: SideRequests, languages: "LanguageServers | None"
) -> list[Tool]:
    options, bus = start.options, start.bus
    tools = built_in_tools(
        options.cwd,
        start.archive,
        start.trials,
        start.contents,
        (start.locations.config_dir, start.locations.state_dir),
        output_limit=start.loaded.settings.output_disk_limit,
        warn=lambda text: bus.publish(Warned(code="output_disk_limit", text=text)),
        protected=start.protected,
        warn_of_protected=lambda text: bus.publish(Warned(code="protected_changed", text=text)),
        note_withheld=lambda text: bus.publish(Noticed(code="variables_withheld", text=text)),
        jobs=start.jobs,
        side_requests=None if options.demo else side,
        report_problem=partial(_give_up_trials, policy, bus),
        look_up=None if languages is None else languages.look_up,
        is_trusted=policy.is_trusted,
    )
    start.trial_rules.search = next((tool for tool in tools if tool.name == "grep"), None)
    return tools


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


def _give_up_trials(policy: PermissionPolicy, bus: EventBus, problem: str) -> None:
    """Let the policy ask from now on, because trials work no more, and say so once."""
    facts = policy.trial
    if not facts.is_available:
        return
    policy.set_trial(facts.model_copy(update={"backend": "", "problem": problem}))
    outcome = "no command runs" if facts.setting == "required" else "commands ask from now on before they run"
    text = f"The trial does not work here any more, so {outcome}: {problem}."
    bus.publish(Warned(code="sandbox_unavailable", text=text))


def apply_settings(engine: Engine, options: LaunchOptions, before: Settings, after: Settings) -> None:
    """Apply those settings that may change while the agent works; the others wait for the next start.

    Limits, model and prompt take effect with the next request, the execution of calls with the next response.

    Raises:
        ConfigurationError: no key is set for another model; everything else is applied.
    """
    loop = engine.loop
    loop.config.max_steps = _max_steps(options, after)
    loop.config.budget = Budget(**dict(after.budget))
    loop.config.max_tokens = after.max_tokens
    if (after.strategy, after.tool_timeout) != (before.strategy, before.tool_timeout):
        loop.set_options(_execution_options(after, loop.config.options.archive_dir))
    if after.append_system != before.append_system:
        loop.history.registry.remove(APPENDED_LAYER)
        for layer in _appended_layers(after):
            loop.history.registry.set(layer)
    if options.demo:
        return
    if after.model != before.model:
        loop.provider = engine.make_provider(after)
    if (after.model, after.effort) != (before.model, before.effort):
        engine.choice.limit_effort(after.effort if after.effort != before.effort else engine.choice.effort)


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
