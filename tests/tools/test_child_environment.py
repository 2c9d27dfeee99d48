"""What children are told: no secrets, no pagers, no prompts."""

import subprocess
from pathlib import Path

import pytest

from tui_agent.tools.child_environment import child_environment, with_read_only_git


@pytest.mark.parametrize(
    "name",
    [
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_BASE_URL",
        "TUI_AGENT_HOME",
        "AWS_SECRET_ACCESS_KEY",
        "GITHUB_TOKEN",
        "npm_token",
        "CLIENT_SECRET",
        "DB_PASSWORD",
        "PGPASSWORD",
        "MYSQL_PWD",
        "SOME_APIKEY",
        "GITHUB_PAT",
        "KEY",
        "BASH_ENV",
        "ENV",
        "SHELLOPTS",
        "CDPATH",
        "BASH_FUNC_ls%%",
    ],
)
def test_secrets_and_shell_hooks_are_dropped(name: str) -> None:
    assert name not in child_environment({name: "x"})


@pytest.mark.parametrize("name", ["PATH", "HOME", "LANG", "VIRTUAL_ENV", "PWD", "KEYBOARD", "SSH_AUTH_SOCK", "MONKEY"])
def test_the_rest_stays(name: str) -> None:
    assert child_environment({name: "x"})[name] == "x"


def test_nothing_may_ask_or_page() -> None:
    environment = child_environment({"PAGER": "less", "TERM": "xterm", "GIT_ASKPASS": "/bin/ask"})

    assert environment["PAGER"] == environment["GIT_PAGER"] == "cat"
    assert environment["TERM"] == "dumb"
    assert environment["GIT_ASKPASS"] == ""
    assert environment["GIT_TERMINAL_PROMPT"] == "0"


@pytest.mark.parametrize("inherited", [{}, {"GIT_CONFIG_COUNT": "x"}])
def test_a_repository_cannot_make_reading_git_start_a_program(root: Path, inherited: dict[str, str]) -> None:
    proof = root / "proof"
    subprocess.run(["git", "init", "-q", "."], cwd=root, check=True)
    subprocess.run(["git", "config", "core.fsmonitor", f"touch {proof};false"], cwd=root, check=True)
    environment = with_read_only_git(child_environment({"PATH": "/usr/local/bin:/usr/bin:/bin", **inherited}))

    subprocess.run(["git", "status"], cwd=root, env=environment, check=True, capture_output=True)

    assert not proof.exists()
    subprocess.run(["git", "status"], cwd=root, check=True, capture_output=True)
    assert proof.exists(), "without the settings, it does"


def test_settings_for_git_are_added_behind_those_there_are() -> None:
    environment = with_read_only_git({"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "a.b", "GIT_CONFIG_VALUE_0": "c"})

    assert environment["GIT_CONFIG_KEY_0"] == "a.b"
    assert environment["GIT_CONFIG_KEY_1"] == "core.fsmonitor"
    assert int(environment["GIT_CONFIG_COUNT"]) == sum(name.startswith("GIT_CONFIG_KEY_") for name in environment)
