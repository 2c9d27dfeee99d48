"""The guided tour on real files, every way in which the user can leave it, and its project: exactly one test fails."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.demo_conversation import DemoConversation, Result, called
from tui_agent.protocol.messages import JsonObject
from tui_agent.providers.demo.guided_tour import (
    TRIAL_COMMAND,
    DemoWorkspace,
    copy_sample_project,
    sample_test_command,
)

DENIED = ("The user denied this call: leave it", True)
FAILED = ("1 failed, 7 passed in 4.4s", True)


class RealTools:
    """The file tools of the tour, on real files; a test replaces their answers and gives those of others."""

    def __init__(self, **answers: Result) -> None:
        self.answers = answers
        self.edits = 0

    def __call__(self, name: str, arguments: JsonObject) -> Result:
        if name in self.answers:
            return self.answers[name]
        match name:
            case "read":
                lines = Path(arguments["path"]).read_text("utf-8").splitlines()
                return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines, 1))
            case "edit":
                self.edits += 1
                path = Path(arguments["path"])
                text = path.read_text("utf-8")
                assert text.count(arguments["old_string"]) == 1
                path.write_text(text.replace(arguments["old_string"], arguments["new_string"]), "utf-8")
                return "edited"
            case _:
                raise AssertionError(f"no answer for {name}")


@pytest.fixture
def place(tmp_path: Path) -> DemoWorkspace:
    copy_sample_project(tmp_path / "tour")
    return DemoWorkspace(str(tmp_path / "tour"), sample_test_command(tmp_path / "tour"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("done\n[kept: notes.txt; discarded: prices.csv (not chosen by the user)]", "waited for you"),
        ("done\n[discarded: notes.txt, prices.csv]", "discarded: notes.txt, prices.csv."),
        (DENIED, "The command did not run, so the shop is as it was."),
    ],
)
def test_the_summary_says_what_became_of_the_trial(place: DemoWorkspace, answer: Result, words: str) -> None:
    tools = RealTools()

    def run(name: str, arguments: JsonObject) -> Result:
        if str(arguments.get("command")).endswith(TRIAL_COMMAND):
            return answer
        if name == "bash":
            return ("8 passed in 0.1s", False) if tools.edits else FAILED
        return tools(name, arguments)

    talk = DemoConversation(run, demo_workspace=place)
    talk.ask("fix the failing test")

    assert words in talk.finish().text


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ({"read": ("no such file", True)}, "cannot read the sample project"),
        ({"bash": "8 passed in 0.1s"}, "nothing to fix"),
        ({"bash": "Ran 8 tests in 0.1s\n\nOK\n"}, "nothing to fix"),
    ],
)
def test_the_tour_ends_honestly_if_it_cannot_continue(
    place: DemoWorkspace, answers: dict[str, Result], words: str
) -> None:
    talk = DemoConversation(RealTools(**answers), demo_workspace=place)
    talk.ask("fix the failing test")

    assert words in talk.finish().text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("steps", "then"),
    [(1, "edit"), (2, None), (3, None)],
    ids=["before the tests", "before the edit", "before the rest"],
)
def test_skip_leaves_out_the_next_step(place: DemoWorkspace, steps: int, then: str | None) -> None:
    talk = DemoConversation(RealTools(bash=FAILED), demo_workspace=place)
    talk.ask("fix the failing test")
    for _ in range(steps - 1):
        talk.go_on()

    turn = talk.go_on("skip")

    assert [name for name, _ in called(turn)] == ([then] if then else [])


def run(command: str, where: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "SAMPLE_TEST_SECONDS": "0"}
    return subprocess.run(
        ["bash", "-c", command], cwd=where, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
@pytest.mark.parametrize("runner", ["-m pytest -q", "-m unittest discover -v -s"])
def test_one_test_fails_whatever_runs_it_and_wherever(tmp_path: Path, runner: str) -> None:
    target, elsewhere = tmp_path / "a place", tmp_path / "elsewhere"
    copy_sample_project(target)
    elsewhere.mkdir()

    done = run(f"{sys.executable} {runner} '{target}'", elsewhere)

    assert done.returncode == 1
    assert "1 failed, 7 passed" in done.stdout or "FAILED (failures=1)" in done.stderr
    assert "test_ten_pieces_get_the_discount" in done.stdout + done.stderr


def test_a_python_of_the_system_runs_the_tests_without_pytest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: "/somewhere/else/python3")

    assert sample_test_command(Path("/tmp/x y")) == "python3 -m unittest discover -v -s '/tmp/x y'"
