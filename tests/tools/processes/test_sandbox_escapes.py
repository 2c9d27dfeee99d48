"""Attacks on the sandbox, written by hand: they try to change, read or reach what is outside (safety promise 10)."""

import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.tools.calls import call
from tui_agent.permissions.paths.protected_paths import ProtectedTree
from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.programs import find_program
from tui_agent.tools.bash_tool import BashTool
from tui_agent.tools.processes import sandbox
from tui_agent.tools.processes.sandbox import Sandbox, sandbox_problem
from tui_agent.tools.workspace import Workspace
from tui_agent.walls import visible_places

PROBLEM = sandbox_problem(Path.cwd())
pytestmark = pytest.mark.skipif(PROBLEM is not None, reason=f"no sandbox here: {PROBLEM}")

SECRET = "words-of-a-secret"
PYTHON = """python3 - <<'END'
import ctypes, fcntl, os, socket
libc = ctypes.CDLL(None, use_errno=True)
out, home, pid = os.environ["OUT"], os.environ["HOME"], int(os.environ["HOSTPID"])
def try_to(what, *arguments):
    try:
        print(what, arguments, "→", what(*arguments))
    except OSError as error:
        print("cannot", error)
{}
END"""
"""Attack in Python, for calls that no usual program makes."""


def in_python(text: str) -> str:
    return PYTHON.format(text)


@dataclass(frozen=True)
class World:
    """Everything that an attack must not change, beside a workspace."""

    bash: BashTool
    root: Path
    guarded: tuple[Path, ...]

    def state(self) -> dict[str, object]:
        """Return type, mode and content of everything guarded."""
        found: dict[str, object] = {}
        for top in self.guarded:
            for path in [top, *sorted(top.rglob("*"))]:
                status = path.lstat()
                content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
                found[str(path)] = (status.st_mode, status.st_ino, content)
        return found


@pytest.fixture
def world(workspace: Workspace, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(visible_places, "_HOMES", (str(tmp_path / "homes"),))
    out, home, other, ours = (tmp_path / name for name in ("out", "homes/me", "homes/other", "state"))
    for directory in (out, home / ".ssh", other, ours, root / ".git" / "hooks", root / "sub" / ".git", root / ".husky"):
        directory.mkdir(parents=True)
    # A directory of programs is visible, so that attacks have something outside to change.
    monkeypatch.setenv("PATH", str(out), prepend=os.pathsep)
    moved = tmp_path / "kube.yaml"
    for path in (home / ".ssh" / "id", home / ".netrc", other / "notes", ours / "journal", moved):
        path.write_text(SECRET, "utf-8")
    for path in (out / "canary", root / ".git" / "config", root / "sub" / ".git" / "config"):
        path.write_text("alive", "utf-8")
    (root / "link").symlink_to(out)
    with ExitStack() as held:
        server = held.enter_context(socket.create_server(("127.0.0.1", 0)))
        for name in (f"\0tui-agent-{os.getpid()}", f"{out}/s", f"{root}/s"):
            local = held.enter_context(socket.socket(socket.AF_UNIX))
            local.bind(name)
            local.listen()
        for name, value in {
            "HOME": home, "OUT": out, "OTHER": other, "OURS": ours,
            "KUBECONFIG": moved, "HOSTPID": os.getpid(), "PORT": server.getsockname()[1],
        }.items():  # fmt: skip
            monkeypatch.setenv(name, str(value))
        box = Sandbox(lambda place: ProtectedTree(place, (ours,)).places(), hidden=(ours,))
        bash = BashTool(workspace, is_read_only_command=lambda _: False, sandbox=box)
        guarded = (out, home, other, ours, root / ".git", root / ".husky", root / "sub" / ".git")
        yield World(bash, root, guarded)


WRITES = {
    "a path": "echo evil > $OUT/canary; touch $OUT/new /usr/new $HOME/new",
    "the parent directory": "cd ..; mkdir evil; mv work moved; touch out/new",
    "a link": "echo evil > link/canary; ln -s $OUT second; echo evil > second/new",
    "a hard link": "ln $OUT/canary hard && echo evil > hard; ln -P link/canary hard2; cp -l $OUT/canary hard3",
    "the attributes": (
        "chmod 777 $OUT/canary; touch -d 2001-01-01 $OUT/canary; chown 1:1 $OUT/canary; "
        "truncate -s0 $OUT/canary"
    ),
    "/proc/self/root": "echo evil > /proc/self/root$OUT/canary; echo evil > /proc/1/root$OUT/canary",
    "/proc/self/cwd": "echo evil > /proc/self/cwd/../out/canary; echo evil > /proc/1/cwd/.git/config",
    "descriptors": "for fd in /proc/*/fd/*; do echo evil > $fd/canary; echo evil > $fd/../out/canary; done 2>&1",
    "a host process's root": "echo evil > /proc/$HOSTPID/root$OUT/canary; echo evil > /proc/$HOSTPID/cwd/new",
    "a remount": "mount -o remount,rw /; mount -o remount,rw,bind /; echo evil > $OUT/canary",
    "a bind mount": "mkdir m; mount --bind $OUT m; echo evil > m/canary; mount --rbind / m; echo evil > m$OUT/canary",
    "a user namespace": "unshare -Urm bash -c 'mount -o remount,rw,bind /; umount -l /; echo evil > $OUT/canary'",
    "a namespace and a bind": (
        "mkdir m; unshare -Urm bash -c 'mount --bind $OUT m; mount -o remount,rw,bind m; "
        "echo x > m/canary'"
    ),
    "an overlay": (
        "mkdir u w m; unshare -Urm bash -c 'mount -t overlay o -olowerdir=$OUT,upperdir=u,workdir=w m; "
        "echo x>m/canary'"
    ),
    "chroot": (
        "mkdir m; chroot / bash -c 'echo evil > $OUT/canary'; "
        "unshare -Ur chroot /proc/1/root bash -c 'echo x > $OUT/canary'"
    ),
    "nsenter": (
        "nsenter -t 1 -m -U bash -c 'echo x > $OUT/canary'; "
        "nsenter -t $HOSTPID -m bash -c 'echo x > $OUT/canary'"
    ),
    "pivot_root": (
        "mkdir -p m/old; unshare -Urm bash -c 'mount --bind m m; pivot_root m m/old; "
        "echo x > /old$OUT/canary'"
    ),
    "open_by_handle_at": in_python("""
buffer = ctypes.create_string_buffer(b"\\x80\\0\\0\\0" + b"\\0" * 200, 204)
mount = ctypes.c_int()
print(libc.name_to_handle_at(-100, (out + "/canary").encode(), buffer, ctypes.byref(mount), 0))
fd = libc.open_by_handle_at(os.open(".", os.O_RDONLY), buffer, os.O_WRONLY)
try_to(os.write, fd, b"evil")"""),
    "a device": (
        "mknod b b 8 0; mknod m c 1 1; cat b m; dd if=/dev/zero of=/dev/sda count=1; echo x > /dev/mem; "
        "ls -l /dev"
    ),
    "system controls": (
        "echo '|/bin/touch $OUT/new' > /proc/sys/kernel/core_pattern; echo b > /proc/sysrq-trigger; "
        "mkdir /sys/fs/cgroup/evil"
    ),
    "a setuid program": (
        "cp /bin/bash b; chmod 4755 b; ./b -p -c 'echo x > $OUT/canary'; su -c 'echo x > $OUT/canary'"
    ),
    "the first process": in_python("""
for number in (1, os.getppid(), pid):
    print(libc.ptrace(16, number, 0, 0), ctypes.get_errno())
    try_to(lambda: open(f"/proc/{number}/mem", "r+b").write(b"evil"))
    try_to(os.setns, os.open("/proc/1/ns/mnt", os.O_RDONLY), 0)
open_again = os.open("/proc/1/root", os.O_RDONLY)
try_to(os.open, out[1:] + "/canary", os.O_WRONLY, 0o600)"""),
}  # fmt: skip

PROTECTED = {
    "a path": "echo evil > .git/config; echo evil > .git/hooks/pre-commit; echo evil > sub/.git/config",
    "an absent name": (
        "mkdir .tui-agent node_modules; echo evil > .tui-agent/config.toml; ln -s x node_modules; "
        "touch .tui-agent; echo evil > .mcp.json; mkdir -p .claude/hooks .agents; echo evil > .claude/settings.json; "
        "rm -rf .mcp.json .claude; mv .claude c; ln -sf out .claude; ln -sf link/canary .mcp.json"
    ),
    "an archive with absent names": (
        "mkdir -p t/.claude t/.agents/skills; for n in .claude/settings.json .agents/skills/x .mcp.json; "
        "do echo evil > t/$n; done; tar -C t -cf t.tar .; tar -xf t.tar; cp -rT t .; tar -xf t.tar --overwrite "
        "--unlink-first --recursive-unlink"
    ),
    "a rename": "mv .git g; mkdir -p .git/hooks; mv sub/.git g; mkdir -p sub/.git; mv .husky h",
    "an exchange": in_python("""
os.mkdir("mine")
for name in (b".git", b".husky", b"sub/.git"):
    print(libc.renameat2(-100, name, -100, b"mine", 2), ctypes.get_errno())"""),
    "a deletion": "rm -rf .git .husky sub/.git; rmdir .husky; unlink .git/config; rm -rf sub",
    "a link to it": (
        "ln -s .git l; echo evil > l/config; ln .git/config hard && echo evil > hard; "
        "cp -l .git/config c"
    ),
    "an archive": (
        "mkdir -p t/.git/hooks; echo evil > t/.git/hooks/post-checkout; tar -C t -cf t.tar .; "
        "tar -xf t.tar; cp -rT t ."
    ),
    "a mount": "umount .git; umount -l .git; mount -o remount,rw,bind .git; mount -t tmpfs t .git; touch .git/x",
    "a namespace": (
        "unshare -Urm bash -c 'umount -l .git; mount -o remount,rw,bind .git; mount -o remount,rw .git; "
        "touch .git/x'"
    ),
    "a bind of the workspace": (
        "mkdir m; unshare -Urm bash -c 'mount --bind . m; echo x > m/.git/config; mount --rbind . m; "
        "echo x > m/.git/config'"
    ),
    "a descriptor": (
        "cd .git; cd hooks; echo evil > pre-commit; echo evil > /proc/self/cwd/x; exec 9< ../config; "
        "echo x > /dev/fd/9"
    ),
    "git": "git init -q; git config core.hooksPath evil; git -C sub config a.b c",
    "attributes": "chmod -R 777 .git; chattr -i .git; setfattr -n user.x -v y .git; touch -d 2001-01-01 .git/config",
}  # fmt: skip

READS = {
    "a path": "cat $HOME/.ssh/id $HOME/.netrc $OTHER/notes $OURS/journal $KUBECONFIG; grep -r . $HOME $OTHER $OURS",
    "a search": "grep -rs words-of $HOME/.. $OUT/..; find $OUT/.. -type f -exec cat {} +",
    "a root of a process": "cat /proc/{self,1,$HOSTPID}/root$HOME/.ssh/id; ls /proc/1/root$HOME/.ssh",
    "a link": (
        "ln -s $HOME/.ssh s; cat s/id; ln $HOME/.netrc n; cat n; cp -r $HOME/. copy; "
        "cat copy/.ssh/id copy/.netrc"
    ),
    "a mount": (
        "umount -l $HOME/.ssh $OTHER $OURS; cat $HOME/.ssh/id $OTHER/notes; mkdir m; mount --bind / m; "
        "cat m$HOME/.ssh/id"
    ),
    "a namespace": (
        "unshare -Urm bash -c 'umount -l $HOME/.ssh; umount -l $HOME/.netrc; umount -l ${OTHER%/*}; "
        "cat $HOME/.ssh/id $HOME/.netrc $OTHER/notes'"
    ),
    "a bind without what is mounted": "mkdir m; unshare -Urm bash -c 'mount --bind $HOME m; cat m/.ssh/id m/.netrc'",
    "the environment of the host": "cat /proc/$HOSTPID/environ /proc/$HOSTPID/cmdline; ps aux",
    "a handle": in_python("""
for name in (home + "/.ssh", home):
    buffer = ctypes.create_string_buffer(b"\\x80\\0\\0\\0" + b"\\0" * 200, 204)
    mount = ctypes.c_int()
    libc.name_to_handle_at(-100, name.encode(), buffer, ctypes.byref(mount), 0)
    fd = libc.open_by_handle_at(os.open("/", os.O_RDONLY), buffer, os.O_RDONLY)
    try_to(os.listdir, fd)"""),
}  # fmt: skip

CONNECTIONS = {
    "loopback": "exec 3<>/dev/tcp/127.0.0.1/$PORT && echo reached",
    "an abstract socket": in_python("""
try_to(socket.socket(socket.AF_UNIX).connect, "\\0tui-agent-" + str(pid))"""),
    "a socket outside": in_python("""
try_to(socket.socket(socket.AF_UNIX).connect, out + "/s")"""),
    "a socket in the workspace": in_python("""
try_to(socket.socket(socket.AF_UNIX).connect, "s")
try_to(os.rename, "s", "t")"""),
    "a socket behind a root": "ln -s $OUT/s link2; " + in_python("""
for name in ("link2", "/proc/self/root" + out + "/s", "link/s"):
    try_to(socket.socket(socket.AF_UNIX).connect, name)"""),
    "a new namespace": "unshare -Urn bash -c 'exec 3<>/dev/tcp/127.0.0.1/$PORT && echo reached'",
    "the host's namespace": "nsenter -t 1 -n bash -c 'exec 3<>/dev/tcp/127.0.0.1/$PORT && echo reached'",
    "packets": in_python("""
try_to(socket.socket, socket.AF_PACKET, socket.SOCK_RAW, 3)
try_to(socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto, b"x", ("192.0.2.1", 53))
print("reached" if "eth0" in dict((name, number) for number, name in socket.if_nameindex()) else "")"""),
}  # fmt: skip


@pytest.mark.parametrize("attack", [*WRITES.values(), *PROTECTED.values()], ids=[*WRITES, *PROTECTED])
async def test_nothing_guarded_changes(world: World, attack: str) -> None:
    before = world.state()

    result = await call(world.bash, command=attack, timeout=20)

    assert world.state() == before, result.text
    assert {"link", "sub", ".git"} <= set(os.listdir(world.root)), "the workspace itself is in its place"
    assert not {".tui-agent", "node_modules", ".mcp.json", ".claude", ".agents"} & set(os.listdir(world.root))


@pytest.mark.parametrize("attack", READS.values(), ids=READS)
async def test_no_secret_is_read(world: World, attack: str) -> None:
    result = await call(world.bash, command=attack, timeout=20)

    assert SECRET not in result.text
    assert not [path for path in world.root.rglob("*") if path.is_file() and SECRET in path.read_text("utf-8")]


BWRAP = find_program("bwrap", Path.cwd())


@pytest.mark.skipif(
    BWRAP is None or not sandbox._takes_descriptors(BWRAP, 0), reason="this bubblewrap binds paths only"
)
@pytest.mark.parametrize("is_exchanged_later", [True, False])
async def test_a_directory_exchanged_for_a_link_while_the_sandbox_is_set_up_shows_nothing(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_exchanged_later: bool
) -> None:
    hidden = tmp_path / "homes" / "me" / ".ssh"
    (hidden / ".git").mkdir()
    (hidden / ".git" / "key").write_text(SECRET, "utf-8")

    def exchange() -> None:
        (world.root / "sub").rename(world.root / "moved")
        (world.root / "sub").symlink_to(os.path.relpath(hidden, world.root))  # An absolute one leads nowhere.

    def open_all(places: Iterable[Path], opened: dict[Path, int]) -> None:
        if not is_exchanged_later:
            exchange()
        really_open(places, opened)
        exchange()

    really_open = sandbox._open_all
    monkeypatch.setattr(sandbox, "_open_all", open_all)

    try:
        text = (await call(world.bash, command="cat sub/.git/key moved/.git/key $HOME/.ssh/.git/key")).text
    except ToolError as error:
        text = str(error)

    assert SECRET not in text
    assert ("it was replaced while the sandbox was set up" in text) is not is_exchanged_later


@pytest.mark.parametrize("attack", CONNECTIONS.values(), ids=CONNECTIONS)
async def test_nothing_is_reached(world: World, attack: str) -> None:
    result = await call(world.bash, command=attack, timeout=20)

    assert "reached" not in result.text
    assert "→" not in result.text, "no call succeeded"


@pytest.mark.parametrize(
    "attack",
    [
        "setsid nohup bash -c 'sleep 0.5; touch survived' >/dev/null 2>&1 & disown",
        "(setsid bash -c 'trap \"\" TERM HUP; (sleep 0.5; touch survived) &' &)",
        "python3 -c 'import os\nif not os.fork():\n os.setsid()\n"
        " if not os.fork(): os.system(\"sleep 0.5; touch survived\")'",
        "unshare -Urpf --mount-proc bash -c 'setsid bash -c \"sleep 0.5; touch survived\" &'",
        "kill -9 1; kill -9 -1; (sleep 0.5; touch survived) & kill -9 $PPID",
    ],
)  # fmt: skip
async def test_nothing_survives_the_command(world: World, attack: str) -> None:
    result = await call(world.bash, command=f"touch began; {attack}", timeout=120)
    others = await call(world.bash, command="sleep 0.7", timeout=120)

    assert not others.is_error
    assert (world.root / "began").exists()
    assert not (world.root / "survived").exists()
    assert (
        attack.startswith(("kill", "unshare"))
        or "[stopped with the sandbox, because they were still running" in result.text
    )
