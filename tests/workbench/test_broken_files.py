"""Broken or odd files in place of tui-agent's own: the documented error or notice, never a traceback or a wait."""

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.broken_files import GOOD, NO_SETTINGS, NO_TEXT, NO_TOML, NOT_A_FILE
from tests.workbench.configuration.test_live_settings import DENY_MAKE, decision, engine_in, options_for, write
from tui_agent.cli.command_line import run_program
from tui_agent.permissions import Rule
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import Warned
from tui_agent.session import SessionStore
from tui_agent.settings import PROJECT_FILE, Locations
from tui_agent.workbench.configuration.effective_settings import load_effective_settings
from tui_agent.workbench.configuration.permission_rules import RuleStore
from tui_agent.workbench.configuration.project_trust import TrustStore, folder_trust, trust_for, trust_request_for

Put = Callable[[Path], None]
BROKEN = {**NOT_A_FILE, **NO_TEXT, **NO_TOML, **NO_SETTINGS}
UNREADABLE = {**NOT_A_FILE, **NO_TEXT, **NO_TOML}


def each(corpus: dict[str, Put]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("put", list(corpus.values()), ids=list(corpus))


@pytest.fixture
def locations(clean_environment: Path) -> Locations:
    found = Locations.of_user({"HOME": str(clean_environment)})
    assert found.config_dir.is_relative_to(clean_environment)
    found.config_dir.mkdir(parents=True)
    return found


def one_line_about(path: Path, text: str) -> bool:
    """Return True if it is one short line without control characters that names the path."""
    line = text.removesuffix("\n")
    return line.isprintable() and len(line) <= 2_100 and str(path) in line


# --- settings at the start --------------------------------------------------------------------------------------------


@pytest.mark.slow
@each(BROKEN)
def test_broken_user_settings_are_an_error_of_one_line(
    put: Put, locations: Locations, capsys: pytest.CaptureFixture[str]
) -> None:
    put(locations.user_file)

    for arguments in (["config", "check"], ["-p", "--demo", "hello"], ["permissions", "check"]):
        assert run_program(arguments) == 2
        out, err = capsys.readouterr()
        assert out == ""
        # The check lists every mistake.
        lines = err.splitlines() if arguments[0] == "config" else [err]
        assert 0 < len(lines) <= 51
        assert all(one_line_about(locations.user_file, line) for line in lines[:50])


@each(BROKEN)
def test_broken_project_settings_raise_only_configuration_errors(
    put: Put, locations: Locations, tmp_path: Path
) -> None:
    file = tmp_path / PROJECT_FILE
    file.parent.mkdir()
    put(file)

    for look in (
        lambda: load_effective_settings(options_for(tmp_path), locations),
        lambda: trust_request_for(tmp_path, locations),
        lambda: trust_for(tmp_path, locations, given=True),
        lambda: folder_trust(tmp_path, locations, given=True),
        lambda: load_effective_settings(replace(options_for(tmp_path), trust=True), locations),
        lambda: RuleStore(locations, tmp_path).store([Rule.parse("allow", "bash(x)")], "project"),
    ):
        with suppress(ConfigurationError):
            look()


@each(UNREADABLE)
def test_broken_settings_are_not_overwritten_by_a_rule(put: Put, locations: Locations, tmp_path: Path) -> None:
    put(locations.user_file)

    with pytest.raises(ConfigurationError, match="was not stored"):
        RuleStore(locations, tmp_path).store([Rule.parse("allow", "bash(x)")], "user")


# --- settings while it runs -------------------------------------------------------------------------------------------


@pytest.mark.slow
@each(BROKEN)
async def test_broken_settings_leave_the_last_good_ones_in_force(
    put: Put, locations: Locations, tmp_path: Path
) -> None:
    async with engine_in(tmp_path) as (bench, live):
        write(locations.user_file, DENY_MAKE)
        await live.read_again()
        with bench.events.subscribe() as heard:
            locations.user_file.unlink()
            put(locations.user_file)
            await live.read_again()
            told = [envelope.event for envelope in heard.drain()]

        assert decision(bench, tmp_path, "make") == "deny"
        [warning] = [event for event in told if isinstance(event, Warned)]
        assert warning.code == "settings_broken"
        assert str(locations.user_file) in warning.text


@each(BROKEN)
async def test_broken_project_settings_never_loosen_a_running_agent(
    put: Put, locations: Locations, tmp_path: Path
) -> None:
    file = tmp_path / PROJECT_FILE
    write(file, DENY_MAKE)
    offer = trust_request_for(tmp_path, locations)
    assert offer is not None
    TrustStore(locations).remember(offer, "all")
    async with engine_in(tmp_path) as (bench, live):
        assert decision(bench, tmp_path, "make") == "deny"
        file.unlink()
        put(file)
        await live.read_again()

        assert decision(bench, tmp_path, "make") == "deny"


# --- other files ------------------------------------------------------------------------------------------------------

DEEP_JSON = b'{"a":' * 100_000
JSON: dict[str, Put] = {
    "deep": lambda path: path.write_bytes(DEEP_JSON) and None,
    "deep list": lambda path: path.write_bytes(b"[" * 100_000) and None,
    "large number": lambda path: path.write_bytes(b'{"a":' + b"9" * 5_000 + b"}") and None,
    "words for numbers": lambda path: path.write_bytes(b'{"a":NaN,"b":-Infinity}') and None,
    "no object": lambda path: path.write_bytes(b'"text"') and None,
}


@pytest.mark.slow
@each({**NOT_A_FILE, **NO_TEXT, **JSON})
def test_an_unreadable_trust_file_means_no_trust(put: Put, locations: Locations, tmp_path: Path) -> None:
    TrustStore(locations).renew(tmp_path, b"")
    [answer] = (locations.state_dir / "trust").iterdir()
    answer.unlink()
    put(answer)

    assert TrustStore(locations).trust_in(tmp_path) is None


@pytest.mark.slow
@each({**NOT_A_FILE, **NO_TEXT, **JSON, **GOOD})
def test_a_file_that_is_not_a_journal_breaks_no_command(
    put: Put, locations: Locations, capsys: pytest.CaptureFixture[str]
) -> None:
    locations.sessions_dir.mkdir(parents=True)
    put(locations.sessions_dir / "one.jsonl")

    assert run_program(["sessions", "list"]) == 0
    for command in (["show", "one"], ["export", "one"], ["fork", "one"], ["rename", "one", "title"]):
        assert run_program(["sessions", *command]) in (0, 2)
        assert "Traceback" not in capsys.readouterr().err
    assert run_program(["--demo", "-p", "--continue", "hello"]) == 2


@pytest.mark.slow
@each({**NOT_A_FILE, **NO_TEXT, **JSON, **GOOD})
def test_a_file_that_is_not_a_journal_is_not_replayed_and_refused_in_one_line(
    put: Put, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path / "r.jsonl")

    assert run_program(["--replay", str(tmp_path / "r.jsonl")]) == 2
    assert one_line_about(tmp_path / "r.jsonl", capsys.readouterr().err)


def test_a_session_with_an_invalid_directory_is_skipped(locations: Locations, tmp_path: Path) -> None:
    locations.sessions_dir.mkdir(parents=True)
    head = {"v": 1, "seq": 1, "ts": 1, "type": "session.created", "data": {"id": "one", "path": "", "cwd": "/a\0b"}}
    begun = {"v": 1, "seq": 2, "ts": 2, "type": "run.started", "data": {"run_id": "r", "input": "x"}}
    lines = "".join(f"{json.dumps(line)}\n" for line in (head, begun))
    (locations.sessions_dir / "one.jsonl").write_text(lines, "utf-8")

    assert [found.cwd for found in SessionStore(locations.sessions_dir).list()] == ["/a\0b"]
    assert SessionStore(locations.sessions_dir).latest(tmp_path).session is None


# --- input as lines ---------------------------------------------------------------------------------------------------

LINES = [
    DEEP_JSON,
    b"[" * 100_000,
    b'{"tool":"bash","input":' + b'{"a":' * 300 + b"1" + b"}" * 301,
    b'{"tool":"bash","input":' + b'{"a":' * 900 + b"1" + b"}" * 901,
    b'{"tool":"x","input":' + b'{"a":[' * 450 + b"1" + b"]}" * 450 + b"}",
    b'{"tool":"bash","input":{"command":"ls","timeout":' + b"9" * 5_000 + b"}}",
    b'{"tool":"bash","input":{"command":"ls","timeout":1e999}}',
    b'{"tool":"bash","input":{"command":"\\ud800"}}',
    b'{"tool":"bash","input":{"command":"a\\u0000b"}}',
    b'{"tool":"read","input":{"path":"\\u0000"},"cwd":"/tmp","rules":[["deny","read(' + b"[" * 5_000 + b')"]]}',
    b'{"tool":"bash","tool":"read","input":{},"input":{"command":"ls"}}',
    b"\xff\xfe\0",
    b"NaN",
    b'"' + b"x" * 1_000_000,
]


@pytest.mark.slow
def test_permissions_check_answers_every_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tui_agent", "permissions", "check"],
        input=b"\n".join(LINES),
        capture_output=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, b"")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(LINES)
    assert all(answer["decision"] in ("deny", "ask") for answer in answers)
