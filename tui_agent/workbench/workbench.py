"""One open session, whole: every front end gets the same object and wires nothing itself."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from tui_agent.agent import AgentLoop
from tui_agent.agent.steering_queue import SteeringQueue
from tui_agent.protocol.background import run_service
from tui_agent.protocol.cancellation import PROGRAM_QUIT
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.prompt_references import PromptCommand
from tui_agent.rewind import Rewinder
from tui_agent.session.event_folds import active_events
from tui_agent.workbench.live_session import TaskList

from .agent_setup import open_agent
from .configuration.launch_options import LaunchOptions
from .launch import Launch
from .leftover_commands import LeftoverCommands, adopt_orphans
from .live_session import open_gate
from .live_settings import LiveSettings, SessionSettings, UseOnScreen
from .opened_session import OpenedSession, ScreenProblems, publish_notices
from .review_command import find_definitions, open_definitions
from .session_diff import SessionDiff
from .session_folders import SessionFolders
from .session_hooks import SessionHooks, open_file_hooks
from .session_inputs import SessionCommands, SessionPrompts
from .session_jobs import SessionJobs, open_jobs
from .session_models import open_models
from .session_rules import SessionRules, grants_of, open_policy
from .session_servers import SessionServers, open_configured_servers
from .session_trials import SessionTrials, open_code_servers
from .sessions.prompt_files import PromptFiles
from .sessions.prompt_store import PromptStore
from .sessions.side_requests import SideRequests
from .workspace_completion import WorkspaceFiles, WorkspaceSymbols

__all__ = ["AgentLoop", "Rewinder", "ScreenProblems", "SteeringQueue", "Workbench"]

RUN_END_TIMEOUT = 4.0
"""Seconds that a run gets to end when the user quits in the middle of it."""


class Workbench:
    """One open session, subject by subject."""

    def __init__(self, options: LaunchOptions) -> None:
        """Begin with the options; `build` adds the subjects, `open` also keeps them up to date."""
        self.options = options
        """The options that it was opened with."""

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        options: LaunchOptions,
        *,
        watched: bool,
        screen_problems: ScreenProblems | None = None,
        use_on_screen: UseOnScreen | None = None,
        examine: Callable[[Path], str] | None = None,
        prompts: PromptStore | None = None,
    ) -> AsyncGenerator["Workbench"]:
        """Open a session, and apply changed settings until the context closes; then save and close everything.

        Hooks of the session's start wait for `hooks.begin`, so that the front end receives their events.

        Args:
            watched: True if a user can answer approval requests, also those that waited when the session ended.
            screen_problems, use_on_screen: check and apply the settings of the screen; None without one.
            examine: returns the checks of the installation for a folder; None: the front end has none.
            prompts: the prompts of the project; None: the front end did not need them before.

        Raises:
            ConfigurationError: settings, rules or credentials are missing or wrong; nothing was started.
            SessionOpenError: another program has the session open.
            SessionError: the session cannot be opened.
        """
        async with AsyncExitStack() as stack:
            bench = await cls.build(options, stack, watched=watched, screen_problems=screen_problems)
            bench.commands.examine = examine
            if prompts is not None:
                bench.prompt_history = prompts
            live = bench.live_settings(use_on_screen)
            async with asyncio.TaskGroup() as tasks:
                services = [tasks.create_task(run_service("live settings", live.watch(), live.give_up))]
                if bench.shown is not None:
                    services.append(tasks.create_task(run_service("list of tasks", bench.shown.serve())))
                try:
                    yield bench
                finally:
                    for service in services:
                        service.cancel()

    @classmethod
    async def build(
        cls,
        options: LaunchOptions,
        stack: AsyncExitStack,
        *,
        watched: bool,
        screen_problems: ScreenProblems | None = None,
    ) -> "Workbench":
        """Open a session as `open` does, without the services beside it; `stack` saves and closes everything."""
        bench = cls(options)
        await bench._open(stack, screen_problems, watched=watched)
        return bench

    async def _open(self, stack: AsyncExitStack, screen_problems: ScreenProblems | None, *, watched: bool) -> None:
        """Open the parts from the settings to the agent. The past, which may be long, is freed with this frame."""
        await stack.enter_async_context(adopt_orphans())
        launch = await Launch.prepare(self.options, stack)
        session = await OpenedSession.open(launch, stack, resume_calls=watched)
        trials = await SessionTrials.open(launch, session, stack)
        jobs = await open_jobs(session, stack)
        await session.announce(launch, trials.trials, stack)
        self.leftovers = await LeftoverCommands.open(session, has_screen=not self.options.without_screen)
        """Commands that may still run since tui-agent was killed; None for a session that is new or not saved."""
        folder = await publish_notices(launch, session, screen_problems)
        self.policy = policy = await open_policy(
            launch, session, trials.trials, self.options.folders, is_trusted=folder.is_trusted
        )
        """Judges calls; `rules` and `folders` show and change it."""
        found, layers = await asyncio.to_thread(find_definitions, launch, folder)
        gate, self.shown = open_gate(launch, session, watched=watched)
        """Shows the session to the user's other programs; None without a journal or a user."""
        side = SideRequests(launch.settings, None if self.options.demo else launch.providers.build)
        code = await open_code_servers(launch, session, trials.trials, stack)
        tools = trials.tools(launch, session, policy, jobs, side, None if code is None else code.look_up)
        self.agent = agent = await open_agent(launch, session, policy, gate, tools, layers, side, jobs)
        """Runs prompts, takes messages meanwhile, stops, cancels calls; answers questions with the user's decision."""
        pool = await open_configured_servers(launch, folder, agent, policy, stack)
        files = await open_file_hooks(launch, folder, session, agent, stack, variables=jobs.variables, watched=watched)
        if code is not None:
            code.check_edits(agent)
        self.models = open_models(launch, session, agent)
        self.definitions = open_definitions(agent, found, launch.settings, side)
        """Skills, command files and `/review`."""
        self.servers = SessionServers(pool, self.definitions.knows)
        self.hooks = SessionHooks(agent.bus, launch, files)
        self.rewind = await session.rewinder(agent, jobs, launch.cwd)
        """Goes back to earlier moments; None: the session is not saved."""
        self.jobs = SessionJobs(jobs)
        self.aside = side.aside
        """Answers a question beside the conversation."""
        self.past = session.past
        """Events of a resumed session; iterated once."""
        self.save = session.journal.flush if session.journal is not None else None
        """Returns once every event so far is saved; None if the session is not saved."""
        self._add_views(launch)

    def _add_views(self, launch: Launch) -> None:
        """Add the subjects that need nothing but the others."""
        agent, policy, locations, root = self.agent, self.policy, launch.locations, self.options.cwd
        self.events = agent.bus
        """Everything that happens, for as many subscribers as there are front ends."""
        self.loaded = launch.loaded
        """The settings of the start."""
        strictest = launch.settings.permissions.rule_resolution == "severity"
        self.rules = SessionRules(agent, policy, strictest_wins=strictest)
        self.folders = SessionFolders(agent, policy, locations.user_file)
        self.grants = grants_of(agent, policy, root)
        """Effects of a rule that an approval would store."""
        self.diff = SessionDiff(root, self.rewind, is_trusted=policy.is_trusted)
        """Changed files, with their differences, which the user can undo."""
        status = launch.settings.ui.status_command
        self.commands = SessionCommands(agent, policy, root, locations.sessions_dir, self.save, status)
        """Export, copy, checks of the installation, state of the work tree."""
        self.tasks = TaskList(locations.sessions_dir)
        """The sessions of the user, also those that other programs have open."""
        self.settings = SessionSettings(locations, self.options)
        self.prompt_history = PromptStore(locations.sessions_dir if self.options.keep_session else None, root)
        """Prompts of the project, of this session and earlier ones."""
        self.files = WorkspaceFiles(root, lambda: policy.folders)
        self.symbols = WorkspaceSymbols(root, is_trusted=policy.is_trusted)
        self.attachments = PromptFiles(root, policy)
        """Files that the user names in a prompt."""
        self.prompts = SessionPrompts(agent, self.definitions, self.attachments)
        """Runs and sends what the user types."""

    @property
    def slash_commands(self) -> tuple[PromptCommand, ...]:
        """The `/` commands that the session defines: those of files, prompts of tool servers, models."""
        return (*self.definitions.commands, *self.servers.commands, *self.models.commands)

    def conversation(self) -> Sequence[Envelope]:
        """Return `past` without the events that a rewind removed. Reads all of `past`, which can be read only once."""
        return active_events(self.past)

    def live_settings(self, use_on_screen: UseOnScreen | None = None) -> LiveSettings:
        """Return a new service that applies changed settings to this session while its `watch` runs.

        Args:
            use_on_screen: applies the settings of the screen; None without a screen.
        """
        parts = (self.options, self.loaded, self.agent, self.policy, self.folders, self.models)
        return LiveSettings(*parts, use_on_screen)

    async def end_run(self) -> None:
        """Abort the current run and wait for its end, at most `RUN_END_TIMEOUT` seconds; return at once without one.

        The journal then contains its end.
        """
        if not self.agent.running:
            return
        with self.events.subscribe() as subscription:
            self.agent.abort(PROGRAM_QUIT)
            try:
                async with asyncio.timeout(RUN_END_TIMEOUT):
                    async for _ in subscription.batches():
                        if not self.agent.running:
                            return
            except TimeoutError:
                logging.getLogger(__name__).warning("a run did not end within %g s", RUN_END_TIMEOUT)
