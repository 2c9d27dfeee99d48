"""Variables that settings name as secrets: commands, hooks and servers do not inherit them."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.workbench.quiet_bench import open_quietly
from tui_agent.protocol.events import Noticed
from tui_agent.settings import Locations
from tui_agent.tools.processes.child_environment import child_environment, pass_on
from tui_agent.workbench.configuration.launch_options import LaunchOptions

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


@pytest.fixture(autouse=True)
def own_environment(clean_environment: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Leave what a program needs: the machine may have variables with names or values like those of these tests."""
    for name in os.environ.keys() - {"HOME", "PATH", "TUI_AGENT_SANDBOX"}:
        monkeypatch.delenv(name)
    yield
    pass_on(())


async def test_withheld_variables_are_named_once_and_the_users_settings_pass_named_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GH_TOKEN", "NPM_TOKEN", "AWS_SECRET_ACCESS_KEY", "DATABASE_URL"):
        monkeypatch.setenv(name, "canary-of-" + name)
    file = Locations.of_user(os.environ).user_file
    file.parent.mkdir(parents=True)
    file.write_text('sandbox = "off"\n[env]\npass = ["GH_TOKEN"]\n')
    (tmp_path / ".tui-agent").mkdir()
    (tmp_path / ".tui-agent" / "config.toml").write_text('[env]\npass = ["NPM_TOKEN"]\n')
    options = replace(LaunchOptions.for_command(tmp_path), demo=True, trust=True)

    async with open_quietly(options, watched=False) as bench:
        bench.policy.set_mode("allow")
        with bench.events.subscribe() as heard:
            first, second = [await bench.agent.run_command("bash", {"command": "env"}, "!env") for _ in range(2)]
            events = [envelope.event for envelope in heard.drain()]

    notes = [event.text for event in events if isinstance(event, Noticed) and event.code == "variables_withheld"]
    note = (
        "not set for commands: AWS_SECRET_ACCESS_KEY, DATABASE_URL, NPM_TOKEN "
        "(the user's setting `env.pass` passes them)"
    )
    assert "canary-of-GH_TOKEN" in first.text
    assert first.text.count("canary-of-") == 1
    assert first.text.endswith(f"[{note}]")
    assert "env.pass" not in second.text
    assert notes == [f"{note}."]


async def test_no_child_inherits_a_variable_that_settings_name_as_a_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its name is, and although neither the endpoint nor the servers are in use."""
    for name in (*SECRETS, *OTHERS):
        monkeypatch.setenv(name, "canary-of-" + name)
    file = Locations.of_user(os.environ).user_file
    file.parent.mkdir(parents=True)
    file.write_text(SETTINGS)
    project = tmp_path / "project"
    project.mkdir()

    async with open_quietly(replace(LaunchOptions.for_command(project), demo=True), watched=False):
        inherited = child_environment(os.environ)
    shown = subprocess.run(["env"], env=inherited, capture_output=True, text=True, check=True)  # noqa: ASYNC221

    assert [name for name in SECRETS if name in shown.stdout] == []
    assert [name for name in OTHERS if name in shown.stdout] == list(OTHERS)
    assert {"HOME", "PATH"} <= inherited.keys()
