"""Everyday exploration runs without a question under an empty rule set."""

from pathlib import Path

import pytest

from .conftest import Desk

COMMANDS = Path(__file__).with_name("everyday_commands.txt").read_text("utf-8").rstrip("\n").split("\n%%\n")[1:]


@pytest.mark.parametrize("command", COMMANDS)
def test_everyday_exploration_needs_no_answer(desk: Desk, command: str) -> None:
    decision = desk.bash(command)

    assert (decision.decision, decision.source) == ("allow", "read_only"), decision.reason


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["deny", "plan", "accept_edits"])
def test_it_needs_none_in_the_stricter_modes_either(desk: Desk, mode: str) -> None:
    decided = {command: desk.bash(command, mode=mode).decision for command in COMMANDS}

    assert [command for command, decision in decided.items() if decision != "allow"] == []


def test_the_list_is_long_enough_to_mean_something() -> None:
    assert len(COMMANDS) >= 150
