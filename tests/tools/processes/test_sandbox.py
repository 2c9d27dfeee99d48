"""Commands under bubblewrap: their reach, their end, and that nothing runs if the sandbox does not work.

Without bubblewrap, the tests of its options and of the refusal still run.
"""

import asyncio
import os
import resource
import shutil
import socket
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.tools.calls import Recorded, call, details_of, eventually
from tests.tools.processes.test_process import lives
from tui_agent.permissions.paths.protected_paths import ProtectedTree
from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.tool import CommandSubject, ToolResult
from tui_agent.tools.bash_tool import BashTool
from tui_agent.tools.processes import process
from tui_agent.tools.processes.child_environment import withheld_variables
from tui_agent.tools.processes.sandbox import Sandbox, _close_all, _open_all, sandbox_problem
from tui_agent.tools.workspace import Workspace

LASTING = f"sleep 1000.{os.getpid()}"
"""A command line that no other test has."""
PROBLEM = sandbox_problem(Path.cwd())
real = pytest.mark.skipif(PROBLEM is not None, reason=f"no sandbox here: {PROBLEM}")


STAND_IN = """[ "$1" = --help ] && exit
exec bash -c '
printf "%s\\0" "$@" > "${0%/*}/given"
while [ "$1" != -- ]; do [ "$1" = --json-status-fd ] && status=$2; shift; done
shift; "$@"; code=$?
echo "{ \\"exit-code\\": $code }" >&"$status"; exit "$code"' "$0" "$@"
"""
"""Replacement for bubblewrap: it records its arguments, runs the command unconfined, and reports its end."""


@pytest.fixture(autouse=True)
def no_odd_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands in the sandbox lack none of this environment's variables: no result has a note on them."""
    for name in withheld_variables(os.environ, is_confined=True):
        monkeypatch.delenv(name)


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    """Directory of tui-agent with settings and sessions, and a saved output among them."""
    directory = tmp_path / "state"
    (directory / "kept").mkdir(parents=True)
    (directory / "secret").write_text("secret words", "utf-8")
    (directory / "kept" / "output.txt").write_text("kept words", "utf-8")
    return directory


@pytest.fixture
def sandbox(ours: Path) -> Sandbox:
    return Sandbox(lambda root: ProtectedTree(root, (ours,)).places(), hidden=(ours,), shown=(ours / "kept",))


@pytest.fixture
def bash(workspace: Workspace, sandbox: Sandbox) -> BashTool:
    return BashTool(workspace, is_read_only_command=lambda command: command == "cat a", sandbox=sandbox)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only directory on PATH, with bash and without bwrap."""
    directory = tmp_path / "programs"
    directory.mkdir()
    for name in ("bash", "touch"):
        (directory / name).symlink_to(shutil.which(name) or "")
    monkeypatch.setenv("PATH", str(directory))
    return directory


def fake_bwrap(programs: Path, script: str) -> None:
    (programs / "bwrap").write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    (programs / "bwrap").chmod(0o755)


# --- the options for bubblewrap ---------------------------------------------------------------------------------------


def test_the_options_remove_everything_that_is_not_granted(tmp_path: Path, ours: Path, sandbox: Sandbox) -> None:
    root = tmp_path / "work"

    options = " ".join(sandbox.arguments(root, (root / ".git",), "/usr/bin:/run/tools/bin:relative"))

    for wanted in ("--unshare-pid --", "--die-with-parent", "--new-session", "--cap-drop ALL", "--unshare-net"):
        assert wanted in options
    steps = [
        "--remount-ro /proc", "--tmpfs /tmp", "--ro-bind-try /usr /usr", f"--bind {root} {root}",
        f"--ro-bind {root}/.git {root}/.git", f"--ro-bind-try {ours}/kept {ours}/kept",
        f"--remount-ro / --chdir {root}",
    ]  # fmt: skip
    places = [options.index(step) for step in steps]
    assert places == sorted(places), "what is said later covers what was said before"
    assert "--ro-bind / /" not in options
    assert f" {ours} " not in options, "what is absent needs no cover"


def test_the_network_is_there_only_if_allowed(tmp_path: Path) -> None:
    assert "--unshare-net" not in Sandbox(lambda _: (), network=True).arguments(tmp_path, (), "")


def test_directories_of_tui_agent_are_hidden_in_the_workspace_and_never_writable(ours: Path) -> None:
    inside = " ".join(Sandbox(lambda _: (), hidden=(ours,)).arguments(ours.parent, (), ""))
    within = " ".join(Sandbox(lambda _: (), hidden=(ours,)).arguments(ours / "kept", (), ""))

    assert inside.index(f"--bind {ours.parent}") < inside.index(f"--tmpfs {ours}")
    assert f"--ro-bind {ours}/kept {ours}/kept" in within


# --- systems without a working sandbox --------------------------------------------------------------------------------


async def test_without_bubblewrap_nothing_runs(bash: BashTool, root: Path, programs: Path) -> None:
    with pytest.raises(ToolError, match=r"not run.*bwrap is not on PATH.*Install bubblewrap.*\"off\""):
        await call(bash, command="touch ran")
    assert os.listdir(root) == []
    assert sandbox_problem(root) == "bwrap is not installed"


async def test_a_refusal_of_the_system_is_reported_and_nothing_runs(bash: BashTool, root: Path, programs: Path) -> None:
    fake_bwrap(programs, "echo 'bwrap: No permissions to create new namespace' >&2; exit 1")

    with pytest.raises(ToolError, match=r"not run.*No permissions to create new namespace"):
        await call(bash, command="touch ran")
    assert os.listdir(root) == []
    reason = "the system forbids user namespaces (bwrap: No permissions to create new namespace)"
    assert sandbox_problem(root) == reason


def test_the_sandbox_is_tested_once_per_process(root: Path, programs: Path) -> None:
    fake_bwrap(programs, "echo x >> ${0%/*}/tested; exit 0")

    assert [sandbox_problem(root) for _ in range(3)] == [None, None, None]
    assert (programs / "tested").read_text("utf-8") == "x\n"


async def test_where_the_sandbox_is_for_single_commands_its_failure_offers_to_leave_it(
    bash: BashTool, workspace: Workspace, sandbox: Sandbox, programs: Path
) -> None:
    recorded = Recorded()
    recorded.context.is_confined = True
    bash = BashTool(workspace, is_read_only_command=lambda _: False, sandbox=replace(sandbox, is_for_all=False))

    with pytest.raises(ToolError, match=r"not run: the sandbox does not work here.*repeat the call with `sandbox: f"):
        await call(bash, recorded, command="true")


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("", "bwrap is not on PATH outside the workspace"),
        ("echo 'bwrap: No permissions' >&2; exit 1", "bwrap: No permissions"),
        ('case "$*" in *json-status*) exit 1;; esac', ""),
        ("ln -s x .git; exit 0", "is a symbolic link"),
    ],
    ids=["missing", "forbidden", "only this time", "a link"],
)
async def test_a_sandbox_that_works_no_more_is_reported(
    workspace: Workspace, sandbox: Sandbox, programs: Path, root: Path, script: str, problem: str
) -> None:
    reported: list[str] = []
    if "ln -s" in script:
        (root / ".git").symlink_to("x")
    if script:
        fake_bwrap(programs, script)
    chosen = replace(sandbox, is_for_all=False, report_problem=reported.append)
    bash = BashTool(workspace, is_read_only_command=lambda _: False, sandbox=chosen)
    recorded = Recorded()
    recorded.context.is_confined = True

    with pytest.raises(ToolError, match=r"not run: the sandbox does not work here: .*repeat the call"):
        await call(bash, recorded, command="true")

    assert [problem in reason for reason in reported] == ([True] if problem else [])


async def test_a_workspace_that_is_too_large_is_reported_and_offers_to_leave(
    workspace: Workspace, programs: Path
) -> None:
    def too_large(_: Path) -> tuple[Path, ...]:
        raise ToolError("/w is too large for the sandbox. Work in a subdirectory.")

    fake_bwrap(programs, "exit 0")
    reported: list[str] = []
    sandbox = Sandbox(too_large, report_problem=reported.append)
    bash = BashTool(workspace, is_read_only_command=lambda _: False, sandbox=sandbox)

    with pytest.raises(ToolError, match=r"not run.*is too large .*directory\. To run it outside, repeat the call with"):
        await call(bash, command="true")
    assert reported == ["/w is too large for the sandbox. Work in a subdirectory"]


def test_more_protected_paths_than_open_files_are_a_reason_to_leave(tmp_path: Path) -> None:
    highest = max(map(int, os.listdir("/proc/self/fd")))
    places = [tmp_path / str(number) for number in range(highest + 40)]
    for place in places:
        place.mkdir()
    opened: dict[Path, int] = {}
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 20, hard))
    try:
        with pytest.raises(ToolError, match="more protected paths"):
            _open_all(places, opened)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        _close_all(opened)
    assert opened == {}


async def test_a_bubblewrap_inside_the_workspace_is_not_used(bash: BashTool, root: Path, programs: Path) -> None:
    fake_bwrap(root, "touch ran")
    (programs / "bwrap").symlink_to(root / "bwrap")

    with pytest.raises(ToolError, match="bwrap is not on PATH outside"):
        await call(bash, command="true")


async def test_a_protected_link_at_the_top_is_refused(bash: BashTool, root: Path, programs: Path) -> None:
    fake_bwrap(programs, "exit 0")
    (root / ".git").symlink_to("elsewhere")

    with pytest.raises(ToolError, match=r"\.git is a symbolic link"):
        await call(bash, command="true")


async def test_a_working_directory_that_contains_the_system_is_refused(tmp_path: Path, programs: Path) -> None:
    fake_bwrap(programs, "exit 0")
    workspace = Workspace(Path("/var"), spool_dir=tmp_path)
    bash = BashTool(workspace, is_read_only_command=lambda _: False, sandbox=Sandbox(lambda _: ()))

    with pytest.raises(ToolError, match="does not work with /var as the working directory"):
        await call(bash, command="true")


@pytest.mark.parametrize(
    ("command", "text"),
    [("echo out; echo err >&2; exit 1", "out\nerr\n[exit code 1]"), ("cat a", "words")],
    ids=["any", "read-only"],
)
async def test_every_command_runs_through_bubblewrap_and_keeps_its_exit_code(
    bash: BashTool, root: Path, programs: Path, command: str, text: str
) -> None:
    (programs / "cat").symlink_to(shutil.which("cat", path=os.defpath) or "")
    fake_bwrap(programs, STAND_IN)
    (root / "a").write_text("words", "utf-8")

    result = await call(bash, command=command)

    given = (programs / "given").read_text("utf-8").split("\0")
    assert {"--unshare-net", "--die-with-parent", "--json-status-fd"} <= set(given[: given.index("--")])
    assert Path(given[given.index("--") + 1]).name == "bash"
    assert not any(command in word for word in given), "no argument of any process has the text"
    assert result.text == text
    assert details_of(result)["sandboxed"] is True


async def test_a_call_outside_the_sandbox_says_so_and_only_where_there_is_one(
    workspace: Workspace, bash: BashTool
) -> None:
    preview = await bash.preview({"command": "make", "sandbox": False})

    assert preview is not None
    assert preview.note == "The model asks to run this outside the sandbox, with your own rights."
    assert bash.subject({"command": "make", "sandbox": False}) == CommandSubject("make", leaves_sandbox=True)
    assert bash.subject({"command": "make"}) == CommandSubject("make")
    assert "in a sandbox" in bash.spec.description
    bare = BashTool(workspace, is_read_only_command=lambda _: False)
    assert "sandbox" not in str(bare.spec)
    # A call of an earlier run, or one that `permissions check` reads, may have the argument all the same.
    assert bare.parse({"command": "make", "sandbox": False}).command == "make"
    without = await bare.preview({"command": "make", "sandbox": False})
    assert without is not None
    assert without.note == ""


@pytest.mark.parametrize(
    ("is_for_all", "is_confined", "arguments", "is_sandboxed"),
    [
        (True, False, {}, True),
        (True, False, {"sandbox": False}, False),
        (False, False, {}, False),
        (False, True, {}, True),
        (True, True, {"sandbox": False}, True),
    ],
    ids=["all", "approved outside", "auto", "confined by the policy", "the policy wins"],
)
async def test_the_policy_decides_which_commands_run_in_the_sandbox(
    workspace: Workspace,
    sandbox: Sandbox,
    programs: Path,
    is_for_all: bool,
    is_confined: bool,
    arguments: JsonObject,
    is_sandboxed: bool,
) -> None:
    fake_bwrap(programs, STAND_IN)
    chosen = replace(sandbox, is_for_all=is_for_all)
    bash = BashTool(workspace, is_read_only_command=lambda _: False, sandbox=chosen)
    recorded = Recorded()
    recorded.context.is_confined = is_confined

    result = await call(bash, recorded, command="true", **arguments)

    assert details_of(result)["sandboxed"] is is_sandboxed
    assert (programs / "given").exists() is is_sandboxed


async def test_a_confined_call_never_runs_without_a_sandbox(workspace: Workspace, root: Path) -> None:
    bash = BashTool(workspace, is_read_only_command=lambda _: False)
    recorded = Recorded()
    recorded.context.is_confined = True

    with pytest.raises(ToolError, match="may only run in a sandbox"):
        await call(bash, recorded, command="touch ran")
    assert os.listdir(root) == []


# --- the reach of a command -------------------------------------------------------------------------------------------


@real
async def test_only_the_workspace_is_writable(
    bash: BashTool, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A home as most users have it, outside /tmp.
    monkeypatch.setenv("HOME", "/homes/me")
    places = "/usr/out /out /homes/me/out ~/.gitconfig /etc/out /proc/self/comm"

    result = await call(bash, command=f"echo a > a; touch {tmp_path}/out {places}; ls {tmp_path}")

    assert (root / "a").read_text("utf-8") == "a\n"
    assert not (tmp_path / "out").exists()
    assert result.text.count("Read-only file system") == len(places.split()), result.text
    assert details_of(result)["sandboxed"] is True


@real
@pytest.mark.parametrize("home", ["/usr/share/me", "/usr", "/dev/null", "/nonexistent", "/", "relative"])
async def test_commands_run_with_any_home(bash: BashTool, monkeypatch: pytest.MonkeyPatch, home: str) -> None:
    monkeypatch.setenv("HOME", home)

    assert (await call(bash, command="echo fine")).text == "fine"


@real
async def test_protected_paths_stay_even_if_they_do_not_exist(bash: BashTool, root: Path) -> None:
    (root / "sub" / "node_modules").mkdir(parents=True)
    command = """python3 - <<'END'
import os
for name in (".git", ".git/hooks", ".husky/x", ".tui-agent/config.toml", "node_modules/x", "sub/node_modules/x"):
    try:
        os.mkdir(name)
    except OSError as error:
        print(name, error.strerror)
for name in (".git", "sub/node_modules"):
    try:
        os.rename(name, "moved")
    except OSError as error:
        print(name, error.strerror)
END"""

    result = await call(bash, command=command)

    assert result.text.count("Read-only file system") == 5, result.text
    assert result.text.count("busy") == 2, result.text
    assert os.listdir(root) == ["sub"]
    assert os.listdir(root / "sub" / "node_modules") == []


@real
async def test_plain_git_commands_record_changes_and_nothing_else_writes_the_repository(
    bash: BashTool, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{part}_NAME", "x")
        monkeypatch.setenv(f"GIT_{part}_EMAIL", "x@example.org")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)  # noqa: ASYNC221
    hook = root / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(
        "for f in hooks/evil config info/attributes objects/info/alternates worktrees/x modules/x; "
        "do echo evil >> .git/$f; done; mv .git other; rm -rf .git/hooks; mv .git/hooks .git/h\nexit 0\n"
    )
    hook.write_text(f"#!/bin/sh\n{hook.read_text()}")
    hook.chmod(0o755)
    (root / "a").write_text("a")
    config = (root / ".git" / "config").read_bytes()

    done = await call(bash, command="git add -A && git commit -q -m 'Add (a); #1'")
    others = [await call(bash, command=f"{one} git commit -q --allow-empty -m b") for one in ("true &&", "x=1", "$x")]

    log = await call(bash, command="git log --format=%s")
    assert (log.text, done.is_error) == ("Add (a); #1", False), done.text
    assert all("Read-only file system" in other.text for other in others)
    assert [(root / ".git" / "config").read_bytes(), hook.exists()] == [config, True]
    made = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() and b"evil" in path.read_bytes()}
    assert made == {".git/hooks/pre-commit"}
    assert not {"modules", "worktrees"} & set(os.listdir(root / ".git")), "no placeholder is left"


@real
async def test_files_of_tui_agent_are_hidden_except_saved_output(bash: BashTool, ours: Path) -> None:
    result = await call(
        bash, command=f"cat {ours}/secret; cat {ours}/kept/output.txt; touch {ours}/new {ours}/kept/new"
    )

    assert "secret words" not in result.text
    assert "kept words" in result.text
    assert sorted(os.listdir(ours)) == ["kept", "secret"]
    assert os.listdir(ours / "kept") == ["output.txt"]


@real
async def test_no_network_and_no_sockets_of_others_are_reachable(bash: BashTool, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        name = f"tui-agent-test-{os.getpid()}"
        local.bind(f"\0{name}")
        local.listen()
        port = server.getsockname()[1]
        command = f"""python3 - <<'END'
import socket
for family, place in ((socket.AF_INET, ("127.0.0.1", {port})), (socket.AF_UNIX, "\\0{name}")):
    try:
        socket.socket(family).connect(place)
    except OSError as error:
        print("cannot", error)
END"""
        assert (await call(bash, command=command)).text.count("cannot") == 2


@real
async def test_other_processes_are_invisible_and_no_descriptor_is_inherited(bash: BashTool) -> None:
    result = await call(bash, command="ls /proc/self/fd; echo; for one in /proc/[0-9]*; do echo ${one##*/}; done")

    descriptors, processes = result.text.split("\n\n")
    assert descriptors.split() == ["0", "1", "2", "3"], "the last is the directory that is listed"
    assert len(processes.split()) < 6
    assert set(processes.split()) <= set("123456789")


@real
async def test_a_read_only_command_runs_in_the_sandbox_too(bash: BashTool, root: Path) -> None:
    (root / "a").write_text("words", "utf-8")

    assert details_of(await call(bash, command="cat a"))["sandboxed"] is True


# --- a command that the sandbox keeps from its work -------------------------------------------------------------------


@real
@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("touch /usr/new", "only the working directory is writable"),
        ("echo x > .git/config", "no protected name in it"),
        ("mkdir -p repo/.git; mv repo other", ""),
        ("mv .git other", "cannot be moved"),
        ("python3 -c 'import socket; socket.getaddrinfo(\"example.org\", 80)'", "there is no network"),
        ("unshare -m true", "no privileges"),
        ("exec 3<>/dev/tcp/127.0.0.1/9", "there is no network"),
        ("cat {outside}/secret", "only programs, tools and caches are there"),
        ("cat {outside}/nothing /nowhere/x", ""),
        ("echo no network >&2; exit 3", ""),
        ("printf 'exit 1' > t.sh; sh t.sh", ""),
    ],
)
@pytest.mark.parametrize("is_for_all", [True, False])
async def test_the_result_says_what_the_sandbox_refused_and_how_to_leave_it(
    workspace: Workspace, sandbox: Sandbox, ours: Path, command: str, reason: str, is_for_all: bool
) -> None:
    bash = BashTool(workspace, is_read_only_command=lambda _: False, sandbox=replace(sandbox, is_for_all=is_for_all))
    recorded = Recorded()
    recorded.context.is_confined = True

    result = await call(bash, recorded, command=command.replace("{outside}", str(ours)))

    details = details_of(result)
    assert reason in str(details["sandbox_refused"])
    assert bool(details["sandbox_refused"]) is bool(reason)
    assert ("[the sandbox refused this: " in result.text) is bool(reason)
    assert ("`sandbox: false`" in result.text) is bool(reason)
    if reason:
        assert "repeat the call with `sandbox: false`, which asks the user." in result.text
        assert "the sandbox refused it: " in str(details["outcome"])


# --- the end of a command ---------------------------------------------------------------------------------------------


@real
async def test_output_and_exit_code_come_from_the_command(bash: BashTool) -> None:
    recorded = Recorded()

    result = await call(bash, recorded, command="echo out; echo err >&2; exit 1")

    assert recorded.output == "out\nerr\n"
    assert result.text == "out\nerr\n[exit code 1]"
    assert details_of(result)["exit_code"] == 1


@real
async def test_a_command_has_time_to_clean_up_before_it_is_killed(
    bash: BashTool, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "GRACE", 30.0)

    result = await call_until(root / "up", bash, f"trap 'echo tidy > tidy; exit 0' TERM; touch up; {LASTING} & wait")

    assert details_of(result)["cancelled"] is True
    assert (root / "tidy").exists()
    assert not _sleepers()


@real
async def test_a_command_that_takes_too_long_is_stopped(bash: BashTool) -> None:
    result = await call(bash, command="trap '' TERM; while :; do sleep 0.05; done", timeout=0.3)

    assert details_of(result)["timed_out"] is True


@real
async def test_a_cancelled_call_leaves_no_process_and_no_placeholder(bash: BashTool, root: Path) -> None:
    away = f"(setsid env -i bash -c 'touch inner; exec {LASTING}' &)"
    command = f"{away}; while [ ! -e inner ]; do :; done; touch up; {LASTING}"

    result = await call_until(root / "up", bash, command)

    assert details_of(result)["cancelled"] is True
    assert sorted(os.listdir(root)) == ["inner", "up"]
    assert await asyncio.to_thread(eventually, lambda: not _sleepers())


@real
async def test_concurrent_commands_protect_the_same_paths(bash: BashTool, root: Path) -> None:
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(call(bash, command=f"sleep 0.0{n}; touch .git/x; mkdir .git/y")) for n in range(6)]

    assert all(task.result().text.count("Read-only file system") == 2 for task in calls)
    assert os.listdir(root) == []


async def call_until(sign: Path, bash: BashTool, command: str) -> ToolResult:
    """Run a command and cancel it once a file exists."""
    recorded = Recorded()

    async def cancel() -> None:
        assert await asyncio.to_thread(eventually, sign.exists, 30)
        recorded.cancellation.cancel("enough")

    async with asyncio.TaskGroup() as group:
        group.create_task(cancel())
        return await call(bash, recorded, command=command)


def _sleepers() -> list[int]:
    """Return the commands of these tests that still run."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if line.split(b"\x00")[:2] == LASTING.encode().split() and lives(int(entry.name)):
                found.append(int(entry.name))
    return found
