"""The text of a downloaded page: HTML as Markdown, other text as it is."""

import asyncio
import codecs
import os
import sys
import tempfile
from pathlib import Path
from typing import BinaryIO

from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import ToolError
from tui_agent.tools.processes.child_environment import child_environment
from tui_agent.tools.processes.process import ProcessSpec, run_process
from tui_agent.tools.search.file_listing import BoundedBytes

from .download import LARGEST_PAGE, Page

_WORKER = Path(__file__).with_name("html_worker.py")
_HTML = ("text/html", "application/xhtml+xml")
_TEXT = (
    "application/json",
    "application/ld+json",
    "application/xml",
    "application/javascript",
    "application/x-javascript",
    "application/x-sh",
    "application/yaml",
    "application/x-yaml",
    "application/toml",
    "application/x-ndjson",
    "application/sql",
    "image/svg+xml",
)
_ERRORS_SIZE = 4_000
_UNSAFE_CODECS = ("idna", "punycode", "raw_unicode_escape", "undefined", "unicode_escape", "utf_7")
"""Codecs that take time with the square of the size, or make lone surrogates, which no request can contain."""


def is_html(page: Page) -> bool:
    """True for HTML, also if the server names no type."""
    if page.media_type:
        return page.media_type in _HTML
    return page.data[:512].lstrip().lower().startswith((b"<!doctype html", b"<html"))


def is_text(page: Page) -> bool:
    """True for text of any kind."""
    kind = page.media_type
    return (
        kind.startswith("text/")
        or kind in _TEXT
        or kind.endswith(("+json", "+xml", "+yaml"))
        or (not kind and b"\0" not in page.data[:8_192])
    )


def plain_text(page: Page) -> str:
    """Decode a text page other than HTML; invalid bytes become U+FFFD."""
    try:
        return page.data.decode(_charset(page) or "utf-8", "replace").removeprefix("\ufeff")
    except (LookupError, UnicodeError):
        return page.data.decode("utf-8", "replace").removeprefix("\ufeff")


def _charset(page: Page) -> str:
    """Return the character set that the server named; empty if it cannot be used."""
    try:
        name = codecs.lookup(page.charset).name
    except (LookupError, ValueError):
        return ""
    return "" if name.replace("-", "_") in _UNSAFE_CODECS else name


async def markdown_of(page: Page, seconds: float, cancellation: CancellationToken) -> str:
    """Return an HTML page as Markdown, made by a process of its own.

    Raises:
        ToolError: it takes longer than `seconds` or too much memory.
        OperationCancelledError: the call was cancelled.
        OSError: the process could not be started.
    """
    output, errors = BoundedBytes(LARGEST_PAGE), BoundedBytes(_ERRORS_SIZE)
    with tempfile.TemporaryFile() as file:
        await asyncio.to_thread(_fill, file, page.data)
        argv = (sys.executable, "-I", "-B", "-W", "ignore", str(_WORKER), page.url, _charset(page), str(file.fileno()))
        environment = child_environment(os.environ)
        spec = ProcessSpec(argv, Path("/"), environment, seconds, descriptors=(file.fileno(),))
        outcome = await run_process(spec, output, errors, cancellation)
    cancellation.raise_if_set()
    if outcome.ending == "timeout":
        raise ToolError(f"{page.url}: the page is too complex to be read as text in {seconds:.0f} s")
    if outcome.returncode != 0 and outcome.ending == "exited":
        last = errors.data.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise ToolError(f"{page.url}: the page cannot be read as text: {last or 'not enough memory'}")
    return output.data.decode("utf-8", "replace")


def _fill(file: BinaryIO, data: bytes) -> None:
    file.write(data)
    file.seek(0)
