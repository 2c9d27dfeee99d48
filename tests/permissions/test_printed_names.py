"""Protected names in the output of commands, compared with the real output."""

import shlex
import subprocess
from pathlib import Path

import pytest

from tui_agent.permissions.path_facts import PathLookup
from tui_agent.permissions.printed_names import Cut, trouble_with

PRINTING = """
find .
find . -name HEAD
find . -name '*.py'
find sub
find . -path './.*' -prune -o -print
find . -type f -printf '%p\\n'
find . -name '*.py' -exec grep -l x {} +
find sub -exec echo {} ';'
ls
ls -A
ls sub
ls -d .git
ls -R
ls -AR
ls -A sub
du -a
du -a sub
du -s sub
grep -rl x .
grep -rl x sub
grep -rl --include='*.py' x .
grep -rl --exclude-dir='.*' x sub
grep -rl --exclude-dir=.git --exclude-dir=.husky --exclude-dir=node_modules x .
grep -l x a.py
git ls-files
git ls-files -o
git status --porcelain -uall
git ls-files sub
git diff --name-only
echo a.py
echo .git/x
printf '%s\\n' sub .husky
basename sub/.git
basename .gitx x
dirname .git/x
date +%F
id -u
seq 3
git rev-parse --show-toplevel
sha256sum a.py
"""
UNTOLD = """
cat a.py
git log --format=%s
grep x a.py
ls -Q @
frobnicate
git -C . x
printf x%s y
find . -printf %.3f
basename -a x y
date +git
rg @ @
echo \\x
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("a.py", "sub/HEAD", "sub/b.py", "pkg/in/node_modules/m/i.js", ".husky/x.py", ".e/y"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x\n", "utf-8")
    subprocess.run(("git", "init", "-q"), cwd=tmp_path, check=True)
    subprocess.run(("git", "add", "a.py", "sub"), cwd=tmp_path, check=True)
    return tmp_path


@pytest.mark.slow
def test_every_protected_name_really_printed_is_found(place: Path) -> None:
    for text in PRINTING.strip().split("\n"):
        printed = subprocess.run(("bash", "-c", text), cwd=place, capture_output=True, text=True, check=True).stdout
        shown = {name for line in printed.split() for name in line.split("/")}
        trouble = trouble_with(shlex.split(text), str(place), PathLookup(place), Cut())
        is_known = trouble is not None and trouble.is_sure

        assert is_known == (not shown.isdisjoint((".git", ".husky", "node_modules"))), (text, trouble)


def test_untraceable_output_may_be_anything(place: Path) -> None:
    for text in UNTOLD.strip().split("\n"):
        trouble = trouble_with(text.replace("@", "\ud800").split(), str(place), PathLookup(place), Cut())

        assert trouble is not None, text
        assert not trouble.is_sure, text
