"""Commands in a trial: what they change is in the layer only, and what they need is there (safety promise 10)."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.table import table
from tests.trial.ways import LANDLOCK, LAYERS, READ_ONLY, UNSHARE, Ran, made, run_in, tree_state, walls_of
from tui_agent.protocol.errors import ToolError
from tui_agent.trial import command_walls
from tui_agent.trial import trials as trials_module
from tui_agent.trial.command_walls import BubblewrapWalls, landlock_problem
from tui_agent.trial.confinement import covered_places
from tui_agent.trial.layer_files import is_same_file
from tui_agent.trial.layer_limits import LayerLimits
from tui_agent.trial.layer_storage import make_private, remove_tree
from tui_agent.trial.trials import Trials
from tui_agent.walls import landlock_launcher
from tui_agent.walls.bubblewrap import Bubblewrap

Made = tuple[Trials, Path, Callable[..., Ran]]


@pytest.fixture(params=LAYERS)
def trial(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Made]:
    yield from made(tmp_path, monkeypatch, request.param)


@pytest.fixture(params=(*LAYERS, *READ_ONLY))
def anywhere(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Made]:
    yield from made(tmp_path, monkeypatch, request.param)


def test_a_command_changes_its_layer_only(trial: Made) -> None:
    trials, root, run = trial
    (root / "sub").mkdir()
    for name in ("kept", "gone", "sub/file"):
        (root / name).write_text(name, "utf-8")
    before = tree_state(root)
    ran = run(
        "id -u; pwd; rm gone; echo more >> kept; mkdir d; echo x > d/x; mv sub/file .; rmdir sub; ln -s kept l; cat l"
    )
    assert ran.text.splitlines() == [str(os.geteuid()), str(root), "keptmore"]
    assert tree_state(root) == before
    upper = next(iter(ran.layer.roots)).upper
    assert sorted(os.listdir(upper)) == ["d", "file", "gone", "kept", "l", "sub"]
    assert trials.facts.backend == "overlay"


@pytest.mark.parametrize("way", [*READ_ONLY, LANDLOCK])
def test_walls_without_a_layer_change_nothing(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for trials, root, run in made(tmp_path, monkeypatch, way):
        (root / "kept").write_text("kept", "utf-8")
        os.mkfifo(root / "pipe")
        before = tree_state(root)
        ran = run(
            "cat kept; rm kept; echo x > new; chmod 777 kept; touch -d 2001-01-01 kept; ln kept $TMPDIR/hard; "
            "timeout 2 bash -c 'echo x > pipe'; echo tmp > $TMPDIR/x && cat $TMPDIR/x"
        )
        assert ran.text.startswith("kept")
        assert ran.text.endswith("tmp\n")
        assert tree_state(root) == before
        assert "can write in $TMPDIR only" in ran.layer.refused(ran.text)
        assert trials.facts.place == "read_only"
        assert ran.layer.changes().changes == ()
        assert run("cat $TMPDIR/x").text == "tmp\n"
        assert "there is no network" in ran.layer.refused(run("exec 3<>/dev/tcp/127.0.0.1/22").text)


def test_temporary_files_last_for_the_session_and_caches_for_the_project(anywhere: Made, tmp_path: Path) -> None:
    trials, root, run = anywhere
    run('echo one > /tmp/trial-x; echo two > /var/tmp/y; echo three > "$TMPDIR/z"; mkdir -p $XDG_CACHE_HOME/tool; '
        "echo four > $XDG_CACHE_HOME/tool/cached")  # fmt: skip
    assert run("cat /tmp/trial-x /var/tmp/y /tmp/z $XDG_CACHE_HOME/tool/cached").text == "one\ntwo\nthree\nfour\n"
    assert trials.temporary is not None
    assert (trials.temporary / "trial-x").read_text("utf-8") == "one\n"
    other = Trials(root, tmp_path / "state" / "trials", "two")
    assert run_in(other.open("call"), "ls /tmp; cat $XDG_CACHE_HOME/tool/cached").text.endswith("four\n")
    assert not Path("/tmp/trial-x").exists()
    other.close()


def test_there_is_a_loopback_and_no_other_network(anywhere: Made) -> None:
    _, _, run = anywhere
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        ran = run(f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached; python3 - <<'END'\n"
                  "import socket\ns = socket.create_server(('127.0.0.1', 0))\n"
                  "socket.create_connection(s.getsockname())\nprint('own')\nEND")  # fmt: skip
    assert "reached" not in ran.text
    assert ran.text.endswith("own\n")
    assert "there is no network" in ran.layer.refused(ran.text)


def test_a_process_that_outlives_the_command_is_ended(trial: Made) -> None:
    _, root, run = trial
    ran = run("(setsid nohup bash -c 'while :; do echo x >> late; done' &) >/dev/null 2>&1; sleep 0.1")
    ran.layer.end()
    late = ran.layer.roots[0].upper / "late"
    size = late.stat().st_size if late.exists() else 0
    assert run("true").code == 0
    assert (late.stat().st_size if late.exists() else 0) == size
    assert not (root / "late").exists()


def held_mounts() -> int:
    """Return the number of mount namespaces that this process holds open."""
    names = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
    return sum(os.path.islink(name) and os.readlink(name).startswith("mnt:") for name in names)


def test_the_end_of_a_command_does_not_wait_for_its_mounts(trial: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    trials, _, run = trial
    assert trials.facts.is_available
    later: list[Callable[[], None]] = []
    monkeypatch.setattr(trials._held, "later", later.append)

    layer = run("echo x > new; sleep 0.5").layer
    mounts = held_mounts()
    assert [change.path for change in layer.changes().changes] == ["new"]
    layer.discard()
    assert (mounts, len(later), layer.roots[0].upper.exists()) == (1, 2, True)

    for work in later:
        work()
    assert (held_mounts(), layer.roots[0].upper.exists()) == (0, False)


def test_a_layer_that_waits_survives_the_program_and_others_do_not(trial: Made, tmp_path: Path) -> None:
    trials, root, run = trial
    ran = run("echo x > new")
    ran.layer.record('{"text": "done"}')
    run("echo x > lost")
    # As after a kill: the lock is gone, and nothing was tidied up.
    os.close(trials._held._lock)
    trials._held._lock = -1
    other = Trials(root, tmp_path / "state" / "trials", "two")
    assert other.facts.backend == "overlay"
    assert os.listdir(tmp_path / "state/trials/sessions/one/layers") == [ran.layer.id]
    resumed = Trials(root, tmp_path / "state" / "trials", "one")
    layer, result = resumed.waiting("call") or pytest.fail("no layer waits")
    assert result == '{"text": "done"}'
    assert (layer.roots[0].upper / "new").read_text("utf-8") == "x\n"
    record = tmp_path / f"state/trials/sessions/one/layers/{layer.id}/record.json"
    assert record.stat().st_mode & 0o777 == 0o600
    layer.discard()
    layer.discard()
    assert resumed.waiting("call") is None
    resumed.close()
    other.close()
    assert os.listdir(tmp_path / "state/trials/sessions") == []


def test_two_programs_do_not_remove_the_layers_of_each_other(trial: Made, tmp_path: Path) -> None:
    trials, root, _ = trial
    layer = trials.open("call")
    same = Trials(root, tmp_path / "state" / "trials", "one")
    run_in(same.open("call"), "true")
    same.close()
    assert run_in(layer, "echo still > here; cat here").text == "still\n"


REFUSED = {
    'python3 -c \'import os; os.rename("sub", "moved")\'': "cannot be renamed",
    "touch /usr/x": "cannot write outside",
    "chown 1:1 file": "no owner can",
    "mount -t tmpfs t sub || echo Operation not permitted": "no privileges",
    "python3 -c 'import urllib.request as u; u.urlopen(\"http://192.0.2.1/\")'": "no network",
    "getent hosts example.com || curl -s https://example.com || echo 'curl: Could not resolve host'": "no network",
    "ls $HOSTHOME/notes": "only programs, tools and caches are there",
    "echo fatal: cannot lock: Value too large for defined data type": "another owner or group",
    "echo Cannot connect to the Docker daemon at unix:///run/docker.sock. Is the docker daemon running?": "sockets",
}
"""Commands that the walls refuse something, and words of what they say."""


def test_what_the_walls_refused_is_named(trial: Made, tmp_path: Path) -> None:
    _, root, run = trial
    (root / "sub").mkdir()
    (root / "sub" / "file").touch()
    (root / "file").touch()
    (tmp_path / "notes").touch()
    for script, words in REFUSED.items():
        ran = run(script, environment={"HOSTHOME": str(tmp_path)})
        assert words in ran.layer.refused(ran.text), (script, ran.text, ran.layer.refused(ran.text))
    assert run("true").layer.refused("FAILED (failures=1)\nassert 1 == 2") == ""


def test_programs_find_caches_and_no_network_in_their_variables(trial: Made, tmp_path: Path) -> None:
    trials, _, run = trial
    names = "XDG_CACHE_HOME PYTHONPYCACHEPREFIX MYPY_CACHE_DIR RUFF_CACHE_DIR UV_CACHE_DIR GOCACHE npm_config_cache"
    ran = run(f"for n in {names}; do mkdir -p ${{!n}} && touch ${{!n}}/x && echo ${{!n}}; done")
    assert len(set(ran.text.split())) == len(names.split())
    assert all(line.startswith("/var/cache/tui-agent/") for line in ran.text.split())
    offline = run("echo $npm_config_offline $PIP_NO_INDEX $UV_OFFLINE $CARGO_NET_OFFLINE $GOPROXY").text
    assert offline == "true 1 1 true off\n"
    # Modules of the workspace are compiled once for the project, and leave nothing beside them.
    ran = run("echo x=1 > module.py; python3 -c 'import module; print(module.__cached__)'")
    assert ran.text.startswith("/var/cache/tui-agent/pycache/")
    assert "TOKEN" not in run("env", environment={}).text
    with_network = Trials(trials._workspace, tmp_path / "state/trials", "two", network=True)
    assert run_in(with_network.open("call"), "echo $PIP_NO_INDEX$GOPROXY").text == "\n"
    with_network.close()


LIMITS = {
    "size": ("for n in 1 2 3 4 5 6 7 8 9; do head -c 9M /dev/zero > f$n; sleep 0.1; done; sleep 60", "16 MiB"),
    "a size in /tmp": ("for n in 1 2 3 4 5 6; do head -c 9M /dev/zero > /tmp/f$n; done; sleep 60", "16 MiB"),
    "files": ("for d in {1..50}; do mkdir $d; touch $d/{1..100}; done; sleep 60", "2,000"),
    "files in /var/tmp": (
        "for d in {1..50}; do mkdir /var/tmp/$d; touch /var/tmp/$d/{1..100}; done; sleep 60",
        "2,000",
    ),
}
"""Commands that exceed a limit, and the limit in the message."""


@pytest.mark.parametrize("way", LAYERS[:2])
@pytest.mark.parametrize("kind", LIMITS)
def test_a_command_that_exceeds_a_limit_ends(
    kind: str, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, words = LIMITS[kind]
    limits = LayerLimits(size=16 << 20, files=2_000, processes=500)
    for _, root, run in made(tmp_path, monkeypatch, way, limits=limits):
        ran = run(script)
        assert ran.code == 137
        assert words in ran.layer.changes().problem
        assert ran.layer.changes().changes == ()
        ran.layer.discard()
        assert not list(root.iterdir())


def test_a_fork_bomb_and_a_large_file_end_at_their_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = LayerLimits(size=16 << 20, files=2_000, processes=100)
    for _, _, run in made(tmp_path, monkeypatch, LAYERS[0], limits=limits):
        ran = run("for n in {1..400}; do sleep 60 & done; sleep 60")
        assert "limit of 100 processes" in ran.layer.changes().problem or "Resource temporarily" in ran.text
        assert run("true").code == 0
        ran = run("truncate -s 1G f; ulimit -c")
        assert "limit for the size of a file" in ran.layer.refused(ran.text)
        assert ran.text.endswith("\n0\n")


@pytest.mark.parametrize("is_root", [True, False])
def test_mounts_in_the_workspace_are_there_and_read_only(is_root: bool, tmp_path: Path) -> None:
    # The kernel lets no one but root mount a layer over another mount.
    ways = "" if is_root else "Trials._ways = lambda _: map(walls_of, ('overlay', 'read-only'))"
    root = tmp_path / "work"
    (root / "mounted here").mkdir(parents=True)
    script = f"""
import sys, os
from pathlib import Path
sys.path.insert(0, {str(Path.cwd())!r})
from tests.trial.ways import run_in, walls_of
from tui_agent.trial.trials import Trials
{ways}
(root := Path({str(root)!r}) / "mounted here").joinpath("file").write_text("there")
trials = Trials(root.parent, Path({str(tmp_path)!r}) / "state", "one")
script = "cat 'mounted here/file'; echo x > 'mounted here/new'; rm 'mounted here/file'; echo x > y"
ran = run_in(trials.open("call"), script)
assert ran.text.startswith("there"), ran.text
assert ran.text.count("Read-only file system") == 2 + (trials.facts.place == "read_only"), ran.text
assert os.listdir(root) == ["file"]
print(trials.facts.place, trials.facts.problem)
trials.close()
"""
    mount = 'mount -t tmpfs t "$1" && exec "$2" -c "$3"'
    argv = [*UNSHARE, "bash", "-c", mount, "-", str(root / "mounted here"), sys.executable, script]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)
    if is_root:
        assert done.stdout == "trial \n", done.stderr
    else:
        assert done.stdout.startswith("read_only"), done.stderr
        assert "mounted here is mounted inside the workspace" in done.stdout


@pytest.mark.parametrize("kind", ["subdirectory", "work tree", "submodule"])
def test_the_repository_around_the_workspace_is_covered(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top, other = tmp_path / "top", tmp_path / "other"
    settings = ["-c", "user.name=a", "-c", "user.email=b", "-c", "protocol.file.allow=always"]

    def git(place: Path, *arguments: str) -> str:
        argv = ["git", *settings, "-C", str(place), *arguments]
        return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout

    for place in (top, other):
        (place / "work").mkdir(parents=True)
        (place / "work" / "file").write_text("x", "utf-8")
        git(place, "init", "-q", "-b", "main")
        git(place, "add", "-A")
        git(place, "commit", "-qm", "one")
    root = top / "work"
    if kind == "work tree":
        git(top, "worktree", "add", "-q", str(root := tmp_path / "linked"))
    elif kind == "submodule":
        git(top, "submodule", "add", "-q", str(other), "inside")
        root = top / "inside"
    monkeypatch.setattr(Trials, "_ways", lambda _: iter([walls_of("overlay")]))
    trials = Trials(root, tmp_path / "state", "one")
    before = tree_state(tmp_path / "top")
    ran = run_in(
        trials.open("call"),
        "echo y > new; git add new && git commit -qm two && git log --format=%s; git status --short",
        {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "b"},
    )
    assert ran.text.splitlines() == ["two", "one"]
    assert tree_state(tmp_path / "top") == before
    changes = ran.layer.changes()
    assert "two" in " ".join(changes.repository), changes
    trials.close()


def test_a_pointer_to_a_repository_elsewhere_shows_nothing_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _, root, run in made(tmp_path, monkeypatch, LAYERS[0]):
        secret = tmp_path / "secret"
        subprocess.run(["git", "init", "-q", str(secret)], check=True, timeout=60)
        (root / ".git").write_text(f"gitdir: {secret}/.git\n", "utf-8")
        assert "not a git repository" in run(f"ls {secret}; git status").text


@pytest.mark.parametrize("place", ["/", "/tmp", "~"])
def test_no_trial_covers_a_home_or_the_whole_system(place: str, tmp_path: Path) -> None:
    trials = Trials(Path(os.path.expanduser(place)), tmp_path / "state", "one")
    assert not trials.facts.is_available
    assert "as the working directory" in trials.facts.problem
    with pytest.raises(ToolError, match="no trial works here"):
        trials.open("call")


def test_a_layer_waits_no_longer_than_its_session(trial: Made, tmp_path: Path) -> None:
    """One whose session was deleted is removed at the next start."""
    _, root, _ = trial
    stored = tmp_path / "session"
    stored.touch()
    for is_deleted in (False, True):
        trials = Trials(root, tmp_path / "state" / "trials", "mine", stored=stored)
        layer = trials.open("call")
        layer.record("{}")
        trials.close()
        if is_deleted:
            stored.unlink()
        other = Trials(root, tmp_path / "state" / "trials", "other")
        assert other.facts.backend == "overlay"
        assert (tmp_path / "state/trials/sessions/mine").exists() != is_deleted
        other.close()


def test_the_cache_of_a_project_is_limited(trial: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is emptied when the last of its programs ends."""
    trials, root, run = trial
    run("mkdir -p $XDG_CACHE_HOME; seq 100000 > $XDG_CACHE_HOME/numbers")
    monkeypatch.setattr("tui_agent.trial.layer_storage.MOST_CACHED", LayerLimits(size=4096))
    other = Trials(root, tmp_path / "state" / "trials", "two")
    assert run_in(other.open("call"), "ls $XDG_CACHE_HOME").text == "numbers\n"
    trials.close()
    assert run_in(other.open("call"), "ls $XDG_CACHE_HOME").text == "numbers\n"
    other.close()
    assert run_in(trials.open("call"), "ls $XDG_CACHE_HOME || mkdir -p $XDG_CACHE_HOME").text.count("numbers") == 0


def test_where_bubblewrap_fails_the_kernel_builds_the_walls_and_the_reason_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho it is forbidden here >&2; exit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(trials_module, "found_bubblewraps", lambda _: [Bubblewrap(broken, True)])
    (root := tmp_path / "work").mkdir()
    (root / "file").write_text("there")
    (root / "secret").write_text("words")
    (root / "link").symlink_to("secret")
    (root / "sub").mkdir()
    # Without an overlay, a denied path inside the workspace must be left out of what a command may read.
    trials = Trials(root, tmp_path / "state" / "trials", "one", unreadable=lambda: (root / "secret",))

    assert (trials.facts.backend, trials.facts.place) == ("read_only", "read_only")
    assert "it is forbidden here" in trials.facts.problem
    ran = run_in(trials.open("call"), "cat file; cat secret; echo x > new")
    assert ran.text.startswith("there")
    assert "words" not in ran.text + run_in(trials.open("other"), "cat link").text
    assert sorted(os.listdir(root)) == ["file", "link", "secret", "sub"]
    trials.close()


def test_what_a_rule_denies_to_read_is_empty_and_the_workspace_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    denied: list[Path] = []
    for trials, root, run in made(tmp_path, monkeypatch, "overlay", unreadable=denied.copy):
        (root / "keys").mkdir()
        for name in ("keys/one", "secret", "file"):
            (root / name).write_text(f"words of {name}")
        denied += [root / "keys", root / "secret", root / "missing", Path("/nowhere")]

        assert run("cat file secret keys/one").text.startswith("words of file")
        assert "words of secret" not in run("cat secret keys/one").text
        assert run("ls keys").text == ""
        denied.append(root)
        with pytest.raises(ToolError, match="a rule denies reading"):
            run("true")
        assert trials.facts.backend == "overlay"


def test_no_command_runs_inside_a_directory_of_tui_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for trials, _, _ in made(tmp_path, monkeypatch, "overlay", hidden=(tmp_path / "work",)):
        assert not trials.facts.is_available
        assert "is inside a directory of tui-agent" in trials.facts.problem


def test_without_any_walls_no_trial_opens_and_each_reason_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trials_module, "found_bubblewraps", lambda _: [])
    monkeypatch.setattr(trials_module, "landlock_problem", lambda: "the kernel does not offer Landlock")
    (root := tmp_path / "work").mkdir()
    trials = Trials(root, tmp_path / "state" / "trials", "one")

    assert not trials.facts.is_available
    assert "bubblewrap is not installed; the kernel does not offer Landlock" in trials.facts.problem
    assert trials.waiting("call") is None
    with pytest.raises(ToolError, match="no trial works here: bubblewrap is not installed"):
        trials.open("call")
    trials.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_storage_that_belongs_to_someone_else_is_refused(tmp_path: Path) -> None:
    (storage := tmp_path / "storage").mkdir()
    os.chown(storage, 12345, 12345)
    (file := tmp_path / "file").touch()
    (own := tmp_path / "own").mkdir(mode=0o755)

    make_private(own)
    assert own.stat().st_mode & 0o777 == 0o700
    for place, reason in ((storage, "belongs to someone else"), (file, "File exists")):
        with pytest.raises(ToolError, match=reason):
            make_private(place)


@table(
    ("program", "reason"),
    [
        ("exit 0", "a layer does not store changes"),
        ('while [ "$1" != sh ]; do shift; done; exec "$@"', "a layer does not keep changes apart from the workspace"),
    ],
)
def test_walls_that_only_seem_to_work_are_not_used(
    program: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root := tmp_path / "work").mkdir(exist_ok=True)
    (broken := tmp_path / "bwrap").write_text(f"#!/bin/sh\n{program}\n")
    broken.chmod(0o755)
    monkeypatch.setattr(Trials, "_ways", lambda _: [BubblewrapWalls(Bubblewrap(broken, True), True)])
    trials = Trials(root, tmp_path / "state", "one")

    assert not trials.facts.is_available
    assert reason in trials.facts.problem


def test_only_a_layer_that_was_recorded_for_a_call_waits_for_it(trial: Made) -> None:
    trials, _, _ = trial
    for call_id in ("one", "two", "three"):
        layer = trials.open(call_id)
        if call_id != "two":
            layer.record(f"result of {call_id}")

    found = trials.waiting("three")
    assert found is not None
    assert found[1] == "result of three"
    assert trials.waiting("two") is None


def test_folders_inside_others_are_covered_once_and_none_contains_the_workspace(tmp_path: Path) -> None:
    root, other = tmp_path / "work", tmp_path / "other"
    for path in (root / "sub", other / "sub"):
        path.mkdir(parents=True)

    assert covered_places(root, [other / "sub", root / "sub", other, tmp_path / "missing"]) == (root, other)
    with pytest.raises(ToolError, match="an added folder contains the workspace"):
        covered_places(root, [tmp_path])


def test_a_tree_deeper_than_a_path_can_name_is_removed(tmp_path: Path) -> None:
    (top := tmp_path / "top").mkdir()
    held = os.open(top, os.O_RDONLY)
    for _ in range(40):
        os.mkdir("d" * 200, dir_fd=held)
        inner = os.open("d" * 200, os.O_RDONLY, dir_fd=held)
        os.close(held)
        held = inner
    os.close(held)

    remove_tree(top)
    remove_tree(top)

    assert not top.exists()


@pytest.mark.skipif(not tempfile.gettempdir().startswith("/tmp"), reason="temporary directories are elsewhere")
def test_a_link_where_the_workspace_is_mounted_in_tmp_lets_no_command_run(trial: Made, tmp_path: Path) -> None:
    trials, _, run = trial
    assert run("true").code == 0
    assert trials.temporary is not None
    place = trials.temporary / tmp_path.relative_to("/tmp").parts[0]
    if place.exists():
        shutil.rmtree(place)
    place.symlink_to("/")

    with pytest.raises(ToolError, match=r"a command put a link at /tmp/.*, where a mount has to be; delete it"):
        run("true")


def test_large_files_are_compared_to_the_end_and_holes_are_not_read(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("one", "same", "other")]
    for path, end in zip(paths, (b"a", b"a", b"b"), strict=True):
        with path.open("wb") as file:
            file.write(b"begin" * 500_000)
            file.seek(1 << 34)
            file.write(end)
    one, same, other = ((path, path.lstat()) for path in paths)

    assert is_same_file(*one, *same)
    assert not is_same_file(*one, *other)
    assert not is_same_file(*one, tmp_path / "missing", None)


def test_walls_that_stop_working_are_tested_again(trial: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    trials, _, _ = trial
    for works in (True, False):
        layer = trials.open("call")
        layer.walled(("true",), {"PATH": os.environ["PATH"]})
        if not works:
            monkeypatch.setattr(Trials, "_ways", lambda _: [])
        assert layer.started(b"bwrap: no permission", 1) == "bwrap: no permission"
        layer.end()
        assert trials.facts.is_available == works


def test_why_the_kernel_builds_no_walls(monkeypatch: pytest.MonkeyPatch) -> None:
    for version, reason in ((0, "does not offer Landlock"), (3, "offers version 3 of Landlock")):
        monkeypatch.setattr(landlock_launcher, "landlock_abi", lambda version=version: version)
        assert landlock_problem().startswith(f"the kernel {reason}; the walls need version")
    monkeypatch.setattr(command_walls, "is_known_machine", lambda: False)
    assert landlock_problem() == "the system calls of this kind of machine are not known"


def test_on_an_unknown_machine_commands_run_without_the_filter_of_system_calls(
    trial: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, _, run = trial
    monkeypatch.setattr(command_walls, "is_known_machine", lambda: False)
    assert run("echo x").text == "x\n"
