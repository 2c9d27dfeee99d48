"""Facts on the pages of a session: rules, tools, jobs, hooks, servers, definitions, models, settings and tasks."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tui_agent.protocol.events import ToolEnded
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import Verdict


@dataclass(frozen=True, slots=True)
class RuleFact:
    """One rule in force."""

    verdict: Verdict
    text: str
    """Rule as written, without the verdict."""
    origin: str
    """File and line, option, or grant."""
    is_session: bool = False
    """True if it ends with the session and can be removed."""

    @property
    def cited(self) -> str:
        """The rule with its origin, as decisions name it."""
        return f"{self.text} ({self.origin})" if self.origin else self.text


@dataclass(frozen=True, slots=True)
class RulesInForce:
    """All rules in the order in which they are checked, and what else decides."""

    rules: tuple[RuleFact, ...] = ()
    strictest_wins: bool = False
    """True if the strictest rule of a list decides; False: the first that matches."""
    sandbox: str = ""
    """Place where shell commands run, and why no better place works; empty if that is not known."""
    folders: tuple[str, ...] = ()
    """Folders that count as part of the workspace."""


@dataclass(frozen=True, slots=True)
class ToolFact:
    """One tool that the model can call."""

    name: str
    description: str
    """First line of its description."""
    is_read_only: bool
    """True if no call of it changes anything."""
    is_parallel: bool
    """True if its calls run beside others."""
    rules: tuple[str, ...] = ()
    """Rules that apply to some of its calls, each with its verdict."""


@dataclass(frozen=True, slots=True)
class JobFact:
    """One background command."""

    task_id: str
    command: str
    state: str
    """`running`, or how it ended and what it left running, in words."""
    is_running: bool
    seconds: float
    """Seconds it has run."""
    size: int
    """Bytes it has printed."""


@dataclass(frozen=True, slots=True)
class HookFact:
    """One hook, or a part of a hook file that is not used."""

    event: str
    matcher: str
    """The calls or causes that it is for; empty: all."""
    command: str
    origin: str
    """File, with its line if known, that defines it."""
    problem: str = ""
    """Reason why it does not run; empty if it does."""
    last: str = ""
    """Its last answer with the time that it took; empty if it has not run."""
    has_failed: bool = False
    """True if it failed the last time."""


@dataclass(frozen=True, slots=True)
class ServerFact:
    """One tool server."""

    name: str
    origin: str
    """File, with its line if known, that configures it."""
    target: str
    """Command line or URL."""
    state: str
    """`connecting`, `ready`, `degraded`, `failed`, `closed` or `not enabled`."""
    error: str
    """Reason why it does not run; empty if it does."""
    info: str
    """Name and version, as the server reports them."""
    tools: tuple[str, ...]
    """Each tool, with the server's claims about it."""
    left_out: tuple[str, ...]
    """Tools that are not used, each with the reason."""
    prompts: tuple[str, ...]
    """Each prompt as the user types it, such as `/docs:explain what=…`."""
    resources: tuple[str, ...]
    """Each resource as the user types it, such as `@docs:memo://one`."""


@dataclass(frozen=True, slots=True)
class DefinitionFact:
    """One definition, or the reason why one is not used."""

    kind: str
    """`skill`, `command` or `sub-agent`."""
    name: str
    description: str = ""
    file: str = ""
    problem: str = ""
    """The reason with file and line; empty if it is used."""


@dataclass(frozen=True, slots=True)
class ModelFact:
    """One model that the user can choose."""

    provider: str
    """Its endpoint, as a heading."""
    name: str
    """Its name for `/model`."""
    window: int
    """Context window in tokens."""
    input_price: float | None = None
    """US dollars for a million input tokens; None if unknown."""
    output_price: float | None = None
    is_current: bool = False
    """True for the model of the next request."""
    is_assumed: bool = False
    """True if its window is unknown, so that a small one is assumed."""

    @property
    def window_text(self) -> str:
        """Its context window in words."""
        return f"{self.window:,} tokens{' (assumed)' if self.is_assumed else ''}"

    @property
    def price(self) -> str:
        """Its prices in words."""
        if self.input_price is None or self.output_price is None:
            return "no price"
        return f"${self.input_price:,.2f} in, ${self.output_price:,.2f} out"


@dataclass(frozen=True, slots=True)
class SideAnswer:
    """The model's answer to a request beside the conversation."""

    text: str
    model: str
    stop_reason: str
    cost: float | None = None
    """Dollars; None if the model's price is unknown."""


SettingKind: TypeAlias = Literal["switch", "choice", "number", "text", "list", "table"]
"""Form of a value; a table is changed only in the file."""
SettingSource: TypeAlias = Literal["default", "your file", "project", "environment", "option"]
"""Layer that a value comes from."""


@dataclass(frozen=True, slots=True)
class SettingFact:
    """One setting; no text in it has a secret."""

    key: str
    """Its dotted key."""
    kind: SettingKind
    value: str
    """The value in force, for reading."""
    default: str
    """The value without any file, for reading."""
    source: SettingSource = "default"
    origin: str = ""
    """File with line, or the variable, that sets the value; empty for a default and an option."""
    meaning: str = ""
    choices: tuple[str, ...] = ()
    """All values of a choice."""
    typed: str = ""
    """The value as the user would type it; empty for a secret."""
    is_stored: bool = False
    """True if the user's file sets it."""
    is_late: bool = False
    """True if a change takes effect at the next start."""
    refusal: str = ""
    """Reason why it cannot be changed here, and where instead; empty if it can."""


@dataclass(frozen=True, slots=True)
class SettingFacts:
    """All settings at one moment."""

    settings: tuple[SettingFact, ...]
    file: str
    """The user's settings file."""
    content: bytes = field(repr=False)
    """Its content at that moment; empty if it does not exist."""


TaskState: TypeAlias = Literal["waiting", "running", "idle", "closed"]
"""`waiting`: a question waits for the user; `idle`: open, without a run; `closed`: no program has it open."""


@dataclass(frozen=True, slots=True)
class TaskQuestion:
    """A question of another session."""

    request: str
    """Id of the question."""
    title: str
    text: str
    """The question in words."""
    details: JsonObject
    """Input of the call, and the changes that it made in a trial; empty if they are too long."""
    answers: tuple[str, ...]
    """Answers that count: `allow`, `deny`."""
    token: str
    """Token for one answer."""


@dataclass(frozen=True, slots=True)
class TaskFact:
    """One session."""

    id: str
    title: str
    folder: str
    branch: str
    state: TaskState
    since: int
    """Time of the state in milliseconds since the epoch."""
    pid: int = 0
    """Process that has it open; 0 if that is not known."""
    socket: str = ""
    """Path of the socket that takes answers; empty without one."""
    questions: tuple[TaskQuestion, ...] = ()
    """Questions that wait, oldest first."""


REPORT_TOOL = "report_findings"
"""Name of the tool that reports findings."""

Severity: TypeAlias = Literal["high", "medium", "low"]
SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low")
"""Severities, the worst first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding of a review."""

    file: str
    """Path relative to the workspace."""
    line: int = 0
    """Line in the file, from 1; 0: the file as a whole."""
    severity: Severity = "medium"
    text: str
    """The problem and why it matters; the first line is a sentence."""

    @property
    def place(self) -> str:
        """File and line, as in `src/cart.py:12`."""
        return f"{self.file}:{self.line}" if self.line else self.file

    @property
    def title(self) -> str:
        """The first line of its text."""
        return self.text.strip().partition("\n")[0]

    @property
    def plain(self) -> str:
        """The finding as text for a terminal."""
        return f"{self.place}: {self.severity}: {self.text.strip()}"


def findings_of(event: ToolEnded) -> tuple[Finding, ...] | None:
    """Return the findings that a call reported; None if it reported none."""
    if event.name != REPORT_TOOL or event.is_error or not event.details:
        return None
    try:
        return tuple(
            Finding(
                file=str(one["file"]),
                line=int(one["line"]),
                severity=SEVERITIES[SEVERITIES.index(one["severity"])],
                text=str(one["text"]),
            )
            for one in event.details["findings"]
        )
    except (KeyError, TypeError, ValueError):
        return None  # A tool of another origin has this name.


def in_order(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return findings by severity (worst first), file and line, each once."""
    return tuple(sorted(dict.fromkeys(findings), key=lambda one: (SEVERITIES.index(one.severity), one.file, one.line)))
