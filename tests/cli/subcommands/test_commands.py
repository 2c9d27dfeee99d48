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


def test_config_check_refuses_a_malformed_rule(capsys: pytest.CaptureFixture[str], user_file: Path) -> None:
    user_file.write_text('[permissions]\nrules = [\n  ["deny", "bash("],\n]\n', "utf-8")

    assert run_program(["config", "check"]) == 2
    error = capsys.readouterr().err
    assert f"{user_file}:3" in error
    assert "bash(" in error


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


def test_config_check_explains_why_a_folder_cannot_be_trusted(
    capsys: pytest.CaptureFixture[str], user_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    (project / ".tui-agent").mkdir(parents=True)
    (project / ".tui-agent" / "config.toml").write_text("[permissions]\nallow = []\n", "utf-8")
    monkeypatch.chdir(project)

    told = out_of(capsys, "config", "check")

    assert "not applied, because this folder is not trusted" in told
    assert "this folder can be trusted only after its settings are corrected" in told
    assert "config.toml:2: unknown key `permissions.allow`" in told


def test_config_check_warns_of_an_unknown_theme(capsys: pytest.CaptureFixture[str], user_file: Path) -> None:
    user_file.write_text('[ui]\ntheme = "drak"\n', "utf-8")

    words = f"{user_file}:2: `ui.theme`: no theme 'drak'; did you mean dark?\n"
    assert out_of(capsys, "config", "check").endswith(words)


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


def test_config_check_names_entries_of_tool_servers_that_are_not_used(
    capsys: pytest.CaptureFixture[str], user_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    servers = {"old": {"type": "websocket", "url": "ws://x"}, "slow": {"command": "x", "timeout": 30000}}
    Path(".mcp.json").write_text(json.dumps({"mcpServers": servers}))

    told = out_of(capsys, "config", "check")

    assert ".mcp.json: old: not used: unknown transport 'websocket'" in told
    assert ".mcp.json: slow: timeout 30000 was read as milliseconds (30 s)" in told


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
    assert set(rows["edit"]["input_schema"]["properties"]) == {
        "path",
        "old_string",
        "new_string",
        "replace_all",
        "cell",
        "cell_action",
    }
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


@pytest.mark.slow
def test_a_session_continues_where_it_ended(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    out_of(capsys, "--demo", "-p", "create a.txt with hello", "--permission-mode", "accept_edits", "--session", "one")
    out_of(capsys, "--demo", "-p", "show a.txt", "--continue")

    shown = out_of(capsys, "sessions", "show", "one")

    assert shown.index("create a.txt") < shown.index("show a.txt")
    assert (tmp_path / "a.txt").read_text("utf-8").strip() == "hello"


def test_the_doctor_finds_a_broken_setting(user_file: Path, tmp_path: Path) -> None:
    user_file.write_text("modle = 1\n", "utf-8")

    findings = {finding.subject: finding for finding in examine(tmp_path)}

    assert findings["settings"].state == "bad"
    assert "did you mean" in findings["settings"].message


def test_the_doctor_reports_settings_and_instructions_that_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUI_AGENT_MODLE", "x")
    (tmp_path / "AGENTS.md").write_text("be kind", "utf-8")

    notes = {finding.subject: finding.message for finding in examine(tmp_path) if finding.state == "note"}

    assert "did you mean TUI_AGENT_MODEL?" in notes["settings"]
    assert "AGENTS.md not used" in notes["trust"]


def test_the_doctor_accepts_an_endpoint_of_your_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:11434")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")

    findings = list(examine(tmp_path))

    assert {finding.subject: finding.state for finding in findings}["key"] == "ok"
    assert not any("sk-secret" in finding.message for finding in findings)


def test_the_doctor_says_how_to_name_a_model_of_a_configured_endpoint(user_file: Path, tmp_path: Path) -> None:
    user_file.write_text('[providers.box]\nbase_url = "http://127.0.0.1:9"\n', "utf-8")

    (key,) = [finding for finding in examine(tmp_path) if finding.subject == "key"]

    assert key.state == "bad"
    assert key.message.startswith("ANTHROPIC_API_KEY is not set, and the model ")
    assert key.message.endswith(" needs it; a model of your own endpoints needs its name: box/MODEL")


def test_the_doctor_reports_whether_a_browser_can_show_the_app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def serving() -> tuple[str, str]:
        (found,) = [finding for finding in examine(tmp_path) if finding.subject == "serve"]
        return found.state, found.message

    state, text = serving()
    assert (state, "127.0.0.1" in text, "--i-know" in text) == ("ok", True, True)
    monkeypatch.setitem(sys.modules, "textual_serve", None)
    state, text = serving()
    assert (state, install_command("serve") in text) == ("note", True)


def test_the_doctor_reports_whether_commands_can_outlive_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def processes() -> tuple[str, str]:
        (found,) = [finding for finding in examine(tmp_path) if finding.subject == "processes"]
        return found.state, found.message

    assert processes() == ("ok", "commands end with everything they start, and when tui-agent ends")

    monkeypatch.setenv("PATH", str(tmp_path))
    missing = "setpriv of util-linux is not installed: commands may outlive tui-agent if it is killed"
    assert processes() == ("note", missing)


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
