"""The command line, the environment and the first message of a unit's process."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tui_agent.protocol.fleet_records import UnitTask

from .unit_events import depth_of, fields_of, type_of
from .worker_messages import UnitGranted

RESUMED = (
    "This task was interrupted, and you continue it in a new process, perhaps on another machine. The files are as "
    "they were after your last finished call; ignored files are gone. A call that was running at that moment may have "
    "had an effect outside the working directory: check that before you repeat it. Continue with the task."
)


@dataclass(frozen=True, slots=True)
class JournalState:
    """Progress of a unit, as its journal has it."""

    begun: bool = False
    """True if the prompt is part of the conversation."""
    done: bool = False
    """True if the last run ended by itself."""


def journal_state(journal: bytes) -> JournalState:
    """Return how far a unit came."""
    begun = done = False
    for line in journal.split(b"\n"):
        if depth_of(line):
            continue
        match type_of(line):
            case "run.started":
                done = False
            case "run.ended":
                done = fields_of(line).get("reason") == "done"
            case "message.ended":
                begun = True
            case _:
                pass
    return JournalState(begun, done)


def session_id(task: UnitTask) -> str:
    """Return the id of a unit's session."""
    return f"unit-{task.id.replace('.', '-')}"


def first_message(granted: UnitGranted) -> bytes | None:
    """Return the first line for the process; None if there is nothing left to ask for."""
    state = journal_state(granted.journal)
    if granted.note and state.begun:
        text = granted.note
    elif state.done:
        return None
    else:
        text = RESUMED if state.begun else granted.task.prompt
    return json.dumps({"type": "user", "text": text}).encode()


def unit_argv(program: tuple[str, ...], granted: UnitGranted) -> list[str]:
    """Return the command line of a unit's process. It holds no key and no prompt."""
    task, rights = granted.task, granted.task.permissions
    argv = [*program, "-p", "--input-format", "stream-json", "--output-format", "stream-json", "--include-deltas"]
    argv += ["--permission-mode", rights.mode.value]
    for option, rules in (("--allow", rights.allow), ("--ask", rights.ask), ("--deny", rights.deny)):
        argv += [f"{option}={rule}" for rule in rules]
    argv += [f"--model={task.model}"] if task.model else []
    return [*argv, *granted.options, "--resume" if granted.journal else "--session", session_id(task)]


def unit_environment(task: UnitTask, inherited: Mapping[str, str], home: Path) -> dict[str, str]:
    """Return the environment of a unit's process, with a state directory of its own below `home`.

    The user's settings stay readable. Blocks.
    """
    environment = dict(inherited)
    if settings := inherited.get("TUI_AGENT_HOME"):
        own = home / "home"
        own.mkdir(mode=0o700)
        (own / "config").symlink_to(Path(settings).absolute() / "config")
        environment["TUI_AGENT_HOME"] = str(own)
    else:
        environment["XDG_STATE_HOME"] = str(home / "state")
    if task.permissions.allow:
        # Rules that allow calls hold only for commands in a trial.
        environment["TUI_AGENT_SANDBOX"] = "required"
    if task.budget is not None:
        environment["TUI_AGENT_BUDGET__COST_USD"] = repr(task.budget)
    return environment


def journal_path(task: UnitTask, environment: Mapping[str, str]) -> Path:
    """Return the path of the unit's journal on its worker."""
    if own := environment.get("TUI_AGENT_HOME"):
        state = Path(own) / "state"
    else:
        state = Path(environment["XDG_STATE_HOME"]) / "tui-agent"
    return state / "sessions" / f"{session_id(task)}.jsonl"
