"""The page of settings lists each one with value, origin and meaning, and changes the user's file only."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.table import table
from tests.workbench.quiet_bench import open_quietly
from tui_agent.protocol.facts.page_facts import SettingFact
from tui_agent.settings import Locations, key_names
from tui_agent.workbench.configuration.launch_options import LaunchOptions
from tui_agent.workbench.live_settings import SessionSettings, meanings


@asynccontextmanager
async def settings_in(folder: Path, **options: object) -> AsyncGenerator[tuple[SessionSettings, Path]]:
    launch = replace(LaunchOptions.for_command(folder), demo=True, trust=True, settings=options)
    async with open_quietly(launch) as bench:
        yield bench.settings, Locations.of_user().user_file


async def fact(settings: SessionSettings, key: str) -> SettingFact:
    return next(one for one in (await settings.read()).settings if one.key == key)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def test_every_setting_has_a_meaning() -> None:
    assert [key for key, text in meanings().items() if not text] == []
    assert list(meanings()) == key_names()


async def test_each_value_has_its_origin_and_only_the_users_own_can_be_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / ".tui-agent" / "config.toml", "max_steps = 9\n")
    monkeypatch.setenv("TUI_AGENT_THEME", "light")
    async with settings_in(tmp_path, tool_timeout=7) as (settings, path):
        write(path, "max_steps = 3\n[ui]\nmouse = false\n")

        mouse, steps = await fact(settings, "ui.mouse"), await fact(settings, "max_steps")
        theme, timeout = await fact(settings, "ui.theme"), await fact(settings, "tool_timeout")
        vim = await fact(settings, "ui.vim_keys")

    assert (mouse.value, mouse.default, mouse.source) == ("false", "true", "your file")
    assert mouse.origin == "~/.config/tui-agent/config.toml:3"
    assert (steps.value, steps.source, steps.is_stored) == ("9", "project", True)
    assert steps.refusal.startswith("The project sets it in ")
    assert (theme.value, theme.source) == ("light", "environment")
    assert theme.refusal == "TUI_AGENT_THEME sets it, and that comes before your file."
    assert (timeout.value, timeout.source, bool(timeout.refusal)) == ("7", "option", True)
    assert (vim.source, vim.refusal, vim.kind) == ("default", "", "switch")


@table(
    ("key", "typed", "line"),
    [
        ("max_steps", " 12 ", "max_steps = 12"),
        ("tool_timeout", "1.5", "tool_timeout = 1.5"),
        ("ui.vim_keys", "true", "vim_keys = true"),
        ("permissions.mode", "plan", 'mode = "plan"'),
        ("append_system", "Be brief.", 'append_system = "Be brief."'),
        ("env.pass", "GH_TOKEN, NPM_TOKEN", 'pass = ["GH_TOKEN", "NPM_TOKEN"]'),
    ],
)
async def test_a_typed_value_is_stored_in_its_form(
    tmp_path_factory: pytest.TempPathFactory, key: str, typed: str, line: str
) -> None:
    async with settings_in(tmp_path_factory.mktemp("project")) as (settings, path):
        write(path, "# mine\n")
        await settings.change(key, typed, seen=(await settings.read()).content)
        assert "# mine\n" in path.read_text("utf-8")
        assert line in path.read_text("utf-8")
        assert (await fact(settings, key)).source == "your file"

        await settings.change(key, None, seen=(await settings.read()).content)
        assert line not in path.read_text("utf-8")
        path.unlink()


async def test_no_secret_is_in_a_fact(tmp_path: Path) -> None:
    async with settings_in(tmp_path) as (settings, path):
        write(
            path,
            'base_url = "https://me:hush@example.org/hush"\nkey_command = "echo hush"\n'
            'extra_body = { metadata = "hush" }\n[otel]\nendpoint = "http://u:hush@localhost/?k=hush"\n'
            '[mcp.files]\ncommand = "x"\nenv = { TOKEN = "hush" }\n'
            '[providers.own]\nbase_url = "https://example.org/?hush"\n',
        )
        facts = (await settings.read()).settings
    assert "hush" not in repr(facts)
    values = {one.key: one.value for one in facts}
    assert values["base_url"] == "https://example.org"
    assert values["key_command"] == "set, not shown"
    assert (values["mcp"], values["providers"], values["extra_body"]) == ("files", "own", "metadata")
