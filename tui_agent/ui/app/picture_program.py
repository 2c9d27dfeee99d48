"""Program that draws an image over the whole terminal until a key is pressed. The app runs it, but never imports it.

textual-image asks the terminal what it can draw and waits for the answer, and a hostile image can take much time and
memory: both would stop the app. Arguments: the media type, the number of the descriptor that has the image, and a line
of text to show below it. Standard error has the reason if the exit code is not 0.
"""

import os
import re
import resource
import shutil
import sys
import termios
from typing import Any

from PIL import Image, UnidentifiedImageError
from rich.console import Console
from textual_image.renderable import Image as Picture
from textual_image.renderable.sixel import Image as SixelPicture
from textual_image.renderable.tgp import Image as KittyPicture

_MEMORY = 2 * 1024**3
_MOST_PIXELS = 64_000_000
_SECONDS = 30
"""Seconds of the processor."""
_SIDE = 1_600
"""Most pixels per side that are sent to the terminal."""
_BROKEN = (
    *(Image.DecompressionBombError, UnidentifiedImageError),
    *(OSError, ValueError, SyntaxError, MemoryError),
)
_CELL = (10, 20)
"""Pixels of a cell, if the terminal does not say."""
_HALF_BLOCKS = (1, 2)
"""Pixels of a cell, where it shows colours only."""
_SEQUENCES = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b_[^\x1b]*\x1b\\")
_MOST_CELLS = 250
"""Most columns and rows: kitty's placeholders count no further."""


def main(media_type: str, descriptor: int, text: str) -> int:
    """Draw the image, wait for a key, and leave the terminal as it was."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    Image.MAX_IMAGE_PIXELS = _MOST_PIXELS
    try:
        with open(descriptor, "rb") as file:
            image = Image.open(file, formats=[media_type.removeprefix("image/").upper()])
            image.thumbnail((_SIDE, _SIDE))
            image = image.convert("RGBA")
    except _BROKEN as error:
        sys.stderr.write(str(error)[:200] or "it cannot be decoded")
        return 1
    _show(image, text)
    return 0


def _show(image: Image.Image, text: str) -> None:
    columns, rows = shutil.get_terminal_size()
    width, height = _cells(image.size, (min(columns, _MOST_CELLS), min(max(1, rows - 2), _MOST_CELLS)))
    picture = Picture(image, width=width, height=height)
    console = Console(width=columns, height=rows, color_system="truecolor", force_terminal=True, markup=False)
    before = _take_keys()
    sys.stdout.write("\x1b[?1049h\x1b[2J\x1b[H")
    try:
        console.print(picture)
        sys.stdout.write(f"\x1b[{rows};1H\x1b[2m{text[: max(0, columns - 1)]}\x1b[m")
        sys.stdout.flush()
        _wait_for_key()
    finally:
        if isinstance(picture, KittyPicture):
            picture.cleanup()
        sys.stdout.write("\x1b[?1049l")
        sys.stdout.flush()
        termios.tcsetattr(0, termios.TCSAFLUSH, before)


def _cells(pixels: tuple[int, int], room: tuple[int, int]) -> tuple[int, int]:
    """Return columns and rows of an image that keeps its proportions, at most `room`, and at most its own size."""
    cell_width, cell_height = _cell_size()
    width, height = pixels[0] / cell_width, pixels[1] / cell_height
    scale = min(1.0, room[0] / width, room[1] / height)
    return max(1, int(width * scale)), max(1, int(height * scale))


def _cell_size() -> tuple[int, int]:
    if not issubclass(Picture, KittyPicture | SixelPicture):
        return _HALF_BLOCKS
    from textual_image._terminal import get_cell_size

    width, height = get_cell_size()
    return (width, height) if width > 0 and height > 0 else _CELL


def _take_keys() -> list[Any]:
    """Let each key arrive at once and unseen, before anything says that one closes; return the terminal's state."""
    before, now = termios.tcgetattr(0), termios.tcgetattr(0)
    now[3] &= ~(termios.ECHO | termios.ICANON | termios.ISIG | termios.IEXTEN)
    termios.tcsetattr(0, termios.TCSAFLUSH, now)
    return before


def _wait_for_key() -> None:
    """Wait for a key. A sequence is none: it may be a late answer of the terminal."""
    while (data := os.read(0, 1024)) and not _SEQUENCES.sub(b"", data):
        pass


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
