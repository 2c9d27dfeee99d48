"""Programs that run only because of the user's own settings or answers: hooks, command lines, the browser."""

import asyncio
import os
import shutil
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from tui_agent.execution import HookBus, ProcessHook
from tui_agent.settings import HookSettings
from tui_agent.tools.processes.child_environment import child_environment

MOST_BYTES = 256 * 1024
"""Most bytes that are read of the output, and of the errors."""


async def run_line(
    command: str,
    seconds: float,
    *,
    given: bytes | None = None,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> tuple[int, str, str]:
    """Run a command line for bash and return its exit code, its output and its errors.

    A command that writes more than `MOST_BYTES` is ended: its exit code is then -9.

    Args:
        seconds: longest time that it may take; it is then ended with what it started.
        given: its standard input; None for none.
        folder: its working directory; None for that of this program.
        environment: its environment; None for that of this program.

    Raises:
        TimeoutError: it took longer.
        OSError: bash cannot be started, or not in this directory.
    """
    process = await asyncio.create_subprocess_exec(
        *("bash", "--noprofile", "--norc", "-c", command), stdin=DEVNULL if given is None else PIPE, stdout=PIPE,
        stderr=PIPE, cwd=folder, env=environment, process_group=0,
    )  # fmt: skip

    def end() -> None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    try:
        async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
            out, errors = (group.create_task(_read(one, end)) for one in (process.stdout, process.stderr))
            await _write(process.stdin, given)
            await process.wait()
    finally:
        if process.returncode is None:
            end()
            await process.wait()
    return process.returncode or 0, out.result().decode("utf-8", "replace"), errors.result().decode("utf-8", "replace")


async def _read(stream: asyncio.StreamReader | None, end: Callable[[], None]) -> bytes:
    """Return the output to its end; end the command if it is too long."""
    assert stream is not None
    try:
        data = await stream.readexactly(MOST_BYTES)
    except asyncio.IncompleteReadError as error:
        return error.partial
    end()
    return data


async def _write(stream: asyncio.StreamWriter | None, given: bytes | None) -> None:
    """Write the input; a command may end without reading it."""
    if stream is not None and given is not None:
        with suppress(BrokenPipeError, ConnectionResetError):
            stream.write(given)
            await stream.drain()
        stream.close()


def command_hooks(hooks: Iterable[HookSettings], working_dir: Path) -> HookBus:
    """Return a bus with these hook commands. Their environment contains no secrets."""
    bus = HookBus()
    environment = child_environment(os.environ)
    for hook in hooks:
        limit, mark = hook.timeout, marked_tree
        command = ProcessHook(hook.command, working_dir, environment, limit, hook.strict, mark, hook.fail_open)
        command.add_to(bus, hook.on)
    return bus


def marked_tree(environment: Mapping[str, str]) -> tuple[Mapping[str, str], Callable[[int], object]]:
    """Return an environment that marks a process, and a function that ends it with everything it started."""
    from tui_agent.tools.processes.process_tree import TreeMark, end_tree

    mark = TreeMark.new()
    return mark.put_into(environment), partial(end_tree, mark=mark, grace=0.0)


NO_BROWSER = "No browser can be opened here."
_SECONDS = 5.0


def opener(environment: Mapping[str, str]) -> str | None:
    """Return the program that opens pages in a window; None without a desktop or without such a program.

    Browsers in the terminal, which `$BROWSER` may name, would take the terminal from the screen.
    """
    if sys.platform == "darwin":
        return "/usr/bin/open"
    if environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY") or environment.get("WSL_DISTRO_NAME"):
        return shutil.which("xdg-open") or shutil.which("wslview")
    return None


async def open_page(url: str) -> str:
    """Open a page in the user's browser; return empty once the browser has it, else a sentence with the reason."""
    program = opener(os.environ)
    if program is None or not url.startswith(("http://", "https://")):
        return NO_BROWSER
    try:
        process = await asyncio.create_subprocess_exec(
            program,
            url,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            env=child_environment(os.environ),
            start_new_session=True,
        )
        async with asyncio.timeout(_SECONDS):
            code = await process.wait()
    except TimeoutError:
        return ""  # It has become the browser.
    except OSError as error:
        return f"{program} cannot be started: {error.strerror or error}."
    return "" if code == 0 else f"{program} failed with code {code}."
