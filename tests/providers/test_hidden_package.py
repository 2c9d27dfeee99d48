"""Packages that the SDK would import for nothing."""

import subprocess
import sys

import pytest

from tui_agent.providers.hidden_package import hidden_package


def test_a_package_is_missing_inside_and_there_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "this", raising=False)

    with hidden_package("this"), pytest.raises(ImportError):
        __import__("this")

    assert "this" not in sys.modules


def test_a_package_that_is_loaded_stays() -> None:
    with hidden_package("json"):
        assert __import__("json") is sys.modules["json"]

    assert sys.modules["json"] is not None


def test_the_sdk_loads_no_web_client_of_its_own_choice() -> None:
    script = "import sys, tui_agent.providers.anthropic_sdk; print('aiohttp' in sys.modules); import aiohttp"

    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout

    assert printed == "False\n"
