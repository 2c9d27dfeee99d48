"""Command line, environment and first message of a unit's process."""

import json
from pathlib import Path

from tui_agent.fleet.unit_process import RESUMED, first_message, journal_path, unit_environment
from tui_agent.fleet.worker_messages import UnitGranted
from tui_agent.protocol.events import MessageEnded, RunEnded, RunStarted
from tui_agent.protocol.fleet_records import UnitPermissions, UnitTask
from tui_agent.protocol.messages import user_message
from tui_agent.protocol.permissions import PermissionMode

from .test_unit_progress import line_of

TASK = UnitTask(
    id="1.2",
    task="1",
    prompt="Go",
    repo="/r",
    model="small",
    budget=0.5,
    permissions=UnitPermissions(mode=PermissionMode.PLAN, allow=("bash(ls:*)",), deny=("--odd",)),
)
BEGUN = [
    line_of(RunStarted(input="Go", trigger="prompt", model="m", mode=PermissionMode.PLAN), 1),
    line_of(MessageEnded(message_id="m1", message=user_message("Go")), 2),
]


def granted(*lines: bytes, note: str = "") -> UnitGranted:
    return UnitGranted("claim", 1, TASK, ("--demo",), journal=b"".join(line + b"\n" for line in lines), note=note)


def text_of(message: bytes | None) -> str | None:
    return None if message is None else json.loads(message)["text"]


def test_the_first_message_depends_on_how_far_the_unit_came() -> None:
    done = line_of(RunEnded(reason="done"), 3)
    of_a_sub_agent = line_of(RunEnded(reason="done"), 3, depth=1)
    aborted = line_of(RunEnded(reason="aborted"), 3)

    assert text_of(first_message(granted())) == "Go"
    assert text_of(first_message(granted(BEGUN[0], b"{torn"))) == "Go", "the prompt was not saved"
    assert text_of(first_message(granted(*BEGUN))) == RESUMED
    assert text_of(first_message(granted(*BEGUN, of_a_sub_agent))) == RESUMED
    assert text_of(first_message(granted(*BEGUN, aborted))) == RESUMED
    assert text_of(first_message(granted(*BEGUN, done))) is None, "only its check is left"
    assert text_of(first_message(granted(*BEGUN, done, note="Red."))) == "Red."
    assert text_of(first_message(granted(note="Red."))) == "Go"


def test_the_state_is_the_units_own_and_the_settings_stay_the_users(tmp_path: Path) -> None:
    own = unit_environment(TASK, {"KEPT": "yes", "XDG_STATE_HOME": "/user"}, tmp_path)

    assert own["KEPT"] == "yes"
    assert own["XDG_STATE_HOME"] == str(tmp_path / "state")
    assert own["TUI_AGENT_BUDGET__COST_USD"] == "0.5"
    assert own["TUI_AGENT_SANDBOX"] == "required", "rules that allow calls apply in a trial only"
    assert journal_path(TASK, own) == tmp_path / "state/tui-agent/sessions/unit-1-2.jsonl"

    (tmp_path / "user" / "config").mkdir(parents=True)
    own = unit_environment(TASK, {"TUI_AGENT_HOME": str(tmp_path / "user")}, tmp_path)

    assert (tmp_path / "home" / "config").resolve() == tmp_path / "user" / "config"
    assert journal_path(TASK, own) == tmp_path / "home/state/sessions/unit-1-2.jsonl"
