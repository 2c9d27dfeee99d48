"""`docs/safety.md` promises only what tests check."""

import re
from pathlib import Path

from tests.support.table import table
from tui_agent.permissions import PermissionMode, PermissionPolicy, is_read_only_command
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.trial import TrialFacts
from tui_agent.tools import Workspace, default_tools

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "safety.md"

ROW = re.compile(r"^\| (\w+) \| `(\w+) (.+)` \| (\w+) \| (\w+) \|$", re.MULTILINE)

PROMISE = re.compile(r"^\| (\d+) \| [^|]+ \| ([^|]+) \|$", re.MULTILINE)
MOST_WORDS, MOST_PROMISES = 2_500, 40


def named_by_promise() -> dict[int, list[str]]:
    """Return the tests that the page names for each promise."""
    found = PROMISE.findall(PAGE.read_text("utf-8"))
    return {int(number): re.findall(r"`([^`]+)`", tests) for number, tests in found}


def test_each_promise_names_its_tests() -> None:
    named = named_by_promise()

    assert list(named) == list(range(1, len(named) + 1))
    assert len(named) <= MOST_PROMISES
    assert [number for number, tests in named.items() if not tests] == []


@table("test", sorted({test for tests in named_by_promise().values() for test in tests}))
def test_every_test_named_on_the_page_exists(test: str) -> None:
    path, name = test.split("::")

    assert re.search(rf"^(?:async )?def {name}\(", (ROOT / path).read_text("utf-8"), re.MULTILINE)


def test_the_page_stays_short_enough_to_be_read() -> None:
    assert len(PAGE.read_text("utf-8").split()) <= MOST_WORDS


def decisions() -> list[tuple[str, str, str, str, str]]:
    """Return the rows of the table of decisions: mode, tool, subject, decision, source."""
    return [(m, tool, about.replace(r"\|", "|"), *end) for m, tool, about, *end in ROW.findall(PAGE.read_text("utf-8"))]


def arguments_of(tool: str, about: str) -> JsonObject:
    if tool == "bash":
        return {"command": about}
    return {"path": about, "content": "x"} if tool == "write" else {"path": about}


def test_the_page_shows_decisions_of_every_kind() -> None:
    found = decisions()

    assert {decision for _, _, _, decision, _ in found} == {"allow", "ask", "deny"}
    assert {mode for mode, *_ in found} == {mode.value for mode in PermissionMode}


@table(("mode", "tool", "about", "decision", "source"), decisions())
def test_the_policy_decides_as_the_page_says(
    mode: str, tool: str, about: str, decision: str, source: str, tmp_path: Path
) -> None:
    root = tmp_path / "workspace"
    (root / ".git").mkdir(parents=True)
    workspace = Workspace(root, spool_dir=tmp_path / "spool")
    made = default_tools(workspace, is_read_only_command=lambda command: is_read_only_command(command, root))
    (found,) = [one for one in made if one.name == tool]

    policy = PermissionPolicy(root, mode=PermissionMode(mode), trial=TrialFacts(setting="auto", backend="overlay"))
    judged = policy.check(found, arguments_of(tool, about))

    assert (judged.decision, judged.source) == (decision, source), judged.reason
