"""The setting `sandbox`: its effect in the engine, with and without a trial that works."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.table import table
from tests.workbench.configuration.test_live_settings import options_for
from tests.workbench.quiet_bench import open_quietly
from tui_agent.protocol.events import Warned
from tui_agent.protocol.permissions import PermissionMode
from tui_agent.trial.trials import Trials
from tui_agent.workbench.workbench import Workbench

pytestmark = pytest.mark.slow

COMMANDS = ("pytest", "touch a", "ls", "rm -rf /", "git commit -m x", "echo $(id) > x")


@pytest.fixture
def no_walls(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which nothing works."""
    monkeypatch.setattr(Trials, "_try_all", lambda _: (None, "the system forbids user namespaces"))


def offers_to_leave(bench: Workbench) -> bool:
    """Return True if the model can ask to run a command outside of the trial."""
    (bash,) = [tool for tool in bench.agent.tools if tool.name == "bash"]
    return "sandbox" in bash.spec.input_schema["properties"]


def places(bench: Workbench, mode: str = "ask") -> list[tuple[str, str]]:
    """Return decision and place of each command."""
    bench.policy.set_mode(PermissionMode(mode))
    (bash,) = [tool for tool in bench.agent.tools if tool.name == "bash"]
    decisions = [bench.policy.check(bash, {"command": command}) for command in COMMANDS]
    return [(decision.decision, decision.place) for decision in decisions]


@table(
    ("setting", "mode", "expected"),
    [
        ("auto", "ask", ("allow", "trial")),
        ("auto", "plan", ("allow", "trial")),
        ("auto", "allow", ("allow", "outside")),
        ("required", "allow", ("allow", "trial")),
        ("bwrap", "allow", ("allow", "trial")),
        ("off", "allow", ("allow", "outside")),
    ],
)
async def test_the_setting_chooses_the_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, mode: str, expected: tuple[str, str]
) -> None:
    monkeypatch.setenv("TUI_AGENT_SANDBOX", setting)

    async with open_quietly(options_for(tmp_path)) as bench:
        found, offered = places(bench, mode), offers_to_leave(bench)

    assert set(found) == {expected}
    assert offered is (setting != "off")


@pytest.mark.usefixtures("no_walls")
async def test_where_no_trial_works_commands_ask_or_do_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for setting, expected in (("auto", ("ask", "outside")), ("required", ("deny", "nowhere"))):
        monkeypatch.setenv("TUI_AGENT_SANDBOX", setting)
        async with open_quietly(options_for(tmp_path)) as bench:
            assert places(bench)[0] == expected
            assert not offers_to_leave(bench)


async def test_a_check_gives_the_answers_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUI_AGENT_SANDBOX", "auto")
    modes = ("ask", "accept_edits", "plan", "allow")
    calls = [{"tool": "bash", "input": {"command": one}, "mode": mode} for mode in modes for one in COMMANDS]

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
    async with open_quietly(options_for(tmp_path)) as bench:
        run = [found for mode in modes for found in places(bench, mode)]

    assert [(one["decision"], one["place"]) for one in checked] == run


async def test_commands_ask_once_the_trial_works_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUI_AGENT_SANDBOX", "auto")

    def fail(*_: object) -> object:
        raise OSError("no space left on device")

    async with open_quietly(options_for(tmp_path)) as bench:
        before = places(bench)[0]
        monkeypatch.setattr("tui_agent.trial.trials.covered_places", fail)
        with bench.events.subscribe() as heard:
            results = [await bench.agent.run_command("bash", {"command": "ls"}, "!ls") for _ in range(2)]
            warnings = [one.event for one in heard.drain() if isinstance(one.event, Warned)]
        after = places(bench)[0]

    assert before == ("allow", "trial")
    assert after == ("ask", "outside")
    assert "its trial could not be set up" in results[0].text
    [warning] = [event.text for event in warnings if event.code == "sandbox_unavailable"]
    assert warning.startswith("The trial does not work here any more, so commands ask from now on before they run")
