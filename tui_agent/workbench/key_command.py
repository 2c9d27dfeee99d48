"""The command of the user's settings that prints a key, such as a token that expires after an hour."""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE
from contextlib import suppress

from tui_agent.protocol.errors import ProviderError

_SECONDS = 60.0
"""Most seconds that the command may take: it may ask another server."""
_LONGEST_REASON = 300


async def printed_key(command: str) -> str:
    """Run a command line for bash and return the key that it prints.

    Only the user's own settings name it, so it has the whole environment of this program.

    Raises:
        ProviderError: it failed, took too long, or printed no key.
    """
    process = await asyncio.create_subprocess_exec(
        *("bash", "--noprofile", "--norc", "-c", command), stdin=DEVNULL, stdout=PIPE, stderr=PIPE, process_group=0
    )
    try:
        async with asyncio.timeout(_SECONDS):
            out, err = await process.communicate()
    except TimeoutError:
        raise _failure(f"it took more than {_SECONDS:g} s") from None
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    key = out.decode("utf-8", "replace").strip()
    if process.returncode:
        reason = " ".join(err.decode("utf-8", "replace").split())[-_LONGEST_REASON:]
        raise _failure(f"exit code {process.returncode}{f': {reason}' if reason else ''}")
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        # The output stays out of the message: it may contain the key.
        raise _failure("it must print the key and nothing else")
    return key


def _failure(why: str) -> ProviderError:
    summary = f"`key_command` of the settings gave no key: {why}"
    text = f"{summary}. The conversation is kept; correct the command, then try again."
    return ProviderError(text, kind="unavailable", summary=summary)
