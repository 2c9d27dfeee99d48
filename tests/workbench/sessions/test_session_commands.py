"""The commands of the screen that need the whole program: `/export`, `/doctor` and `/model`."""

import gc
import stat
import weakref
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.workbench.configuration.test_live_settings import options_for
from tests.workbench.quiet_bench import open_quietly
from tui_agent.cli.installation_checks import examined
from tui_agent.protocol.errors import ConfigurationError, SessionError
from tui_agent.session import StoredSession
from tui_agent.settings import Locations
from tui_agent.workbench import opened_session, session_inputs
from tui_agent.workbench.configuration.launch_options import LaunchOptions
from tui_agent.workbench.opened_session import load_session
from tui_agent.workbench.session_inputs import SessionCommands

pytestmark = pytest.mark.slow


@asynccontextmanager
async def commands_in(options: LaunchOptions) -> AsyncGenerator[SessionCommands]:
    async with open_quietly(options) as bench:
        await bench.agent.run("hello")
        bench.commands.examine = examined
        yield bench.commands


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ('python3 -c \'import json, sys; f = json.load(sys.stdin); print(f["mode"], f["cwd"]); print(2)\'', "ask {}"),
        ("echo $ANTHROPIC_API_KEY; exit 1", ""),
        ("sleep 60 & wait", ""),
        ("", ""),
    ],
)
async def test_the_command_for_the_status_line_gets_the_facts_and_has_a_time_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, line: str
) -> None:
    monkeypatch.setattr(session_inputs, "STATUS_SECONDS", 0.5 if "sleep" in command else 60)
    options = options_for(tmp_path)
    async with commands_in(
        replace(options, settings={**options.settings, "ui": {"status_command": command}})
    ) as commands:
        assert await commands.status_output({"mode": "ask"}) == line.format(tmp_path)


async def test_without_its_directory_the_command_for_the_status_line_prints_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    options = options_for(folder)
    async with commands_in(
        replace(options, settings={**options.settings, "ui": {"status_command": "echo here"}})
    ) as commands:
        folder.rmdir()
        assert await commands.status_output({}) == ""


async def test_the_session_is_exported_to_a_new_private_file(tmp_path: Path) -> None:
    async with commands_in(replace(options_for(tmp_path), keep_session=True)) as commands:
        path = Path(await commands.export(""))
        assert path.parent == tmp_path
        assert path.suffix == ".md"
        assert "hello" in path.read_text()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert "<html" in Path(await commands.export("talk.html")).read_text()
        assert '"type"' in Path(await commands.export("talk.jsonl")).read_text()

        before = path.read_bytes()
        with pytest.raises(SessionError, match=r"exists\. Nothing was written"):
            await commands.export("")
        assert path.read_bytes() == before
        with pytest.raises(ConfigurationError, match=r"ends in none of \.md, \.html, \.jsonl"):
            await commands.export("talk.txt")
        with pytest.raises(SessionError, match="could not be written: No such file"):
            await commands.export("no/such/talk.md")


async def test_the_past_of_a_resumed_session_is_released_once_it_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[weakref.ref[StoredSession]] = []

    def remembering(*arguments: Any, save: bool) -> tuple[StoredSession, Path | None]:
        session, archive = load_session(*arguments, save=save)
        opened.append(weakref.ref(session))
        return session, archive

    options = replace(options_for(tmp_path), keep_session=True)
    async with commands_in(options):
        pass
    monkeypatch.setattr(opened_session, "load_session", remembering)
    async with open_quietly(replace(options, continue_last=True)) as bench:
        assert list(bench.past)
        gc.collect()
        assert [session() for session in opened] == [None]


async def test_doctor_shows_the_checks_of_the_command_and_what_is_not_saved_is_not_exported(tmp_path: Path) -> None:
    async with commands_in(options_for(tmp_path)) as commands:
        text = await commands.doctor()
        with pytest.raises(SessionError, match="not saved"):
            await commands.export("")
        assert list(tmp_path.glob("*.md")) == []

    assert "workspace" in text
    assert str(tmp_path) in text


async def test_the_demo_keeps_its_model_and_does_not_think(tmp_path: Path) -> None:
    options = options_for(tmp_path)
    async with open_quietly(options) as bench:
        models = bench.models
        with pytest.raises(ConfigurationError, match="offline demo has one model"):
            models.choose("claude-test")
        with pytest.raises(ConfigurationError, match="does not think"):
            models.choose_effort("high")


async def test_the_effort_changes_what_the_next_request_may_think_as_far_as_the_model_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test-key-of-no-account")
    options = replace(options_for(tmp_path), demo=False, settings={"model": "claude-sonnet-4-5"})
    async with open_quietly(options) as bench:
        models, config = bench.models, bench.agent.config
        assert models.effort_text() == "The model's effort is left to the provider."
        assert models.choose_effort("high") == (
            "From the next request on, the model's effort is high, up to 24,576 tokens."
        )
        assert config.thinking_tokens == 24_576
        assert "The model's effort is high" in models.effort_text()
        assert "effort is off" in models.choose_effort("off")
        assert config.thinking_tokens == 0
        models.choose_effort("default")
        assert config.thinking_tokens is None

        models.choose("claude-opus-5-5")
        models.choose_effort("max")
        assert config.thinking_tokens == 49_152
        with pytest.raises(ConfigurationError, match="always thinks"):
            models.choose_effort("off")
        models.choose("qwen-local")
        assert config.thinking_tokens == 4_096


async def test_a_resumed_session_keeps_the_model_and_the_effort_that_were_chosen_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test-key-of-no-account")
    options = replace(options_for(tmp_path), keep_session=True, session_id="talk")
    async with open_quietly(options) as bench:
        await bench.agent.run("hello")
    again = replace(options, demo=False, session_id=None, resume="talk")
    async with open_quietly(again) as bench:
        models = bench.models
        models.choose("claude-test")
        models.choose_effort("low")

    async with open_quietly(again) as bench:
        assert bench.models.model == "claude-test"
        assert bench.models.effort == "low"
        assert bench.agent.config.thinking_tokens == 2_048
    async with open_quietly(replace(again, settings={"model": "claude-opus-5-5"})) as bench:
        assert bench.models.model == "claude-opus-5-5"


async def test_the_default_for_new_sessions_goes_into_the_users_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test-key-of-no-account")
    options = replace(options_for(tmp_path), demo=False)
    async with open_quietly(options) as bench:
        models = bench.models
        models.choose("claude-test")
        models.choose_effort("low")
        path = Path(await models.keep_default("model"))
        assert str(path) == await models.keep_default("effort")

    assert path == Locations.of_user().user_file
    assert 'model = "claude-test"' in path.read_text("utf-8")
    async with open_quietly(options) as bench:
        assert bench.models.model == "claude-test"
        assert bench.agent.config.thinking_tokens == 2_048
