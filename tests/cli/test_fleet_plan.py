"""`tui-agent fleet run --check`."""

from pathlib import Path

import pytest

from tui_agent.cli.fleet_views import plan_lines, show_plan
from tui_agent.fleet.backend import ClusterChoice
from tui_agent.protocol.fleet_records import UnitPermissions, UnitTask
from tui_agent.protocol.permissions import PermissionMode


def unit(number: str = "1", **values: object) -> UnitTask:
    return UnitTask.model_validate({"id": number, "task": number, "prompt": "Do it", "repo": "https://e/r", **values})


def test_the_plan_names_rights_limits_and_the_most_it_may_cost() -> None:
    rights = UnitPermissions(mode=PermissionMode.PLAN, allow=("bash(ls:*)",), deny=("read(.env)", "fetch"))

    lines = plan_lines([unit(permissions=rights, budget=0.5, timeout=90, verify="make test")], "here", sandboxed=True)

    assert lines == [
        "1  https://e/r @ HEAD",
        "    prompt: Do it",
        "    rights: mode plan; allow bash(ls:*); deny read(.env), fetch; the model of the worker's settings; "
        "at most $0.50; at most 1:30",
        "    verify: make test",
        "",
        "1 unit of 1 task on here; nothing was started",
        "Cost: at most $0.50.",
    ]


def test_a_missing_repository_is_a_problem_and_the_exit_code_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    choice = ClusterChoice(scheduler="tcp://127.0.0.1:8786")

    assert show_plan([unit(repo=str(tmp_path))], choice, None) == 0
    assert show_plan([unit(repo=str(tmp_path / "no"))], choice, None) == 1
    assert "on tcp://127.0.0.1:8786; nothing was started" in capsys.readouterr().out


def test_text_of_a_task_stays_in_its_line() -> None:
    lines = plan_lines([unit(prompt="a\nb\x1b[31m" + "x" * 500, ref="m\u202e")], "here", sandboxed=True)

    assert len(lines) == 6
    assert all(character.isprintable() for line in lines for character in line)
    assert max(map(len, lines)) < 140
