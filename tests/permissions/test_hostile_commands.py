"""Known ways around command checkers: none of these runs without a question."""

from pathlib import Path

import pytest

from .conftest import Desk

TEXT = Path(__file__).with_name("hostile_commands.txt").read_bytes().decode("utf-8").rstrip("\n")
COMMANDS = TEXT.split("\n%%\n")[1:]


@pytest.mark.parametrize("command", COMMANDS)
def test_hostile_commands_need_an_answer(desk: Desk, command: str) -> None:
    decision = desk.bash(command)

    assert decision.decision != "allow", decision.reason


@pytest.mark.slow
@pytest.mark.parametrize("wrap", ["ls && {}", "{} && ls", "(\n{}\n)", "ls; {}", "time {}", "echo $(\n{}\n)", "! {}"])
def test_no_compound_makes_them_harmless(desk: Desk, wrap: str) -> None:
    joined = {command: wrap.replace("{}", command) for command in COMMANDS}

    assert [command for command, text in joined.items() if desk.bash(text).decision == "allow"] == []
