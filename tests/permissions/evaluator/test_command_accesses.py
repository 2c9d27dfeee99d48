"""Accesses of commands: the lists themselves, and that the order that they allow changes no result."""

import os
import random
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tui_agent.execution.scheduling.conflict_order import ConflictOrder, OrderEntry
from tui_agent.permissions import accesses_of_command, is_read_only_command
from tui_agent.protocol.tool import Accesses


def make_tree(root: Path) -> Path:
    """Fill a new workspace with files, directories, and links of both kinds."""
    for name in ("a.txt", "b.txt", "d/x.txt", "d/y.txt", "e/x.txt", "src/lib.py", ".git/config"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("1\n")
    (root / "l").symlink_to("d")
    (root / "to_a").symlink_to("a.txt")
    (root / "e" / "in").symlink_to("../src")
    os.link(root / "b.txt", root / "b2.txt")
    return root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_tree(tmp_path.resolve() / "work")


@pytest.mark.parametrize(
    ("command", "reads", "writes"),
    [
        ("date > a; sleep 1", "", "a"),
        ("cat a.txt", "a.txt", ""),
        ("cat l/x.txt to_a", "a.txt d/x.txt", ""),
        ("grep -r 1 d | sort -u > out", "d", "out"),
        ("echo 1 >> l/new 2>&1", "", "d/new"),
        ("echo 1 | tee -a a.txt n < d/x.txt", "d/x.txt", "a.txt n"),
        ("mkdir -p d/new/er new/er", "", "d/new new"),
        ("touch new/x", "", "new"),
        ("rm -f d/x.txt n", "", "d/x.txt n"),
        ("cp a.txt d", "a.txt", "d/a.txt"),
        ("cp a.txt d/x.txt l", "a.txt d/x.txt", "d/a.txt d/x.txt"),
        ("cp a.txt n", "a.txt", "n"),
        ("cp -r d new", "d", "new"),
        ("sed -i 's/1/2/' a.txt", "", "a.txt"),
        ("sed -n 1p a.txt", "a.txt", ""),
        ("chmod +x a.txt; chmod -R go-w d", "", "a.txt d"),
        ("cd d && date > n", "d/..", "d/n"),
        ("cd d; date > n", "d/..", "d/n n"),
        ("f() { date > a; }; f", "", "a"),
        ('f=a.txt; [ -f a.txt ] && touch n; echo "$f $(cat d/x.txt)"', "a.txt d/x.txt", "n"),
        ("timeout 5 date > a", "", "a"),
        ("LC_ALL=C wc -l < a.txt > /dev/null", "a.txt", ""),
        ("ls -a d", ". d", ""),
    ],
)
def test_a_command_with_a_complete_list(command: str, reads: str, writes: str, root: Path) -> None:
    found = accesses_of_command(command, root)

    assert found is not None
    # Where the test's own PATH leads is not part of the command.
    below = [os.path.relpath(path.parent, root) + "/.." if path.name == ".." else os.path.relpath(path, root)
             for path in (*found.reads, *found.searches) if path.is_relative_to(root)]  # fmt: skip
    assert " ".join(sorted(below)) == reads
    assert " ".join(sorted(os.path.relpath(path, root) for path in found.writes)) == writes


def test_a_command_from_a_directory_that_calls_may_change_depends_on_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{root}/bin:{os.environ['PATH']}")

    found = accesses_of_command("date > a", root)

    assert found is not None
    assert root / "bin" / "date" in found.reads


@pytest.mark.parametrize(
    "command",
    [
        # Unknown programs, wrappers that run text, functions of the shell, the background, the network.
        "pytest", "./run > a", "git status", "git add a.txt", "npm install", "python -c 1", "bash -c 'date > a'",
        "env A=b date > a", "xargs rm < a.txt", "find . -name x -delete", "PATH=. date > a", "date > a & date > b",
        "date > a&", "curl http://localhost > a", "echo 1 > /dev/tcp/localhost/1", "ps > a", "alias x=y; date > a",
        "read x < a.txt; date > b", "f() { $1; }; f date", "exec > a", "ls > >(cat)", "coproc date > a",
        # Words that are not literal.
        "cat d/*.txt", "rm d/*.txt", "for f in a b; do date > $f; done", "x=5; touch f$x",
        "f=a.txt; touch ${f%.txt}.bak",
        'date > "$x"', "date > $(cat a.txt)", "rm $(ls)", "for f in *.txt; do date > $f.out; done", "date > ~x/y",
        "ls | while read f; do date > $f; done", "cat $x", "x='*'; cat $x", "rm *.txt",
        "echo nothere/*", "echo */x", "printf '%s' {nothere,d}/*", "echo a.txt/*", "for f in d/x; do echo $f*; done",
        "head -n 1 a.txt > b$((1+1))", "sed -i s/1/2/ f$((1))", "n=$(wc -l < a.txt); head -n $n a.txt > out$n",
        "n=1; ((n++)); head -n $n a.txt > out$n", "cat $(ls d)", "f=$(ls d); cat d/$f", "f=a; f=$(cat a.txt); cat $f",
        "cd -; date > a",
        'cd "$x" && date > a', "for f; do date > a; done",
        # Places outside, protected or special.
        "date > /opt/a", "date > /etc/a", "date > .git/config", "cat /proc/self/status", "cat d/../a.txt",
        # What may make, move or remove a link or a directory.
        "ln -s a.txt n", "ln a.txt n", "mv a.txt n", "rm -r d", "rmdir d", "rm to_a", "cp -r e n", "cp -a to_a n",
        "cp -l a.txt n", "cp a.txt to_a", "sed -i 's/1/2/' to_a",
        # Files with several names.
        "cat b.txt", "date > b2.txt", "grep -r 1 .",
        # Options that write elsewhere, or merge directories.
        "sed -i.bak 's/1/2/' a.txt", "sed -i 's/1/2/w n' a.txt", "sort -o n a.txt", "cp -b a.txt d", "cp -t d a.txt",
        "touch -r a.txt n", "mkdir -m 700 n", "cp -r d/. n", "tee -", "cp -r src/ e; cp -r src e",
    ],
)  # fmt: skip
def test_a_command_without_a_complete_list(command: str, root: Path) -> None:
    (root / "e" / "src").mkdir()

    assert accesses_of_command(command, root) is None


def test_a_large_directory_is_not_walked(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_agent.permissions.evaluator.command_accesses.MOST_ENTRIES", 1)

    assert accesses_of_command("grep -r 1 d", root) is None


# --- the order that they allow ----------------------------------------------------------------------------------------

_PATHS = (
    "a.txt", "b.txt", "to_a", "d", "d/x.txt", "d/y.txt", "d/n", "l", "l/x.txt", "l/n", "e",
    "e/x.txt", "e/in/lib.py", "src", "src/lib.py", "n", "n/x.txt", "n/m", "n/m/x.txt", "m", "m/x.txt",
)  # fmt: skip
_COMMANDS = (
    "echo # > P", "echo # >> P", "cat P", "cat P P", "cp P Q", "cp -r P fresh", "cp P P Q", "cp P Q/", "mkdir P",
    "mkdir -p P", "rm P", "rm -f P", "rm -r P", "rmdir P", "mv P Q", "touch P", "touch P/t", "sed -i s/1/#/ P",
    "tee P < Q", "grep -r 1 P", "ls P", "ls -a P", "cat ./P/*.txt", "rm -f ./P/*.txt", "cat *.txt", "cp P/*.txt Q",
    "[ -e P ] && echo y", "cd P && echo # > Q", "cd P; cat Q; echo # > t", "for f in P Q; do echo # >> $f; done",
    "find P", "if [ -d P ]; then touch Q; fi", "ln -s P Q", "ln P Q", "x=P; echo # > $x", "sort P > Q",
    "wc -l < P > Q", "test -e P || mkdir P", "mkdir P && touch P/t", "rm P; mkdir P", "rm P && echo # > P",
    "[ P -nt nothing ] && cat Q", "stat -c %s P", "readlink -f P", "realpath P", "mkdir -p P/sub",
    "cd P && mkdir -p Q", "echo # | tee -a P Q",
    "chmod +x P", "[ -x P ]; echo $?", "diff P Q", "f=P; cat $f > Q", "f=$(ls P); touch $f",
)  # fmt: skip


@dataclass(eq=False)
class Call:
    """One call of a message: a command, or a file written as the write tool does."""

    index: int
    text: str
    root: Path
    alone: bool = False
    has_turn: bool = False

    @property
    def _is_tool(self) -> bool:
        return self.text.startswith("write ")

    @property
    def safe(self) -> bool:
        return not self._is_tool and is_read_only_command(self.text, self.root)

    def accesses(self) -> Accesses | None:
        if not self._is_tool:
            return accesses_of_command(self.text, self.root)
        path = frozenset({Path(os.path.realpath(self.root / self.text.split()[1]))})
        return Accesses(reads=path, writes=path)

    def run(self, root: Path) -> str:
        if not self._is_tool:
            done = subprocess.run(["bash", "-c", self.text], cwd=root, capture_output=True, text=True)
            return f"{done.returncode}: {sorted(done.stdout.splitlines())}"
        path = Path(os.path.realpath(root / self.text.split()[1]))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("tool\n")
        except OSError as error:
            return type(error).__name__
        return ""


def _random_call(chance: random.Random, index: int, root: Path) -> Call:
    if chance.random() < 0.12:
        return Call(index, f"write {chance.choice(_PATHS)}", root)
    text = chance.choice(_COMMANDS).replace("#", str(index + 2))
    while "P" in text or "Q" in text:
        text = text.replace("P", chance.choice(_PATHS), 1).replace("Q", chance.choice(_PATHS), 1)
    return Call(index, text, root)


def _state(root: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for directory, directories, files in os.walk(root):
        for name in (*directories, *files):
            path = Path(directory, name)
            is_file = path.is_file() and not path.is_symlink()
            value = path.read_text() if is_file else os.readlink(path) if path.is_symlink() else "directory"
            found[str(path.relative_to(root))] = f"{path.lstat().st_mode:o} {value}"
    return found


def trial(seed: int, directory: Path) -> int:
    """Run one random message in the order of its text, and in a random order that the conflicts allow.

    Returns:
        The number of calls that ran before an earlier one.
    """
    chance = random.Random(seed)
    first, second = make_tree(directory / f"{seed}-first"), make_tree(directory / f"{seed}-second")
    calls = [_random_call(chance, index, second) for index in range(chance.randint(2, 5))]
    expected = [call.run(first) for call in calls]
    order = ConflictOrder()
    waiting: list[OrderEntry] = [order.add(call) for call in calls]
    for entry in waiting:
        order.settle(entry)
    order.close()
    found, swapped = dict[int, str](), 0
    while waiting:
        entry = chance.choice([entry for entry in waiting if entry.is_free])
        swapped += entry is not waiting[0]
        waiting.remove(entry)
        found[entry.call.index] = calls[entry.call.index].run(second)
        order.leave(entry)
    texts = [call.text for call in calls]
    assert [found[index] for index in range(len(calls))] == [
        text.replace(str(first), str(second)) for text in expected
    ], texts
    assert _state(second) == _state(first), texts
    return swapped


@pytest.mark.parametrize("seed", range(5))
def test_no_result_depends_on_the_order_of_calls_that_may_run_at_once(seed: int, tmp_path: Path) -> None:
    assert sum(trial(1000 * seed + number, tmp_path) for number in range(12))
