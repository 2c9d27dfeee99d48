"""Rules to offer with an approval."""

import os
from pathlib import Path

from tests.permissions.conftest import Desk
from tests.support.table import table
from tui_agent.permissions.rules.suggestions import offer_for_command, offer_for_path


@table(
    ("command", "rule"),
    [
        ("make", "bash(make:*)"),
        ("make all -j4", "bash(make:*)"),
        ("git add -A", "bash(git add -A)"),
        ("git push --force", "bash(git push --force)"),
        ("git -C x add y", "bash(git -C x add y)"),
        ("npm test", "bash(npm test:*)"),
        ("npm run build --x", "bash(npm run build:*)"),
        ("npm run 'a b'", "bash(npm run 'a b')"),
        ("npm install x", "bash(npm install x)"),
        ("pytest -q 'a b'", "bash(pytest:*)"),
        ("cargo build --release", "bash(cargo build:*)"),
        ("touch 'a b'", "bash(touch 'a b')"),
        ("make 'a*b'", None),
        ("touch 'a\nb'", None),
        ("make a\\\\b", None),
        ("rm x", "bash(rm x)"),
        ("/bin/rm x", None),
        ("sudo make", None),
        ("bash x.sh", None),
        ("sh -c ls", None),
        ("python3 -m pytest", "bash(python3 -m pytest:*)"),
        ("curl x", "bash(curl x)"),
        ("npx eslint", None),
        ("uv run pytest", "bash(uv run pytest:*)"),
        ("timeout 5 make", "bash(timeout 5 make)"),
        ("make; make", None),
        ("touch $(ls)", None),
        ("make -j$X", None),
        ("X=1 make", "bash(X=1 make:*)"),
        ("X=1", None),
        ("> x", None),
        ("", None),
        ("((( nonsense", None),
    ],
)
def test_the_narrowest_rule_for_a_command(command: str, rule: str | None) -> None:
    offer = offer_for_command("bash", command)

    assert (offer.proposed if offer else None) == rule


@table(
    ("path", "rule"),
    [
        ("/w/src/a.py", "edit(/**)"),
        ("/w/a.py", "edit(/**)"),
        ("/w/.github/workflows/ci.yml", "edit(/.github/workflows/ci.yml)"),
        ("/etc/hosts", "edit(//etc/hosts)"),
        ("/w/.a*b[c]?", "edit(/.a\\*b\\[c\\]\\?)"),
        ("/w/a\nb", None),
        ("/w/a\\b", None),
        ("/w/a\u202eb", None),
        ("/w/a ", None),
    ],
)
def test_the_rule_for_exactly_one_path(path: str, rule: str | None) -> None:
    offer = offer_for_path("edit", path, "/w")

    assert (offer.proposed if offer else None) == rule


@table(
    ("command", "rules"),
    [
        ("make all", ("bash(make all)", "bash(make:*)")),
        ("just test --all", ("bash(just test --all)", "bash(just test:*)")),
        ("just ./x --all", ("bash(just ./x --all)",)),
        ("just --file x", ("bash(just --file x)",)),
        ("git add -A", ("bash(git add -A)",)),
        ("git config core.pager x", ("bash(git config core.pager x)",)),
        ("npm install x", ("bash(npm install x)",)),
        ("npm run build --x", ("bash(npm run build --x)", "bash(npm run build:*)")),
        ("cp a b", ("bash(cp a b)",)),
        ("timeout 5 make", ("bash(timeout 5 make)",)),
        ("timeout five make all", ("bash(timeout five make all)",)),
        (
            "curl -s 'http://localhost:3000/health?x=1'",
            ("bash(curl -s 'http://localhost:3000/health?x=1')", "bash(curl -s http://localhost:3000/*)"),
        ),
        ("curl http://127.0.0.1/", ("bash(curl http://127.0.0.1/)", "bash(curl http://127.0.0.1/*)")),
        ("curl -sL http://localhost:3000/a", ("bash(curl -sL http://localhost:3000/a)",)),
        ("curl http://localhost/a http://h/b", ("bash(curl http://localhost/a http://h/b)",)),
        ("curl http://localhost.example.org/a", ("bash(curl http://localhost.example.org/a)",)),
    ],
)
def test_wider_rules_for_a_command(command: str, rules: tuple[str, ...]) -> None:
    offer = offer_for_command("bash", command)

    assert offer is not None
    assert offer.choices == rules


@table("name", ["wget", "shred", "python3", "bash", "npx", "sudo", "env", "xargs", "node", "docker", "perl"])
def test_no_rule_for_commands_that_could_do_anything(name: str) -> None:
    for command in (f"{name} build x", f"/usr/bin/{name} build x", f"X=1 {name} build x"):
        assert offer_for_command("bash", command) is None


def test_what_can_do_anything_gets_no_offer(desk: Desk) -> None:
    commands = """python3 x.py|node x.js|bash x.sh|npx evil|npx tsx x.ts|docker run x|sudo make|uvx ruff|source x.sh
        |LD_PRELOAD=./x.so pytest|PATH=. make|xargs rm|find . -delete|ssh h|env X=1 sh x|curl -o x http://h/y
        |npm exec x|pnpm dlx x|rm -rf .|rm -rf /|rm *"""
    offered = {
        command: desk.policy().grant_rule(desk.tools["bash"], {"command": command})
        for command in map(str.strip, commands.split("|"))
    }

    assert {command: rule for command, rule in offered.items() if rule is not None} == {}


def test_a_folder_outside_is_offered_for_reading_unless_it_is_the_home_or_hidden(tmp_path: Path) -> None:
    home = os.path.realpath(os.path.expanduser("~"))
    for path, rule in (
        ("/usr/include/stdio.h", "read(//usr/include/**)"),
        ("/srv/lib/README.md", "read(//srv/lib/**)"),
        ("/etc/hosts", "read(//etc/hosts)"),
        (f"{home}/notes.txt", f"read(/{home}/notes.txt)"),
        (f"{home}/.ssh/id_rsa", f"read(/{home}/.ssh/id_rsa)"),
    ):
        offer = offer_for_path("read", path, str(tmp_path))
        assert offer is not None
        assert offer.proposed == rule
