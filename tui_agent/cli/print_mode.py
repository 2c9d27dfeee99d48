"""`-p`: an engine without a screen."""

import asyncio

from tui_agent.headless import HeadlessOptions, read_prompt, run_headless

from .build_engine import open_engine
from .effective_settings import prepare_settings
from .launch_options import LaunchOptions
from .live_settings import with_live_settings
from .log_file import log_to_file
from .record_option import open_recording_writer, recording_header, warn


def run_print_mode(options: LaunchOptions) -> int:
    """Runs headless; returns the exit code.

    Raises:
        ConfigurationError: there is no prompt, or something in the configuration is wrong.
        SessionError: the session cannot be opened.
    """
    locations, _ = prepare_settings(options)
    log_to_file(locations, verbose=options.verbose)
    prompt = options.prompt if options.input_format == "stream-json" else read_prompt(options.prompt)
    headless = HeadlessOptions(
        prompt, options.output_format, options.input_format, include_deltas=options.include_deltas
    )
    return asyncio.run(_run(options, headless))


async def _run(options: LaunchOptions, headless: HeadlessOptions) -> int:
    watched = headless.interactive
    async with (
        open_recording_writer(options.record) as sink,
        open_engine(options, watched=watched, resume_pending_calls=watched, sink=sink) as engine,
    ):

        async def work() -> int:
            return await run_headless(engine.loop, engine.bus, headless, keep=engine.keep)

        if sink is None:
            return await with_live_settings(engine, options, work)
        from tui_agent.recording import record_bus

        sink.begin(recording_header(options, engine.loaded.settings), lambda text: warn(engine.bus, text))
        return await record_bus(engine.bus, sink, lambda: with_live_settings(engine, options, work))
