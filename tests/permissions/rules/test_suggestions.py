"""Rules to offer with an approval."""

import pytest

from tui_agent.permissions.rules.suggestions import offer_for_command, offer_for_path


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("make", "bash(make)"),
        ("make all -j4", "bash(make all -j4)"),
        ("git add -A", "bash(git add:*)"),
        ("git push --force", "bash(git push --force)"),
        ("git -C x add y", "bash(git -C x add y)"),
        ("npm test", "bash(npm test:*)"),
        ("npm run build --x", "bash(npm run build:*)"),
        ("npm run 'a b'", None),
        ("npm install x", "bash(npm install x)"),
        ("pytest -q 'a b'", "bash(pytest:*)"),
        ("cargo build --release", "bash(cargo build:*)"),
        ("touch 'a b'", "bash(touch 'a b')"),
        ("make 'a*b'", None),
        ("make 'a\nb'", None),
        ("make a\\\\b", None),
        ("rm x", None),
        ("/bin/rm x", None),
        ("sudo make", None),
        ("bash x.sh", None),
        ("sh -c ls", None),
        ("python3 -m pytest", None),
        ("curl x", None),
        ("npx eslint", None),
        ("uv run pytest", None),
        ("timeout 5 make", "bash(timeout 5 make)"),
        ("make; make", None),
        ("make $(ls)", None),
        ("make $X", None),
        ("X=1 make", "bash(make)"),
        ("X=1", None),
        ("> x", None),
        ("", None),
        ("((( nonsense", None),
    ],
)
def test_the_narrowest_rule_for_a_command(command: str, rule: str | None) -> None:
    offer = offer_for_command("bash", command)

    assert (offer.proposed if offer else None) == rule


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("/w/src/a.py", "edit(/src/a.py)"),
        ("/etc/hosts", "edit(//etc/hosts)"),
        ("/w/a*b[c]?.py", "edit(/a\\*b\\[c\\]\\?.py)"),
        ("/w/a\nb", None),
        ("/w/a\\b", None),
        ("/w/a\u202eb", None),
        ("/w/a ", None),
    ],
)
def test_the_rule_for_exactly_one_path(path: str, rule: str | None) -> None:
    offer = offer_for_path("edit", path, "/w")

    assert (offer.proposed if offer else None) == rule


@pytest.mark.parametrize(
    ("command", "rules"),
    [
        ("make all", ("bash(make all)",)),
        ("just test --all", ("bash(just test --all)", "bash(just test:*)")),
        ("just ./x --all", ("bash(just ./x --all)",)),
        ("just a.sh --all", ("bash(just a.sh --all)",)),
        ("just --file x", ("bash(just --file x)",)),
        ("git add -A", ("bash(git add -A)", "bash(git add:*)")),
        ("git config core.pager x", ("bash(git config core.pager x)",)),
        ("npm install x", ("bash(npm install x)",)),
        ("npm run build --x", ("bash(npm run build --x)", "bash(npm run build:*)")),
        ("cp a b", ("bash(cp a b)",)),
        ("timeout 5 make", ("bash(timeout 5 make)",)),
        ("timeout five make all", ("bash(timeout five make all)",)),
        ("pytest 'a*b'", ("bash(pytest:*)",)),
    ],
)
def test_wider_rules_for_a_command(command: str, rules: tuple[str, ...]) -> None:
    offer = offer_for_command("bash", command)

    assert offer is not None
    assert offer.choices == rules


@pytest.mark.parametrize(
    "name", ["rm", "curl", "python3", "bash", "npx", "sudo", "env", "xargs", "node", "docker", "perl"]
)
def test_no_rule_for_commands_that_could_do_anything(name: str) -> None:
    for command in (f"{name} build x", f"/usr/bin/{name} build x", f"X=1 {name} build x"):
        assert offer_for_command("bash", command) is None
