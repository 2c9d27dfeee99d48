"""More than 300 attempts to change, read or reach what is outside of a trial (safety promise 10).

Each kind runs as a batch, and each is verified from outside: by the files, the processes, the servers and the keyring
that it aims at, not by what the attempt itself reports.
"""

import ctypes
import os
import pty
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path

import pytest

from tests.trial import escape_attempts as attempts
from tests.trial.ways import LANDLOCK, LAYERS, READ_ONLY, force, run_in, tree_state
from tui_agent.tools.processes.child_environment import child_environment
from tui_agent.trial.command_walls import BubblewrapWalls
from tui_agent.trial.trials import Trials
from tui_agent.walls import visible_places

SECRET = "words-of-a-secret"
LIBC = ctypes.CDLL(None, use_errno=True)
SHARED_MEMORY = 0x7E57
_CALLS = """
import ctypes, fcntl, mmap, os, resource, signal, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
out, work, home, mark = (os.environ[name] for name in ("OUT", "W", "HOME", "MARK"))
host, victim, port, port6, udp = (int(os.environ[name]) for name in ("HOSTPID", "VICTIM", "PORT", "PORT6", "UDP"))
def handle(path):
    buffer = ctypes.create_string_buffer(b"\\x80\\0\\0\\0" + b"\\0" * 200, 204)
    libc.name_to_handle_at(-100, path.encode(), buffer, ctypes.byref(ctypes.c_int()), 0)
    return buffer
socket.setdefaulttimeout(1)
for text in sys.stdin.read().splitlines() if len(sys.argv) < 2 else sys.argv[1:]:
    if not os.fork():
        signal.alarm(5)
        try:
            print(text, "→", eval(text), os.strerror(ctypes.get_errno()))
        except BaseException as error:
            print(text, error)
        sys.stdout.flush()
        os._exit(0)
    os.wait()
"""


@dataclass
class World:
    """Everything that an attempt must not change, read or reach."""

    trials: Trials
    root: Path
    variables: dict[str, str]
    guarded: tuple[Path, ...]
    victim: "subprocess.Popen[bytes]"
    servers: tuple[socket.socket, ...]
    pipe: int

    def state(self) -> object:
        """Return what is outside, as it is now."""
        number = self.victim.pid
        process = Path(f"/proc/{number}")
        # The fields after the name; the third is the state, and those after the 13th are times.
        fields = (process / "stat").read_text("utf-8").rpartition(")")[2].split()
        limits = (process / "limits").read_text("utf-8")
        tuning = os.sched_getaffinity(number), os.getpriority(os.PRIO_PROCESS, number), fields[0].replace("R", "S")
        system = [
            Path(path).read_text("utf-8") for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname")
        ]
        mounts = sorted(line.split()[4] for line in Path("/proc/self/mountinfo").read_text("utf-8").splitlines())
        own = resource.getrlimit(resource.RLIMIT_NOFILE), os.getpriority(os.PRIO_PROCESS, 0)
        trees = {str(top): tree_state(top) for top in self.guarded}
        names = sorted(name for name in os.listdir("/dev/shm") if self.variables["MARK"] in name)
        return trees, limits, tuning, system, mounts, own, names, shared_memory(), self.keys()

    def keys(self) -> list[int]:
        """Return which keyrings have the key that attempts add."""
        mark = self.variables["MARK"].encode()
        return [ring for ring in (-3, -4, -5) if LIBC.syscall(250, 10, ring, b"user", mark, 0) >= 0]

    def received(self) -> list[str]:
        """Return which servers received something."""
        found = [str(server.getsockname()) for server in self.servers if wait([server], 0)]
        with suppress(BlockingIOError):
            found += [f"pipe: {text!r}" for text in [os.read(self.pipe, 9999).decode()] if text != SECRET]
        os.write(self.pipe, SECRET.encode())
        return found


def end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()


def shared_memory() -> bytes:
    """Return the content of a segment of shared memory, created if it is missing."""
    LIBC.shmat.restype = ctypes.c_void_p
    address = LIBC.shmat(LIBC.shmget(SHARED_MEMORY, 64, 0o1666), None, 0)
    found = ctypes.string_at(address, 64)
    LIBC.shmdt(ctypes.c_void_p(address))
    return found


@pytest.fixture(params=(*LAYERS[:2], READ_ONLY[0], LANDLOCK))
def world(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    force(request.param, monkeypatch)
    monkeypatch.setattr(visible_places, "_HOMES", (str(tmp_path / "homes"),))
    mark = f"tui-agent-{os.getpid()}"
    root, out, home, other, ours = (tmp_path / name for name in ("work", "out", "homes/me", "homes/other", "state"))
    for directory in (root / "sub", root / "closed", out, home / ".ssh", other / "repo", ours):
        directory.mkdir(parents=True)
    secrets = (
        home / ".ssh/id",
        home / ".netrc",
        other / "notes",
        ours / "journal",
        tmp_path / "kube.yaml",
        Path("/dev/shm", mark),
    )
    for path in (*secrets, root / "denied", root / "closed/key"):
        path.write_text(SECRET, "utf-8")
    for path in (out / "canary", root / "kept", root / "sub/file", root / "evil.so", root / "evil"):
        path.write_text("alive", "utf-8")
    (root / "link").symlink_to(out)
    os.link(out / "canary", root / "hard")
    os.mkfifo(out / "pipe")
    os.mkfifo(root / "pipe")
    with ExitStack() as held:
        v4 = held.enter_context(socket.create_server(("127.0.0.1", 0)))
        v6 = held.enter_context(socket.create_server(("::1", 0), family=socket.AF_INET6))
        udp = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        servers = [v4, v6, udp]
        for name, kind in ((f"\0{mark}", 1), (f"{out}/s", 1), (f"{root}/s", 1), (f"{out}/d", 2), (f"\0{mark}-d", 2)):
            servers.append(local := held.enter_context(socket.socket(socket.AF_UNIX, kind)))
            local.bind(name)
            if kind == 1:
                local.listen()
        pipes = [os.open(place / "pipe", os.O_RDWR | os.O_NONBLOCK) for place in (out, root)]
        os.write(pipes[0], SECRET.encode())
        victim = subprocess.Popen(["sleep", "1000"], cwd=home / ".ssh", env={"PASSWORD": SECRET, "MARK": mark})
        outside = {
            "HOME": home, "OUT": out, "OTHER": other, "OURS": ours, "KUBECONFIG": tmp_path / "kube.yaml", "W": root,
            "DENIED": root / "denied", "MARK": mark, "HOSTPID": os.getpid(), "VICTIM": victim.pid,
            "PORT": v4.getsockname()[1], "PORT6": v6.getsockname()[1], "UDP": udp.getsockname()[1],
        }  # fmt: skip
        variables = {name: str(value) for name, value in outside.items()}
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.setenv("PASSWORD", SECRET)
        held.callback(end, victim)
        # A directory of programs is visible, so that attempts have something outside to change.
        monkeypatch.setenv("PATH", str(out), prepend=os.pathsep)
        closed = (root / "denied", root / "closed")
        trials = Trials(root, ours / "trials", "one", hidden=(ours,), unreadable=lambda: closed)
        assert trials.facts.is_available, trials.facts.problem
        shared_memory()
        try:
            guarded = (out, home, other, ours / "journal", *(path for path in root.iterdir()))
            yield World(trials, root, variables, guarded, victim, tuple(servers), pipes[0])
        finally:
            Path("/dev/shm", mark).unlink(missing_ok=True)
            LIBC.shmctl(LIBC.shmget(SHARED_MEMORY, 64, 0), 0, None)
            for pipe in pipes:
                os.close(pipe)
            trials.close()


def tried(world: World, lines: list[str]) -> str:
    """Run each line in a directory of its own, all in one layer, and return the output."""
    (world.trials.temporary or Path()).joinpath("lines").write_text("\n".join(lines), "utf-8")
    script = """
    while IFS= read -r line; do
      directory=$(mktemp -d "$W/try.XXXXXX" 2>/dev/null || mktemp -d "$TMPDIR/try.XXXXXX" 2>/dev/null || echo "$W")
      (cd "$directory" && timeout -k 1 5 bash --noprofile --norc -c "$line") </dev/null 2>&1
      echo "TRIED"
    done < <(cat "$LINES")
    """
    return run_all(world, script)


def run_all(world: World, script: str) -> str:
    """Run a script in a new layer, compare what it stored with the secret, and return its output."""
    temporary = world.trials.temporary
    assert temporary is not None
    layer = world.trials.open("call")
    is_moved = isinstance(world.trials._walls, BubblewrapWalls)
    lines = "/tmp/lines" if is_moved else f"{temporary}/lines"
    ran = run_in(layer, script, {**world.variables, "LINES": lines}, timeout=280)
    layer.end()
    for top in (layer._directory, temporary):
        for path in top.rglob("*"):
            if path.is_file() and not path.is_symlink():
                path.chmod(0o600)
                assert SECRET.encode() not in path.read_bytes(), path
    layer.discard()
    return ran.text


def check(world: World, before: object, text: str) -> None:
    """Compare the outside with what it was."""
    assert world.victim.poll() is None, "a process outside was ended"
    assert world.state() == before
    assert world.received() == []
    assert SECRET not in text, text[max(0, text.index(SECRET) - 2000) :][:2500]


@pytest.mark.slow
def test_no_command_changes_reads_or_reaches_what_is_outside(world: World) -> None:
    assert len({*attempts.WRITES, *attempts.READS, *attempts.CONNECTIONS, *attempts.CALLS}) >= 300
    before = world.state()
    for lines in (attempts.WRITES, attempts.READS, attempts.CONNECTIONS):
        text = tried(world, lines)
        assert text.count("TRIED") >= len(lines) - 2, text[-2000:]
        check(world, before, text)


@pytest.mark.slow
def test_no_system_call_changes_reads_or_reaches_what_is_outside(world: World) -> None:
    before = world.state()
    (world.trials.temporary or Path()).joinpath("lines").write_text("\n".join(attempts.CALLS), "utf-8")
    (world.root / "calls.py").write_text(_CALLS, "utf-8")
    text = run_all(world, f'{sys.executable} calls.py < "$LINES"')
    (world.root / "calls.py").unlink()
    assert sum(text.count(f"{line} ") > 0 for line in attempts.CALLS) >= len(attempts.CALLS) - 2, text
    check(world, before, text)


def test_no_command_types_into_the_terminal_of_the_program(world: World, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    layer = world.trials.open("call")
    script = "import fcntl, os; [fcntl.ioctl(d, 0x5412, b'e') for d in (0, os.open('/dev/tty', 2))]"
    command = layer.walled((sys.executable, "-c", script), child_environment(os.environ, is_confined=True))
    run = (
        "import os, sys, fcntl, subprocess\nos.setsid()\nfcntl.ioctl(0, 0x540E, 0)\nos.execv(sys.argv[1], sys.argv[1:])"
    )
    done = subprocess.run(
        [sys.executable, "-c", run, *command.argv],
        env=command.environment,
        pass_fds=command.descriptors,
        stdin=theirs,
        capture_output=True,
        check=False,
        timeout=60,
    )
    layer.end()
    assert b"Error" in done.stderr
    assert not wait([theirs], 0)
    os.close(ours)
    os.close(theirs)
