"""Completion of the command line by a shell."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import CompletionItem, get_completion_class

from tests.support.table import table
from tui_agent.cli.command_line import program, run_program
from tui_agent.cli.command_words import BashWords
from tui_agent.session import SessionStore
from tui_agent.settings import Locations


def offered(*words: str) -> list[str]:
    """Return the completions of the last word."""
    completer = BashWords(program, {}, "tui-agent", "_TUI_AGENT_COMPLETE")
    return [item.value for item in completer.get_completions(list(words[:-1]), words[-1])]


@table(
    ("words", "expected"),
    [
        (("ses",), ["sessions"]),
        (("--permission-mode", "a"), ["ask", "allow", "accept_edits"]),
        (("--dem",), ["--demo"]),
        (("--demo", "--inp"), ["--input-format"]),
        (("completion", ""), ["bash", "zsh", "fish"]),
        (("sessions", "ex"), ["export"]),
        (("sessions", "export", "--format", "h"), ["html"]),
        (("--theme", "high"), ["high-contrast"]),
        (("write a test", ""), []),
        (("nothing-like-this", "--mod"), ["--model"]),
        (("--permission-mode", "=", "acc"), ["accept_edits"]),
        (("--permission-mode", "="), ["ask", "allow", "deny", "plan", "accept_edits"]),
        (("--permission-mode=acc",), ["--permission-mode=accept_edits"]),
        (("sessions", "export", "--format=h"), ["--format=html"]),
        (("text with a=b", "a=b"), []),
    ],
)
def test_commands_options_and_values_are_completed(words: tuple[str, ...], expected: list[str]) -> None:
    assert offered(*words) == expected


def test_stored_sessions_are_offered_by_id(clean_environment: Path, tmp_path: Path) -> None:
    store = SessionStore(Locations.of_user({}).sessions_dir)
    for name in ("alpha", "alto", "beta"):
        store.create(tmp_path, name)

    assert sorted(offered("--resume", "al")) == ["alpha", "alto"]
    assert offered("sessions", "show", "b") == ["beta"]


def test_models_of_the_settings_are_offered_without_a_network(
    clean_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = Locations.of_user({}).user_file
    file.parent.mkdir(parents=True)
    file.write_text(
        '[providers.box]\nbase_url = "http://box:1"\nmodels = [{ name = "qwen3:8b" }, { name = "glm" }]\n'
        '[providers.ollama]\nmodels = [{ name = "llama" }]\n'
    )

    assert offered("--model", "box/") == ["box/qwen3:8b", "box/glm"]
    assert offered("-p", "--model", "o") == ["ollama/llama"]
    assert any(name.startswith("claude-") for name in offered("--model", "cl"))
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://box:2")
    assert offered("--model", "cl") == [], "they are not at this address"
    file.write_text("broken")
    assert offered("--model", "box/") == []


@pytest.mark.parametrize(("shell", "line"), [("bash", "plain,a/b:c"), ("zsh", "plain\na/b:c\n_")])
def test_colons_in_names_of_models_reach_the_shell(shell: str, line: str) -> None:
    found = get_completion_class(shell)
    assert found is not None
    assert found(program, {}, "tui-agent", "_TUI_AGENT_COMPLETE").format_completion(CompletionItem("a/b:c")) == line


_BASH = """
complete_words() {{
    COMPREPLY=() COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _tui_agent_completion tui-agent
    echo "${{COMPREPLY[@]}}"
}}
{script}
complete_words tui-agent sessions ex
complete_words tui-agent --permission-mode = acc
"""
_ZSH = """
compdef() {{ }}
compadd() {{ print -rl -- $completions }}
_describe() {{ print -rl -- "${{(@)completions_with_descriptions%%:*}}" }}
{script}
words=(tui-agent sessions ex) CURRENT=3; _tui_agent_completion
words=(tui-agent --permission-mode=acc) CURRENT=2; _tui_agent_completion
"""
_FISH = """
{script}
complete -C "tui-agent sessions ex" | cut -f 1
complete -C "tui-agent --permission-mode=acc"
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "program", "option", "sign"),
    [
        (("bash", "--norc", "-c"), _BASH, "", "complete -o"),
        (("zsh", "-f", "-c"), _ZSH, "--permission-mode=", "#compdef tui-agent"),
        (("fish", "--no-config", "-c"), _FISH, "--permission-mode=", "complete --no-files"),
    ],
    ids=["bash", "zsh", "fish"],
)
def test_a_real_shell_completes_with_the_printed_script(
    command: tuple[str, ...], program: str, option: str, sign: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run_program(["completion", command[0]]) == 0
    script = capsys.readouterr().out
    assert sign in script
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    (tmp_path / "tui-agent").symlink_to(Path(sys.executable).parent / "tui-agent")
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)}

    done = subprocess.run(
        [*command, program.format(script=script)], capture_output=True, text=True, check=True, env=environment
    )

    assert done.stdout.split() == ["export", f"{option}accept_edits"], done.stderr
