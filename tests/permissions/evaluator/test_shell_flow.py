"""Working directories of commands, pipelines, and values of loop variables."""

import os
from pathlib import Path

import pytest

from tui_agent.permissions.evaluator.shell_flow import (
    MAX_CD_COMMANDS,
    MAX_POSSIBLE_DIRECTORIES,
    ScriptStep,
    script_steps,
)
from tui_agent.permissions.shell.expansion import OPEN, Expander, Value
from tui_agent.permissions.shell.parser import read_script


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = Path(os.path.realpath(tmp_path))
    (place / "sub" / "deep").mkdir(parents=True)
    (place / "link").symlink_to(place / "sub" / "deep")
    return place


def steps(text: str, root: Path) -> dict[str, ScriptStep]:
    return {step.command.text: step for step in script_steps(read_script(text), (str(root),), Expander())}


def places(text: str, command: str, root: Path) -> set[str | None]:
    return {place and os.path.relpath(place, root) for place in steps(text, root)[command].places}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ls", {"."}),
        ("cd sub && ls", {"sub"}),
        ("cd sub; ls", {".", "sub"}),
        ("cd sub || ls", {"."}),
        ("cd sub && cd deep && ls", {"sub/deep"}),
        ("cd link && cd .. && ls", {".", "sub"}),
        ("(cd sub); ls", {"."}),
        ("a | b | cd sub && ls", {"."}),
        ("cd sub && a | b | c && ls", {"sub"}),
        ("a && cd sub > x | b; ls", {"."}),
        ("(cd sub && ls)", {"sub"}),
        ("true | cd sub && ls", {"."}),
        ("cd sub & ls", {"."}),
        ("echo $(cd sub); ls", {"."}),
        ("{ cd sub; } && ls", {"sub"}),
        ("if cd sub; then ls; fi", {".", "sub"}),
        ("if true; then cd sub; fi; ls", {".", "sub"}),
        ("case a in a) cd sub;; esac; ls", {".", "sub"}),
        ("while true; do cd sub; done; ls", {".", "sub", None}),
        ("for x in a; do ls; cd sub; done", {".", None}),
        ("cd $x && ls", {None}),
        ("cd - && ls", {None}),
        ("cd a b && ls", {None}),
        ("cd *nothing && ls", {"*nothing"}),
        ("eval x; ls", {".", None}),
        ("$x; ls", {".", None}),
        ("f() { cd sub; }; f; ls", {".", "sub"}),
        ("f() { ls; }; f", {"."}),
        ("command cd sub && ls", {"sub"}),
        ("time cd sub && ls", {"sub"}),
        ("cd -P -- sub && ls", {"sub"}),
        ("cd sub && true && ls", {"sub"}),
        ("cd nowhere || cd sub && ls", {"nowhere", "sub"}),
        ("! cd sub; ls", {".", "sub"}),
        ("X=1; ls", {"."}),
    ],
)
def test_directories_in_which_a_command_may_run(root: Path, text: str, expected: set[str | None]) -> None:
    assert places(text, "ls", root) == expected


def test_home_is_a_directory(root: Path) -> None:
    home = os.path.expanduser("~")

    assert steps("cd && ls", root)["ls"].places == (home,)
    assert steps("cd ~/x && ls", root)["ls"].places == (f"{home}/x",)


def test_absolute_directories_are_known_from_anywhere(root: Path) -> None:
    assert steps("cd $x; cd /tmp && ls", root)["ls"].places == ("/tmp",)


def test_after_too_many_moves_the_directory_is_unknown(root: Path) -> None:
    many = "".join(f"cd d{number}; " for number in range(12))

    assert len(steps(f"{many}ls", root)["ls"].places) == MAX_POSSIBLE_DIRECTORIES
    assert None in steps(f"{many}ls", root)["ls"].places
    assert steps("cd sub && " * (MAX_CD_COMMANDS + 1) + "ls", root)["ls"].places == (None,)


def test_in_unreadable_text_no_move_is_certain(root: Path) -> None:
    assert None in steps("cd sub; ls; )", root)["ls"].places


def test_a_pipeline_feeds_the_next_command(root: Path) -> None:
    found = steps("a | b | c && d", root)

    assert found["a"].fed_by is None
    assert [found[name].fed_by for name in "bcd"] == [read_script("a").parts[0], read_script("a | b").parts[0], None]


def test_loops_bind_their_variable_inside_only(root: Path) -> None:
    found = steps('for x in a "b c"; do ls $x; done; cat $x', root)

    assert found["ls $x"].bindings == {"x": Value("text", ("a", "b c"))}
    assert found["cat $x"].bindings == {}


@pytest.mark.parametrize(
    "text",
    [
        "for x in $y; do ls; done",
        "for x; do ls; done",
        "for x in a; do read x; ls; done",
        "for x in a; do x=b; ls; done",
        "for x in a; do for x in b; do ls; done; done",
        "for x in a; do $y; ls; done",
        "for x in a; do ((x)); ls; done",
        "for x in a; do eval y; ls; done",
    ],
)
def test_a_variable_that_something_else_may_set_is_not_bound(root: Path, text: str) -> None:
    assert steps(text, root)["ls"].bindings.get("x", OPEN) == OPEN


def test_substitutions_precede_their_command(root: Path) -> None:
    found = script_steps(read_script("echo $(pwd) > $(ls)"), (str(root),), Expander())

    assert [step.command.text for step in found] == ["pwd", "ls", "echo $(pwd) > $(ls)"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f_() { ls; }; cd sub && f_", ["cd sub", "ls"]),
        ("f_() { ls; }; f_ a > out", ["f_ a > out", "ls"]),
        ("f_() { ls; }; f_; f_", ["ls", "ls"]),
        # judged as a definition and a call of an unknown program
        ("f_() { ls; }", ["f_()", "ls"]),
        ("f_() { f_; }; f_", ["f_()", "f_", "f_"]),
        ("ls() { a; }; ls", ["ls()", "a", "ls"]),
        ("f_() { ls; }; X=1 f_", ["f_()", "ls", "X=1 f_"]),
        ("f_() { ls; }; f_() { a; }; f_", ["f_()", "ls", "f_()", "a", "f_"]),
    ],
)
def test_a_call_of_a_function_is_its_body(text: str, expected: list[str], root: Path) -> None:
    found = script_steps(read_script(text), (str(root),), Expander())

    assert [step.command.text for step in found] == expected


def test_the_body_of_a_function_runs_where_it_is_called(root: Path) -> None:
    assert places("f_() { ls; }; cd sub && f_", "ls", root) == {"sub"}
    assert places("f_() { cd sub; }; f_ && ls", "ls", root) == {"sub"}
