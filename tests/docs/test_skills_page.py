"""The page about skills, commands and sub-agents: its example becomes the prompt below it."""

import re
from pathlib import Path

import pytest

from tests.fleet.repositories import git
from tests.workbench.test_typed_definitions import jobs as jobs
from tests.workbench.test_typed_definitions import made, write
from tui_agent.tools import BackgroundJobs

PAGE = Path(__file__).parents[2].joinpath("docs/skills.md").read_text("utf-8")


def block(language: str) -> str:
    """Return the first code block of a language."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)[0]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository with two commits."""
    git("init", "-q", cwd=tmp_path)
    for subject in ("Begin", "Add the price list"):
        git("commit", "-q", "--allow-empty", "-m", subject, cwd=tmp_path)
    return tmp_path


async def test_the_example_becomes_the_prompt_below_it(repository: Path, jobs: BackgroundJobs) -> None:
    write(repository, "commands/git/review.md", block("markdown"))
    b, typed = made(repository, ["They are fine."], jobs=jobs)

    await typed.run("/git:review 2")

    (sent,) = b.sent(0)
    hashes = re.compile(r"^[0-9a-f]{7} ", re.MULTILINE)
    assert hashes.sub("HASH ", sent) == hashes.sub("HASH ", f"user: {block('text').rstrip()}")
    assert [tool.name for tool in b.provider.requests[0].tools] == ["read", "bash", "grep", "bash_output", "kill_bash"]
    (command,) = typed.commands
    assert (command.slash, command.argument, command.help) == ("git:review", "[count]", "Review the last commits")
