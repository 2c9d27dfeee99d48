"""The options of one open session: what the command line or another program asks for."""

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import Verdict

PICK_SESSION = ""
"""Value of `--resume` without an id."""

DEMO_LABEL = "scripted demo, not a language model"
"""Label that the screen always shows beside the offline model's name."""

OutputFormat = Literal["text", "json", "stream-json", "plain"]
InputFormat = Literal["text", "stream-json", "plain"]


@dataclass(frozen=True, slots=True)
class LaunchExtras:
    """Options that few launches have."""

    record: Path | None = None
    """File to record to."""
    title: str = ""
    """Title of the session; empty to keep the one it has."""
    tools: tuple[str, ...] | None = None
    """Names and patterns of the only tools that are offered; None for all."""
    is_safe: bool = False
    """True to use nothing of the user's and the project's files but rules that deny or ask."""
    answer_schema: JsonObject | None = None
    """JSON schema of final answers; None for text."""
    at_end: Callable[[], Awaitable[None]] | None = None
    """Called once the program's last session is closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOptions:
    """The command line of one launch."""

    prompt: str | None = None
    demo: bool = False
    cwd: Path
    settings: JsonObject = field(default_factory=dict[str, Any])
    """Values of the settings' last layer."""
    rules: tuple[tuple[Verdict, str], ...] = ()
    """Permission rules, first match first."""
    system: str | None = None
    """Replaces the built-in system prompt."""
    continue_last: bool = False
    resume: str | None = None
    """Session id, `PICK_SESSION` to let the user choose one, None for a new session."""
    session_id: str | None = None
    """Id of the new session."""
    keep_session: bool = True
    print_mode: bool = False
    output_format: OutputFormat = "text"
    input_format: InputFormat = "text"
    include_deltas: bool = False
    trust: bool = False
    """Apply the folder's own settings for this run, without its allow rules and tool servers."""
    verbose: bool = False
    extras: LaunchExtras = LaunchExtras()
    mcp_config: Path | None = None
    """File with tool servers for this launch."""
    folders: tuple[Path, ...] = ()
    """Folders that count as part of the workspace."""
    notice: str = ""
    """Notice about the choice of the session, for the user."""

    @classmethod
    def for_command(cls, cwd: Path) -> "LaunchOptions":
        """Return the options of a start without any, for commands that show what it would use."""
        return cls(cwd=cwd.resolve(), keep_session=False, print_mode=True)

    @property
    def plain(self) -> bool:
        """True for plain mode."""
        return self.output_format == "plain"

    @property
    def without_screen(self) -> bool:
        """True for print mode and plain mode."""
        return self.print_mode or self.plain


def refuse_existing(path: Path | None) -> None:
    """Refuse a file to record to that exists already.

    Raises:
        ConfigurationError: it exists.
    """
    if path is not None and os.path.lexists(path):
        raise ConfigurationError(f"--record: {path} exists already; a recording never replaces a file")
