"""Start and end of the prelude."""

import os
import sys

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .early_terminal import EarlyTerminal

_FLAGS = frozenset(("--demo", "--no-mouse", "--no-session", "--trust", "--verbose"))
_VALUED = frozenset((
    "--allow", "--append-system", "--ask", "--base-url", "--deny", "--max-steps", "--model", "--permission-mode",
    "--session", "--strategy", "--system", "--theme", "--tool-timeout",
))  # fmt: skip
"""Options with which a new session begins on the start page. Any other argument means no prelude."""

_TEXTUAL = frozenset(("TEXTUAL_ALLOW_SIGNALS", "TEXTUAL_DRIVER"))
"""Variables with which Textual treats the terminal in another way, or shows the app elsewhere."""

_early: "EarlyTerminal | None" = None


def begin(arguments: "Sequence[str]") -> None:
    """Show the start page and keep what is typed, if the program will show the start page. Call this once, first."""
    global _early
    if not (leads_to_start_page(arguments) and _is_usable(os.environ)):
        return
    # Imported here because most commands need no screen.
    import termios

    from .early_terminal import EarlyTerminal
    from .kept_frame import FrameNames

    try:
        _early = EarlyTerminal()
        _early.show_page(FrameNames(arguments, os.environ))
    except (OSError, RuntimeError, MemoryError, termios.error):
        # Without a prelude, or without its page, the program starts as well.
        return


def early_terminal() -> "EarlyTerminal | None":
    """Return the terminal of the prelude; None if there was no prelude."""
    return _early


def release() -> None:
    """Restore the terminal for a message or a dialog before the app; what was typed is kept for the app."""
    if _early is not None:
        _early.release()


def end() -> None:
    """Restore the terminal if the app has never taken it, and name the text that it has not received."""
    if _early is not None:
        _early.release()
        _early.say_unsent()


def leads_to_start_page(arguments: "Sequence[str]") -> bool:
    """Return True if these arguments begin a new session on its start page."""
    rest = iter(arguments)
    for argument in rest:
        name, is_whole, _ = argument.partition("=")
        if name in _VALUED:
            if not is_whole and next(rest, None) is None:
                return False
        elif argument not in _FLAGS:
            return False
    return True


def _is_usable(environment: "Mapping[str, str]") -> bool:
    """Return True if the standard streams are one terminal that belongs to this process and reads UTF-8."""
    if environment.get("TERM", "") in ("", "dumb") or _TEXTUAL & {*environment}:
        return False
    streams = sys.__stdin__, sys.__stdout__, sys.__stderr__
    if any(stream is None for stream in streams) or getattr(sys.__stderr__, "encoding", "").lower() != "utf-8":
        return False
    try:
        devices = {os.fstat(number).st_rdev for number in range(3)}
        is_ours = all(map(os.isatty, range(3))) and len(devices) == 1 and os.tcgetpgrp(0) == os.getpgrp()
        return is_ours and all(os.get_terminal_size(2))
    except OSError:
        return False
