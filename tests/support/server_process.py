"""The scripted Messages API in another process, for programs that run in a pty."""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


class ServerProcess:
    """Server that plays a script; a context manager that ends the process."""

    def __init__(self, script: Sequence[Mapping[str, Any]], directory: Path) -> None:
        file = directory / "script.json"
        file.write_text(json.dumps(list(script)), "utf-8")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.messages_server", str(file)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        told = json.loads(self._process.stdout.readline())
        self.base_url: str = told["base_url"]
        self.token: str = told["token"]

    def __enter__(self) -> "ServerProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment variables that make a program use this server."""
        return {"ANTHROPIC_BASE_URL": self.base_url, "ANTHROPIC_AUTH_TOKEN": self.token}

    @property
    def requests(self) -> list[dict[str, Any]]:
        """Return all requests so far; `problems` lists the faults for which the real API would have refused each."""
        with urllib.request.urlopen(f"{self.base_url}/control/requests", timeout=60) as answer:
            return json.loads(answer.read())["requests"]
