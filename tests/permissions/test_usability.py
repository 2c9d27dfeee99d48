"""Number of everyday commands that run without a question, as stated in `docs/safety.md`."""

import re
from pathlib import Path

import pytest

from .conftest import Desk

FOLDER = Path(__file__).parent
PAGE = FOLDER.parents[1] / "docs" / "safety.md"

TYPICAL_RULES = (
    "deny bash(git push:*)", "ask bash(git reset:*)", "allow bash(pytest:*)", "allow bash(python -m pytest:*)",
    "allow bash(python3 -m pytest:*)", "allow bash(ruff:*)", "allow bash(mypy:*)", "allow bash(pyright:*)",
    "allow bash(uv run:*)", "allow bash(npm test:*)", "allow bash(npm run:*)", "allow bash(npm ci)",
    "allow bash(cargo build:*)", "allow bash(cargo test:*)", "allow bash(cargo clippy:*)", "allow bash(cargo fmt:*)",
    "allow bash(go build:*)", "allow bash(go test:*)", "allow bash(go vet:*)", "allow bash(make:*)",
    "allow bash(git add:*)", "allow bash(git commit:*)", "allow bash(git checkout:*)", "allow bash(git switch:*)",
    "allow bash(git fetch:*)", "allow bash(git pull:*)", "allow bash(git stash:*)", "allow bash(tsc:*)",
    "allow bash(eslint:*)", "allow bash(mkdir:*)", "allow bash(touch:*)", "allow edit(src/**)",
)  # fmt: skip
"""Rules of a user after a week of work."""


def commands(name: str) -> list[str]:
    return (FOLDER / name).read_text("utf-8").rstrip("\n").split("\n%%\n")[1:]


def running(desk: Desk, name: str, *rules: str) -> int:
    return sum(desk.bash(command, *rules).decision == "allow" for command in commands(name))


@pytest.mark.slow
def test_the_figures_of_the_page_are_the_figures(desk: Desk) -> None:
    exploring, building = commands("everyday_commands.txt"), commands("build_commands.txt")
    table = [
        (
            "looking around",
            len(exploring),
            running(desk, "everyday_commands.txt"),
            running(desk, "everyday_commands.txt", *TYPICAL_RULES),
        ),
        (
            "building",
            len(building),
            running(desk, "build_commands.txt"),
            running(desk, "build_commands.txt", *TYPICAL_RULES),
        ),
    ]
    stated = re.findall(
        r"^\| (looking around|building) \| (\d+) \| (\d+) \| (\d+) \|$", PAGE.read_text("utf-8"), re.MULTILINE
    )

    assert [(kind, *(int(number) for number in numbers)) for kind, *numbers in stated] == table
    assert len(exploring) + len(building) >= 150


def test_typical_rules_never_allow_forbidden_commands(desk: Desk) -> None:
    for command in (
        "git push",
        "git -C . push",
        "FOO=1 git push",
        "timeout 5 git push",
        "sh -c 'git push'",
        "git push && ls",
    ):
        assert desk.bash(command, *TYPICAL_RULES).decision != "allow"
    assert desk.bash("git push", *TYPICAL_RULES).decision == "deny"
