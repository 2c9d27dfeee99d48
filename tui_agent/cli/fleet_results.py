"""`tui-agent fleet results`: prints the results of a fleet, and applies the patch of a unit as a branch."""

import asyncio
import re
from pathlib import Path
from typing import Literal, TypeAlias

from tui_agent.fleet.branch_apply import apply_as_branch
from tui_agent.fleet.fleet_directory import read_records, read_status
from tui_agent.fleet.results import rank_attempts
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.fleet_records import FleetStatus, UnitRow
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.visible_text import escaped

from .fleet_report import report_page, report_rows, report_table
from .process.controlling_terminal import say, say_json

ReportFormat: TypeAlias = Literal["table", "json", "html"]

PATCH = Path("patch/0001.patch")
"""A unit's patch, below its directory."""


def show_results(out: Path, form: ReportFormat) -> int:
    """Print the results in a format.

    Raises:
        ConfigurationError: there is no fleet.
    """
    status = read_status(out)
    if form == "json":
        say_json(report_rows(status))
    else:
        say(report_page(status) if form == "html" else "\n".join(report_table(status)))
    return 0


def apply_unit(out: Path, name: str, repo: Path | None, branch: str | None) -> int:
    """Make a branch of a unit's patch in a local repository.

    Args:
        out: the fleet's directory.
        name: id of the unit, or of a task for its best attempt.
        repo: the repository; None for the unit's own, if that is local.
        branch: name of the branch; None for `fleet/FLEET/ID`.

    Raises:
        ConfigurationError: there is no such unit, it has no patch, or the repository does not take it.
    """
    row = _unit(read_status(out), name)
    patch = out / "units" / row.id / PATCH
    if not patch.is_file():
        raise ConfigurationError(f"unit {row.id} is {row.state} and has no patch; nothing was applied")
    target = repo or Path(row.unit.repo)
    if not target.is_dir():
        raise ConfigurationError(f"{row.unit.repo} is not a directory here; name a clone of it with --repo")
    name = branch or f"fleet/{_branch_part(out.name)}/{row.id}"
    asyncio.run(apply_as_branch(target, _base(out, row.id), patch.read_bytes(), name, _message(row)))
    verified = " Its verification failed." if row.verified is False else ""
    say(f"Made the branch {name} in {target} from unit {row.id}.{verified}")
    return 0


def _unit(status: FleetStatus, name: str) -> UnitRow:
    by_id = {row.id: row for row in status.rows}
    by_task = {result.task: result.best for result in rank_attempts(status.rows)}
    row = by_id.get(name) or by_task.get(name)
    if row is None:
        raise ConfigurationError(f"the fleet has no unit or task {name}")
    return row


def _base(out: Path, unit_id: str) -> str:
    records: list[JsonObject] = [
        record for record in read_records(out) if (record.get("type"), record.get("unit")) == ("base", unit_id)
    ]
    if not records:
        raise ConfigurationError(f"the first commit of unit {unit_id} is not recorded; nothing was applied")
    return str(records[-1]["commit"])


def _message(row: UnitRow) -> str:
    """Return the message of the commit: the prompt's first line, the prompt, and the unit."""
    prompt = escaped(row.unit.prompt).strip()
    subject = " ".join(prompt.split("\n", 1)[0].split())
    subject = subject if len(subject) <= 72 else f"{subject[:71]}…"
    body = f"{prompt}\n\n" if prompt != subject else ""
    return f"{subject}\n\n{body}Fleet-Unit: {row.id}"


def _branch_part(name: str) -> str:
    """Return a name with everything replaced that git refuses in a branch."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "fleet"
