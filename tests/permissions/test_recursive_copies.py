"""Directories copied over others, which may bring a repository or packages."""

import pytest

from .conftest import Desk


@pytest.fixture
def gift(desk: Desk) -> Desk:
    """A workspace with a foreign repository that may be copied over the workspace's own."""
    for name in ("donor/.git/hooks/x", "donor/a.txt", "deep/src/node_modules/m.js", "there/donor/a.txt"):
        file = desk.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x\n", "utf-8")
    return desk


@pytest.mark.parametrize("rules", [(), ("allow bash",), ("allow bash(cp:*)", "allow bash(rsync:*)")])
@pytest.mark.parametrize(
    "command",
    ["cp -r donor/. .", "cp -rT donor .", "cp -a donor/./ .", "cp -t . -r donor/.",
     "cp -r --no-target-directory donor .",
     "cp -r donor there", "cp -r deep/. .", "cd src && cp -r ../donor/. ..", "rsync -a donor/ .",
     "rsync -a donor there",
     "rsync -a --exclude .gi donor/ .", "rsync -a --exclude=.git --include '*' donor/ .",
     "rsync -a --exclude=/node_modules deep/ .", "env cp -r donor/. ."],
)  # fmt: skip
def test_a_copy_into_an_existing_directory_needs_an_answer(gift: Desk, command: str, rules: tuple[str, ...]) -> None:
    found = gift.bash(command, *rules, mode="allow")

    assert (found.decision, found.source) == ("ask", "floor"), found.reason


@pytest.mark.parametrize(
    "command",
    ["cp -r donor new", "cp -r donor/. new", "cp donor/a.txt .", "cp donor/* .", "cp -r donor src",
     "rsync -a donor/ host:x"],
)  # fmt: skip
def test_other_copies_need_no_answer(gift: Desk, command: str) -> None:
    found = gift.bash(command, mode="allow")

    assert found.decision == "allow", found.reason


def test_a_rule_that_spells_out_a_copy_allows_it(gift: Desk) -> None:
    assert gift.bash("cp -r donor/. .", "allow bash(cp -r donor/. .)").decision == "allow"
