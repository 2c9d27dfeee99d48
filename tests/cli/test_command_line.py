"""The command line: commands, errors of one line with the closest valid form, and light imports."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click import Context

from tests.support.table import table
from tui_agent import __version__
from tui_agent.cli.command_line import program, run_program


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run_program(arguments)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@table(
    ("arguments", "words"),
    [
        (["--modle", "x"], "no such option: --modle (did you mean --model?)"),
        (["--permission-mode", "aks"], "(did you mean ask?)"),
        (["--permission-mode", "accept-edits"], "(did you mean accept_edits?)"),
        (["--strategy", "batched:0"], "batched:2"),
        (["--strategy", "paralel"], "(did you mean parallel?)"),
        (["--max-steps", "0"], "--max-steps"),
        (["--tool-timeout", "0"], "--tool-timeout"),
        (["--tool-timeout", "soon"], "--tool-timeout"),
        (["--nothing", "x"], "no such option: --nothing\n"),
        (["--base-url", "foo bar", "-p", "x"], "'foo bar' is not a URL such as https://host/path"),
        (["--deny", "bsh(rm:*)", "-p", "x", "--demo"], "names no tool; did you mean bash?"),
        (["--cwd", "/nowhere/at/all"], "/nowhere/at/all"),
        (["--output-format", "jsn", "-p", "x"], "(did you mean json?)"),
        (["--output-format", "json"], "--output-format needs -p"),
        (["--include-deltas"], "--include-deltas needs -p"),
        (["--continue", "--resume", "x"], "cannot be combined"),
        (["-p", "--resume"], "--resume needs an ID with -p"),
        (["--session", "a", "--no-session"], "--session names a new session"),
        (["--replay", "x.jsonl", "-p"], "--replay plays a session as it was; it cannot be combined with -p"),
        (["--replay", "x.jsonl", "--record", "y.jsonl"], "it cannot be combined with --record"),
        (["--replay", "x.jsonl", "--resume"], "it cannot be combined with --resume"),
        (["--replay", "x.jsonl", "hello"], "it cannot be combined with a prompt"),
        (["--replay", "/nowhere/x.jsonl"], "/nowhere/x.jsonl does not exist"),
        (["--replay", "/"], "/ is a directory"),
        (["--replay", "nothing"], "There is no session 'nothing'"),
        (["--replay", __file__], "is not the journal of a session"),
        (["--record", __file__, "--demo", "-p", "hello"], "exists already; a recording never replaces a file"),
        (["--record", "/nowhere/x.jsonl", "--demo", "-p", "hello"], "/nowhere/x.jsonl cannot be created: No such file"),
        (["fix", "the", "bug"], "terminal"),
        (["update", "the", "readme"], "terminal"),
        (["login", "is", "broken"], "terminal"),
        (["doctr"], "did you mean `tui-agent doctor`? As a prompt: `tui-agent -- doctr`"),
        (["sesions", "lst"], "did you mean `tui-agent sessions`? As a prompt: `tui-agent -- sesions lst`"),
        (
            ["tools", "are", "broken"],
            "no such command 'are'; to send this as a prompt: `tui-agent -- tools are broken`",
        ),
        (["models", "are", "slow"], "to send this as a prompt: `tui-agent -- models are slow`"),
        (["--json-schema", "x.json"], "--json-schema needs -p"),
        (["-p", "x", "--json-schema", "x.json"], "--json-schema: x.json cannot be read"),
        (["-p", "x", "--demo", "--json-schema", "/proc/self/cmdline"], "cannot be read"),
        (["--safe", "--trust"], "--safe uses nothing of this folder, and --trust its settings"),
        (["--effort", "hihg"], "(did you mean high?)"),
        (["--max-cost", "0"], "--max-cost"),
        (["--name", " ", "-p", "x", "--demo"], "--name: a session's title cannot be empty"),
        (["--tools", "read,bsh", "-p", "x", "--demo"], "--tools: no tool is named 'bsh'; did you mean bash?"),
        (["-p", "hello", "--demo", "--theme", "lihgt"], "--theme: no theme 'lihgt'; did you mean light?"),
        (["sessions", "lst"], "lst"),
        (["--allow", "bash(", "-p", "x", "--demo"], "bash("),
        (["--demo", "-p", "--resume", "nothere", "x"], "nothere"),
        (["-p"], "prompt"),
        (["-p", "hello"], "ANTHROPIC_API_KEY"),
        (["--demo"], "use -p to run without one"),
        (["completion", "nu"], "bash|zsh|fish"),
        (["hello"], "terminal"),
        (["serve", "--host", "0.0.0.0"], "other machines may reach 0.0.0.0"),
        (["serve", "--host", "example.org"], "or add --i-know"),
        (["serve", "--port", "70000"], "invalid value for '--port'"),
        (["serve", "--host", "not a name", "--i-know"], "cannot listen on not a name"),
        (["serve", "-c", "-r"], "cannot be combined"),
        (["serve", "a prompt"], "unexpected extra argument"),
        (["serve", "-p"], "no such option: -p"),
    ],
)
def test_a_usage_error_is_one_line_and_nothing_happens(
    capsys: pytest.CaptureFixture[str], clean_environment: Path, arguments: list[str], words: str
) -> None:
    code, out, error = run(capsys, *arguments)

    assert (code, out) == (2, "")
    assert words in error
    assert error.count("\n") == 1
    assert list(clean_environment.rglob("*.jsonl")) == []


def test_a_deleted_current_directory_is_reported(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    for arguments in (["-p", "hello", "--demo"], ["doctor"], ["tools", "list"]):
        code, _, error = run(capsys, *arguments)
        assert code == 2
        assert "no longer exists" in error
        assert error.count("\n") == 1
    assert run(capsys, "--version")[0] == 0


@table(
    ("arguments", "words"),
    [
        (["-h"], "Usage: tui-agent [OPTIONS]"),
        (["help"], "Usage: tui-agent [OPTIONS]"),
        (["--demo", "-h"], "Usage: tui-agent [OPTIONS]"),
        (["help", "sessions"], "Usage: tui-agent sessions"),
        (["help", "sesions"], "Usage: tui-agent sessions"),
        (["sessions", "-h"], "Usage: tui-agent sessions"),
        (["-V"], f"tui-agent {__version__}\n"),
        (["version"], f"tui-agent {__version__}\n"),
        (["login"], "export ANTHROPIC_API_KEY="),
    ],
)
def test_words_and_options_of_other_programs_are_answered(
    capsys: pytest.CaptureFixture[str], clean_environment: Path, arguments: list[str], words: str
) -> None:
    code, out, error = run(capsys, *arguments)

    assert (code, error) == (0, "")
    assert words in out
    assert list(clean_environment.rglob("*.jsonl")) == []


@pytest.mark.slow
def test_light_commands_load_neither_screen_nor_sdk(tmp_path: Path) -> None:
    commands = (["--version"], ["tools", "list"], ["config", "show"], ["hooks", "list"])
    script = (
        "import sys; from tui_agent.cli.command_line import run_program; "
        f"code = max(run_program(arguments) for arguments in {commands!r}); "
        "print(sorted({'textual', 'anthropic'} & set(sys.modules)), file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert done.stderr.strip() == "[]"


def test_the_help_imports_no_command_and_has_the_first_sentence_of_each(tmp_path: Path) -> None:
    script = (
        "import sys; from tui_agent.cli.command_line import run_program; run_program(['--help']); "
        "heavy = {'textual', 'anthropic', 'tree_sitter', 'tui_agent.agent', 'tui_agent.ui', 'tui_agent.providers'}; "
        "print(sorted(name for name in sys.modules if name in heavy or '.subcommands.' in name), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)

    assert done.stderr.strip() == "[]"
    listed = " ".join(done.stdout.partition("Commands:\n")[2].split())
    names = [name for name in program.list_commands(Context(program)) if name != "run"]
    commands = {name: program.get_command(Context(program), name) for name in names}
    helps = {name: found.get_short_help_str(200) for name, found in commands.items() if found is not None}
    assert listed.replace(".", "") == " ".join(f"{name} {text}" for name, text in helps.items()).replace(".", "")


@pytest.mark.slow
def test_the_first_screen_loads_neither_engine_nor_the_metadata_of_installed_packages() -> None:
    script = (
        "import sys; from tui_agent.cli.process.process_setup import begin_start; begin_start(); "
        "import tui_agent.cli.screen_entry, tui_agent.ui.app.app_start; "
        "from tui_agent.settings import Settings; Settings(effort='low'); "
        "heavy = {'anthropic', 'importlib.metadata', *(f'tui_agent.{room}' for room in "
        "('agent', 'execution', 'permissions', 'providers', 'session', 'tools', 'trial'))}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


@pytest.mark.slow
def test_a_start_imports_few_modules() -> None:
    """Each costs about half a millisecond and 40 kB."""
    script = (
        "import sys, threading; before = len(sys.modules); "
        "import tui_agent.cli.screen_entry, tui_agent.ui.app.app_start; "
        "from tui_agent.ui.app.engine_runner import load_engine, Settings; screen = len(sys.modules) - before; "
        "load_engine(Settings()); [each.join() for each in threading.enumerate() if each.name == 'model-sdk']; "
        "screens = (f'tui_agent.ui.approval.{name}_screen' for name in ('approval_list', 'server_question')); "
        "rare = {'html.entities', *screens}; "
        "print(screen, len(sys.modules) - before, len(rare & set(sys.modules)))"
    )
    environment = {name: value for name, value in os.environ.items() if name != "ANTHROPIC_BASE_URL"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    screen, ready, rare = map(int, done.stdout.split())

    assert screen <= 720, "modules for the first frame"
    assert ready <= 1_150, "modules for the first request"
    assert rare == 0, "modules that most sessions never need"


@pytest.mark.slow
@table(("model", "printed"), [("claude-sonnet-5-5", "False True False"), ("openai/any", "False False True")])
def test_the_sdk_begins_to_load_with_the_engine_in_a_thread_of_its_own(model: str, printed: str) -> None:
    script = (
        "import sys, threading; from tui_agent.ui.app.engine_runner import load_engine, Settings; "
        f"before = 'anthropic' in sys.modules; load_engine(Settings(model={model!r})); "
        "[each.join() for each in threading.enumerate() if each.name == 'model-sdk']; "
        "print(before, 'anthropic' in sys.modules, 'openai' in sys.modules)"
    )
    environment = {name: value for name, value in os.environ.items() if name != "ANTHROPIC_BASE_URL"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)

    assert done.stdout.strip() == printed
