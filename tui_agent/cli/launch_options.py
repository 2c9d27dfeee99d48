"""What the command line asked of the agent."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import Verdict

PICK_SESSION = ""
"""Value of `--resume` without an id."""

DEMO_LABEL = "scripted demo, not a language model"
"""Said beside the model's name all the time."""

OutputFormat = Literal["text", "json", "stream-json"]
InputFormat = Literal["text", "stream-json"]


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """What was asked for on the command line."""

    prompt: str | None
    demo: bool
    cwd: Path
    settings: JsonObject
    """Values for the settings' last layer."""
    rules: tuple[tuple[Verdict, str], ...]
    """Permission rules, in the order they were given."""
    system: str | None
    """Replaces the built-in system prompt."""
    continue_last: bool
    resume: str | None
    """Session id, `PICK_SESSION` to choose one, None for a new session."""
    session_id: str | None
    """Name of the new session."""
    keep_session: bool
    print_mode: bool
    output_format: OutputFormat
    input_format: InputFormat
    include_deltas: bool
    trust: bool
    """Apply the folder's own settings for this run, without its allow rules."""
    verbose: bool
    record: Path | None = None
    """File to record to."""
