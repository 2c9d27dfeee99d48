"""Files with the tokens of servers (OAuth): one for each server and address, private to the user."""

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from tui_agent.protocol.messages import JsonObject, is_object
from tui_agent.protocol.regular_file import make_private_directories, read_regular_file

_LARGEST = 256 * 1024


class TokenStore:
    """The tokens for one server; another address of the same name has others."""

    def __init__(self, folder: Path, server: str, url: str) -> None:
        digest = hashlib.sha256(f"{server}\n{url}".encode("utf-8", "replace")).hexdigest()[:16]
        self.path = folder / f"{server}-{digest}.json"
        self._url = url

    def read(self) -> JsonObject:
        """Return what is stored; empty if there is nothing usable. Blocks."""
        try:
            stored: object = json.loads(read_regular_file(str(self.path), _LARGEST))
        except (OSError, ValueError, RecursionError):
            return {}
        return stored if is_object(stored) and stored.get("url") == self._url else {}

    def write(self, values: dict[str, Any]) -> None:
        """Replace what is stored. Blocks.

        Raises:
            OSError: the file cannot be written.
        """
        folder = self.path.parent
        make_private_directories(folder)
        folder.chmod(0o700)
        temporary = self.path.with_suffix(f".{os.getpid()}.new")
        with suppress(FileNotFoundError):
            temporary.unlink()
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(json.dumps({"url": self._url, **values}))
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    def remove(self) -> bool:
        """Remove the file; return False if there is none. Blocks."""
        try:
            self.path.unlink()
        except FileNotFoundError:
            return False
        return True
