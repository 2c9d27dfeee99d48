"""The page about the web: its rules decide as its table says."""

import re
import tomllib
from pathlib import Path

from tests.support.table import table
from tui_agent.permissions import PermissionPolicy
from tui_agent.tools import FetchTool

PAGE = Path(__file__).parents[2].joinpath("docs/web.md").read_text("utf-8")
RULES = tomllib.loads(re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)[0])["permissions"]["rules"]
ROWS = re.findall(r"^\| `(https://\S+)` \| (\w+) \|$", PAGE, re.MULTILINE)


@table(("url", "decision"), ROWS)
def test_a_row_of_the_table_is_true(url: str, decision: str, tmp_path: Path) -> None:
    policy = PermissionPolicy(tmp_path, rules=RULES)

    assert policy.check(FetchTool(), {"url": url}).decision == decision
