"""Changed settings apply while the program runs, rules and modes also to calls that wait for an approval."""

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from tests.workbench.quiet_bench import open_quietly
from tui_agent.execution import Batched
from tui_agent.permissions import PermissionMode
from tui_agent.protocol.background import run_service
from tui_agent.protocol.events import Noticed, Warned
from tui_agent.protocol.file_watch import WatchedFiles
from tui_agent.settings import LoadedSettings, Locations, Settings
from tui_agent.workbench.built_in_tools import built_in_tools
from tui_agent.workbench.configuration.launch_options import LaunchOptions
from tui_agent.workbench.configuration.project_trust import TrustStore, trust_request_for
from tui_agent.workbench.live_settings import LiveSettings
from tui_agent.workbench.workbench import Workbench

T = TypeVar("T")
DENY_MAKE = '[permissions]\nrules = [["deny", "bash(make:*)"]]\n'


def options_for(folder: Path) -> LaunchOptions:
    return replace(LaunchOptions.for_command(folder), demo=True, rules=(("ask", "bash(date)"),))


@asynccontextmanager
async def engine_in(folder: Path) -> AsyncGenerator[tuple[Workbench, LiveSettings]]:
    async with open_quietly(options_for(folder)) as bench:
        yield bench, bench.live_settings()


async def with_live_settings(bench: Workbench, options: LaunchOptions, work: Callable[[], Awaitable[T]]) -> T:
    async with asyncio.TaskGroup() as tasks:
        live = bench.live_settings()
        watching = tasks.create_task(run_service("live settings", live.watch(), live.give_up))
        try:
            return await work()
        finally:
            watching.cancel()


def user_file() -> Path:
    return Locations.of_user().user_file


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")


def decision(bench: Workbench, folder: Path, command: str) -> str:
    [bash] = [tool for tool in built_in_tools(folder) if tool.name == "bash"]
    return bench.policy.check(bash, {"command": command}).decision


async def test_rules_and_mode_apply_as_soon_as_they_are_read(tmp_path: Path) -> None:
    async with engine_in(tmp_path) as (bench, live):
        demo_rules = {rule.text for rule in bench.policy.rules if rule.origin == "--demo"}
        with bench.events.subscribe() as heard:
            write(
                user_file(),
                DENY_MAKE.replace("[permissions]", '[permissions]\nmode = "accept_edits"'),
            )
            await live.read_again()
            told = [envelope.event for envelope in heard.drain()]

        assert decision(bench, tmp_path, "make") == "deny"
        assert decision(bench, tmp_path, "date") == "ask", "the options' rules stay"
        assert {rule.text for rule in bench.policy.rules if rule.origin == "--demo"} == demo_rules
        assert bench.policy.mode is PermissionMode.ACCEPT_EDITS
        assert [event.code for event in told if isinstance(event, Noticed)] == ["settings_read"]

        user_file().unlink()
        await live.read_again()
        assert decision(bench, tmp_path, "make") == "ask"
        assert bench.policy.mode is PermissionMode.ASK


async def test_saved_output_of_a_session_stays_within_the_limit(tmp_path: Path) -> None:
    write(Locations.of_user(os.environ).user_file, 'output_disk_limit = 40_000\n[permissions]\nmode = "allow"\n')
    async with engine_in(tmp_path) as (bench, live):
        with bench.events.subscribe() as heard:
            result = await bench.agent.run_command("bash", {"command": "seq 1 20000"}, "!seq 1 20000")
            write(user_file(), "output_disk_limit = 50_000\n")
            await live.read_again()
            told = [envelope.event for envelope in heard.drain()]

    assert "have reached their limit of 40,000 bytes" in result.text
    assert [event.code for event in told if isinstance(event, Warned)] == ["output_disk_limit"]
    assert any("output_disk_limit" in event.text for event in told if isinstance(event, Noticed))


async def test_other_settings_apply_from_the_next_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TUI_AGENT_SANDBOX")
    shown: list[str] = []
    async with open_quietly(options_for(tmp_path)) as bench:

        def use_on_screen(before: Settings, loaded: LoadedSettings) -> list[str]:
            shown.extend({loaded.settings.ui.theme} - {before.ui.theme})
            return []

        live = bench.live_settings(use_on_screen)
        config, demo = bench.agent.config, bench.agent.provider
        assert (config.max_steps, config.options.tool_timeout) == (16, 30.0)
        with bench.events.subscribe() as heard:
            write(
                user_file(),
                'model = "other"\nmax_steps = 3\nmax_tokens = 50\ntool_timeout = 7\nstrategy = "batched:2"\n'
                'append_system = "Be brief."\nsandbox = "bwrap"\n[budget]\nseconds = 9\n[ui]\ntheme = "light"\n',
            )
            await live.read_again()
            told = [envelope.event for envelope in heard.drain()]

        assert (config.max_steps, config.max_tokens, config.budget.seconds) == (3, 50, 9)
        assert config.options.tool_timeout == 7
        assert config.options.strategy == Batched(2)
        assert config.options.archive_dir is not None
        assert "Be brief." in bench.agent.history.registry.flat("system")
        assert shown == ["light"]
        assert bench.agent.provider is demo, "the offline model stays"
        [notice] = [event for event in told if isinstance(event, Noticed)]
        assert "Changed in the settings: sandbox." in notice.text

        user_file().unlink()
        await live.read_again()
        assert (config.max_steps, config.max_tokens, config.budget.seconds) == (16, None, None)
        assert "Be brief." not in bench.agent.history.registry.flat("system")
        assert shown == ["light", "auto"]


async def test_the_model_changes_only_if_there_is_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    options = replace(options_for(tmp_path), demo=False)
    async with open_quietly(options) as bench:
        live = bench.live_settings()
        write(user_file(), 'model = "other"\n')
        await live.read_again()
        assert bench.agent.provider.model.name == "other"

        monkeypatch.delenv("ANTHROPIC_BASE_URL")
        with bench.events.subscribe() as heard:
            write(user_file(), 'model = "third"\nmax_steps = 3\n')
            await live.read_again()
            told = [envelope.event for envelope in heard.drain()]

        assert bench.agent.provider.model.name == "other"
        assert bench.agent.config.max_steps == 3
        assert ["no key" in event.text for event in told if isinstance(event, Warned)] == [True]


async def test_changed_project_settings_cannot_loosen_a_running_agent(tmp_path: Path) -> None:
    settings = tmp_path / ".tui-agent" / "config.toml"
    write(settings, '[permissions]\nrules = [["deny", "bash(make:*)"], ["allow", "bash(touch:*)"]]\n')
    async with engine_in(tmp_path) as (bench, _):
        locations = Locations.of_user()
    offer = trust_request_for(tmp_path, locations)
    assert offer is not None
    TrustStore(locations).remember(offer, "all")

    async with engine_in(tmp_path) as (bench, live):
        assert decision(bench, tmp_path, "make") == "deny"
        assert decision(bench, tmp_path, "touch x") == "allow"
        with bench.events.subscribe() as heard:
            write(settings, '[permissions]\nrules = [["allow", "bash"]]\n')
            await live.read_again()
            told = [envelope.event for envelope in heard.drain()]

        assert decision(bench, tmp_path, "make") == "deny"
        assert decision(bench, tmp_path, "touch x") == "ask"
        assert [event.code for event in told if isinstance(event, Warned)] == ["settings_untrusted"]


async def test_files_are_watched_wherever_they_appear(tmp_path: Path) -> None:
    async with open_quietly(options_for(tmp_path)) as bench:
        locations: Locations = Locations.of_user()

        async def work() -> str:
            with bench.events.subscribe() as heard:
                write(locations.user_file, DENY_MAKE)
                await until(lambda: decision(bench, tmp_path, "make") == "deny")
                write(locations.user_file, "")
                await until(lambda: decision(bench, tmp_path, "make") == "ask")
                told = [envelope.event for envelope in heard.drain()]
            return " ".join(event.code for event in told if isinstance(event, Noticed))

        async with asyncio.timeout(60):
            assert await with_live_settings(bench, options_for(tmp_path), work) == "settings_read settings_read"


async def test_the_first_check_reports_no_unchanged_settings(tmp_path: Path) -> None:
    write(Locations.of_user(os.environ).user_file, DENY_MAKE)
    async with engine_in(tmp_path) as (bench, live):
        bench.agent.set_mode(PermissionMode.PLAN, by="user")
        with bench.events.subscribe() as heard:
            await live.read_again()
            assert heard.drain() == []

        assert bench.policy.mode is PermissionMode.PLAN
        assert decision(bench, tmp_path, "make") == "deny"


async def test_a_failed_watch_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad")

    monkeypatch.setattr(WatchedFiles, "look", fail)
    async with open_quietly(options_for(tmp_path)) as bench:

        async def work() -> str:
            with bench.events.subscribe() as heard:
                warnings: list[Warned] = []

                def told() -> bool:
                    warnings.extend(one.event for one in heard.drain() if isinstance(one.event, Warned))
                    return bool(warnings)

                await until(told)
                return f"{warnings[0].code}: {warnings[0].text}"

        async with asyncio.timeout(60):
            words = await with_live_settings(bench, options_for(tmp_path), work)

    assert words.startswith("settings_unwatched: Settings are no longer watched (")
    assert words.endswith("restart to apply changes.")


async def until(is_there: Callable[[], bool]) -> None:
    """Wait for the system's reports of changed files."""
    while not is_there():
        await asyncio.sleep(0.05)
