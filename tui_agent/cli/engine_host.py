"""Runs an engine for a front end: behind the screen, or with `-p` without one."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from tui_agent.agent import AgentLoop
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.cancellation import PROGRAM_QUIT
from tui_agent.protocol.messages import UserBlock
from tui_agent.workbench.build_engine import Engine, open_engine
from tui_agent.workbench.configuration.effective_settings import prepare_settings
from tui_agent.workbench.configuration.live_settings import UseOnScreen, with_live_settings
from tui_agent.workbench.configuration.permission_rules import RuleImpact
from tui_agent.workbench.launch_options import LaunchOptions
from tui_agent.workbench.sessions.prompt_files import PromptFiles
from tui_agent.workbench.sessions.session_commands import SessionCommands
from tui_agent.workbench.workspace_files import WorkspaceFiles
from tui_agent.workbench.workspace_symbols import WorkspaceSymbols

from .process.controlling_terminal import say
from .process.log_file import log_loop_stalls, log_to_file
from .process.process_setup import end_start
from .screen_parts import question_lines, screen_problems
from .sessions.recordings import open_recording_writer, recording_header, warn_of_broken_recording
from .subcommands.doctor import examined

if TYPE_CHECKING:
    # Print mode runs without the screen, the screen without print mode, and most runs are not recorded.
    from tui_agent.headless import Describe, HeadlessOptions
    from tui_agent.recording import RecordingSink
    from tui_agent.ui.bridge.agent_bridge import AgentBridge

RUN_END_TIMEOUT = 4.0
"""Seconds that a run gets to end when the user quits in the middle of it."""


async def serve(
    options: LaunchOptions,
    bridge: "AgentBridge",
    use_on_screen: UseOnScreen | None,
    screen_gone: Callable[[], Awaitable[object]],
    sink: "RecordingSink | None" = None,
    *,
    follows: bool = False,
) -> None:
    """Build an engine, open the bridge to it, and keep it until the screen is gone; then end its run and save it.

    Args:
        options: the command line.
        bridge: connects the engine with the screen.
        use_on_screen: applies changed settings to the screen.
        screen_gone: returns once the screen is gone, or shows another session.
        sink: records what the model sends.
        follows: True if another session was on the screen before.

    Raises:
        ConfigurationError: settings, rules or credentials are missing or wrong; nothing was started.
        SessionError: the session cannot be opened.
    """
    async with (
        log_loop_stalls(),
        open_engine(
            options, watched=True, resume_pending_calls=True, sink=sink, screen_problems=screen_problems
        ) as engine,
    ):
        symbols = _open_bridge(bridge, engine, options)
        if engine.file_hooks is not None:
            engine.file_hooks.begin("clear" if follows and options.resume is None else None)
        async with asyncio.TaskGroup() as tasks:
            beside = [tasks.create_task(_freeze_loaded(bridge)), tasks.create_task(symbols.keep())]
            await with_live_settings(engine, options, screen_gone, use_on_screen)
            for task in beside:
                task.cancel()
        await _end_run(engine.loop, engine.bus)
        if engine.file_hooks is not None:
            engine.file_hooks.end_reason = "clear" if bridge.is_detached else "prompt_input_exit"


def _open_bridge(bridge: "AgentBridge", engine: Engine, options: LaunchOptions) -> WorkspaceSymbols:
    """Open the bridge to an engine; return the index of symbols, which the caller keeps up to date."""
    # Print mode does without them.
    from tui_agent.workbench.session_hooks import SessionHooks
    from tui_agent.workbench.session_jobs import SessionJobs
    from tui_agent.workbench.session_rules import SessionRules
    from tui_agent.workbench.session_servers import SessionServers

    is_defined = None if engine.definitions is None else engine.definitions.knows
    symbols = WorkspaceSymbols(options.cwd, is_trusted=engine.policy.is_trusted)
    grants = RuleImpact(engine.loop, engine.policy, engine.locations, options.cwd)
    bridge.open(
        engine.loop,
        engine.bus,
        engine.past_events,
        rewinding=engine.rewinder,
        grants=grants,
        left_running=engine.leftover_commands,
        files=WorkspaceFiles(options.cwd),
        symbols=symbols,
        prompt_files=PromptFiles(options.cwd, engine.policy),
        commands=SessionCommands(engine, options, examined),
        rules=SessionRules(engine),
        jobs=SessionJobs(engine.jobs),
        definitions=engine.definitions,
        servers=None if engine.servers is None else SessionServers(engine.servers, is_defined),
        hooks=SessionHooks(engine.bus, engine.loaded, options.cwd, engine.file_hooks, engine.plugins),
    )
    return symbols


async def _freeze_loaded(bridge: "AgentBridge") -> None:
    """Begin to collect garbage, except in what is loaded: looking through it delays frames."""
    await bridge.warm.wait()  # The model's SDK is most of it.
    end_start()


async def _end_run(loop: AgentLoop, bus: EventBus) -> None:
    """Abort the current run, if any, and wait for its end, so that the journal contains it."""
    if not loop.running:
        return
    with bus.subscribe() as subscription:
        loop.abort(PROGRAM_QUIT)
        try:
            async with asyncio.timeout(RUN_END_TIMEOUT):
                async for _ in subscription.batches():
                    if not loop.running:
                        return
        except TimeoutError:
            logging.getLogger(__name__).warning("a run did not end within %g s", RUN_END_TIMEOUT)


def run_print_mode(options: LaunchOptions) -> int:
    """Run headless and return the exit code.

    Raises:
        ConfigurationError: there is no prompt, or the configuration is wrong.
        SessionError: the session cannot be opened.
    """
    from tui_agent.headless import HeadlessOptions, read_prompt

    locations, _ = prepare_settings(options)
    log_to_file(locations, verbose=options.verbose)
    prompt = options.prompt if options.input_format == "stream-json" else read_prompt(options.prompt)
    headless = HeadlessOptions(
        prompt, options.output_format, options.input_format, include_deltas=options.include_deltas
    )
    return asyncio.run(_run_headless(options, headless))


def run_plain_mode(options: LaunchOptions) -> int:
    """Run a conversation in lines of plain text and return the exit code.

    Raises:
        ConfigurationError: the configuration is wrong.
        SessionError: the session cannot be opened.
    """
    from tui_agent.headless import HeadlessOptions

    from .plain_trust import ask_in_lines, has_terminal, read_line

    locations, _ = prepare_settings(options)
    log_to_file(locations, verbose=options.verbose)
    if not options.trust and has_terminal():
        ask_in_lines(options.cwd, locations, read_line, say)
    headless = HeadlessOptions(options.prompt, options.output_format, options.input_format)
    return asyncio.run(_run_headless(options, headless, question_lines))


async def _run_headless(options: LaunchOptions, headless: "HeadlessOptions", describe: "Describe | None" = None) -> int:
    from tui_agent.headless import CommandAgent, describe_briefly, run_headless

    end_start()
    watched = headless.interactive
    async with (
        open_recording_writer(options.record) as sink,
        log_loop_stalls(),
        open_engine(
            options,
            watched=watched,
            resume_pending_calls=watched,
            sink=sink,
            screen_problems=screen_problems,
        ) as engine,
    ):
        if engine.file_hooks is not None:
            engine.file_hooks.begin()

        files = PromptFiles(options.cwd, engine.policy)
        types_lines = headless.input_format == "plain" and os.isatty(0)

        def attach(text: str) -> Awaitable[Sequence[UserBlock]]:
            # The rest comes from other programs: a mention in it must not send what the agent may not read.
            return files.attached(text, typed=types_lines or text == options.prompt)

        async def work() -> int:
            return await run_headless(
                CommandAgent(engine.loop, engine.definitions, attach),
                engine.bus,
                headless,
                keep=engine.flush_journal,
                end_work=engine.jobs.end_all,
                describe=describe or describe_briefly,
                commands=[] if engine.definitions is None else [one.usage for one in engine.definitions.commands],
            )

        if sink is None:
            return await with_live_settings(engine, options, work)
        from tui_agent.recording import record_bus

        header = recording_header(options, engine.loaded.settings)
        sink.begin(header, lambda text: warn_of_broken_recording(engine.bus, text))
        return await record_bus(engine.bus, sink, lambda: with_live_settings(engine, options, work))
