"""Variables that settings name as secrets: commands, hooks and servers do not inherit them."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tui_agent.cli.build_engine import open_engine
from tui_agent.cli.launch_options import LaunchOptions
from tui_agent.settings import Locations
from tui_agent.tools.processes.child_environment import child_environment

SETTINGS = """
[providers.box]
base_url = "http://127.0.0.1:1"
key_env = "BOX_LOGIN"

[mcp.docs]
url = "http://127.0.0.1:1/mcp"
bearer_token_env = "DOCS_LOGIN"

[mcp.web]
url = "http://127.0.0.1:1/mcp"
headers = { Authorization = "Bearer ${WEB_LOGIN}", X-Team = "${TEAM_NAME}" }

[mcp.git]
command = "no-such-program"
env = { GIT_TOKEN = "${GIT_LOGIN:-none}", GIT_AUTHOR = "${AUTHOR_NAME}" }

[mcp.files]
command = "no-such-program"
env = { TOKEN_FILE = "${HOME}/.token", SSH_AUTH_SOCK = "${SSH_AUTH_SOCK}" }

[mcp.odd]
url = "http://127.0.0.1:1/mcp"
bearer_token_env = "PATH"
"""
SECRETS = ("BOX_LOGIN", "DOCS_LOGIN", "WEB_LOGIN", "GIT_LOGIN")
OTHERS = ("TEAM_NAME", "AUTHOR_NAME", "SSH_AUTH_SOCK")


async def test_no_child_inherits_a_variable_that_settings_name_as_a_secret(
    tmp_path: Path, clean_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its name is, and although neither the endpoint nor the servers are in use."""
    for name in (*SECRETS, *OTHERS):
        monkeypatch.setenv(name, "canary-of-" + name)
    file = Locations.of_user(os.environ).user_file
    file.parent.mkdir(parents=True)
    file.write_text(SETTINGS)
    project = tmp_path / "project"
    project.mkdir()

    async with open_engine(replace(LaunchOptions.for_command(project), demo=True), watched=False):
        inherited = child_environment(os.environ)
    shown = subprocess.run(["env"], env=inherited, capture_output=True, text=True, check=True)  # noqa: ASYNC221

    assert [name for name in SECRETS if name in shown.stdout] == []
    assert [name for name in OTHERS if name in shown.stdout] == list(OTHERS)
    assert {"HOME", "PATH"} <= inherited.keys()
