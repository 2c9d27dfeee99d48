"""Copies to the clipboard of the user's own terminal, also from inside tmux and GNU screen.

A terminal takes a copy as OSC 52. tmux ignores that from programs unless `set-clipboard` is `on`, but sends what its
own command gets. screen passes sequences on only in short device control strings.
"""

import base64
import os
import subprocess
from collections.abc import Mapping
from contextlib import suppress

_SHORT = 240
"""Characters in one string for screen, which drops strings longer than 256 in its oldest versions."""
_SECONDS = 5.0
_FOR_TMUX = ("PATH", "HOME", "LANG", "TERM", "TMUX", "TMUX_TMPDIR")
"""Variables that tmux needs; it gets no others, because they may hold secrets."""


def copy_sequence(text: str, environment: Mapping[str, str]) -> str:
    """Return the characters that make a terminal copy a text; lone surrogates become question marks."""
    sequence = f"\x1b]52;c;{base64.b64encode(text.encode('utf-8', 'replace')).decode()}\x07"
    if "STY" not in environment or "TMUX" in environment:
        return sequence
    parts = (sequence[start : start + _SHORT] for start in range(0, len(sequence), _SHORT))
    return "".join(f"\x1bP{part}\x1b\\" for part in parts)


def hand_to_tmux(text: str) -> None:
    """Let tmux copy a text, to its own buffer and to the terminal; without tmux 3.2 nothing happens. Blocks."""
    with suppress(OSError, subprocess.SubprocessError):
        subprocess.run(
            ("tmux", "load-buffer", "-w", "-"),
            input=text.encode("utf-8", "replace"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={name: os.environ[name] for name in _FOR_TMUX if name in os.environ},
            timeout=_SECONDS,
            check=False,
        )
