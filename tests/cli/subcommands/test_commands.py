"""The commands without a screen."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from tui_agent.cli.command_line import run_program
from tui_agent.cli.installation_checks import examine
from tui_agent.permissions import Rule
from tui_agent.protocol.programs import install_command
from tui_agent.tools import JOB_TOOLS
from tui_agent.trial.trials import Trials
from tui_agent.workbench.configuration.permission_rules import shadowed_rules


def out_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run_program(arguments) == 0, capsys.readouterr().err
    return capsys.readouterr().out


@pytest.fixture
def user_file(clean_environment: Path) -> Path:
    file = clean_environment / ".config" / "tui-agent" / "config.toml"
    file.parent.mkdir(parents=True)
    return file


def test_config_show_prints_each_value_with_its_origin(capsys: pytest.CaptureFixture[str], user_file: Path) -> None:
    rules, keys = 'rules = [["deny", "bash(rm:*)"]]', '"chat.search" = "ctrl+k"'
    user_file.write_text(f'model = "mine"\n[permissions]\n{rules}\n[keys]\n{keys}\n', "utf-8")

    shown = json.loads(out_of(capsys, "config", "show", "--json"))
    words = out_of(capsys, "config", "show")

    assert shown["values"]["model"] == "mine"
    assert shown["origins"]["model"] == f"{user_file}:1"
    assert (shown["origins"]["strategy"], shown["origins"]["keys"]) == ("default", f"{user_file}:5")
    assert shown["rules"] == [{"rule": ["deny", "bash(rm:*)"], "origin": f"{user_file}:3"}]
    assert f"deny bash(rm:*)  # {user_file}:3" in words


def test_config_check_lists_every_mistake_of_every_file(
    capsys: pytest.CaptureFixture[str], user_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user_file.write_text(
        'modle = "x"\neffort = "hgh"\n'
        '[permissions]\nrules = [["allow", "bsh(x)"], ["allow", "bash("]]\n'
        "[web]\nsearch = 3\n",
        "utf-8",
    )
    project = tmp_path / "project"
    (project / ".tui-agent").mkdir(parents=True)
    (project / ".tui-agent/config.toml").write_text('max_steps = "many"\n[ui]\ncolour = 1\n', "utf-8")
    (project / ".mcp.json").write_text("{", "utf-8")
    monkeypatch.chdir(project)
    monkeypatch.setenv("TUI_AGENT_TOOL_TIMEOUT", "soon")

    code = run_program(["config", "check"])

    out, error = capsys.readouterr()
    assert code == 2
    for words in (
        f"{user_file}:1: unknown key `modle`; did you mean `model`?",
        f"{user_file}:2: `effort`",
        f"{user_file}:6: `web.search`",
        "bsh(x)",
        "bash(",
        "`tool_timeout`",
    ):
        assert words in error
    assert error.count("\n") == 6
    corrected = "this folder can be trusted only after its settings are corrected: "
    assert out.count(corrected) == 2
    assert "config.toml:1: `max_steps`" in out
    assert "config.toml:3: unknown key `ui.colour`" in out
    assert ".mcp.json: not JSON" in out


SHADOWED: tuple[tuple[list[tuple[str, str]], bool], ...] = (
    ([("allow", "bash(git:*)"), ("ask", "bash(git push:*)")], True),
    ([("allow", "bash(git *)"), ("deny", "bash(git push --force)")], True),
    ([("allow", "bash(git:*)"), ("ask", "bash(git)")], True),
    ([("allow", "bash"), ("deny", "bash(rm:*)")], True),
    ([("deny", "*"), ("allow", "read(src/**)")], True),
    ([("allow", "read"), ("ask", "grep(secrets/**)")], True),
    ([("allow", "edit(**)"), ("deny", "write(.env)")], True),
    ([("allow", "mcp__docs__*"), ("ask", "mcp__docs__delete")], True),
    ([("ask", "bash(git push:*)"), ("allow", "bash(git:*)")], False),
    ([("allow", "bash(git:*)"), ("ask", "bash(gitk:*)")], False),
    ([("allow", "bash(git push)"), ("ask", "bash(git push:*)")], False),
    ([("allow", "bash(git * --dry-run)"), ("ask", "bash(git push:*)")], False),
    ([("allow", "read(src/**)"), ("deny", "read(.env)")], False),
    ([("allow", "bash(git:*)"), ("allow", "bash(git push:*)")], False),
    ([("allow", "bash(ls:*)"), ("deny", "bash")], False),
)


def test_config_check_names_a_rule_that_can_never_decide(capsys: pytest.CaptureFixture[str], user_file: Path) -> None:
    wrong: list[object] = []
    for rules, is_shadowed in SHADOWED:
        found = shadowed_rules([[Rule.parse(*rule) for rule in rules]])
        if len(found) != is_shadowed:
            wrong.append((rules, found))
    assert wrong == []
    assert shadowed_rules([[Rule.parse("allow", "bash")], [Rule.parse("deny", "bash(rm:*)")]]) == []
    user_file.write_text('[permissions]\nrules = [["allow", "bash(git:*)"],\n  ["ask", "bash(git push:*)"]]\n')

    told = out_of(capsys, "config", "check")

    assert "rule `ask bash(git push:*)" in told
    assert "can never decide: `allow bash(git:*)" in told
    user_file.write_text(f'{user_file.read_text()}rule_resolution = "severity"\n')
    assert "can never decide" not in out_of(capsys, "config", "check")


def test_config_check_and_path(capsys: pytest.CaptureFixture[str], user_file: Path) -> None:
    assert "settings are valid" in out_of(capsys, "config", "check")
    assert str(user_file) in out_of(capsys, "config", "path")


def test_tools_are_listed_with_their_schemas(capsys: pytest.CaptureFixture[str]) -> None:
    rows = {row["name"]: row for row in json.loads(out_of(capsys, "tools", "list", "--json"))}

    assert list(rows) == [
        "read",
        "write",
        "edit",
        "bash",
        "glob",
        "grep",
        "todo",
        "ask_user",
        *JOB_TOOLS,
        "fetch",
        "agent",
    ]
    assert rows["read"]["read_only"] is True
    assert rows["write"]["read_only"] is False
    assert "old_string" in rows["edit"]["input_schema"]["properties"]
    assert "read" in out_of(capsys, "tools", "list")


@pytest.mark.slow
def test_sessions_are_listed_shown_and_deleted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "note.txt").write_text("a red apple\n", "utf-8")
    out_of(capsys, "--demo", "-p", "show note.txt", "--session", "first")

    rows = json.loads(out_of(capsys, "sessions", "list", "--json"))
    table = out_of(capsys, "sessions", "list")
    shown = out_of(capsys, "sessions", "show", "fir")
    lines = out_of(capsys, "sessions", "show", "first", "--json").splitlines()

    assert [(row["id"], row["title"], row["cwd"]) for row in rows] == [("first", "show note.txt", str(tmp_path))]
    assert (rows[0]["branch"], rows[0]["cost_usd"]) == ("", 0.0)
    assert " kB   $0.00  " in table
    assert "You: show note.txt" in shown
    assert "a red apple" in shown
    assert json.loads(lines[0])["type"] == "session.created"
    assert json.loads(lines[-1])["type"] == "run.ended"

    report = out_of(capsys, "sessions", "show", "first", "--report")
    assert "asked: show note.txt" in report
    assert "read note.txt: ok in" in report
    assert json.loads(out_of(capsys, "sessions", "show", "first", "--report", "--json"))["reason"] == "done"

    used = json.loads(out_of(capsys, "stats", "--json"))
    assert [(one["folder"], one["sessions"]) for one in used["folders"]] == [(str(tmp_path), 1)]
    assert used["total"]["output_tokens"] > 0
    assert "Folder" in out_of(capsys, "stats", "--days", "10000")

    copy = out_of(capsys, "sessions", "fork", "first").strip()
    out_of(capsys, "sessions", "rename", copy, "the copy")
    titles = {row["id"]: row["title"] for row in json.loads(out_of(capsys, "sessions", "list", "--json"))}
    assert titles == {"first": "show note.txt", copy: "the copy"}
    assert "a red apple" in out_of(capsys, "sessions", "show", copy)
    assert json.loads(out_of(capsys, "stats", "--json")) == used, "a copy has used nothing itself"
    found = json.loads(out_of(capsys, "sessions", "list", "--search", "THE COPY", "--json"))
    assert [row["id"] for row in found] == [copy]
    out_of(capsys, "sessions", "delete", copy)

    out_of(capsys, "sessions", "delete", "first")
    assert json.loads(out_of(capsys, "sessions", "list", "--json")) == []


def test_the_doctor_names_what_does_not_work_here(
    user_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found() -> dict[str, tuple[str, str]]:
        return {finding.subject: (finding.state, finding.message) for finding in examine(tmp_path)}

    well = found()
    assert well["processes"] == ("ok", "commands end with everything they start, and when tui-agent ends")
    assert (well["serve"][0], "127.0.0.1" in well["serve"][1], "--i-know" in well["serve"][1]) == ("ok", True, True)

    user_file.write_text('[providers.box]\nbase_url = "http://127.0.0.1:9"\n', "utf-8")
    monkeypatch.setitem(sys.modules, "textual_serve", None)
    monkeypatch.setenv("TUI_AGENT_MODLE", "x")
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "AGENTS.md").write_text("be kind", "utf-8")
    ill = found()
    for subject, state, words in (
        ("serve", "note", install_command("serve")),
        ("settings", "note", "did you mean TUI_AGENT_MODEL?"),
        ("trust", "note", "AGENTS.md not used"),
        ("processes", "note", "setpriv of util-linux is not installed: commands may outlive tui-agent if it is killed"),
        ("key", "bad", "needs it; a model of your own endpoints needs its name: box/MODEL"),
    ):
        assert (ill[subject][0], words in ill[subject][1]) == (state, True), ill[subject]


def test_the_doctor_reports_whether_commands_can_run_in_a_trial(
    user_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def trial() -> tuple[str, str]:
        (found,) = [finding for finding in examine(place) if finding.subject == "trial"]
        return found.state, found.message

    place = tmp_path / "work"
    place.mkdir()
    words = "a command runs in a trial: changes are kept afterwards, no network"

    assert trial() == ("note", f"off; {words}")
    monkeypatch.delenv("TUI_AGENT_SANDBOX")
    assert trial() == ("ok", words)
    monkeypatch.setattr(Trials, "_try_all", lambda _: (None, "no user namespaces"))
    assert trial() == ("note", "not available, so commands ask before they run: no user namespaces")
    user_file.write_text('sandbox = "required"\n', "utf-8")
    impossible = "no trial works, so no command can run: no user namespaces"
    assert trial() == ("bad", f'sandbox = "required" is set and {impossible}')


@pytest.mark.slow
def test_no_command_runs_if_the_sandbox_is_missing(
    user_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    place, programs = tmp_path / "work", tmp_path / "programs"
    place.mkdir()
    programs.mkdir()
    for name in ("bash", "touch"):
        (programs / name).symlink_to(shutil.which(name) or "")
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.chdir(place)
    monkeypatch.setenv("TUI_AGENT_SANDBOX", "bwrap")

    run_program(["--demo", "-p", "run touch ran", "--allow", "bash"])

    assert "commands must run in a trial, and none works here" in capfd.readouterr().out
    assert not (place / "ran").exists()
