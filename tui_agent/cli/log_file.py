"""Where log lines go: never to the terminal, which belongs to the screen; with `--verbose` to a file of ours."""

import logging
from logging.handlers import RotatingFileHandler

from tui_agent.session import make_private_directory
from tui_agent.settings import Locations

LARGEST_FILE = 1_000_000
"""Bytes; then a new file is begun, and three old ones are kept."""


def log_to_file(locations: Locations, *, verbose: bool) -> None:
    """Keeps warnings of libraries off the terminal; with `verbose` writes them, and more, to a file.

    Raises:
        OSError: the file cannot be made.
    """
    logging.captureWarnings(True)
    root = logging.getLogger()
    root.handlers.clear()
    if not verbose:
        root.addHandler(logging.NullHandler())
        return
    make_private_directory(locations.log_dir)
    handler = RotatingFileHandler(
        locations.log_dir / "tui-agent.log", maxBytes=LARGEST_FILE, backupCount=3, encoding="utf-8", delay=True
    )
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    # These write headers of requests, in which the key is.
    for name in ("httpcore2", "httpx2", "anthropic"):
        logging.getLogger(name).setLevel(logging.WARNING)
