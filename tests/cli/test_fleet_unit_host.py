"""The worker that units run on, with the real sandbox where it works."""

from pathlib import Path

import pytest

from tests.fleet.repositories import git
from tests.fleet.test_unit_runner import HandLink
from tui_agent.cli.fleet_cluster import unit_host, walls_work
from tui_agent.fleet.unit_process import run_shell
from tui_agent.fleet.unit_runner import UnitHost, run_unit
from tui_agent.fleet.worker_messages import UnitClaimed, UnitGranted, WorkerMessage
from tui_agent.protocol.fleet_records import UnitPermissions, UnitTask

WORKS = walls_work(Path.cwd())
real = pytest.mark.skipif(not WORKS, reason="no walls work here")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of tui-agent's own files; no setting is set."""
    made = tmp_path / "home"
    (made / "config").mkdir(parents=True)
    monkeypatch.setenv("TUI_AGENT_HOME", str(made))
    monkeypatch.delenv("TUI_AGENT_SANDBOX", raising=False)
    return made


def host_in(tmp_path: Path) -> UnitHost:
    for name in ("work", "mirrors"):
        (tmp_path / name).mkdir()
    return unit_host("w", tmp_path / "work", tmp_path / "mirrors")


@pytest.mark.usefixtures("home")
def test_the_host_confines_exactly_where_the_sandbox_works(tmp_path: Path) -> None:
    assert (host_in(tmp_path).confine is None) is not WORKS


@real
async def test_a_confined_check_writes_only_in_its_directory_and_sees_no_settings(home: Path, tmp_path: Path) -> None:
    (home / "config" / "secret").write_text("mine")
    host = host_in(tmp_path)
    (host.mirrors / "objects").write_text("shared")
    unit = host.work / "unit"
    unit.mkdir()
    assert host.confine is not None
    command = (
        f"echo made > made; echo bad > {tmp_path}/outside; cat {home}/config/secret; cat {host.mirrors}/objects; "
        f"echo bad > {host.mirrors}/objects; (exec 3<>/dev/tcp/127.0.0.1/9) || echo no network"
    )

    code, output = await run_shell(command, unit, {"PATH": "/usr/bin:/bin"}, host.confine(unit))

    assert (code, (unit / "made").read_text()) == (0, "made\n")
    assert not (tmp_path / "outside").exists()
    assert (host.mirrors / "objects").read_text() == "shared"
    assert "mine" not in output
    assert "shared" in output
    assert output.endswith("no network\n")


@real
@pytest.mark.slow
async def test_rules_that_allow_hold_for_commands_in_the_sandbox(home: Path, tmp_path: Path) -> None:
    repo, outside = tmp_path / "repo", home.parent / "outside"
    git("init", "--quiet", str(repo), cwd=tmp_path)
    (repo / "kept.txt").write_text("one\n")
    git("add", "--all", cwd=repo)
    git("commit", "--quiet", "-m", "Begin", cwd=repo)
    rights = UnitPermissions(allow=("bash(*)",))
    prompt = f"run `echo two >> kept.txt; touch {outside}`"
    task = UnitTask(id="1", task="1", prompt=prompt, repo=str(repo), permissions=rights, verify="grep two kept.txt")
    link = HandLink()

    def answer(message: WorkerMessage) -> None:
        if isinstance(message, UnitClaimed):
            assert message.sandboxed
            link.inbox.put_nowait(UnitGranted(message.claim, 1, task, ("--demo",)))

    link.on_send = answer
    await run_unit("1", link.driver, host_in(tmp_path))

    assert (link.ended.reason, link.ended.verified) == ("", True)
    assert link.ended.changes is not None
    assert link.ended.changes.files == 1
    assert not outside.exists()
