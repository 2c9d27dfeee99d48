"""One open session, whole: every front end gets the same object and wires nothing itself."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from tui_agent.agent import AgentLoop
from tui_agent.agent.steering_queue import SteeringQueue
from tui_agent.protocol.background import run_service
from tui_agent.protocol.cancellation import PROGRAM_QUIT
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.prompt_command import PromptCommand
from tui_agent.rewind import Rewinder
from tui_agent.session.active_branch import active_events

from .build_engine import Engine, ScreenProblems, open_engine
from .built_in_tools import tool_finder
from .configuration.launch_options import LaunchOptions
from .configuration.permission_rules import RuleImpact, RuleStore
from .live_settings import LiveSettings, UseOnScreen
from .session_diff import SessionDiff
from .session_folders import SessionFolders
from .session_hooks import SessionHooks
from .session_inputs import SessionCommands, SessionPrompts
from .session_jobs import SessionJobs
from .session_models import SessionModels
from .session_rules import SessionRules
from .session_servers import SessionServers
from .session_settings import SessionSettings
from .sessions.prompt_files import PromptFiles
from .sessions.prompt_store import PromptStore
from .task_list import TaskList
from .workspace_completion import WorkspaceFiles, WorkspaceSymbols

__all__ = ["AgentLoop", "Rewinder", "SteeringQueue", "Workbench"]

RUN_END_TIMEOUT = 4.0
"""Seconds that a run gets to end when the user quits in the middle of it."""


class Workbench:
    """One open session, subject by subject."""

    def __init__(
        self,
        engine: Engine,
        options: LaunchOptions,
        examine: Callable[[Path], str] | None = None,
        prompts: PromptStore | None = None,
    ) -> None:
        """
        Args:
            engine: the parts of the session.
            options: the options that it was opened with.
            examine: returns the checks of the installation, a line each; None: the front end has none.
            prompts: the prompts of the project; None: the front end did not need them before.
        """
        self.engine = engine
        """The parts below; front ends use the subjects."""
        self.options = options
        self.agent = engine.loop
        """Runs prompts, takes messages meanwhile, stops, cancels calls; answers questions with the user's decision."""
        self.events = engine.bus
        """Everything that happens, for as many subscribers as there are front ends."""
        self.past = engine.past_events
        """Events of a resumed session; iterated once."""
        self.save = engine.flush_journal
        """Returns once every event so far is saved; None if the session is not saved."""
        self.rules = SessionRules(engine)
        self.folders = SessionFolders(engine, options)
        find = tool_finder(options.cwd, engine.loop.tools)
        self.grants = RuleImpact(engine.loop, engine.policy, RuleStore(engine.locations, options.cwd), find)
        """Effects of a rule that an approval would store."""
        self.jobs = SessionJobs(engine.jobs)
        self.leftovers = engine.leftover_commands
        """Commands that run since tui-agent was killed; None: there are none."""
        self.definitions = engine.definitions
        """Skills, command files and `/review`."""
        self.servers = SessionServers(engine.servers, engine.definitions.knows)
        self.hooks = SessionHooks(engine.bus, engine.loaded, options.cwd, engine.file_hooks, engine.plugins)
        self.rewind = engine.rewinder
        """Goes back to earlier moments; None: the session is not saved."""
        self.diff = SessionDiff(options.cwd, engine.rewinder, is_trusted=engine.policy.is_trusted)
        """Changed files, with their differences, which the user can undo."""
        self.commands = SessionCommands(engine, options, examine)
        """Export, copy, checks of the installation, state of the work tree."""
        self.models = SessionModels(engine, options)
        self.tasks = TaskList(engine.locations.sessions_dir)
        """The sessions of the user, also those that other programs have open."""
        self.aside = engine.side.aside
        """Answers a question beside the conversation."""
        self.settings = SessionSettings(engine.locations, options)
        kept_in = engine.locations.sessions_dir if options.keep_session else None
        self.prompt_history = prompts if prompts is not None else PromptStore(kept_in, options.cwd)
        """Prompts of the project, of this session and earlier ones."""
        self.files = WorkspaceFiles(options.cwd, lambda: engine.policy.folders)
        self.symbols = WorkspaceSymbols(options.cwd, is_trusted=engine.policy.is_trusted)
        self.attachments = PromptFiles(options.cwd, engine.policy)
        """Files that the user names in a prompt."""
        self.prompts = SessionPrompts(engine.loop, engine.definitions, self.attachments)
        """Runs and sends what the user types."""

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
            options: which session, and how.
            watched: True if a user can answer approval requests, also those that waited when the session ended.
            screen_problems, use_on_screen: check and apply the settings of the screen; None without one.
            examine: returns the checks of the installation for a folder; None: the front end has none.
            prompts: the prompts of the project; None: the front end did not need them before.

        Raises:
            ConfigurationError: settings, rules or credentials are missing or wrong; nothing was started.
            SessionOpenError: another program has the session open.
            SessionError: the session cannot be opened.
        """
        async with open_engine(
            options, watched=watched, resume_pending_calls=watched, screen_problems=screen_problems
        ) as engine:
            bench = cls(engine, options, examine, prompts)
            live = LiveSettings(engine, options, use_on_screen)
            async with asyncio.TaskGroup() as tasks:
                services = [tasks.create_task(run_service("live settings", live.watch(), live.give_up))]
                if engine.live is not None:
                    services.append(tasks.create_task(run_service("list of tasks", engine.live.serve())))
                try:
                    yield bench
                finally:
                    for service in services:
                        service.cancel()

    @property
    def slash_commands(self) -> tuple[PromptCommand, ...]:
        """The `/` commands that the session defines: those of files, prompts of tool servers, models."""
        return (*self.definitions.commands, *self.servers.commands, *self.models.commands)

    def conversation(self) -> Sequence[Envelope]:
        """Return `past` without the events that a rewind removed; once, like `past`."""
        return active_events(self.past)

    async def end_run(self) -> None:
        """Abort the current run, if any, and wait for its end, so that the journal contains it."""
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
