"""`tui-agent fleet results`: formats, and the patch of a unit as a branch."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.fleet.repositories import git, repository
from tests.fleet.test_results import row
from tui_agent.cli.fleet_results import PATCH, apply_unit
from tui_agent.cli.subcommands.fleet_commands import fleet
from tui_agent.fleet.fleet_directory import FleetDirectory
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.fleet_records import FleetStatus


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo", {"a.txt": b"one\n"})


@pytest.fixture
def out(tmp_path: Path, repo: Path) -> Path:
    """A fleet of two attempts at one task, of which the second passed, and a task that failed."""
    base = git("rev-parse", "HEAD", cwd=repo)
    first, second = row(1, repo=str(repo), verified=False), row(2, repo=str(repo), verified=True)
    failed = row(1, task="2", repo=str(repo), state="failed", lines=None)
    rows = (first, second, failed)
    made = tmp_path / "my fleet"
    directory = FleetDirectory.create(made, [one.unit for one in rows], {})
    for one in (first, second):
        directory.record({"type": "base", "unit": one.id, "commit": base})
        (repo / "a.txt").write_text(f"{one.id}\n")
        patch = git("diff", "--binary", base, cwd=repo) + "\n"
        directory.save_result(one.id, {str(PATCH): patch.encode()})
    git("checkout", "-q", "--", "a.txt", cwd=repo)
    directory.save_status(FleetStatus(name="my fleet", started=0, running=False, rows=rows))
    directory.close()
    return made


@pytest.mark.parametrize(("form", "part"), [("table", "1.2 *"), ("html", "<td>1.2 *</td>"), ("html", "<svg")])
def test_each_format_prints_the_results(out: Path, form: str, part: str) -> None:
    printed = CliRunner().invoke(fleet, ["results", str(out), "--format", form], standalone_mode=False)

    assert printed.return_value == 0
    assert part in printed.output


def test_a_task_is_applied_from_its_best_attempt(out: Path, repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert apply_unit(out, "1", None, None) == 0

    assert git("show", "fleet/my-fleet/1.2:a.txt", cwd=repo) == "1.2"
    assert git("log", "-1", "--format=%an|%B", "fleet/my-fleet/1.2", cwd=repo) == "Ada|Do it\n\nFleet-Unit: 1.2"
    assert (repo / "a.txt").read_text() == "one\n"
    assert capsys.readouterr().out == f"Made the branch fleet/my-fleet/1.2 in {repo} from unit 1.2.\n"


@pytest.mark.parametrize(
    ("name", "reason"), [("9", "no unit or task 9"), ("2", "unit 2.1 is failed and has no patch; nothing was applied")]
)
def test_units_that_cannot_be_applied_are_refused(out: Path, repo: Path, name: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        apply_unit(out, name, None, None)

    assert git("for-each-ref", "--format=%(refname)", cwd=repo) == "refs/heads/main"


def test_a_repository_that_is_not_here_must_be_named(out: Path, repo: Path) -> None:
    repo.rename(repo.with_name("elsewhere"))

    with pytest.raises(ConfigurationError, match="name a clone of it with --repo"):
        apply_unit(out, "1", None, None)
    assert apply_unit(out, "1", repo.with_name("elsewhere"), None) == 0
