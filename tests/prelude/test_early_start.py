"""Which starts have a prelude, what names its pages, and what is loaded before it."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.table import table
from tui_agent.prelude.early_start import leads_to_start_page
from tui_agent.prelude.kept_frame import FrameNames, user_directories
from tui_agent.settings import Locations
from tui_agent.workbench.configuration.project_trust import TrustStore

LOADED_FIRST = {"_blake2", "_locale", "_signal", "_thread", "errno", "resource", "select", "termios", "time"}
"""Modules outside of the prelude that may be loaded before the first output; no longer list, please."""


BEGINS = ("", "--demo", "--model x --theme=dark", "--allow bash(ls) --allow read", "--trust --verbose --no-session")
OTHERS = (
    "-p", "--plain", "--help", "--version", "-c", "-r", "--resume x", "--continue", "hello", "-- hello", "doctor",
    "sessions list", "--replay x", "--record x", "--demo hello", "--model", "--cwd /", "--unknown", "--demo=1", "-",
)  # fmt: skip


def test_a_new_session_begins_with_the_prelude_and_no_other_start() -> None:
    assert [start for start in (*BEGINS, *OTHERS) if leads_to_start_page(start.split())] == [*BEGINS]


def test_nothing_but_a_few_small_modules_is_loaded_before_the_first_output() -> None:
    program = (
        "import sys; before = {*sys.modules}\n"
        "import tui_agent.__main__, tui_agent.prelude.early_start, tui_agent.prelude.early_terminal\n"
        "print(*sorted({*sys.modules} - before))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())

    ours = {name for name in loaded if name.startswith("tui_agent")}
    assert ours == {
        "tui_agent", "tui_agent.__main__", "tui_agent.cli", "tui_agent.cli.process", "tui_agent.cli.process.shortage",
        "tui_agent.prelude", *(f"tui_agent.prelude.{name}" for name in (
            "early_start", "early_terminal", "input_filter", "kept_frame",
            "typed_input")),
    }  # fmt: skip
    assert loaded - ours <= LOADED_FIRST


def test_a_start_without_a_screen_loads_nothing_for_it() -> None:
    program = (
        "import sys\nfrom tui_agent.prelude.early_start import begin\nbegin(['-p']); begin([])\n"
        "print('tui_agent.prelude.early_terminal' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
    )

    assert done.stdout == "False\n"


# --- names of pages ---------------------------------------------------------------------------------------------------


@table(
    "environment",
    [{}, {"TUI_AGENT_HOME": "/a b/c"}, {"XDG_STATE_HOME": "/s", "XDG_CONFIG_HOME": "/c"}, {"XDG_STATE_HOME": " "}],
)
def test_the_prelude_knows_the_users_directories(
    monkeypatch: pytest.MonkeyPatch, environment: Mapping[str, str]
) -> None:
    for name in ("TUI_AGENT_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    locations = Locations.of_user(os.environ)

    assert user_directories(os.environ) == (str(locations.config_dir), str(locations.state_dir))


class Start:
    """A start in a directory of its own."""

    def __init__(self, root: Path) -> None:
        self.arguments: list[str] = []
        self.work, self.config = root / "work", root / "home" / "config"
        self.config.mkdir(parents=True)
        (self.work / "deep").mkdir(parents=True)
        self.environment = {"TUI_AGENT_HOME": str(root / "home"), "TERM": "xterm"}

    def names(self) -> tuple[str, str]:
        os.chdir(self.work / "deep")
        names = FrameNames(self.arguments, self.environment)
        return names.page(80, 24), names.look(80, 24)

    def write(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def accept(folder: Path, state: Path) -> None:
    TrustStore(Locations(state, state)).renew(folder, b"")


CHANGES = {
    "arguments": lambda start: start.arguments.append("--demo"),
    "project": lambda start: start.write(start.work / "deep/.tui-agent/config.toml", "x"),
    "trust": lambda start: accept(start.work / "deep", start.config.parent / "state"),
    "branch": lambda start: start.write(start.work / ".git/HEAD", "ref: refs/heads/x\n"),
}
LOOKS = {
    "theme": lambda start: start.arguments.extend(("--theme", "light")),
    "settings": lambda start: start.write(start.config / "config.toml", "x"),
    "own theme": lambda start: start.write(start.config / "themes/mine.toml", "x"),
    "variable": lambda start: start.environment.update(TUI_AGENT_MODEL="x"),
    "colours": lambda start: start.environment.update(NO_COLOR="1"),
    "terminal": lambda start: start.environment.update(TERM="xterm-256color"),
    "key": lambda start: start.environment.update(ANTHROPIC_API_KEY="x"),
}


@table("change", {**CHANGES, **LOOKS})
def test_what_the_page_shows_is_part_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    monkeypatch.chdir(tmp_path)
    start = Start(tmp_path)
    page, look = start.names()
    assert (page, look) == start.names()

    {**CHANGES, **LOOKS}[change](start)

    other_page, other_look = start.names()
    assert page != other_page
    assert (look != other_look) == (change in LOOKS)


def test_the_branch_of_a_linked_worktree_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    start = Start(tmp_path)
    start.write(start.work / ".git", "gitdir: ../elsewhere\n")
    start.write(tmp_path / "elsewhere/HEAD", "ref: refs/heads/one\n")
    one = start.names()

    start.write(tmp_path / "elsewhere/HEAD", "ref: refs/heads/two\n")

    assert one != start.names()


def test_another_size_is_another_page(tmp_path: Path) -> None:
    names = FrameNames([], {"TUI_AGENT_HOME": str(tmp_path)})

    assert len({names.page(80, 24), names.page(24, 80), names.look(80, 24), names.page(8, 24)}) == 4
