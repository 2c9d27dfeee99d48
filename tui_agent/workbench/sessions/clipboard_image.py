"""The image in the clipboard of the desktop, by the programs of its system."""

import asyncio
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tui_agent.protocol.programs import find_program
from tui_agent.tools.processes.child_environment import child_environment

_SECONDS = 5.0
_MOST = 50 * 1024**2
"""Largest image in bytes, as for files."""


def readers(environment: Mapping[str, str], workspace: Path) -> list[tuple[str, ...]]:
    """Return the command lines that may print the image; none without a desktop or its program. Blocks."""
    known: list[tuple[str, ...]] = []
    if environment.get("WAYLAND_DISPLAY"):
        known.append(("wl-paste", "--no-newline", "--type", "image/png"))
    if environment.get("DISPLAY"):
        known.append(("xclip", "-selection", "clipboard", "-target", "image/png", "-out"))
    if sys.platform == "darwin":
        known.append(("pngpaste", "-"))
    found = ((find_program(name, workspace), rest) for name, *rest in known)
    return [(str(program), *rest) for program, rest in found if program is not None]


async def clipboard_image(workspace: Path) -> bytes:
    """Return the PNG in the clipboard; empty if there is none."""
    for command in await asyncio.to_thread(readers, os.environ, workspace):
        with suppress(OSError, TimeoutError):
            if content := await _output_of(command):
                return content
    return b""


async def _output_of(command: tuple[str, ...]) -> bytes:
    """Return what a program prints; empty if it fails or prints too much.

    Raises:
        OSError: it cannot be started.
        TimeoutError: it does not answer.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=child_environment(os.environ),
        start_new_session=True,
    )
    assert process.stdout is not None
    pieces: list[bytes] = []
    try:
        async with asyncio.timeout(_SECONDS):
            while (piece := await process.stdout.read(65_536)) and sum(map(len, pieces)) <= _MOST:
                pieces.append(piece)
            if piece or await process.wait():
                return b""
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    return b"".join(pieces)
