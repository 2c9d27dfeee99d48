"""The question of trust in plain mode: lines, and an answer that ends with enter. The default is no."""

import os
import sys
import termios
from collections.abc import Callable
from pathlib import Path

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.visible_text import escaped
from tui_agent.settings import Locations
from tui_agent.workbench.configuration.project_trust import TrustAnswer, TrustRequest, TrustStore, trust_request_for

_LONGEST_LINE = 4_096
"""Bytes; a terminal passes on no longer line."""
_ANSWERS: dict[str, TrustAnswer] = {"": "no", "n": "no", "no": "no", "t": "tightening", "a": "all"}
_PLAIN_YES: dict[str, TrustAnswer] = {"y": "tightening", "yes": "tightening"}
"""Answers to a folder without allow rules and tool servers."""


def ask_in_lines(
    folder: Path, locations: Locations, read: Callable[[], str | None], say: Callable[[str], None]
) -> None:
    """Ask the user to trust the folder's own settings, unless they have answered before, and store the answer. Blocks.

    Args:
        folder: the working directory.
        locations: the user's directories.
        read: returns the next line without its end; None at the end of the input, which answers nothing.
        say: writes a line.

    Raises:
        ConfigurationError: the answer cannot be stored.
    """
    store = TrustStore(locations)
    try:
        offer = trust_request_for(folder, locations)
    except ConfigurationError:
        return  # Settings that cannot be read are not applied, and `config check` says why.
    if offer is None or store.knows(offer):
        return
    say("This folder has its own settings or instructions.")
    say(f"  folder: {_in_one_line(str(offer.folder))}")
    for heading, entries in offer.sections:
        say(f"  {heading}:")
        for entry in entries:
            say(f"    {_in_one_line(entry)}")
    answer = _answer(offer, read, say)
    if answer is not None:
        store.remember(offer, answer)
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
    answers = _ANSWERS if offer.powers else _ANSWERS | _PLAIN_YES
    choices = f"t yes, without {offer.powers} · a yes, {offer.powers} too" if offer.powers else "y yes"
    while True:
        say(f"Apply them? enter no · {choices}")
        line = read()
        if line is None:
            return None
        if (answer := answers.get(line.strip().casefold())) is not None and (answer != "all" or offer.powers):
            return answer
