"""The commands of the screen that need the whole program: `/export`, `/doctor` and `/model`."""

import stat
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.configuration.test_live_settings import options_for
from tui_agent.cli.build_engine import open_engine
from tui_agent.cli.launch_options import LaunchOptions
from tui_agent.cli.sessions.session_commands import SessionCommands
from tui_agent.protocol.errors import ConfigurationError, SessionError

pytestmark = pytest.mark.slow


@asynccontextmanager
async def commands_in(options: LaunchOptions) -> AsyncGenerator[SessionCommands]:
    async with open_engine(options, watched=True) as engine:
        await engine.loop.run("hello")
        yield SessionCommands(engine, options)


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


async def test_a_session_that_is_not_saved_is_not_exported(tmp_path: Path) -> None:
    async with commands_in(options_for(tmp_path)) as commands:
        with pytest.raises(SessionError, match="not saved"):
            await commands.export("")
        assert list(tmp_path.glob("*.md")) == []


async def test_doctor_shows_the_checks_of_the_command(tmp_path: Path) -> None:
    async with commands_in(options_for(tmp_path)) as commands:
        text = await commands.doctor()

    assert "workspace" in text
    assert str(tmp_path) in text


async def test_another_model_is_used_by_the_next_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test-key-of-no-account")
    options = replace(options_for(tmp_path), demo=False)
    async with open_engine(options, watched=True) as engine:
        SessionCommands(engine, options).choose_model("claude-test")
        assert engine.loop.provider.model.name == "claude-test"


async def test_the_demo_keeps_its_model(tmp_path: Path) -> None:
    async with commands_in(options_for(tmp_path)) as commands:
        with pytest.raises(ConfigurationError, match="offline demo has one model"):
            commands.choose_model("claude-test")
