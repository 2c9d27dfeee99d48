"""Check of a command's syntax by bash itself, which runs nothing for it."""

import asyncio
import os
from asyncio.subprocess import DEVNULL, PIPE
from contextlib import suppress
from pathlib import Path

from tui_agent.protocol.programs import find_program, open_script

from .processes.child_environment import child_environment

_LONGEST = 2_000
"""Most characters of bash's message."""


async def syntax_error(text: str, workspace: Path) -> str:
    """Return bash's message if it certainly cannot read a text; empty otherwise.

    Settings that a text makes itself may change how bash reads the rest.
    """
    bash = find_program("bash", workspace)
    if bash is None or "expand_aliases" in text:
        return ""
    message = ""
    # Without a check, the user decides.
    with suppress(OSError):
        message = await _message(bash, text)
        message = message and await _message(bash, text, "-O", "extglob") and message
    return message


async def _message(bash: Path, text: str, *options: str) -> str:
    script = open_script(text)
    try:
        process = await asyncio.create_subprocess_exec(
            *(str(bash), "--noprofile", "--norc", "-n", *options),
            stdin=script,
            stdout=DEVNULL,
            stderr=PIPE,
            cwd="/",
            env=child_environment(os.environ),
        )
    finally:
        os.close(script)
    try:
        _, message = await process.communicate()
    except BaseException:
        with suppress(ProcessLookupError):
            process.kill()
        raise
    return message.decode("utf-8", "replace").strip()[:_LONGEST] if process.returncode else ""
