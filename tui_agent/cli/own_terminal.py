"""Whether the program stands in front of a person."""

import sys

from tui_agent.protocol.errors import ConfigurationError


def need_terminal(otherwise: str) -> None:
    """Refuses where a stream is no terminal; Textual reads from one and draws on standard error.

    Raises:
        ConfigurationError: it is none; `otherwise` says what to do then.
    """
    for name, stream in (("input", sys.stdin), ("output", sys.stdout), ("error", sys.stderr)):
        if not stream.isatty():
            words = f"the full-screen app needs a terminal, and standard {name} is none; {otherwise}"
            raise ConfigurationError(words)
