"""`from tui_agent import …`: every name exists, is the object of its sub-package, and is loaded on first use."""

import ast
import importlib
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import tui_agent
from tests.support.table import table

ROOMS = ("agent", "context", "execution", "permissions", "protocol", "providers", "tools")
STUB = ast.parse(Path(tui_agent.__file__).with_suffix(".pyi").read_text("utf-8"))
IMPORTS = [node for node in STUB.body if isinstance(node, ast.ImportFrom)]


def test_type_checkers_see_each_name_once_and_as_an_export() -> None:
    seen = Counter(alias.name for node in IMPORTS for alias in node.names)

    assert set(seen.values()) == {1}
    assert all(alias.asname == alias.name for node in IMPORTS for alias in node.names)


@table("name", tui_agent.__all__)
def test_a_name_is_the_object_of_its_module(name: str) -> None:
    (module,) = [node.module for node in IMPORTS for alias in node.names if alias.name == name]

    assert getattr(tui_agent, name) is getattr(importlib.import_module(f"tui_agent.{module}"), name)


@table("room", ROOMS)
def test_a_name_means_the_same_in_every_sub_package(room: str) -> None:
    module = importlib.import_module(f"tui_agent.{room}")

    shared = set(module.__all__) & set(tui_agent.__all__)

    assert shared
    assert all(getattr(tui_agent, name) is getattr(module, name) for name in shared)


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'AgentLop'; did you mean AgentLoop\?"):
        _ = tui_agent.AgentLop  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]
    assert not hasattr(tui_agent, "__wrapped__")
    assert getattr(tui_agent, "zzz", None) is None


@pytest.mark.slow
@table(
    ("names", "unwanted"),
    [
        ("Agent, tool, AnthropicProvider", ["anthropic", "httpx2", "textual"]),
        ("TuiAgentError", ["anthropic", "textual", "tui_agent.agent"]),
        ("HookBus", ["anthropic", "textual", "tui_agent.providers"]),
    ],
)
def test_a_name_loads_only_its_own_module(names: str, unwanted: list[str]) -> None:
    script = f"import sys, json; from tui_agent import {names}; print(json.dumps(sorted(sys.modules)))"

    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout

    assert set(json.loads(loaded)) & set(unwanted) == set()
