"""Print mode and plain mode: opens a session without the screen; plain mode asks about trust in lines."""

import asyncio
import os
import sys
import termios
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.protocol.visible_text import escaped
from tui_agent.settings import Locations
from tui_agent.workbench.configuration.effective_settings import prepare_settings
from tui_agent.workbench.configuration.launch_options import LaunchOptions
from tui_agent.workbench.configuration.project_trust import TrustAnswer, TrustRequest, TrustStore, open_trust_request
from tui_agent.workbench.workbench import Workbench

from .process.controlling_terminal import say
from .process.log_file import log_loop_stalls, log_to_file
from .process.process_setup import end_start
from .screen_entry import question_lines, screen_problems

if TYPE_CHECKING:
    from tui_agent.headless import Describe, HeadlessOptions

_LONGEST_LINE = 4_096
"""Bytes; a terminal passes on no longer line."""
_ANSWERS: dict[str, TrustAnswer] = {"": "no", "n": "no", "no": "no", "t": "tightening", "a": "all"}
_PLAIN_YES: dict[str, TrustAnswer] = {"y": "tightening", "yes": "tightening"}
"""Answers to a folder without allow rules and tool servers."""


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
    read_answer = None
    if options.extras.answer_schema is not None:
        from tui_agent.agent.output_format import SchemaFormat

        read_answer = SchemaFormat(options.extras.answer_schema).read
    headless = HeadlessOptions(
        prompt,
        options.output_format,
        options.input_format,
        include_deltas=options.include_deltas,
        read_answer=read_answer,
    )
    return asyncio.run(_run_headless(options, headless))


def run_plain_mode(options: LaunchOptions) -> int:
    """Run a conversation in lines of plain text and return the exit code.

    Raises:
        ConfigurationError: the configuration is wrong.
        SessionError: the session cannot be opened.
    """
    from tui_agent.headless import HeadlessOptions

    locations, _ = prepare_settings(options)
    log_to_file(locations, verbose=options.verbose)
    if not (options.trust or options.extras.is_safe) and has_terminal():
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
        code = await run_headless(bench, headless, describe=describe or describe_briefly)
    # After the session is closed: what happens to its worktree must not find it open.
    if options.extras.at_end is not None:
        await options.extras.at_end()
    return code


# --- trust ------------------------------------------------------------------------------------------------------------


def ask_in_lines(
    folder: Path, locations: Locations, read: Callable[[], str | None], say: Callable[[str], None]
) -> None:
    """Ask the user to trust the folder's own settings, unless they have answered before, and store the answer. Blocks.

    Args:
        read: returns the next line without its end; None at the end of the input, which answers nothing.

    Raises:
        ConfigurationError: the answer cannot be stored.
    """
    offer = open_trust_request(folder, locations)
    if offer is None:
        return
    say("This folder has its own settings or instructions.")
    say(f"  folder: {_in_one_line(str(offer.folder))}")
    for heading, entries in offer.sections:
        say(f"  {heading}:")
        for entry in entries:
            say(f"    {_in_one_line(entry)}")
    answer = _answer(offer, read, say)
    if answer is not None:
        TrustStore(locations).remember(offer, answer)
        say("Not applied." if answer == "no" else "Applied.")


def has_terminal() -> bool:
    """Return True if the user can read the question and answer it."""
    return os.isatty(0) and os.isatty(1)


def read_line() -> str | None:
    """Return a line that is typed from now on; None at the end of the input. Blocks."""
    sys.stdout.flush()
    # A line that was typed before the question does not answer it.
    termios.tcflush(0, termios.TCIFLUSH)
    # Not `input`, which may read more than this line ahead.
    line = os.read(0, _LONGEST_LINE)
    return line.decode("utf-8", "replace").rstrip("\r\n") if line else None


def _in_one_line(text: str) -> str:
    """Return a text of the folder that cannot look like another line of the question."""
    return escaped(text).replace("\n", "\\n")


def _answer(offer: TrustRequest, read: Callable[[], str | None], say: Callable[[str], None]) -> TrustAnswer | None:
    # Where nothing starts programs, the two kinds of yes mean the same.
    answers = _ANSWERS if offer.powers else _ANSWERS | _PLAIN_YES
    choices = f"t yes, without {offer.powers} · a yes, {offer.powers} too" if offer.powers else "y yes"
    while True:
        say(f"Apply them? enter no · {choices}")
        line = read()
        # A pipe that ended has not answered: the question comes again.
        if line is None:
            return None
        if (answer := answers.get(line.strip().casefold())) is not None and (answer != "all" or offer.powers):
            return answer
