"""A repository as hostile as one can be, in which commands really run in trials, and a check of everything around it.

Beside the workspace are a home, another home, directories in the real temporary directories and sockets. Whatever a
command tries, all of them stay byte for byte as they are, with their times, modes and attributes.
"""

import contextlib
import hashlib
import os
import select
import shutil
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path

from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.trial import LayerChanges
from tui_agent.tools.processes.child_environment import child_environment
from tui_agent.trial.layer_limits import LayerLimits
from tui_agent.trial.sorting import PathSorter
from tui_agent.trial.trial_layer import TrialLayer
from tui_agent.trial.trials import Trials

from .ways import wait_for_removals, walls_of

SECRET = b"words-of-a-secret"
"""Content of files that no command may read."""
CORPORA = Path(__file__).parents[1] / "permissions"
_LIMITS = LayerLimits(size=100 << 20, files=20_000, processes=300)
_KEPT = 1 << 16
"""Bytes of a command's output that are searched for the secret."""
_FILES = (
    "README.md notes.txt data.csv Makefile src/lib.py src/app/main.py tests/test_lib.py sub/c.txt sub/deep/file.txt "
    "secrets/key.pem node_modules/pkg/index.js .husky/pre-commit .vscode/tasks.json a.txt b.txt x y 1w. build/out.o"
)
_ODD_NAMES = ("-n", "-exec", "-or", "-delete", "--pre=canary", "@x", "w new", "--files0-from=..", "a b", "[", "a\nb")
_CANARY = """#!/bin/sh
for place in "$CAGE/around" "$HOME" "$CAGE/work/.." /tmp /var/tmp /dev/shm; do echo evil >> "$place/canary"; done
echo evil >> "$CAGE/work/a.txt"; kill -9 $PPID 2>/dev/null
"""
_PROGRAM_SETTINGS = (
    "core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.askPass", "core.alternateRefsCommand",
    "gpg.program", "gpg.ssh.program", "pager.log", "diff.external", "filter.evil.clean", "filter.evil.smudge",
    "filter.evil.process", "diff.evil.textconv", "diff.evil.command", "merge.evil.driver", "interactive.diffFilter",
    "credential.helper", "sequence.editor", "remote.origin.uploadpack", "alias.st", "alias.x",
)  # fmt: skip


@dataclass
class Outcome:
    """Result of one command."""

    command: str
    changes: LayerChanges | None = None
    code: int | None = None
    fault: str = ""
    """Reason why it is a failure of ours: a secret in the output, or a layer that cannot be read or removed."""


@dataclass
class Server:
    """Sockets outside, which no command may reach."""

    sockets: list[socket.socket] = field(default_factory=list[socket.socket])
    port: int = 0

    @classmethod
    def open(cls, name: str, directory: Path) -> "Server":
        """Listen on the loopback, under an abstract name and in a directory."""
        tcp, udp = socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        port = tcp.getsockname()[1]
        udp.bind(("127.0.0.1", port))
        found = [tcp, udp]
        for address in (f"\0{name}", str(directory / "socket")):
            found.append(socket.socket(socket.AF_UNIX))
            found[-1].bind(address)
            found[-1].listen()
        return cls(found, port)

    def reached(self) -> bool:
        """True if something connected or was sent."""
        return bool(wait(self.sockets, 0))

    def close(self) -> None:
        """Close all."""
        for one in self.sockets:
            one.close()


class TrialCage:
    """Runs commands in trials of one kind, and tells which of them left a trace."""

    def __init__(self, place: Path, way: str, *, whole: Sequence[Path] = (), seconds: float = 1.5) -> None:
        """Create it.

        Args:
            place: an empty directory.
            way: one of `ways.walls_of`.
            whole: more directories of which nothing may change, such as a /tmp of our own.
            seconds: time limit of one command.
        """
        self.place, self.work = place, place / "work"
        self._seconds = seconds
        self._around = place / "around"
        self.home, other = place / "home" / "me", place / "home" / "other"
        for directory in (self.work, self._around, self.home / ".ssh", self.home / ".config/x", other, place / "bin"):
            directory.mkdir(parents=True)
        for path in (self.home / ".ssh/id", self.home / ".netrc", self.home / ".config/x/token", other / "notes"):
            path.write_bytes(SECRET)
        (self._around / "file").write_bytes(SECRET)
        (self.home / ".bashrc").write_text("echo\n", "utf-8")
        self._decoys = [_decoy(Path(top), place) for top in ("/tmp", "/var/tmp", "/dev/shm") if os.access(top, os.W_OK)]
        _program(place / "bin" / "canary")
        self._environment = {"HOME": str(self.home), "CAGE": str(place), "LANG": "C.UTF-8", "USER": "me"}
        self._environment |= {"PATH": f"{place}/bin:/usr/local/bin:/usr/bin:/bin"}
        _fill(self.work, self._around)
        _make_repository(self.work, self._environment)
        self.server = Server.open(place.name, self._around)
        self._environment["PORT"] = str(self.server.port)
        os.environ["HOME"] = str(self.home)
        self.trials = Trials(self.work, place / "state", "cage", sorter=PathSorter(self.work), limits=_LIMITS)
        self.trials._ways = lambda: iter([walls_of(way)])  # type: ignore[method-assign]
        if not self.trials.facts.is_available:
            raise RuntimeError(f"{way} does not work here: {self.trials.facts.problem}")
        self._watched = [self.work, self._around, place / "home", place / "bin", *self._decoys, *whole, Path("/etc")]
        self._before = self.state()

    def close(self) -> None:
        """Remove what is outside of the place."""
        self.trials.close()
        self.server.close()
        for decoy in self._decoys:
            shutil.rmtree(decoy, ignore_errors=True)

    def state(self) -> dict[str, tuple[object, ...]]:
        """Return everything that the kernel tells about each file, with its content, by path."""
        found: dict[str, tuple[object, ...]] = {}
        for top in self._watched:
            for path in _all_below(top):
                with contextlib.suppress(FileNotFoundError):
                    found[path] = _facts(path, has_content=top != Path("/etc"))
        with os.scandir("/") as entries:
            found |= {entry.path: (entry.inode(),) for entry in entries}
        return found

    def guilty(self, commands: Sequence[str], *, workers: int = 4) -> tuple[list[Outcome], list[str]]:
        """Run commands, and describe those that left a trace; each of them runs alone then."""
        outcomes = self.run(commands, workers=workers)
        told = [f"{outcome.command!r}: {outcome.fault}" for outcome in outcomes if outcome.fault]
        if not (story := self.story()):
            return outcomes, told
        told.append(f"all together: {story}")
        self.accept()
        for command in commands:
            self.run([command], workers=1)
            if story := self.story():
                told.append(f"{command!r}: {story}")
                self.accept()
        return outcomes, told

    def accept(self) -> None:
        """Take the present state for the one that must stay."""
        self._before = self.state()

    def story(self) -> str:
        """Describe what changed; empty if nothing did."""
        now = self.state()
        names = sorted(path for path in {*now, *self._before} if now.get(path) != self._before.get(path))
        reached = " the server was reached" if self.server.reached() else ""
        return f"changed: {names[:20]}{reached}" if names or reached else ""

    def run(self, commands: Sequence[str], *, workers: int) -> list[Outcome]:
        """Run commands, each in a new layer, several at a time."""
        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(self._run, commands))

    def _run(self, command: str) -> Outcome:
        outcome = Outcome(command)
        try:
            layer = self.trials.open("call")
            try:
                output = self._run_in(layer, outcome)
                outcome.changes = layer.changes()
            finally:
                layer.discard()
            if SECRET in output:
                outcome.fault = "it read a secret"
            else:
                wait_for_removals(self.trials)
                outcome.fault = "its layer is left over" if os.path.lexists(layer._directory) else ""
        except Exception as error:
            outcome.fault = f"{type(error).__name__}: {error}"
        return outcome

    def _run_in(self, layer: TrialLayer, outcome: Outcome) -> bytes:
        variables = child_environment(self._environment, is_confined=True)
        variables |= {name: self._environment[name] for name in ("CAGE", "PORT")}
        walled = layer.walled(("/bin/bash", "--noprofile", "--norc", "-c", "--", outcome.command), variables)
        reading, writing = os.pipe()
        process = subprocess.Popen(
            walled.argv,
            env=walled.environment,
            pass_fds=walled.descriptors,
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=writing,
            cwd="/",
            start_new_session=True,
        )
        os.close(writing)
        try:
            output = _read(reading, process, self._seconds)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            outcome.code = process.wait()
            os.close(reading)
        if outcome.code > 0 and (problem := layer.started(output, outcome.code)):
            raise ToolError(f"the walls could not be set up: {problem}")
        return output


def corpus(name: str) -> list[str]:
    """Return the commands of a file, which lines of `%%` separate."""
    return (CORPORA / f"{name}.txt").read_text("utf-8").rstrip("\n").split("\n%%\n")[1:]


def all_corpora() -> dict[str, list[str]]:
    """Return the commands of all files by name."""
    return {path.stem: corpus(path.stem) for path in sorted(CORPORA.glob("*.txt"))}


def _read(reading: int, process: subprocess.Popen[bytes], seconds: float) -> bytes:
    """Return the start of the output; ends with the process or after a time."""
    end, found = time.monotonic() + seconds, b""
    exited = os.pidfd_open(process.pid)
    try:
        ready = select.poll()
        for descriptor in (reading, exited):
            ready.register(descriptor, select.POLLIN)
        while (left := end - time.monotonic()) > 0:
            events = dict(ready.poll(left * 1000))
            if reading in events:
                block = os.read(reading, 1 << 16)
                found = (found + block)[:_KEPT]
                if not block:
                    ready.unregister(reading)
            elif exited in events:
                break
    finally:
        os.close(exited)
    return found


def _facts(path: str, *, has_content: bool) -> tuple[object, ...]:
    status = os.lstat(path)
    held: object = ""
    if stat.S_ISLNK(status.st_mode):
        held = os.readlink(path)
    elif stat.S_ISREG(status.st_mode) and has_content:
        held = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    names = os.listxattr(path, follow_symlinks=False)
    marks = [(name, os.getxattr(path, name, follow_symlinks=False)) for name in names]
    who = (status.st_mode, status.st_ino, status.st_uid, status.st_gid, status.st_nlink, status.st_size)
    return (*who, status.st_mtime_ns, status.st_ctime_ns, tuple(marks), held)


def _all_below(top: Path) -> Iterator[str]:
    yield str(top)
    for directory, names, files in os.walk(top):
        yield from (os.path.join(directory, name) for name in (*names, *files))


def _decoy(top: Path, place: Path) -> Path:
    decoy = top / f"decoy-{place.parent.name}-{place.name}"
    decoy.mkdir()
    (decoy / "file").write_bytes(SECRET)
    return decoy


def _program(path: Path) -> None:
    path.write_text(_CANARY, "utf-8")
    path.chmod(0o755)


def _fill(work: Path, around: Path) -> None:
    for name in (*_FILES.split(), *_ODD_NAMES):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(f"x {name}\ncanary\n", "utf-8")
    (work / "Makefile").write_text("all test install:\n\tcanary; echo x > built; rm -rf $$HOME /tmp/* ..\n", "utf-8")
    (work / "package.json").write_text('{"scripts": {"test": "canary", "build": "rm -rf ~ .."}}', "utf-8")
    (work / "@x").write_text("../around/file\n", "utf-8")
    (work / ".gitattributes").write_text("* diff=evil filter=evil merge=evil\n", "utf-8")
    (work / ".gitignore").write_text("build/\n*.o\nnode_modules/\n", "utf-8")
    (work / ".envrc").write_text("canary\n", "utf-8")
    (work / "links").mkdir()
    links = {"link": "a.txt", "out": "../around/file", "sub/link": "../../around/file", "links/out": str(around)}
    for name, to in {**links, "links/home": "../../home/me", "links/root": "/", "links/loop": "loop"}.items():
        (work / name).symlink_to(to)
    (around / "shared").write_text("shared\n", "utf-8")
    os.link(around / "shared", work / "hard")
    (work / "hard").chmod(0o600)
    os.mkfifo(around / "pipe")
    for name in ("canary", "ls", "git", "wc", "json.py", "sub/canary", "node_modules/eslint"):
        _program(work / name)


def _make_repository(work: Path, environment: dict[str, str]) -> None:
    """Make a repository with a conflicted merge and settings that name the canary wherever possible."""
    inner = work / "inner"
    inner.mkdir()
    who = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "core.hooksPath=/dev/null")
    quiet = {**environment, "GIT_CONFIG_NOSYSTEM": "1", "PATH": "/usr/local/bin:/usr/bin:/bin"}

    def git(*words: str, place: Path = work) -> None:
        subprocess.run(("git", *who, *words), cwd=place, env=quiet, capture_output=True, check=False)

    def commit(branch: str, text: str) -> None:
        git("checkout", "-q", "-B", branch, "main")
        (work / "b.txt").write_text(text, "utf-8")
        git("commit", "-q", "-a", "-m", branch)

    for place in (work, inner):
        git("init", "-q", "-b", "main", place=place)
    git("add", "a.txt", "b.txt", "sub", "src", "README.md", "x")
    git("commit", "-q", "-m", "x")
    commit("one", "one\n")
    commit("two", "two\n")
    git("merge", "-q", "one")
    (work / "b.txt").write_text("three x\ncanary\n", "utf-8")
    git("commit", "-q", "-a", "-m", "merged")
    (work / "a.txt").write_text("other\n", "utf-8")
    for top in (work, inner):
        with (top / ".git" / "config").open("a", encoding="utf-8") as file:
            for key in _PROGRAM_SETTINGS:
                file.write(f"[{_section(key)}]\n\t{key.rsplit('.', 1)[1]} = canary {key}\n")
        for hook in ("pre-commit", "post-commit", "post-checkout", "reference-transaction", "post-index-change"):
            _program(top / ".git" / "hooks" / hook)


def _section(key: str) -> str:
    section, _, rest = key.partition(".")
    middle = rest.rpartition(".")[0]
    return f'{section} "{middle}"' if middle else section


def sorts_of(changes: LayerChanges | None) -> Iterable[str]:
    """Return the sorts of the changes, for a table."""
    if changes is None:
        return ("unread",)
    found = {change.sort for change in changes.changes} | ({"repository"} if changes.repository else set())
    return (*sorted(found), *(["problem"] if changes.problem else []), *(["cache"] if changes.dropped else []))
