"""A picture over the whole terminal, drawn by a program of its own with the terminal's graphics: sixel or kitty's."""

import base64
import binascii
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.extras import install_command
from tui_agent.protocol.messages import ImageBlock
from tui_agent.protocol.visible_text import escaped

_PROGRAM = Path(__file__).with_name("picture_program.py")
_VARIABLES = ("TERM", "COLORTERM", "COLUMNS", "LINES", "LANG", "LC_ALL", "LC_CTYPE", "PATH", "LD_LIBRARY_PATH")
"""Variables that the program gets: those about the terminal, and those that Python needs."""
_LONGEST_REASON = 300
"""Characters of the program's own words in a message."""


def can_draw_pictures() -> bool:
    """True if the packages of the extra `images` are installed."""
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
        with tempfile.TemporaryFile() as file:
            file.write(base64.b64decode(image.data, validate=True))
            file.seek(0)
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
