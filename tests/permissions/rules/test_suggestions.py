"""Rules to offer with an approval."""

import os
from pathlib import Path

import pytest

from tests.permissions.conftest import Desk
from tui_agent.permissions.rules.suggestions import offer_for_command, offer_for_path


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("make", "bash(make:*)"),
        ("make all -j4", "bash(make:*)"),
        ("git add -A", "bash(git add:*)"),
        ("git push --force", "bash(git push --force)"),
        ("git -C x add y", "bash(git -C x add y)"),
        ("npm test", "bash(npm test:*)"),
        ("npm run build --x", "bash(npm run build:*)"),
        ("npm run 'a b'", "bash(npm run 'a b')"),
        ("npm install x", "bash(npm install x)"),
        ("pytest -q 'a b'", "bash(pytest:*)"),
        ("cargo build --release", "bash(cargo build:*)"),
        ("touch 'a b'", "bash(touch 'a b')"),
        ("make 'a*b'", "bash(make:*)"),
        ("touch 'a\nb'", None),
        ("make a\\\\b", None),
        ("rm x", "bash(rm x)"),
        ("/bin/rm x", None),
        ("sudo make", None),
        ("bash x.sh", None),
        ("sh -c ls", None),
        ("python3 -m pytest", "bash(python3 -m pytest:*)"),
        ("curl x", "bash(curl x)"),
        ("npx eslint", "bash(npx eslint:*)"),
        ("uv run pytest", "bash(uv run pytest:*)"),
        ("timeout 5 make", "bash(timeout 5 make)"),
        ("make; make", None),
        ("touch $(ls)", None),
        ("make -j$X", "bash(make:*)"),
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


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("/w/src/a.py", "edit(/src/**)"),
        ("/w/a.py", "edit(/a.py)"),
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
        ("make all", ("bash(make all)", "bash(make:*)")),
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
    "name", ["wget", "shred", "python3", "bash", "npx", "sudo", "env", "xargs", "node", "docker", "perl"]
)
def test_no_rule_for_commands_that_could_do_anything(name: str) -> None:
    for command in (f"{name} build x", f"/usr/bin/{name} build x", f"X=1 {name} build x"):
        assert offer_for_command("bash", command) is None


OFFERED = {
    "python -m pytest -q 2>&1 | tail -20": (
        "python -m pytest tests -x|python -m pytest",
        "python -m pip install x|python -c x",
    ),
    "pytest -q": ("pytest tests|pytest -x --tb=short", "pytest -p evil|pytest ../x|FOO=1 pytest"),
    "PYTHONPATH=src pytest -q tests": ("PYTHONPATH=src pytest", "PYTHONPATH=/tmp pytest|PYTHONPATH=src rm x|pytest"),
    "source .venv/bin/activate && pytest -q": (
        "source .venv/bin/activate && pytest tests",
        "source x.sh|source .venv/bin/x",
    ),
    ".venv/bin/pytest": (".venv/bin/pytest -q tests", ".venv/bin/pip install x|.venv/bin/pytest -p evil"),
    ".venv/bin/python -m pytest": (".venv/bin/python -m pytest -q", ".venv/bin/python x.py"),
    "make": ("make test|make -j4|make clean && make -j$(nproc)", "make -f ../x|make CC=./x|make -C /tmp"),
    "make -j4": ("make|make lint", "make --eval=x"),
    "make clean && make -j$(nproc)": ("make all", "make SHELL=./x"),
    "gh pr view 1": ("gh pr view 2 --json title", "gh pr merge 1 --admin|gh pr comment 1 -b x|gh pr create"),
    "gh issue list": ("gh issue list --limit 5", "gh issue delete 1|gh issue create"),
    "git branch feature": ("git branch feature", "git branch -D main|git branch -f x y"),
    "git stash pop": ("git stash pop", "git stash clear|git stash drop"),
    "prettier -w .": ("prettier -w src", "prettier --config x -w .|prettier --plugin ./x -w ."),
    "prettier --check src": ("prettier --check .", "prettier -w src|prettier --write src"),
    "eslint .": ("eslint src --ext .ts", "eslint --fix .|eslint -c x .|eslint -f ./x ."),
    "eslint src --fix": ("eslint src --fix", "eslint src --fix -c x.js"),
    "ruff check .": ("ruff check src", "ruff check --fix .|ruff format ."),
    "stylelint 'a.css'": ("stylelint 'a.css'", "stylelint --fix a.css"),
    "jest": ("jest --ci src", "jest --config x|jest --globalSetup x"),
    "tox -e py": ("tox -e lint", "tox exec -- rm x|tox -c ../x"),
    "black --check .": ("black --check src", "black .|black src"),
    "isort -c src": ("isort -c .", "isort src"),
    "cargo fmt --check": ("cargo fmt --check", "cargo fmt"),
    "ruff format --check .": ("ruff format --check src", "ruff format src"),
    "go mod graph": ("go mod graph", "go mod tidy|go mod edit -replace a=../b"),
    "npm audit": ("npm audit", "npm audit fix"),
    "git checkout main": ("git checkout -b x|git checkout other", "git checkout -f other|git checkout -B main x"),
    "git fetch": (
        "git fetch origin main|git fetch --all --prune",
        "git fetch https://evil/x|git fetch --upload-pack=x",
    ),
    "rm -rf ./dist": ("rm -rf ./dist", "rm -rf ./src|rm -rf ."),
    "rm -rf build/": ("rm -rf build/x", "rm -rf src|rm -rf build/../src"),
    "tsc --noEmit": ("tsc --noEmit -p .", "tsc|tsc --build"),
    "gh repo delete x": ("gh repo delete x", "gh repo delete y"),
    "gh pr merge 1": ("gh pr merge 1", "gh pr merge 2|gh pr merge 1 --admin"),
    "git stash drop": ("git stash drop", "git stash drop 2|git stash clear"),
    "python -m unittest -v": ("python -m unittest tests.test_a", "python -m other"),
    "stack exec x": ("stack exec x", "stack exec -- rm -rf x|stack exec y"),
    "nx run app:build": ("nx run app:build", "nx run other:deploy"),
    "npx tsc --noEmit": ("npx tsc --noEmit -p .", "npx evil|npx -p evil tsc|npx tsc --plugins x|tsc"),
    "npx eslint src": ("npx eslint src test", "npx eslint --fix src|npx eslint -c ./x src|npx prettier ."),
    "uv run pytest": ("uv run pytest -q", "uv run python x.py|uv run --with x pytest"),
    "npm run build": ("npm run build -- --watch", "npm run deploy|npm run build -- --config x.js"),
    "npm test": ("npm test -- -t x", "npm install x|npm test -- --outputFile=/tmp/x"),
    "cargo test": ("cargo test --release", "cargo run|cargo test --config x"),
    "gcc -o app src/main.c": (
        "gcc -Wall -o app src/main.c",
        "gcc -fplugin=./x src/main.c|gcc -o /tmp/x a.c|gcc -B. a.c",
    ),
    "./app --help": ("./app|./app --version", "./app --config=x|./other|./app /etc/passwd"),
    "rm -f src/old.py": (
        "rm -f src/other.py|rm -f src/a.py src/b.py",
        "rm -f tests/x|rm -rf src/app|rm -f src/../x|rm -f src/a ~/x",
    ),
    "rm -rf dist": ("rm -rf dist", "rm -rf src|rm -rf dist src|rm -rf dist/.."),
    "curl -s http://localhost:3000/health": (
        "curl -s http://localhost:3000/a?b=1",
        "curl -s http://localhost:3000/a http://evil/|curl -s http://evil/|curl -s http://localhost:3000/a -o x"
        "|curl -s http://localhost:3000/a -d @x|curl -s http://localhost:30001/|curl -s http://localhost:3000@evil/",
    ),
    "cat ../lib/README.md": ("cat ../lib/LICENSE|head -5 ../lib/sub/x", "cat ../other/x|cp a ../lib/x|rm ../lib/x"),
    "git add -A && git commit -q -m x": ("git add src|git commit -am y", "git push|git add ~/x|git commit -F ../x"),
}
"""Commands that the first rule offered for one covers, and some that it does not."""


def test_the_first_offer_covers_the_call_and_its_like_and_nothing_else(desk: Desk) -> None:
    for tool in ("tsc", "eslint", "prettier"):
        (desk.root / f"node_modules/.bin/{tool}").parent.mkdir(parents=True, exist_ok=True)
        (desk.root / f"node_modules/.bin/{tool}").write_text("x", "utf-8")
    bash, found = desk.tools["bash"], list[tuple[str, str | None, str, str]]()
    for command, (like, unlike) in OFFERED.items():
        policy = desk.policy()
        rule = policy.grant_rule(bash, {"command": command})
        if rule is not None:
            policy.grant(rule, "session")
        found += [(command, rule, one, "asks") for one in (command, *like.split("|"))
                  if policy.check(bash, {"command": one}).decision != "allow"]  # fmt: skip
        found += [(command, rule, one, "runs") for one in unlike.split("|")
                  if policy.check(bash, {"command": one}).decision != "ask"]  # fmt: skip

    assert found == []


def test_what_can_do_anything_gets_no_offer(desk: Desk) -> None:
    commands = """python3 x.py|node x.js|bash x.sh|npx evil|npx tsx x.ts|docker run x|sudo make|uvx ruff|source x.sh
        |LD_PRELOAD=./x.so pytest|PATH=. make|xargs rm|find . -delete|ssh h|env X=1 sh x|curl -o x http://h/y
        |npm exec x|pnpm dlx x|rm -rf .|rm -rf /|rm *"""
    offered = {
        command: desk.policy().grant_rule(desk.tools["bash"], {"command": command})
        for command in map(str.strip, commands.split("|"))
    }

    assert {command: rule for command, rule in offered.items() if rule is not None} == {}


def test_reading_actions_need_no_answer(desk: Desk) -> None:
    reading = """npm ls|npm ls --depth=0|npm list --json|pip show x|pip list --format=json|pip freeze
        |node --check src/x.js|node -c src/x.js|git stash list"""
    others = """npm install|npm outdated|pip install x|pip list -i http://x|node src/x.js|node --check -r ./x a.js
        |node --check ../x.js|npm ls --prefix ../x|make -n|git fetch|python -m pip list"""

    assert [one for one in map(str.strip, reading.split("|")) if desk.bash(one).source != "read_only"] == []
    assert [one for one in map(str.strip, others.split("|")) if desk.bash(one).decision != "ask"] == []


def test_the_widest_harmless_rule_is_one_step_away(desk: Desk) -> None:
    for tool, arguments, widest in (
        ("edit", {"path": "src/lib.py"}, "edit(/**)"),
        ("write", {"path": "README.md"}, "edit(/**)"),
        ("bash", {"command": "git add src/lib.py"}, "bash(git add:*)"),
        ("bash", {"command": "make -j4"}, "bash(make:*)"),
    ):
        policy = desk.policy()
        choices = policy.grant_choices(desk.tools[tool], arguments)
        first = policy.grant_rule(desk.tools[tool], arguments)
        assert choices[-1] == widest
        assert first is not None
        assert choices.index(first) >= len(choices) - 2


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
