"""The `/review` command: its prompt, built in or of a file, its tools, and the findings that it reports."""

from pathlib import Path

import pytest

from tests.workbench.test_typed_definitions import made, write
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import ToolEnded
from tui_agent.protocol.facts.page_facts import REPORT_TOOL, findings_of, in_order
from tui_agent.providers.scripted_provider import call, reply
from tui_agent.workbench.review_command import REVIEW, PromptDefinitions, review_prompt

FOUND = {"file": "a.py", "line": 2, "severity": "high", "text": "It is wrong.\nBecause."}


async def test_the_built_in_review_reads_only_and_reports_findings(tmp_path: Path) -> None:
    b, _ = made(tmp_path, [reply(call(REPORT_TOOL, findings=[FOUND])), "Bad."])  # pyright: ignore[reportArgumentType]
    typed = PromptDefinitions(b.loop, None)
    assert typed.commands == (REVIEW,)
    assert typed.knows("/review")
    assert typed.knows("/review main")
    assert not typed.knows("/reviewer")
    with pytest.raises(ConfigurationError, match="own"):
        typed.expanded("/review")
    assert all(tool.name != REPORT_TOOL for tool in b.loop.tools)
    await typed.run("/review main")
    assert "git merge-base HEAD main" in b.sent(0)[0]
    (ended,) = [event for event in b.of(ToolEnded) if event.name == REPORT_TOOL]
    (found,) = in_order(findings_of(ended) or ())
    assert (found.place, found.title, found.severity) == ("a.py:2", "It is wrong.", "high")


async def test_a_file_replaces_the_prompt_and_its_run_can_report(tmp_path: Path) -> None:
    write(tmp_path, "commands/review.md", "---\nallowed-tools: Read\n---\nLook at $ARGUMENTS for us.")
    b, files = made(tmp_path, [reply(call(REPORT_TOOL, findings=[])), "Good."])  # pyright: ignore[reportArgumentType]
    typed = PromptDefinitions(b.loop, files)
    (command,) = typed.commands
    assert command.slash == "review"
    assert command.help != REVIEW.help
    await typed.run("/review the tests")
    assert b.sent(0)[0].startswith("user: Look at the tests for us.\n\nReport what you find with the tool")
    (ended,) = b.of(ToolEnded)
    assert findings_of(ended) == ()


def test_an_argument_never_becomes_a_part_of_a_command() -> None:
    assert "`git show a1b2c3`" in review_prompt("a1b2c3")
    for odd in ("x; rm -rf /", "--output=x", "the part about prices"):
        assert f"this: {odd}" in review_prompt(odd)
        assert "merge-base" not in review_prompt(odd)
