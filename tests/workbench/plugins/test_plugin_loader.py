"""Loading plugins: what their code may return, and that nothing it does ends a start."""

from pathlib import Path

import pytest

from tests.workbench.plugins.conftest import Install
from tui_agent.execution import HookBus
from tui_agent.settings import Locations, Settings
from tui_agent.ui.app.screen_settings import examine_plugins
from tui_agent.workbench.plugins.plugin_loader import LoadedPlugins, load_plugins, plugin_news

GOOD = """
from tui_agent import HookBus, tool

@tool
def count(text: str) -> str:
    "Count."
    return "1"

def plain(text: str) -> str:
    "A function without a decorator."
    return "1"

hooks = HookBus(timeout=3.0)

@hooks.before_tool
def guard(question):
    return None

hooks.add("before_tool", lambda question: None, name="approver", may_approve=True)

def provide(reference):
    return None

number = 7
"""


def load(root: Path, settings: Settings | None = None) -> LoadedPlugins:
    return load_plugins(settings or Settings(), root / "work")


def test_tools_hooks_and_providers_are_loaded(install: Install, tmp_path: Path) -> None:
    points = {
        "tools": {"count": "acme:count", "plain": "acme:plain"},
        "hooks": {"guard": "acme:hooks"},
        "providers": {"echo": "acme:provide"},
    }
    install("acme", points, {"acme.py": GOOD})

    loaded = load(tmp_path)
    bus = HookBus()
    loaded.add_hooks(bus)

    assert loaded.problems == ()
    assert [tool.name for tool in loaded.tools] == ["count", "plain"]
    assert list(loaded.providers) == ["echo"]
    named = [(hook.name, hook.timeout, hook.may_approve) for hook in bus.hooks("before_tool")]
    assert named == [("acme:guard: guard", 3.0, False), ("acme:guard: approver", 3.0, False)]
    assert bus.has("before_tool")
    assert not bus.has("after_tool")


@pytest.mark.parametrize(
    ("group", "target", "module", "reason"),
    [
        ("tools", "acme:count", "raise KeyboardInterrupt", "ImportError: it was interrupted (KeyboardInterrupt)"),
        ("tools", "acme:count", "raise ValueError('a\\n  b\\x1b[2J')", "ValueError: a b"),
        ("tools", "acme:count", "raise SystemExit(3)", "SystemExit: it tried to end the process (exit code 3)"),
        ("tools", "acme:count", "import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("tools", "acme:count", "syntax error", "SyntaxError: invalid syntax"),
        ("tools", "acme:count", "", "AttributeError: module 'acme' has no attribute 'count'"),
        ("tools", "acme:number", GOOD, "a tool must be a Tool or a function, got 7"),
        ("tools", "acme:plain", GOOD, "the tool is named 'plain'; its entry point must have the same name"),
        ("hooks", "acme:count", GOOD, "a hook plugin must be a HookBus, got "),
        ("providers", "acme:number", GOOD, "a provider plugin must be a class, or a function of the model's name, got"),
        ("tools", "acme:count", "class E(Exception):\n def __str__(s): 1/0\nraise E", "E: E"),
        ("tools", "acme:count", "raise ValueError('x' * 5000)", "ValueError: xxxx"),
    ],
)
def test_a_plugin_that_fails_is_named_with_the_reason(
    group: str, target: str, module: str, reason: str, install: Install, tmp_path: Path
) -> None:
    install("acme", {group: {"count": target}}, {"acme.py": module})
    install("well", {"tools": {"sort": "well:sort"}}, {"well.py": GOOD.replace("count", "sort")})

    loaded = load(tmp_path)

    (problem,) = loaded.problems
    assert problem.startswith(f"The plugin {group[:-1]} count of acme 1.0 is not used: {reason}")
    assert "\x1b" not in problem
    assert "\n" not in problem
    assert len(problem) < 400
    assert [tool.name for tool in loaded.tools] == ["sort"]
    assert not loaded.hooks
    assert not loaded.providers


def test_a_module_cannot_print_into_the_output(
    install: Install, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install("acme", {"tools": {"count": "acme:count"}}, {"acme.py": f"print('loud')\n{GOOD}"})

    assert load(tmp_path).problems == ()

    assert capsys.readouterr() == ("", "loud\n")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('name = "paper"\n[colors]\nprimary = "#123456"\n', ""),
        ('name = "dark"\n[colors]\nprimary = "#123456"\n', "has another name"),
        ('name = "paper"\n[colors]\nprimary = "no colour"\n', "is not a colour"),
        ("name =", "Invalid value"),
    ],
)
def test_a_theme_is_checked_for_the_list(text: str, reason: str, install: Install, tmp_path: Path) -> None:
    install("acme", {"themes": {"paper": "acme"}}, {"acme/__init__.py": "raise ValueError", "acme/paper.toml": text})
    locations = Locations(tmp_path / "config", tmp_path / "state")

    (plugin,) = examine_plugins(Settings(), tmp_path / "work", locations).plugins
    locations.user_themes_dir.mkdir(parents=True)
    (locations.user_themes_dir / "paper.toml").write_text('name = "paper"\n', "utf-8")
    (hidden,) = examine_plugins(Settings(), tmp_path / "work", locations).plugins

    assert reason in plugin.problem
    assert bool(plugin.problem) == bool(reason)
    assert hidden.problem == "tui-agent or your own themes have one of this name"


def test_new_and_changed_plugins_are_announced_once(install: Install, tmp_path: Path) -> None:
    locations = Locations(tmp_path / "config", tmp_path / "state")

    def news(**settings: object) -> str:
        return plugin_news(load(tmp_path, Settings.model_validate(settings)).plugins, locations)

    assert news() == ""
    assert not locations.state_dir.exists(), "without plugins nothing is written"

    install("acme", {"tools": {"count": "acme:count"}}, {"acme.py": GOOD})
    install("other", {"hooks": {"guard": "acme:hooks"}}, {})
    assert "hook guard of other 1.0" in (first := news())
    assert "tool count of acme 1.0" in first
    assert news() == ""

    install("acme", {"tools": {"count": "acme:count"}}, {"acme.py": GOOD}, record="acme.py,sha256=other,9")
    assert "other 1.0" not in (changed := news())
    assert "tool count of acme 1.0" in changed
    assert news(plugins={"disabled": "*"}) == ""
    assert "acme" in news(), "it was off, and is on again"

    (locations.state_dir / "plugins.json").write_text("[broken", "utf-8")
    assert "acme" in news()
