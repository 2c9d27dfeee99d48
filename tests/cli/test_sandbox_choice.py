"""The setting `sandbox`: its effect in the engine, with and without a sandbox that works."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.configuration.test_live_settings import options_for
from tests.support.programs import path_without
from tui_agent.cli.build_engine import Engine, open_engine
from tui_agent.protocol.events import Warned
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import Containment

pytestmark = pytest.mark.slow

WORKS = "#!/bin/sh\nexit 0\n"
FORBIDDEN = "#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n"


@pytest.fixture
def bwrap(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place on the PATH for a program that stands in for bubblewrap; the real one is hidden."""
    # Outside the workspace, from which no program is used.
    hidden, directory = tmp_path_factory.mktemp("mirror"), tmp_path_factory.mktemp("programs")
    monkeypatch.setenv("PATH", f"{directory}:{path_without('bwrap', hidden)}")
    return directory / "bwrap"


def install(bwrap: Path, script: str) -> None:
    bwrap.write_text(script, "utf-8")
    bwrap.chmod(0o755)


def offers_to_leave(engine: Engine) -> bool:
    """Return True if the model can ask to run a command outside the sandbox."""
    (bash,) = [tool for tool in engine.loop.tools if tool.name == "bash"]
    return "sandbox" in bash.spec.input_schema["properties"]


@pytest.mark.parametrize(
    ("setting", "script", "containment"),
    [
        ("auto", WORKS, Containment(setting="auto", works=True)),
        ("auto", "", Containment(setting="auto", problem="bwrap is not installed")),
        (
            "auto",
            FORBIDDEN,
            Containment(setting="auto", problem="the system forbids user namespaces (bwrap: setting up"),
        ),
        ("bwrap", WORKS, Containment(setting="bwrap", works=True)),
        ("bwrap", "", Containment(setting="bwrap", problem="bwrap is not installed")),
        ("off", WORKS, Containment()),
    ],
)
async def test_the_policy_gets_the_sandbox_and_the_tool_uses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bwrap: Path, setting: str, script: str, containment: Containment
) -> None:
    monkeypatch.setenv("TUI_AGENT_SANDBOX", setting)
    if script:
        install(bwrap, script)

    async with open_engine(options_for(tmp_path), watched=True) as engine:
        found = engine.policy.containment
        offered = offers_to_leave(engine)

    assert found.model_copy(update={"problem": ""}) == containment.model_copy(update={"problem": ""})
    assert found.problem.startswith(containment.problem)
    assert bool(found.problem) is bool(containment.problem)
    # Under `bwrap` the tool keeps a sandbox that does not work: it refuses, and never runs a command without one.
    assert offered is (containment.works or setting == "bwrap")


@pytest.mark.parametrize(("setting", "script"), [("auto", WORKS), ("bwrap", FORBIDDEN)])
async def test_a_check_gives_the_answers_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bwrap: Path, setting: str, script: str
) -> None:
    monkeypatch.setenv("TUI_AGENT_SANDBOX", setting)
    install(bwrap, script)
    commands = (
        "find . -name '*.pyc' -delete",
        "git apply p",
        "patch -p1 < p",
        "ls | xargs rm",
        "pytest",
        "touch a",
        "ls",
    )
    modes = ("ask", "accept_edits", "allow")
    calls = [{"tool": "bash", "input": {"command": one}, "mode": mode} for mode in modes for one in commands]

    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "tui_agent", "permissions", "check"],
        input="".join(f"{json.dumps(call)}\n" for call in calls),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    checked = [json.loads(line) for line in done.stdout.splitlines()]
    async with open_engine(options_for(tmp_path), watched=True) as engine:
        (bash,) = [tool for tool in engine.loop.tools if tool.name == "bash"]
        run: list[tuple[str, str, str]] = []
        for mode in modes:
            engine.policy.set_mode(mode)
            decisions = [engine.policy.check(bash, {"command": command}) for command in commands]
            run += [(decision.decision, decision.reason, decision.confinement) for decision in decisions]

    assert [(one["decision"], one["reason"], one.get("confinement", "")) for one in checked] == run
    assert bool(run[len(commands) * 2][2]) is (script == WORKS or setting == "bwrap")


async def test_the_policy_asks_once_the_sandbox_works_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bwrap: Path
) -> None:
    monkeypatch.setenv("TUI_AGENT_SANDBOX", "auto")
    install(bwrap, WORKS)

    async with open_engine(options_for(tmp_path), watched=True) as engine:
        (bash,) = [tool for tool in engine.loop.tools if tool.name == "bash"]
        engine.policy.set_mode("allow")
        unknown: JsonObject = {"command": 'touch "$(cat names)"'}
        before = engine.policy.check(bash, unknown)
        bwrap.unlink()
        with engine.bus.subscribe() as heard:
            result = await engine.loop.run_command("bash", unknown, "!touch")
            events = [envelope.event for envelope in heard.drain()]
        after = engine.policy.check(bash, unknown)

    assert (before.decision, bool(before.confinement)) == ("allow", True)
    assert (after.decision, after.confinement) == ("ask", "")
    assert "repeat the call with `sandbox: false`" in result.text
    [warning] = [event.text for event in events if isinstance(event, Warned) and event.code == "sandbox_unavailable"]
    assert warning.startswith("The sandbox does not work here any more, so commands that would run in it ask from now")


@pytest.mark.parametrize("name", [".git", "node_modules"])
async def test_a_workspace_that_the_sandbox_cannot_protect_asks_from_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bwrap: Path, name: str
) -> None:
    monkeypatch.setenv("TUI_AGENT_SANDBOX", "auto")
    install(bwrap, WORKS)
    (tmp_path / name).symlink_to("elsewhere")

    async with open_engine(options_for(tmp_path), watched=True) as engine:
        assert not engine.policy.containment.works
        assert f"{name} is a symbolic link" in engine.policy.containment.problem


async def test_auto_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bwrap: Path) -> None:
    monkeypatch.delenv("TUI_AGENT_SANDBOX")

    async with open_engine(options_for(tmp_path), watched=True) as engine:
        assert engine.policy.containment.setting == "auto"
