"""Process trees are found and ended as a whole."""

import os
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from tests.tools.calls import eventually
from tui_agent.tools.processes import process_tree
from tui_agent.tools.processes.process_tree import TreeMark, end_tree


def start(script: str, mark: TreeMark) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        ["bash", "--noprofile", "--norc", "-c", script], env=mark.put_into(os.environ), start_new_session=True
    )


def lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def pids_in(directory: Path, count: int) -> list[int]:
    """Return the ids that processes wrote to their files once they ran."""
    assert eventually(lambda: sum(path.read_text().endswith("\n") for path in directory.glob("*.pid")) == count)
    return [int(path.read_text()) for path in directory.glob("*.pid")]


WRITE = "echo $BASHPID > {0}.tmp; mv {0}.tmp {0}.pid"

FAMILIES = {
    "child": ["({write}; {wait}) &", "wait"],
    "own session": ["setsid bash -c '{write}; {wait}' &", "wait"],
    "double fork": ["(setsid bash -c '{write}; {wait}' >/dev/null 2>&1 &)", "sleep 60"],
    "nohup": ["nohup bash -c '{write}; {wait}' >/dev/null 2>&1 &", "wait"],
    "ignores TERM": ["(trap '' TERM; {write}; {wait}) &", "trap '' TERM; while :; do sleep 0.05; done"],
    "stopped": ["({write}; kill -STOP $BASHPID; {wait}) &", "wait"],
    "empty environment": ["env -i /usr/bin/env bash -c '{write}; {wait}' &", "wait"],
    "empty environment, own session": ["setsid env -i /usr/bin/env bash -c '{write}; {wait}' &", "wait"],
}


@pytest.mark.parametrize("name", FAMILIES)
def test_nothing_of_the_tree_is_left(name: str, root: Path) -> None:
    mark = TreeMark.new()
    script = "\n".join(FAMILIES[name]).format(write=WRITE.format(root / "x"), wait="while :; do sleep 0.05; done")
    leader = start(script, mark)
    (pid,) = pids_in(root, 1)
    assert lives(pid)

    ended = end_tree(leader.pid, mark, grace=0.3)

    assert any(f"(pid {pid})" in one for one in ended)
    assert not any(f"(pid {leader.pid})" in one for one in ended)
    assert eventually(lambda: not lives(pid))
    assert leader.wait(30) in (-signal.SIGTERM, -signal.SIGKILL)


@pytest.mark.slow
def test_a_process_that_keeps_starting_its_successor_is_stopped(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_tree, "_KILL_TIME", 30.0)
    monkeypatch.setattr(process_tree, "_MAX_INITIAL_SCANS", 1_000)
    mark = TreeMark.new()
    hop = root / "hop.sh"
    hop.write_text("echo $$ >> hops\n[ -e stop ] || setsid bash hop.sh >/dev/null 2>&1 &\n", "utf-8")
    leader = start(f"cd {root}; bash hop.sh", mark)
    leader.wait(30)
    assert eventually(lambda: (root / "hops").read_text("utf-8").count("\n") > 3, 30)

    end_tree(leader.pid, mark, grace=0.1)

    hops = (root / "hops").read_text("utf-8")
    time.sleep(0.3)
    try:
        assert (root / "hops").read_text("utf-8") == hops
    finally:
        (root / "stop").touch()


def test_a_spared_leader_gets_no_term_and_ends_with_its_child(root: Path) -> None:
    mark = TreeMark.new()
    inner = f'trap "sleep 0.1; echo tidy > {root}/tidy; exit 7" TERM; {WRITE.format(root / "x")}; sleep 60 & wait'
    leader = start(f"bash -c '{inner}'; exit $?", mark)
    pids_in(root, 1)

    end_tree(leader.pid, mark, grace=30, spares_leader=True)

    assert leader.wait(30) == 7
    assert (root / "tidy").read_text() == "tidy\n"


def test_a_process_that_calls_exec_again_and_again_always_shows_its_mark() -> None:
    mark = TreeMark.new()
    hop = 'exec "$0" -c "$1" "$0" "$1"'
    leader = subprocess.Popen(["/bin/sh", "-c", hop, "/bin/sh", hop], env=mark.put_into({}), start_new_session=True)
    try:
        for _ in range(3000):
            assert mark.token.encode() in process_tree._environment(leader.pid)  # pyright: ignore[reportPrivateUsage]
    finally:
        leader.kill()
        leader.wait()
