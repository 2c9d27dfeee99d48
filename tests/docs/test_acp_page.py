"""The page about editors: its client, made of the protocol's own library, works with the program as installed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2].joinpath("docs/acp.md").read_text("utf-8")


@pytest.mark.slow
def test_the_client_of_the_page_has_a_file_written(tmp_path: Path) -> None:
    [source] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    program = Path(sys.executable).parent / "tui-agent"
    client = tmp_path / "client.py"
    client.write_text(source.replace('"tui-agent", "acp"', f'"{program}", "acp"'), "utf-8")
    folder = tmp_path / "work"
    folder.mkdir()

    ended = subprocess.run([sys.executable, client], cwd=folder, capture_output=True, text=True, timeout=60, check=True)

    assert folder.joinpath("hello.txt").read_text("utf-8").strip() == "Hello"
    assert "[edit] write `hello.txt (1 line)`\nallowed: write `hello.txt (1 line)`\n" in ended.stdout
    assert ended.stdout.endswith("\nend_turn\n")
