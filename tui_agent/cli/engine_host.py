"""Runs an engine for a front end: behind the screen, or with `-p` without one."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from tui_agent.workbench.configuration.effective_settings import prepare_settings
from tui_agent.workbench.configuration.launch_options import LaunchOptions
from tui_agent.workbench.live_settings import UseOnScreen
from tui_agent.workbench.workbench import Workbench

from .process.controlling_terminal import say
from .process.log_file import log_loop_stalls, log_to_file
from .process.process_setup import end_start
from .screen_parts import question_lines, screen_problems
from .subcommands.doctor import examined

if TYPE_CHECKING:
    # Print mode runs without the screen, and the screen without print mode.
    from tui_agent.headless import Describe, HeadlessOptions
    from tui_agent.ui.bridge.agent_bridge import AgentBridge


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
    async with (
        log_loop_stalls(),
        Workbench.open(
            options,
            watched=True,
            screen_problems=screen_problems,
            use_on_screen=use_on_screen,
            examine=examined,
            prompts=bridge.prompts,
        ) as bench,
    ):
        bridge.open(bench)
        bench.hooks.begin("clear" if follows and options.resume is None else None)
        async with asyncio.TaskGroup() as tasks:
            beside = [tasks.create_task(_freeze_loaded(bridge)), tasks.create_task(bench.symbols.keep())]
            await screen_gone()
            for task in beside:
                task.cancel()
        await bench.end_run()
        bench.hooks.end("clear" if bridge.is_detached else "prompt_input_exit")


async def _freeze_loaded(bridge: "AgentBridge") -> None:
    """Begin to collect garbage, except in what is loaded: looking through it delays frames."""
    await bridge.warm.wait()  # The model's SDK is most of it.
    end_start()


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
    from tui_agent.headless import describe_briefly, run_headless

    end_start()
    watched = headless.interactive
    async with (
        log_loop_stalls(),
        Workbench.open(options, watched=watched, screen_problems=screen_problems) as bench,
    ):
        bench.hooks.begin()
        return await run_headless(bench, headless, describe=describe or describe_briefly)
