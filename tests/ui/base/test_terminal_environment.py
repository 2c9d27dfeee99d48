"""The terminal's wishes, and the working directory."""

from collections.abc import Callable
from pathlib import Path

from tests.support.broken_files import NO_TEXT, NOT_A_FILE
from tests.support.table import table
from tui_agent.ui.base.terminal_environment import TerminalEnvironment, WorkingDirectory


@table(
    ("environment", "no_color", "still"),
    [
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, False, False),
        ({"TUI_AGENT_REDUCED_MOTION": "1"}, False, True),
        ({"TUI_AGENT_REDUCED_MOTION": "0"}, False, False),
        ({"TERM": "dumb"}, True, True),
        ({"TERM": "xterm-256color"}, False, False),
    ],
)
def test_the_environment_is_honoured(environment: dict[str, str], no_color: bool, still: bool) -> None:
    found = TerminalEnvironment.of_environment(environment)

    assert (found.no_color, found.reduced_motion) == (no_color, still)


def test_a_directory_below_home_begins_with_a_tilde(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()

    assert WorkingDirectory.of(tmp_path / "shop", tmp_path).directory == "~/shop"
    assert WorkingDirectory.of(tmp_path, tmp_path).directory == "~"
    assert WorkingDirectory.of(Path("/srv"), tmp_path) == WorkingDirectory("/srv", "")


@table(
    ("files", "branch"),
    [
        ({".git/HEAD": "ref: refs/heads/feature/prices\n"}, "feature/prices"),
        ({".git/HEAD": "0123456789abcdef\n"}, "0123456"),
        ({".git": "gitdir: ../repository\n", "../repository/HEAD": "ref: refs/heads/side\n"}, "side"),
    ],
)
def test_the_branch_is_that_of_the_repository_above(tmp_path: Path, files: dict[str, str], branch: str) -> None:
    work = tmp_path / "work"
    (work / "src").mkdir(parents=True)
    for name, text in files.items():
        (work / name).resolve().parent.mkdir(exist_ok=True)
        (work / name).resolve().write_text(text)

    assert WorkingDirectory.of(work / "src", Path("/nowhere")).branch == branch


@table("put", [*NOT_A_FILE.values(), *NO_TEXT.values()])
def test_whatever_lies_in_the_place_of_a_repository_holds_nothing_up(
    tmp_path: Path, put: Callable[[Path], None]
) -> None:
    (tmp_path / "pointer").mkdir()
    put(tmp_path / "pointer" / ".git")
    (tmp_path / "head" / ".git").mkdir(parents=True)
    put(tmp_path / "head" / ".git" / "HEAD")

    for name in ("pointer", "head"):
        assert WorkingDirectory.of(tmp_path / name, Path("/nowhere")).directory == str(tmp_path / name)
