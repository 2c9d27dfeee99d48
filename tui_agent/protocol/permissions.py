"""Who may do what: modes, decisions, and the question put to a person.

A policy decides, a gate waits for a human. Both speak in the plain data of this page; no Future crosses a border.
"""

from enum import StrEnum
from typing import Literal, Protocol, Self

from pydantic import Field, model_validator

from .messages import FrozenModel, JsonObject, new_id
from .tool import Preview, Tool, ToolResult, Verdict
from .value_checks import expect_choice

DecisionSource = Literal["floor", "rule", "read_only", "mode", "grant", "hook", "invalid"]
GrantScope = Literal["once", "session", "project", "user"]


class PermissionMode(StrEnum):
    """What happens to a call that no rule decides (S1-15, S1-16)."""

    ASK = "ask"
    ALLOW = "allow"
    DENY = "deny"
    PLAN = "plan"
    ACCEPT_EDITS = "accept_edits"


def as_permission_mode(name: str, mode: object) -> PermissionMode:
    """Return a mode that was given as a `PermissionMode` or as its text.

    Args:
        name: the field, for the error.
        mode: a `PermissionMode`, or `"ask"`, `"allow"`, `"deny"`, `"plan"` or `"accept_edits"`.

    Raises:
        ConfigurationError: no mode has this name; the text names the nearest.
    """
    expect_choice(name, mode, [one.value for one in PermissionMode])
    return PermissionMode(mode)


class DecisionPart(FrozenModel):
    """The verdict on one part of a call, such as one simple command of a pipeline."""

    text: str
    decision: Verdict
    rule: str | None = None
    """The rule that decided, as written with its origin."""
    reason: str = ""


class PermissionDecision(FrozenModel):
    """A verdict with everything needed to explain it."""

    decision: Verdict
    source: DecisionSource
    reason: str
    """One line, for the dialog and for the model."""
    rule: str | None = None
    parts: tuple[DecisionPart, ...] = ()
    trace: tuple[str, ...] = ()
    """Every rule and check looked at, in order, a line each."""
    targets: tuple[str, ...] = ()
    """Resolved paths the call would touch; part of what an approval is bound to (P53)."""


DECIDED_BY_USER = "you"
"""Who asks about a call of the person's own."""


class ApprovalRequest(FrozenModel):
    """A question to a person about one call; plain data, so that any front end can answer it."""

    request_id: str = Field(default_factory=lambda: new_id("ask"))
    call_id: str
    digest: str
    """Hash of tool name, canonical arguments and resolved targets: what the answer is bound to (C43, P52)."""
    tool: str
    args: JsonObject
    summary: str = ""
    reason: str = ""
    preview: Preview | None = None
    parts: tuple[DecisionPart, ...] = ()
    trace: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    options: tuple[str, ...] = ("approve", "deny", "skip")
    """The decisions to choose from. The engine takes each of them for any call; whoever passes a question on may offer
    fewer. Whether an approval can be stored for longer than once is said by `session_rule` and `rules`."""
    session_rule: str | None = None
    """The rule that an approval beyond this call would store; None: not offered."""
    rules: tuple[str, ...] = ()
    """Every rule that an answer may store instead, narrowest first; `session_rule` is one of them."""
    agent: str = "main"
    """Who asks: `main`, the label of a sub-agent, or `you` (`DECIDED_BY_USER`) for a command of the person's own."""


class ApprovalDecision(FrozenModel):
    """An answer (C45). The default of everything is nothing: a decision is always made on purpose."""

    decision: Literal["approve", "deny", "skip"]
    scope: GrantScope = "once"
    note: str = ""
    """The person's words for the model, for example why not."""
    input: JsonObject | None = None
    """Changed arguments; validated and judged again before anything runs."""
    override_result: ToolResult | None = None
    """A result to use instead of running the tool (S4-73)."""
    rule: str | None = None
    """The one of the request's `rules` to store; None: its `session_rule`."""

    @model_validator(mode="after")
    def _says_nothing_in_vain(self) -> Self:
        """What nobody would heed is refused, so that nobody believes it was stored or shown."""
        runs = self.decision == "approve" and self.override_result is None
        if not runs and (self.scope != "once" or self.rule is not None or self.input is not None):
            raise ValueError("scope, rule and input are for an approval that lets the call run")
        if self.rule is not None and self.scope == "once":
            raise ValueError("a rule is stored for longer than once; say for how long with scope")
        if self.decision == "deny" and self.override_result is not None:
            raise ValueError("a denied call has no result of its own; skip or approve it with override_result")
        return self


POLICY_MEMBERS = ("mode", "set_mode", "floor", "check", "grant_rule", "grant_choices", "grant")
"""Attributes and methods of a `PermissionChecker`."""


class PermissionChecker(Protocol):
    """Judges calls. Reads live state at the moment of decision (P56), starts nothing, never raises."""

    @property
    def mode(self) -> PermissionMode:
        """The mode in force."""
        ...

    def set_mode(self, mode: PermissionMode) -> None:
        """Changes the mode for every decision from now on."""
        ...

    def floor(self, tool: Tool, arguments: JsonObject) -> PermissionDecision | None:
        """The part of a judgement nothing can override: a denial, or None (C14, C16)."""
        ...

    def check(self, tool: Tool, arguments: JsonObject) -> PermissionDecision:
        """The whole judgement: floor, rules, read-only relaxation, mode."""
        ...

    def grant_rule(self, tool: Tool, arguments: JsonObject) -> str | None:
        """The narrowest rule that would let this call pass for the session; None where none should be stored."""
        ...

    def grant_choices(self, tool: Tool, arguments: JsonObject) -> tuple[str, ...]:
        """Every rule that may be stored for this call, narrowest first; `grant_rule` is one of them."""
        ...

    def grant(self, rule: str, scope: GrantScope) -> str | None:
        """Stores an allow rule a person gave. It answers an `ask`, never a `deny` (C17).

        Returns:
            The file it stands in from now on; None: it is kept in memory.

        Raises:
            ConfigurationError: the rule's text cannot be read or its scope cannot be stored.
        """
        ...
