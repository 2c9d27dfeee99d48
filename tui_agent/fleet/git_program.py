"""Git for the worktrees of units: without hooks, prompts or background work, and killed if its caller is cancelled."""

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tui_agent.protocol.visible_text import without_sequences

from .unit_failure import UnitFailureError

_SETTINGS = (
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "gc.auto=0"),
    *("-c", "maintenance.auto=false"),
    *("-c", "core.pager=cat"),
    *("-c", "commit.gpgSign=false"),
    *("-c", "advice.detachedHead=false"),
    *("-c", "core.quotePath=true"),
)
_IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "tui-agent fleet"), ("EMAIL", "fleet@localhost"))
}
_LONGEST_REASON = 500


async def git(*arguments: str, environment: Mapping[str, str] | None = None, cwd: Path | None = None) -> bytes:
    """Run git and return its output.

    Args:
        arguments: its command line.
        environment: variables in addition to those of this process, without its `GIT_` variables.
        cwd: its directory; None: `/`.

    Raises:
        UnitFailureError: it failed; the text has its last message.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        process = await asyncio.create_subprocess_exec(
            "git",
            *_SETTINGS,
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=cwd or Path("/"),
            env=kept | _IDENTITY | {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"} | dict(environment or {}),
            start_new_session=True,
        )
    except OSError as error:
        raise UnitFailureError(f"git cannot be started: {error.strerror or error}") from error
    try:
        output, errors = await process.communicate()
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if process.returncode:
        raise UnitFailureError(_reason(errors) or f"git {arguments[0]} ended with code {process.returncode}")
    return output


def _reason(errors: bytes) -> str:
    lines = without_sequences(errors.decode("utf-8", "replace")).split("\n")
    telling = [line for line in lines if line.startswith(("fatal:", "error:"))] or [line for line in lines if line]
    return " ".join(line.removeprefix("fatal: ").removeprefix("error: ") for line in telling[:2])[:_LONGEST_REASON]
