"""The environment of child processes: no secrets, no pagers, no prompts."""

import os
import subprocess
from pathlib import Path

import pytest

from tui_agent.tools.processes.child_environment import child_environment, read_only_environment

STEERING = (
    "RIPGREP_CONFIG_PATH",
    "LD_PRELOAD",
    "NODE_OPTIONS",
    "TAR_OPTIONS",
    "GIT_DIR",
    "GIT_EXEC_PATH",
    "GIT_EXTERNAL_DIFF",
    "GIT_CONFIG_PARAMETERS",
    "GIT_TRACE",
)


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
        "TEXTUAL_DRIVER",
        "BASH_ENV",
        "ENV",
        "SHELLOPTS",
        "CDPATH",
        "POSIXLY_CORRECT",
        "BASH_COMPAT",
        "BASH_FUNC_ls%%",
    ],
)
def test_secrets_and_shell_hooks_are_dropped(name: str) -> None:
    assert name not in child_environment({name: "x"})


@pytest.mark.parametrize("name", ["PATH", "HOME", "LANG", "VIRTUAL_ENV", "PWD", "KEYBOARD", "SSH_AUTH_SOCK", "MONKEY"])
def test_other_variables_stay(name: str) -> None:
    assert child_environment({name: "x"})[name] == "x"


def test_prompts_and_pagers_are_off() -> None:
    environment = child_environment({"PAGER": "less", "TERM": "xterm", "GIT_ASKPASS": "/bin/ask"})

    assert environment["PAGER"] == environment["GIT_PAGER"] == "cat"
    assert environment["TERM"] == "dumb"
    assert environment["GIT_ASKPASS"] == ""
    assert environment["GIT_TERMINAL_PROMPT"] == "0"


@pytest.mark.parametrize("inherited", [{}, {"GIT_CONFIG_COUNT": "x"}])
def test_a_repository_cannot_make_read_only_git_start_a_program(root: Path, inherited: dict[str, str]) -> None:
    proof = root / "proof"
    subprocess.run(["git", "init", "-q", "."], cwd=root, check=True)
    subprocess.run(["git", "config", "core.fsmonitor", f"touch {proof};false"], cwd=root, check=True)
    environment = read_only_environment(child_environment({"PATH": "/usr/local/bin:/usr/bin:/bin", **inherited}), root)

    subprocess.run(["git", "status"], cwd=root, env=environment, check=True, capture_output=True)

    assert not proof.exists()
    subprocess.run(["git", "status"], cwd=root, check=True, capture_output=True)
    assert proof.exists(), "without the settings, it does"


def test_git_settings_are_added_after_existing_ones() -> None:
    inherited = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "a.b", "GIT_CONFIG_VALUE_0": "c"}
    environment = read_only_environment(inherited, Path("/work"))

    assert environment["GIT_CONFIG_KEY_0"] == "a.b"
    assert environment["GIT_CONFIG_KEY_1"] == "core.fsmonitor"
    assert int(environment["GIT_CONFIG_COUNT"]) == sum(name.startswith("GIT_CONFIG_KEY_") for name in environment)


@pytest.mark.parametrize("name", ["PATH", "LD_LIBRARY_PATH", "PYTHONPATH"])
def test_a_read_only_command_searches_nothing_in_the_workspace(tmp_path: Path, root: Path, name: str) -> None:
    (tmp_path / "link").symlink_to(root / "bin")
    entries = ["/usr/bin", ".", "bin", "", str(root), str(root / "bin"), str(tmp_path / "link"), str(tmp_path / "own")]

    environment = read_only_environment({name: ":".join(entries)}, root)

    assert environment[name] == f"/usr/bin:{tmp_path / 'own'}"


def test_a_read_only_command_never_searches_the_current_directory(root: Path) -> None:
    assert read_only_environment({"PATH": ".:", "PYTHONPATH": "."}, root)["PATH"] == os.defpath
    assert "PYTHONPATH" not in read_only_environment({"PATH": "/bin", "PYTHONPATH": "."}, root)
    assert read_only_environment({}, root)["PATH"] == os.defpath


@pytest.mark.parametrize("name", STEERING)
def test_no_variable_adds_options_to_a_read_only_command(root: Path, name: str) -> None:
    assert name in child_environment({name: "x"}), "a command that the user allowed has it"
    assert name not in read_only_environment({name: "x"}, root)


@pytest.mark.parametrize("name", ["HOME", "LANG", "GIT_AUTHOR_NAME", "GIT_CONFIG_GLOBAL", "VIRTUAL_ENV"])
def test_other_variables_stay_for_a_read_only_command(root: Path, name: str) -> None:
    assert read_only_environment({name: "x"}, root)[name] == "x"
