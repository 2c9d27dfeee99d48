"""`tui-agent hooks test` with real commands."""

import json
import re
from pathlib import Path

import pytest

from tui_agent.cli.command_line import run_program
from tui_agent.settings import Locations

INPUT = '{"command":"ls"}'


def hook(on: str, command: str, **fields: object) -> str:
    more = "".join(f"{name} = {str(value).lower()}\n" for name, value in fields.items())
    return f"[[hooks]]\non = \"{on}\"\ncommand = '''{command}'''\n{more}"


@pytest.fixture
def settings(clean_environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = Locations.of_user({"HOME": str(clean_environment)}).user_file
    file.parent.mkdir(parents=True)
    return file


def lines_of(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [re.sub(r" +\d+ ms", " N ms", line) for line in capsys.readouterr().out.splitlines()]


def test_every_hook_of_the_event_prints_its_decision_and_reason(
    settings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.write_text(
        hook("before_tool", "echo not today >&2; exit 2")
        + hook("before_tool", "true")
        + hook("before_tool", """echo '{"action":"modify","input":{"command":"pwd"}}'""")
        + hook("after_tool", "exit 9")
    )

    code = run_program(["hooks", "test", "before_tool", "bash", INPUT])

    assert (code, lines_of(capsys)) == (
        0,
        [
            "deny N ms (not today)  echo not today >&2; exit 2",
            "allow N ms  true",
            """modify N ms  echo '{"action":"modify","input":{"command":"pwd"}}'""",
        ],
    )


@pytest.mark.parametrize(("fail_open", "then"), [(True, "the call continues"), (False, "the call is denied")])
def test_a_failed_hook_is_reported_with_its_consequence(
    settings: Path, capsys: pytest.CaptureFixture[str], fail_open: bool, then: str
) -> None:
    settings.write_text(hook("before_tool", "echo broken >&2; exit 9", fail_open=fail_open))

    code = run_program(["hooks", "test", "before_tool", "bash", INPUT])

    assert code == 1
    assert f"exit code 9: broken; {then})" in capsys.readouterr().out


def test_a_hook_gets_the_call_and_the_result_unchanged(settings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings.write_text(hook("after_tool", "cat > asked.json") + hook("after_tool_observer", "cat > seen.json"))

    assert run_program(["hooks", "test", "after_tool", "bash", INPUT, "--result", "a.txt"]) == 0
    assert run_program(["hooks", "test", "after_tool_observer", "bash", INPUT, "--result", "a.txt"]) == 0

    assert [line.split()[0] for line in lines_of(capsys)] == ["allow", "done"]
    asked, seen = json.loads(Path("asked.json").read_text()), json.loads(Path("seen.json").read_text())
    result = {"content": "a.txt", "is_error": False, "details": None}
    question = {"call_id": "call_test", "tool": "bash", "input": {"command": "ls"}, "result": result}
    assert asked == {"event": "after_tool", **question}
    assert seen == {"event": "after_tool_observer", "status": "ok", **question}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["before_tol", "bash", INPUT], "did you mean before_tool?"),
        (["before_tool", "bahs", INPUT], "no tool 'bahs'; did you mean bash?"),
        (["before_tool", "bash", "{"], "the input is not valid JSON"),
        (["before_tool", "bash", "[1]"], "the input must be a JSON object"),
    ],
)
def test_a_misspelt_argument_is_one_line_with_the_right_value(
    settings: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert run_program(["hooks", "test", *arguments]) == 2

    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert words in err


def test_hooks_of_files_are_listed_and_tried(
    settings: Path, capsys: pytest.CaptureFixture[str], clean_environment: Path
) -> None:
    own, project = clean_environment / ".claude/settings.json", Path(".claude/settings.json")
    guard = {"type": "command", "command": 'grep -q \'"command": "ls"\' || { echo only ls >&2; exit 2; }'}
    for file, table in (
        (own, {"PreToolUse": [{"matcher": "Bash", "hooks": [guard]}]}),
        (project, {"Stop": [{"hooks": [{"type": "command", "command": "touch ran"}]}]}),
    ):
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps({"hooks": table}))

    assert run_program(["hooks", "list"]) == 0
    assert run_program(["hooks", "test", "PreToolUse", "Bash", '{"command":"ls"}']) == 0
    assert run_program(["hooks", "test", "PreToolUse", "bash", '{"command":"rm"}']) == 0
    assert run_program(["hooks", "test", "PreToolUse", "Read", '{"file_path":"a"}']) == 0
    assert run_program(["hooks", "test", "Stop"]) == 0

    listed, stops, allowed, denied, other, *_ = [
        line for line in lines_of(capsys) if "not run:" not in line or "touch" in line
    ]
    assert listed.startswith("PreToolUse(Bash): grep")
    assert listed.endswith("(~/.claude/settings.json:1)")
    assert stops.startswith("Stop: touch ran")
    assert "does not run: this folder is not trusted" in stops
    assert (allowed.split()[0], denied.split()[0], other) == (
        "ok",
        "deny",
        "no hook of a hook file is for PreToolUse of Read",
    )
    assert "(only ls)" in denied
    assert not Path("ran").exists()


def test_arguments_are_listed_and_entries_with_unsupported_fields_are_named(
    settings: Path, capsys: pytest.CaptureFixture[str], clean_environment: Path
) -> None:
    entries = [
        {"type": "command", "command": "bash", "args": ["guard.sh", "a b"]},
        {"type": "command", "command": "true", "asyncRewake": True},
        {"type": "command", "command": "python3"},
    ]
    own = clean_environment / ".claude/settings.json"
    own.parent.mkdir(parents=True)
    own.write_text(json.dumps({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": entries}]}}))
    problems = [
        f"~/.claude/settings.json:1: PreToolUse: {problem}"
        for problem in (
            "'asyncRewake' is not supported and may change what the hook does",
            "python3 would run its input as a script; name the script that it is to run",
        )
    ]

    assert run_program(["hooks", "list"]) == 0
    assert lines_of(capsys) == [
        "PreToolUse(Bash): bash guard.sh 'a b'  (~/.claude/settings.json:1)",
        *(f"not used     {problem}" for problem in problems),
    ]
    assert run_program(["config", "check"]) == 0
    assert lines_of(capsys)[1:] == [f"hook not used: {problem}" for problem in problems]


def test_the_check_names_files_of_definitions_that_are_not_used(
    settings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        "skills/empty/SKILL.md": "---\nname: empty\n---\n",
        "skills/guarded/SKILL.md": "---\nhooks: {Stop: []}\n---\nText",
        "skills/other/SKILL.md": "---\nname: another\n---\nText",
        "agents/a.md": "---\nname: a\n---\nText",
        "commands/c.md": "---\ndescription: x\n",
    }
    for name, text in files.items():
        path = Path(".claude", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    assert run_program(["config", "check"]) == 0

    lines = capsys.readouterr().out.splitlines()[1:]
    assert sorted(line for line in lines if "not trusted" not in line) == [
        ".claude/skills/other/SKILL.md:2: `name` is another, but the folder is other; both load it",
        "command not used: .claude/commands/c.md:1: the front matter has no end: a line `---` is missing",
        "skill not used: .claude/skills/empty/SKILL.md:1: the text of the skill is missing",
        "skill not used: .claude/skills/guarded/SKILL.md:2: 'hooks' is not supported and changes what it may do",
        "sub-agent not used: .claude/agents/a.md:1: `description` is missing: the model chooses sub-agents by it",
    ]
