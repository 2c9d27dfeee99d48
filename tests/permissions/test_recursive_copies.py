"""Directories copied over others, archives unpacked and nested repositories: what they contain no word says."""

import pytest

from .conftest import Desk


@pytest.fixture
def gift(desk: Desk) -> Desk:
    """A workspace with a foreign repository that may be copied over the workspace's own."""
    for name in ("donor/.git/hooks/x", "donor/a.txt", "deep/src/node_modules/m.js", "there/donor/a.txt"):
        file = desk.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x\n", "utf-8")
    for name in ("a.tar", "a.zip"):
        (desk.root / name).touch()
    return desk


@pytest.mark.parametrize("rules", [(), ("allow bash",), ("allow bash(cp:*)", "allow bash(rsync:*)")])
@pytest.mark.parametrize(
    "command",
    ["cp -r donor/. .", "cp -rT donor .", "cp -a donor/./ .", "cp -t . -r donor/.",
     "cp -r --no-target-directory donor .",
     "cp -r donor there", "cp -r deep/. .", "cd src && cp -r ../donor/. ..", "rsync -a donor/ .",
     "rsync -a donor there",
     "rsync -a --exclude .gi donor/ .", "rsync -a --exclude=.git --include '*' donor/ .",
     "rsync -a --exclude=/node_modules deep/ .", "env cp -r donor/. .",
     "tar xf a.tar", "tar -xf a.tar -C src", "tar xf a.tar a.txt", "unzip a.zip",
     "unzip a -d src", "unzip -o a.zip a.txt"],
)  # fmt: skip
def test_a_copy_into_an_existing_directory_needs_an_answer(gift: Desk, command: str, rules: tuple[str, ...]) -> None:
    found = gift.bash(command, *rules, mode="allow")

    assert (found.decision, found.source) == ("ask", "floor"), found.reason


@pytest.mark.parametrize(
    "command",
    ["cp -r donor new", "cp -r donor/. new", "cp donor/a.txt .", "cp donor/* .", "cp -r donor src",
     "rsync -a donor/ host:x", "mkdir -p new && cp -r src new/", "mkdir -p new && cp -r src/. new",
     "rm -rf new && cp -r src new", "cp -r src new && sed -i s/a/b/ new/lib.py", "pytest && cp -r src new",
     "cp -r src new && rm -rf src", "cp -r src new && mv new old", "touch x && cp -r README.md src/app",
     "unzip a.zip -d new", "unzip -l a.zip", "tar tf a.tar", "tar xOf a.tar a.txt", "tar xf none.tar",
     "git apply --check a",
     "patch --dry-run -p1 < a", "patch notes.txt < a", "7z l a.7z"],
)  # fmt: skip
def test_other_copies_need_no_answer(gift: Desk, command: str) -> None:
    found = gift.bash(command, mode="allow")

    assert found.decision == "allow", found.reason


@pytest.mark.parametrize(
    "command",
    ["cp -a links q; touch q/git/evil", "cp -a links/. q; cd q; touch git/evil", "mv links q && echo x > q/git/evil",
     "git mv links q; tee q/git/evil < a.txt", "mkdir q; cp -at q links; touch q/links/git/evil",
     "rm -rf q; cp -a links q; mv q r; touch r/git/evil", "cp -a links q; touch q/git/../x",
     "cp -a links q; touch q/g*/x",
     "cp -a links q; mv q/out/* .", "cp -a links q; rm -rf q/git/", "mkdir t; unzip a.zip -d t; touch t/x/y",
     "git clone u q; touch q/x/y", "git worktree add q; touch q/links/git/evil",
     "mkdir -p a/b; ln -s ../src a/b/l; mv a/b c; touch c/l/x", "for i in 1 2; do touch q/git/x; cp -a links q; done"],
)  # fmt: skip
def test_a_change_behind_a_copied_link_needs_an_answer(gift: Desk, command: str) -> None:
    found = gift.bash(command, mode="allow")

    assert (found.decision, found.source) == ("ask", "floor"), found.reason


@pytest.mark.parametrize(
    "command",
    ["cp -a src q; touch q/app/x", "cp -a src q; sed -i s/a/b/ q/*.py", "mv src q && mv q src && touch src/x",
     "git mv src q; sed -i s/a/b/ q/lib.py", "cp -a links q; touch q/x", "cp -a links q; rm q/git; rm -rf q",
     "cp -a links q; mkdir q/git", "mkdir q; mv src/app q; touch README.md",
     "git clone u q; cd q; mkdir x; cat a/b; npm i",
     "git clone u/q.git; rm -rf q", "git worktree add q; cd q; make"],
)  # fmt: skip
def test_other_changes_in_a_copy_need_no_answer(gift: Desk, command: str) -> None:
    assert gift.bash(command, mode="allow").decision == "allow"


@pytest.mark.parametrize("command", ["git clone . q; cat q/secrets/key.pem", "git worktree add q; grep -r x q"])
def test_a_clone_of_a_file_that_may_not_be_read_needs_an_answer(gift: Desk, command: str) -> None:
    assert gift.bash(command, "deny read(secrets/**)", mode="allow").decision == "ask"


def test_a_rule_that_spells_out_a_copy_allows_it(gift: Desk) -> None:
    assert gift.bash("cp -r donor/. .", "allow bash(cp -r donor/. .)").decision == "allow"


@pytest.mark.parametrize("rules", [(), ("allow bash",)])
@pytest.mark.parametrize("command", ["rm -rf {}", "mv {} e", "chmod -R 777 {}", "find {} -delete"])
def test_a_repository_at_any_depth_needs_an_answer(desk: Desk, command: str, rules: tuple[str, ...]) -> None:
    for place, held in (("one", "x/real/.git/HEAD"), ("two", "x/y/node_modules/m.js"), ("three", "bare.git/HEAD")):
        (desk.root / place / held).parent.mkdir(parents=True)
        (desk.root / place / held).touch()
    for name in ("objects", "refs"):
        (desk.root / "three" / "bare.git" / name).mkdir()
    (desk.root / "four" / "x" / "y").mkdir(parents=True)

    asked = [
        desk.bash(command.format(place), *rules, mode="allow").decision for place in ("one", "two", "three", "four")
    ]
    assert asked == ["ask", "ask", "ask", "allow"]
