"""Programs that borrow the terminal: the user's editor, for a draft or a call's input, and one that draws a picture."""

import asyncio
import base64
import binascii
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

from textual.app import SuspendNotSupported

from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.messages import ImageBlock
from tui_agent.protocol.programs import install_command
from tui_agent.protocol.visible_text import escaped
from tui_agent.ui.chat.chat_options import PictureRequested

from .base_app import BaseApp

T = TypeVar("T")
VARIABLES = ("VISUAL", "EDITOR")
"""Environment variables that name the editor; the first one that is set counts."""


def editor_command(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the command of the user's editor.

    Raises:
        TuiAgentError: no variable names one, or its quotes are not closed.
    """
    name = next((name for name in VARIABLES if environment.get(name, "").strip()), None)
    if name is None:
        raise TuiAgentError("No editor is set. Set VISUAL or EDITOR, such as EDITOR=nano, and start tui-agent again.")
    try:
        return tuple(shlex.split(environment[name]))
    except ValueError as error:
        raise TuiAgentError(f"{name} is not a command: {error}. Nothing was changed.") from error


def edit_text(command: tuple[str, ...], text: str, file_name: str | None = None) -> str:
    """Let the user edit a text in an editor, which gets the terminal, and return the new text. Blocks.

    Args:
        command: the editor with its arguments.
        text: the text.
        file_name: name of the file in which the editor finds it, and which keeps its last line end; None for a draft.

    Raises:
        TuiAgentError: the editor could not be started or failed, or its file cannot be read.
    """
    what = "draft" if file_name is None else "text"
    try:
        with tempfile.TemporaryDirectory(prefix="tui-agent-") as folder:
            path = Path(folder, file_name or "draft.md")
            path.write_text(text, "utf-8", "surrogateescape", newline="")
            code = subprocess.run([*command, os.fspath(path)], check=False).returncode
            if code != 0:
                raise TuiAgentError(f"{command[0]} ended with exit code {code}. Your {what} was kept.")
            edited = path.read_text("utf-8")
            # Editors end the last line; a file that ended so before still does.
            return edited if file_name is not None and text.endswith("\n") else edited.removesuffix("\n")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise TuiAgentError(f"{command[0]} could not edit the {what}: {reason}. Your {what} was kept.") from error


_EDITORS_WITH_GOTO = ("code", "codium", "code-insiders", "cursor", "windsurf")
_EDITORS_WITH_COLON = ("subl", "hx", "helix", "zed")
"""Editors that take a line in another form than `+LINE`."""

_PROGRAM = Path(__file__).with_name("picture_program.py")
_VARIABLES = ("TERM", "COLORTERM", "COLUMNS", "LINES", "LANG", "LC_ALL", "LC_CTYPE", "PATH", "LD_LIBRARY_PATH")
"""Variables that the program gets: those about the terminal, and those that Python needs."""
_LONGEST_REASON = 300
"""Characters of the program's own words in a message."""


def can_draw_pictures() -> bool:
    """Return True if the packages of the extra `images` are installed."""
    return find_spec("textual_image") is not None and find_spec("PIL") is not None


def missing_packages() -> str:
    """Return the notice that the packages are missing, and how to install them."""
    return f"Pictures are drawn with the extra images: {install_command('images')}."


def draw_picture(image: ImageBlock) -> None:
    """Draw an image until the user presses a key. The caller lends the terminal. Blocks.

    Raises:
        TuiAgentError: it cannot be drawn.
    """
    text = f"{escaped(image.name or image.media_type)} · any key closes"
    try:
        # Without a name, so that nothing is left behind if one of the programs is killed.
        with tempfile.TemporaryFile() as file:
            file.write(base64.b64decode(image.data, validate=True))
            file.seek(0)
            # Isolated: neither the workspace nor a variable chooses what Python imports.
            argv = (sys.executable, "-I", "-B", "-W", "ignore", str(_PROGRAM))
            done = subprocess.run(
                [*argv, image.media_type, str(file.fileno()), text],
                stderr=subprocess.PIPE,
                pass_fds=(file.fileno(),),
                env={name: os.environ[name] for name in _VARIABLES if name in os.environ},
                check=False,
            )
    except (OSError, binascii.Error, ValueError) as error:
        raise TuiAgentError(f"The picture cannot be drawn: {error}. Its small form is shown.") from error
    if done.returncode != 0:
        words = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        reason = escaped(" ".join(words))[:_LONGEST_REASON] or f"its program ended with exit code {done.returncode}"
        raise TuiAgentError(f"The picture cannot be drawn: {reason}. Its small form is shown.")


async def _borrow(app: BaseApp[None], work: Callable[[], T], kept: T) -> tuple[T, str]:
    """Lend the terminal to a program that runs in a thread; return its result, or `kept` and why it failed."""
    done, failure = kept, ""
    with app.lend_terminal():
        # An error that left this block would leave the terminal to the shell.
        try:
            done = await asyncio.to_thread(work)
        except TuiAgentError as error:
            failure = str(error)
    return done, failure


async def _borrow_for_editor(app: BaseApp[None], edit: Callable[[tuple[str, ...]], T], kept: T) -> tuple[T, str]:
    """Lend the terminal to the user's editor, whose command `edit` gets."""
    try:
        return await _borrow(app, partial(edit, editor_command(os.environ)), kept)
    except TuiAgentError as error:
        return kept, str(error)
    except SuspendNotSupported:
        return kept, "An editor needs a terminal of its own, which this program does not have."


async def edit_outside(app: BaseApp[None], text: str, file_name: str | None = None) -> tuple[str, str]:
    """Open a text in the user's editor; return the new text and an empty text, or the old one and why that failed.

    Args:
        file_name: as for `edit_text`.
    """
    return await _borrow_for_editor(app, lambda command: edit_text(command, text, file_name), text)


def file_arguments(editor: str, path: str, line: int) -> tuple[str, ...]:
    """Return the arguments with which an editor opens a file at a line; 0 for none."""
    if not line:
        return (path,)
    name = os.path.basename(editor)
    if name in _EDITORS_WITH_GOTO:
        return ("--goto", f"{path}:{line}")
    return (f"{path}:{line}",) if name in _EDITORS_WITH_COLON else (f"+{line}", path)


def _open_file(command: tuple[str, ...], path: str, line: int) -> None:
    """Open a file in an editor, which gets the terminal. Blocks.

    Raises:
        TuiAgentError: the editor could not be started, or failed.
    """
    try:
        code = subprocess.run([*command, *file_arguments(command[0], path, line)], check=False).returncode
    except (OSError, ValueError) as error:
        raise TuiAgentError(f"{command[0]} could not be started: {error}.") from error
    if code != 0:
        raise TuiAgentError(f"{command[0]} ended with exit code {code}.")


async def open_file_outside(app: BaseApp[None], path: str, line: int) -> str:
    """Open a file in the user's editor; return why that failed."""
    return (await _borrow_for_editor(app, lambda command: _open_file(command, path, line), None))[1]


async def show_picture(app: BaseApp[None], event: PictureRequested) -> None:
    """Let a program draw the picture; where that is not possible, show its small form on a page."""
    failure = "" if can_draw_pictures() else missing_packages()
    if not failure:
        with suppress(SuspendNotSupported):
            _, failure = await _borrow(app, partial(draw_picture, event.image), None)
            if not failure:
                return
    app.push_screen(event.page)
    if failure:
        app.notify(failure, severity="warning", markup=False)
