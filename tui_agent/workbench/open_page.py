"""Opens a page in the user's browser. Only the user's yes calls it, never a server."""

import asyncio
import os
import shutil
import sys
from collections.abc import Mapping

from tui_agent.tools.processes.child_environment import child_environment

NO_BROWSER = "No browser can be opened here."
_SECONDS = 5.0


def opener(environment: Mapping[str, str]) -> str | None:
    """Return the program that opens pages in a window; None in a terminal without a desktop.

    Browsers in the terminal, which `$BROWSER` may name, would take the terminal from the screen.
    """
    if sys.platform == "darwin":
        return "/usr/bin/open"
    if environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY") or environment.get("WSL_DISTRO_NAME"):
        return shutil.which("xdg-open") or shutil.which("wslview")
    return None


async def open_page(url: str) -> str:
    """Open a page; return why that is impossible."""
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
