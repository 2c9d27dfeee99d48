"""Plugins in a whole engine: their provider, rules for their tools, and what the user reads about them."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.support.stream_helpers import HELLO, heard
from tests.support.table import table
from tests.workbench.plugins.conftest import Install
from tests.workbench.quiet_bench import open_quietly
from tui_agent.acp.editor_host import EditorHost
from tui_agent.cli.command_line import run_program
from tui_agent.protocol.errors import ConfigurationError, ProviderError
from tui_agent.protocol.provider import ModelInfo, StreamEnded, TextDelta
from tui_agent.settings import Locations
from tui_agent.workbench.configuration.launch_options import LaunchOptions
from tui_agent.workbench.plugins.plugin_loader import PluginProvider
from tui_agent.workbench.sessions.session_catalogue import SessionCatalogue

MODULE = """
from tui_agent import HookBus, ModelInfo, StreamEnded, StreamStarted, TextDelta, tool

@tool
def change(text: str) -> str:
    "Change something."
    return text

@tool(read_only=True)
def look(text: str) -> str:
    "Look at something."
    return text

hooks = HookBus()
hooks.add("before_tool", lambda question: None, name="guard")

class Echo:
    def __init__(self, reference):
        self.model = ModelInfo(reference)
    async def prepare(self): ...
    async def aclose(self): ...
    async def stream(self, request):
        yield StreamStarted(self.model.name)
        yield TextDelta(request.messages[-1].text)
        yield StreamEnded("end_turn")
"""
POINTS = {
    "tools": {"change": "acme:change", "look": "acme:look"},
    "hooks": {"guard": "acme:hooks"},
    "providers": {"echo": "acme:Echo"},
}


@pytest.fixture
def work(install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the workspace, beside an installed plugin."""
    install("acme", POINTS, {"acme.py": MODULE})
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def events_of(capfd: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    code = run_program(["-p", "--model", "echo/one", "--output-format", "stream-json", *arguments, "Is anybody there?"])
    read = capfd.readouterr()
    assert code == 0, read.err
    return [json.loads(line) for line in read.out.splitlines()]


def warnings_in(events: list[dict[str, Any]], code: str) -> list[str]:
    return [event["data"]["text"] for event in events if event["data"].get("code") == code]


def test_a_broken_plugin_is_a_warning_and_the_run_continues(
    work: Path, install: Install, capfd: pytest.CaptureFixture[str]
) -> None:
    install("broken", {"tools": {"lost": "broken:lost"}}, {"broken.py": "1 / 0"})

    (warning,) = warnings_in(events_of(capfd), "left_out")

    assert warning == "The plugin tool lost of broken 1.0 is not used: ZeroDivisionError: division by zero."


def test_an_interrupt_in_a_call_of_a_plugin_ends_the_program_as_ctrl_c_does(
    work: Path, install: Install, capfd: pytest.CaptureFixture[str]
) -> None:
    stop = MODULE.replace("yield StreamStarted(self.model.name)", "yield StreamStarted('x'); raise KeyboardInterrupt")
    install("stopper", {"providers": {"stop": "stopper:Echo"}}, {"stopper.py": stop})

    assert run_program(["-p", "--model", "stop/one", "Is anybody there?"]) == 130
    assert events_of(capfd, "-c")[-1]["type"] == "run.ended", "the session stays"


async def test_calls_of_plugin_tools_pass_the_policy_and_rules_may_name_them(work: Path) -> None:
    options = replace(LaunchOptions.for_command(work), settings={"model": "echo/one"}, keep_session=False)

    async def decisions(*rules: Any) -> dict[str, str]:
        async with open_quietly(replace(options, rules=rules), watched=False) as bench:
            tools = {tool.name: tool for tool in bench.agent.tools}
            return {name: bench.policy.check(tools[name], {"text": "x"}).decision for name in ("change", "look")}

    assert await decisions() == {"change": "ask", "look": "allow"}
    assert await decisions(("allow", "change"), ("deny", "look")) == {"change": "allow", "look": "deny"}
    with pytest.raises(ConfigurationError, match=r"rule 'chance' names no tool; did you mean change"):
        await decisions(("allow", "chance"))


async def test_another_model_of_the_plugin_can_be_chosen_and_a_disabled_one_cannot(work: Path) -> None:
    options = replace(LaunchOptions.for_command(work), settings={"model": "echo/one"}, keep_session=False)
    async with open_quietly(options, watched=False) as bench:
        bench.models.choose("echo/two")
        assert bench.agent.provider.model.name == "echo/two"
        with pytest.raises(ConfigurationError, match="no provider 'ecco'"):
            bench.models.choose("ecco/two")

    off = replace(options, settings={**options.settings, "plugins": {"disabled": ["acme:echo"]}})
    with pytest.raises(ConfigurationError, match=r"plugin provider echo of acme 1.0 is not used: it is in `plugins.di"):
        async with open_quietly(off, watched=False):
            raise AssertionError("it starts")


def test_an_editor_needs_no_key_for_a_model_of_a_plugin(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locations = Locations.of_user(os.environ)

    def missing_key(model: str) -> str:
        options = replace(LaunchOptions.for_command(work), settings={"model": model})
        saved = SessionCatalogue.of_directory(locations.sessions_dir, Path("/"))
        return EditorHost(options, saved, lambda _: ()).missing_key()

    assert missing_key("echo/one") == ""
    assert "ANTHROPIC_API_KEY" in missing_key("claude-sonnet-5-5")


def test_an_address_of_ones_own_keeps_its_names_with_a_slash(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("TUI_AGENT_MODEL", "echo/one")

    assert run_program(["models", "list", "--json"]) == 0
    assert run_program(["doctor"]) == 0

    assert "endpoint   http://127.0.0.1:9" in capsys.readouterr().out


def test_commands_show_plugins(
    work: Path, install: Install, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    install("broken", {"tools": {"lost": "broken:lost"}}, {"broken.py": "1 / 0"})
    monkeypatch.setenv("TUI_AGENT_MODEL", "echo/one")
    monkeypatch.setenv("TUI_AGENT_PLUGINS__DISABLED", "acme:look")

    def out_of(*arguments: str) -> str:
        assert run_program(arguments) == 0
        return capsys.readouterr().out

    listed = {row["name"]: row for row in json.loads(out_of("plugins", "list", "--json"))}
    assert {name: row["state"] for name, row in listed.items()} == {
        "change": "used",
        "look": "disabled",
        "guard": "used",
        "echo": "used",
        "lost": "not_used",
    }
    assert (listed["echo"]["kind"], listed["echo"]["package"], listed["echo"]["version"]) == ("provider", "acme", "1.0")
    assert listed["lost"]["reason"] == "ZeroDivisionError: division by zero"
    table = out_of("plugins", "list").splitlines()
    assert len(table) == 5
    assert any("look" in row and row.endswith("off: `plugins.disabled`") for row in table)
    assert any("lost" in row and row.endswith("not used: ZeroDivisionError: division by zero") for row in table)
    doctor = out_of("doctor")
    assert "plugins    hook guard of acme 1.0, provider echo of acme 1.0, tool change of acme 1.0" in doctor
    assert "plugins    off by `plugins.disabled`: tool look of acme 1.0" in doctor
    assert "endpoint   the plugin echo" in doctor
    assert "before_tool: guard  (acme:guard)" in out_of("hooks", "list")
    assert "● echo/one" in out_of("models", "list")
    names = [row["name"] for row in json.loads(out_of("tools", "list", "--json"))]
    assert "change" in names
    assert "look" not in names
    assert out_of("permissions", "explain", "change", '{"text":"x"}').startswith("ask (mode)")


def test_a_theme_of_a_plugin_is_a_valid_setting(
    work: Path, install: Install, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    theme = 'name = "paper"\n[colors]\nprimary = "#123456"\n'
    install("paper", {"themes": {"paper": "paper"}}, {"paper/__init__.py": "1 / 0", "paper/paper.toml": theme})
    monkeypatch.setenv("TUI_AGENT_THEME", "paper")

    assert run_program(["config", "check"]) == 0
    valid = capsys.readouterr().out
    monkeypatch.setenv("TUI_AGENT_PLUGINS__DISABLED", "paper")
    assert run_program(["config", "check"]) == 0

    assert "theme" not in valid
    assert "no theme 'paper'; the themes are " in capsys.readouterr().out
    assert run_program(["--theme", "paper", "-p", "x"]) == 2


# --- the wrapper ------------------------------------------------------------------------------------------------------


class Faulty:
    """A provider whose stream ends with an error."""

    def __init__(self, error: BaseException, *, at_once: bool = False) -> None:
        self.model = ModelInfo("echo/one")
        self._error = error
        if at_once:
            self.stream = self.fail

    def fail(self, request: object) -> object:
        raise self._error

    async def prepare(self) -> None:
        raise self._error

    async def aclose(self) -> None:
        raise self._error

    async def stream(self, request: object) -> Any:
        yield TextDelta("So far")
        raise self._error


@table("at_once", [True, False])
@table(
    ("error", "kind", "text"),
    [
        (ZeroDivisionError("no\x1bway"), "bad_response", "the plugin failed: no"),
        (SystemExit(3), "bad_response", "the plugin failed: it tried to end the process"),
        (ProviderError("the echo is busy", kind="overloaded"), "overloaded", "the echo is busy"),
    ],
)
async def test_whatever_a_provider_raises_is_an_error_of_the_request(
    error: BaseException, kind: str, text: str, at_once: bool
) -> None:
    provider = PluginProvider("the plugin", "echo/one", lambda _: Faulty(error, at_once=at_once))

    facts, problem = await heard(provider.stream(HELLO))
    with pytest.raises(ProviderError):
        await provider.prepare()
    await provider.aclose()

    assert problem is not None
    assert problem.kind == kind
    assert text in str(problem)
    assert "\x1b" not in str(problem)
    assert facts == ([] if at_once else [TextDelta("So far")])


async def test_an_iterator_without_a_close_is_read_to_its_end() -> None:
    class Pieces:
        left: ClassVar[list[object]] = [StreamEnded("end_turn"), TextDelta("a")]

        def __aiter__(self) -> "Pieces":
            return self

        async def __anext__(self) -> object:
            if not self.left:
                raise StopAsyncIteration
            return self.left.pop()

    made = Faulty(ValueError())
    made.stream = lambda request: Pieces()
    provider = PluginProvider("the plugin", "echo/one", lambda _: made)

    assert [event async for event in provider.stream(HELLO)] == [TextDelta("a"), StreamEnded("end_turn")]


@table(
    ("made", "reason"),
    [
        (lambda _: 1 / 0, "division by zero"),
        (lambda _: None, "its provider has no method `prepare`"),
        (lambda _: Faulty, "type object 'Faulty' has no attribute 'model'"),
        (lambda _: Faulty(ValueError()), "its `model` must be a ModelInfo named 'echo/two'"),
    ],
)
def test_something_else_than_a_provider_is_refused(made: Any, reason: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        PluginProvider("the plugin", "echo/two", made)

    assert reason in str(raised.value)
