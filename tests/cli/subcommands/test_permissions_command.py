"""`tui-agent permissions check` and `explain`."""

import json
import os
from pathlib import Path

import pytest

from tests.support.forked_program import PROGRAM, run_forked
from tui_agent.cli.command_line import run_program

pytestmark = pytest.mark.slow


def decide(tmp_path: Path, *lines: str) -> list[dict[str, object]]:
    text = "".join(f"{line}\n" for line in lines)
    environment = {**os.environ, "HOME": str(tmp_path)}
    command = [str(PROGRAM), "permissions", "check"]
    done = run_forked(command, cwd=tmp_path, environment=environment, stdin=text, patience=60)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def record(command: str, **fields: object) -> str:
    return json.dumps({"tool": "bash", "input": {"command": command}, **fields})


def test_the_example_of_the_contract(tmp_path: Path) -> None:
    rules = [["allow", "bash(git status:*)"]]
    [answer] = decide(tmp_path, record("git status && rm -rf x", mode="ask", rules=rules, cwd=str(tmp_path)))

    assert answer["decision"] == "ask"
    assert {"text": "rm -rf x", "decision": "ask", "rule": None} in [
        {key: part[key] for key in ("text", "decision", "rule")} for part in answer["parts"]
    ]


def test_a_rule_with_an_unknown_tool_is_reported(tmp_path: Path) -> None:
    rules = [[["deny", "bsh(rm:*)"]], [["allow", "Bash(rm:*)"]], [["allow", "mcp__x__y"], ["deny", "b*(rm:*)"]]]
    answers = decide(tmp_path, *(record("rm x", rules=each) for each in rules))

    assert [answer["source"] for answer in answers] == ["invalid", "invalid", "rule"]
    assert "did you mean bash?" in str(answers[0]["reason"])


@pytest.mark.usefixtures("clean_environment")
@pytest.mark.parametrize(
    ("text", "why"), [("[" * 100_000, "nested too deeply"), ("nojson", "Expecting value")], ids=["deep", "nojson"]
)
def test_explain_reports_invalid_input(capsys: pytest.CaptureFixture[str], text: str, why: str) -> None:
    assert run_program(["permissions", "explain", "bash", text]) == 2

    told = capsys.readouterr().err
    assert why in told
    assert "the input is not valid JSON" in told
    assert len(told.splitlines()) == 1
