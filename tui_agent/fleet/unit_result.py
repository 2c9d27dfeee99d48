"""The files of a unit that ended, in `OUT/units/ID`."""

import json

from .unit_progress import UnitProgress
from .worker_messages import UnitEnded


def result_files(unit: UnitProgress, ended: UnitEnded) -> dict[str, bytes]:
    """Return the content of each file, by its path below the unit's directory."""
    row = unit.row
    record = row.model_dump(mode="json", exclude={"activity"}) | {"exit_code": ended.exit_code}
    files = {
        "result.json": json.dumps(record, ensure_ascii=False, indent=2).encode("utf-8", "replace") + b"\n",
        "stderr.log": ended.stderr.encode("utf-8", "replace"),
        "report.md": unit.final_text.encode("utf-8", "replace") + b"\n",
    }
    if ended.verified is not None:
        files["verify.txt"] = ended.verify_output.encode("utf-8", "replace")
    if ended.patch:
        files["patch/0001.patch"] = ended.patch
    return files
