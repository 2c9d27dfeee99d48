"""Commands in a trial: what they change is in the layer only, and what they need is there (safety promise 10)."""

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.trial.ways import LANDLOCK, LAYERS, READ_ONLY, Ran, made, run_in, tree_state
from tui_agent.protocol.errors import ToolError
from tui_agent.trial.trials import Trials

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
    upper = next(iter(ran.layer._roots)).upper
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
    late = ran.layer._roots[0].upper / "late"
    size = late.stat().st_size if late.exists() else 0
    assert run("true").code == 0
    assert (late.stat().st_size if late.exists() else 0) == size
    assert not (root / "late").exists()


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
    assert (layer._roots[0].upper / "new").read_text("utf-8") == "x\n"
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


@pytest.mark.parametrize("place", ["/", "/tmp", "~"])
def test_no_trial_covers_a_home_or_the_whole_system(place: str, tmp_path: Path) -> None:
    trials = Trials(Path(os.path.expanduser(place)), tmp_path / "state", "one")
    assert not trials.facts.is_available
    assert "as the working directory" in trials.facts.problem
    with pytest.raises(ToolError, match="no trial works here"):
        trials.open("call")
