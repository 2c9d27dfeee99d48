"""Findings of language servers in the results of edits, in whole sessions."""

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.messages_server import ScriptedMessagesServer
from tests.support.table import table
from tests.workbench.quiet_bench import open_quietly
from tui_agent.acp.session_updates import SessionUpdates
from tui_agent.headless.plain_mode_output import PlainReporter
from tui_agent.lsp import language_servers
from tui_agent.protocol.envelope import Envelope, Origin
from tui_agent.protocol.events import (
    AgentEvent,
    FileChanged,
    Noticed,
    SteeringQueued,
    ToolEnded,
    ToolQueued,
    ToolStarted,
    Warned,
)
from tui_agent.protocol.messages import TextBlock
from tui_agent.tools.unified_diff import diff_of
from tui_agent.workbench.configuration.launch_options import LaunchOptions
from tui_agent.workbench.workbench import Workbench

ODD = Path(__file__).with_name("odd_server.py")
RUFF = {"command": "ruff server", "files": ["*.py"]}
DONE: dict[str, Any] = {"blocks": [{"type": "text", "text": "Done."}]}
pytestmark = pytest.mark.slow


def odd(*flags: str, **more: Any) -> dict[str, Any]:
    return {"command": [sys.executable, str(ODD), *flags], "files": ["*.txt"], **more}


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"blocks": [{"type": "tool_use", "name": tool, "input": arguments}]}


def change(path: str, old: str, new: str) -> dict[str, Any]:
    return call("edit", path=path, old_string=old, new_string=new)


@asynccontextmanager
async def session(
    folder: Path, script: Sequence[dict[str, Any]], sandbox: str = "off", **servers: dict[str, Any]
) -> AsyncGenerator[tuple[Workbench, list[AgentEvent]]]:
    """Yield a session with language servers whose model follows a script, and its events."""
    settings = {"sandbox": sandbox, "lsp": servers, "permissions": {"mode": "accept_edits"}}
    async with ScriptedMessagesServer([*script, DONE]) as server:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("ANTHROPIC_AUTH_TOKEN", server.token)
            settings["base_url"] = server.base_url
            options = replace(LaunchOptions.for_command(folder), settings=settings, keep_session=True)
            async with open_quietly(options, watched=False) as bench:
                events: list[AgentEvent] = []
                bench.events.on((ToolEnded, Warned, Noticed), events.append)
                yield bench, events


def results(events: Sequence[AgentEvent], tool: str = "edit") -> list[str]:
    ended = [event for event in events if isinstance(event, ToolEnded) and event.name == tool]
    return ["\n".join(getattr(block, "text", "") for block in event.content) for event in ended]


def outcomes(events: Sequence[AgentEvent]) -> list[str]:
    return [str((event.details or {}).get("outcome")) for event in events if isinstance(event, ToolEnded)]


def warnings(events: Sequence[AgentEvent]) -> list[str]:
    return [event.text for event in events if isinstance(event, Warned)]


def servers_of_this_program() -> list[psutil.Process]:
    found: list[psutil.Process] = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            found += [process] if ODD.name in " ".join(process.cmdline()) else []
    return found


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine takes longer than a user would wait."""
    monkeypatch.setattr(language_servers, "WAIT_SECONDS", 25.0)


@pytest.mark.skipif(shutil.which("ruff") is None, reason="ruff is not installed")
@pytest.mark.parametrize("sandbox", ["off", "auto"])
async def test_new_problems_of_an_edit_are_in_its_result(tmp_path: Path, sandbox: str) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.py").write_text("import os\n\nprint('a')\n", "utf-8")
    script = [
        call("read", path="a.py"),
        change("a.py", "print('a')", "prnt('a')"),
        change("a.py", "prnt('a')", "print('b')"),
        call("write", path="new.py", content="import sys\n\nfoo()\n"),
    ]

    async with session(folder, script, sandbox, ruff=RUFF) as (bench, events):
        report = await bench.agent.run("Go")

    assert report.reason == "done", report.error
    first, second = results(events)
    assert first.endswith(
        "New problems after this change (1 that were there before are not listed):\n"
        "a.py:3:1: error: Undefined name `prnt` (Ruff F821)"
    )
    assert second == "Changed a.py (+1 −1 lines)."
    assert results(events, "write")[0].endswith(
        "New problems after this change:\nnew.py:3:1: error: Undefined name `foo` (Ruff F821)\n"
        "new.py:1:8: warning: `sys` imported but unused (Ruff F401)"
    )
    assert outcomes(events)[1:] == ["+1 −1 · 1 error", "+1 −1", "new file +3 · 1 error, 1 warning"]
    assert warnings(events) == []


@pytest.mark.parametrize("flag", ["--versioned", "--unversioned", "--strange"])
async def test_a_server_that_pushes_is_waited_for(tmp_path: Path, flag: str) -> None:
    name = "a (1)+@é.txt"
    (tmp_path / name).write_text("ODD\nline\nHINT\n", "utf-8")
    script = [call("read", path=name), change(name, "line", "BAD ODD"), change(name, "BAD ODD", "fine")]

    async with session(tmp_path, script, odd=odd(flag)) as (bench, events):
        await bench.agent.run("Go")

    first, second = results(events)
    assert first.splitlines()[1:] == [
        "New problems after this change (1 that were there before are not listed):",
        f"{name}:2:1: error: BAD in it (odd 1)",
        f"{name}:2:5: warning: ODD in it (odd 1)",
    ]
    assert len(second.splitlines()) == 1


async def test_what_comes_late_follows_as_a_notice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language_servers, "WAIT_SECONDS", 0.0)
    (tmp_path / "a.txt").write_text("line\n", "utf-8")
    held = tmp_path.parent / f"{tmp_path.name}-held"
    script = [call("read", path="a.txt"), change("a.txt", "line", "BAD"), change("a.txt", "BAD", "BAD\nBAD"), DONE]

    async with session(tmp_path, script, slow=odd("--hold", str(held))) as (bench, events):
        await bench.agent.run("Go")
        told = asyncio.Event()
        notes: list[str] = []

        def hear(event: SteeringQueued) -> None:
            notes.append(event.text)
            told.set()

        bench.events.on(SteeringQueued, hear)
        held.touch()
        await asyncio.wait_for(told.wait(), 60)

    first, second = results(events)
    assert all(
        text.endswith("\n[slow is still checking; new problems follow in a later step]") for text in (first, second)
    )
    assert notes == [
        "The language server slow has checked an earlier change. New problems after this change:\n"
        "a.txt:1:1: error: BAD in it (slow 0)\na.txt:2:1: error: BAD in it (slow 1)"
    ], "both changes brought what is new since the text before the first"
    assert [event.text for event in events if isinstance(event, Noticed)] == [
        "slow found 2 errors in a.txt after an earlier change."
    ]


@table(
    ("server", "warning"),
    [
        (odd("--die"), "it exited with code 3"),
        (odd("--never-start"), "it exited with code 1: no licence found"),
        (odd("--noise"), "it broke the protocol"),
        ({"command": "no-such-program", "files": "*.txt"}, "there is no program no-such-program"),
    ],
)
async def test_a_server_that_does_not_run_costs_one_warning(
    tmp_path: Path, server: dict[str, Any], warning: str
) -> None:
    script = [call("write", path=f"{number}.txt", content=f"BAD {number}") for number in range(6)]

    async with session(tmp_path, script, odd=server) as (bench, events):
        report = await bench.agent.run("Go")

    assert report.reason == "done"
    assert [text for text in results(events, "write") if "\n" in text] == []
    (text,) = warnings(events)
    assert text.startswith("The language server odd does not run: ")
    assert warning in text


async def test_a_server_that_reports_nothing_about_a_file_is_waited_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui_agent.lsp.language_connection.CHECK_SECONDS", 0.1)
    (tmp_path / "a.txt").write_text("1\n", "utf-8")
    script = [call("read", path="a.txt"), *(change("a.txt", str(one), str(one + 1)) for one in range(1, 5))]

    async with session(tmp_path, [*script, call("lookup", kind="symbols", name="fo")], odd=odd("--silent")) as (
        bench,
        events,
    ):
        await bench.agent.run("Go")

    assert results(events) == ["Changed a.txt (+1 −1 lines)."] * 4
    assert results(events, "lookup") == ["a.txt:1:1: function found"]
    assert warnings(events) == []


async def test_a_server_that_died_starts_again(tmp_path: Path) -> None:
    flag = tmp_path.parent / f"{tmp_path.name}-died"
    script = [call("write", path=f"{number}.txt", content="BAD") for number in range(3)]

    async with session(tmp_path, script, odd=odd("--die-once", str(flag))) as (bench, events):
        await bench.agent.run("Go")

    assert ["BAD in it" in text for text in results(events, "write")] == [False, True, True]
    assert warnings(events) == []


@pytest.mark.parametrize("sandbox", ["off", "auto"])
async def test_a_server_ends_with_the_session_and_changes_nothing_behind_walls(tmp_path: Path, sandbox: str) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    child, written = folder / "child", folder / "written"
    child.touch()
    server = shutil.copy(ODD, folder / ODD.name)
    flags = ("--try-to-write", str(written), *(() if sandbox == "auto" else ("--child", str(child))))
    script = [call("write", path="a.txt", content="BAD")]
    started: list[psutil.Process] = []

    command = [sys.executable, str(server), *flags]
    async with session(folder, script, sandbox, odd={"command": command, "files": ["*.txt"]}) as (bench, events):
        await bench.agent.run("Go")
        has_walls = bench.policy.trial.is_available
        started = servers_of_this_program()
        if sandbox == "off":
            started.append(psutil.Process(int(child.read_text("utf-8"))))
        assert len(started) >= 1

    assert "BAD in it" in results(events, "write")[0]
    assert not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in started)
    assert written.exists() is not has_walls
    assert not [name for name in os.listdir(folder) if name.startswith(".")]


CHANGED = TextBlock(text="Changed a.py (+1 −0 lines).")
FOUND = TextBlock(text="New problems after this change:\na.py:1:1: error: x (ruff)")
EVENTS = (
    ToolQueued(call_id="c", name="edit", args_raw={"path": "a.py"}, index=0, summary="a.py"),
    ToolStarted(call_id="c", name="edit", args={"path": "a.py"}, summary="a.py"),
    FileChanged(path="/w/a.py", change="modified", call_id="c", diff=diff_of("", "x\n", "a/a.py", "b/a.py")),
    ToolEnded(
        call_id="c",
        name="edit",
        index=0,
        status="ok",
        is_error=False,
        content=(CHANGED, FOUND),
        details={"outcome": "+1 · 1 error", "problems": "1 error"},
    ),
)
ENVELOPES = [Envelope(event, 1, 0, 0.0, Origin("s")) for event in EVENTS]


def test_an_editor_gets_them_after_the_change() -> None:
    fold = SessionUpdates(Path("/w"), terminals=False)
    *_, last = [update for envelope in ENVELOPES for update in fold.apply(envelope)]
    content = last.content  # type: ignore[union-attr]

    assert [part.type for part in content] == ["diff", "content"]
    assert "a.py:1:1: error: x (ruff)" in content[1].content.text


def test_plain_mode_names_their_number() -> None:
    reporter = PlainReporter(lambda _: ())
    lines = b"".join(reporter.render(envelope) for envelope in ENVELOPES).decode().splitlines()

    assert lines[-1] == "done: edit a.py: Changed a.py (+1 −0 lines). (3 lines): 1 error"
