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
from tui_agent.protocol.permissions import ApprovalRequest

from .build_engine import open_engine
from .configuration.effective_settings import prepare_settings
from .configuration.live_settings import UseOnScreen, with_live_settings
from .configuration.permission_rules import RuleImpact
from .launch_options import LaunchOptions
from .process.controlling_terminal import say
from .process.log_file import log_to_file
from .process.process_setup import end_start
from .sessions.prompt_files import PromptFiles
from .sessions.session_commands import SessionCommands
from .workspace_files import WorkspaceFiles
from .workspace_symbols import WorkspaceSymbols

if TYPE_CHECKING:
    # Print mode runs without the screen, and the screen without print mode.
    from tui_agent.headless import Describe, HeadlessOptions
    from tui_agent.ui.bridge.agent_bridge import AgentBridge

QUESTION_WIDTH = 100
"""Cells of a row of a question in plain mode."""
RUN_END_TIMEOUT = 4.0
"""Seconds that a run gets to end when the user quits in the middle of it."""


async def serve(
    options: LaunchOptions,
    bridge: "AgentBridge",
    use_on_screen: UseOnScreen | None,
    screen_gone: Callable[[], Awaitable[object]],
    *,
    follows: bool = False,
) -> None:
    """Build an engine, open the bridge to it, and keep it until the screen is gone; then end its run and save it.

    Args:
        options: the command line.
        bridge: connects the engine with the screen.
        use_on_screen: applies changed settings to the screen.
        screen_gone: returns once the screen is gone, or shows another session.
        follows: True if another session was on the screen before.

    Raises:
        ConfigurationError: settings, rules or credentials are missing or wrong; nothing was started.
        SessionError: the session cannot be opened.
    """
    # Loads Textual, which print mode does without.
    from .session_hooks import SessionHooks
    from .session_jobs import SessionJobs
    from .session_rules import SessionRules
    from .session_servers import SessionServers

    async with open_engine(options, watched=True, resume_pending_calls=True) as engine:
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
            commands=SessionCommands(engine, options),
            rules=SessionRules(engine),
            jobs=SessionJobs(engine.jobs),
            definitions=engine.definitions,
            servers=None if engine.servers is None else SessionServers(engine.servers, is_defined),
            hooks=SessionHooks(engine.bus, engine.loaded, options.cwd, engine.file_hooks, engine.plugins),
        )
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
    from tui_agent.ui.approval.approval_reasons import why_rows
    from tui_agent.ui.approval.approval_rows import ApprovalRows, request_title

    from .plain_trust import ask_in_lines, has_terminal, read_line

    def question_lines(request: ApprovalRequest) -> list[str]:
        """Return the question as a sentence, then the reason and the exact input with every character visible."""
        rows = [*why_rows(request, QUESTION_WIDTH), *ApprovalRows(request).rows(QUESTION_WIDTH, spaced=False)]
        return [request_title(request), *(row.plain.rstrip() for row in rows)]

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
    async with open_engine(options, watched=watched, resume_pending_calls=watched) as engine:
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

        return await with_live_settings(engine, options, work)
