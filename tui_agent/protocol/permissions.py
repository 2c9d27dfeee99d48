"""Permission modes, decisions of a policy, and requests for approval with their answers.

A policy decides; an approval gate waits for the user. All types here are plain data.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Literal, Protocol, Self, runtime_checkable

from pydantic import Field, model_validator

from .messages import FrozenModel, JsonObject, new_id
from .server_question import ServerQuestion
from .tool import Preview, Tool, ToolResult, Verdict
from .trial import Place, ProposedChanges
from .value_checks import expect_choice

DecisionSource = Literal["floor", "rule", "read_only", "mode", "grant", "hook", "invalid"]
GrantScope = Literal["once", "session", "project", "user"]


class PermissionMode(StrEnum):
    """Decision for a call that no rule decides (S1-15, S1-16)."""

    ASK = "ask"
    ALLOW = "allow"
    DENY = "deny"
    PLAN = "plan"
    ACCEPT_EDITS = "accept_edits"

    @property
    def words(self) -> str:
        """The name as the screen and reasons spell it, such as `accept edits`."""
        return self.value.replace("_", " ")


def as_permission_mode(name: str, mode: object) -> PermissionMode:
    """Convert a `PermissionMode` or its text to a `PermissionMode`.

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
    """Text and origin of the rule that decided."""
    reason: str = ""
    operator: str = ""
    """Its connection to the part before: `|`, `&&`, `||` or `;`; empty for the first part."""
    dangers: tuple[str, ...] = ()
    """Its dangers in words, such as `deletes files`, the worst first. A part without any is not harmless."""


class PermissionDecision(FrozenModel):
    """A verdict with its explanation."""

    decision: Verdict
    source: DecisionSource
    reason: str
    """Reason in one line, for the dialog and the model."""
    rule: str | None = None
    parts: tuple[DecisionPart, ...] = ()
    trace: tuple[str, ...] = ()
    """Every rule and check that was evaluated, in order, a line each."""
    targets: tuple[str, ...] = ()
    """Resolved paths the call would touch. An approval is valid for these only."""
    scripts: tuple[str, ...] = ()
    """Resolved paths of files that the call names as programs or scripts. An approval is valid for their contents."""
    place: Place = "outside"
    """Place in which the call runs if it is allowed, also by an answer; the tool obeys it (`ToolContext.place`)."""


class ChangesDecision(FrozenModel):
    """A decision on what a command changed in a trial."""

    decision: Verdict
    """`allow`: `kept` is kept and the rest discarded; `ask`: the user decides; `deny`: everything is discarded."""
    source: DecisionSource
    reason: str
    kept: tuple[str, ...] = ()
    """Paths, as in `KeepSelection.paths`, that a rule or the mode keeps. If no one can answer a question, these are
    kept and the others discarded."""
    asked: tuple[str, ...] = ()
    """Paths that need an answer."""
    rules: tuple[str, ...] = ()
    """Rules that would keep such changes from now on, narrowest first; several rules are on separate lines."""


PLAN_MODE_DENIAL = "plan mode changes nothing"
"""Beginning of the reason for a denial by plan mode."""

DECIDED_BY_USER = "you"
"""Agent name in requests for a call by the user."""


class ApprovalRequest(FrozenModel):
    """A request for approval of one call; plain data, so that any front end can answer it."""

    request_id: str = Field(default_factory=lambda: new_id("ask"))
    call_id: str
    digest: str
    """Hash of tool name, arguments, targets, scripts and place. The answer is valid for these only."""
    tool: str
    args: JsonObject
    summary: str = ""
    reason: str = ""
    preview: Preview | None = None
    parts: tuple[DecisionPart, ...] = ()
    trace: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    options: tuple[str, ...] = ("approve", "deny", "skip")
    """Decisions to choose from. The engine accepts all of them for any call; a front end may offer fewer.
    `session_rule`
    and `rules` list the rules that an approval can store."""
    session_rule: str | None = None
    """Rule that an approval beyond this call stores; None if not offered."""
    rules: tuple[str, ...] = ()
    """Rules that an answer may choose from, narrowest first, `session_rule` included."""
    agent: str = "main"
    """Agent of the call: `main`, the label of a sub-agent, or `you` (`DECIDED_BY_USER`) for a command by the user."""
    question: ServerQuestion | None = None
    """Question of a tool server; None for a call. Such a request belongs to no call (`call_id` is empty). To approve it
    is to accept, with the values of a form as the decision's `input`; to skip it is to dismiss it without a choice."""
    changes: ProposedChanges | None = None
    """Changes of a command that ran in a trial; None for other questions. To approve is to keep them, all or the part
    that the decision's `input` names with the fields of `KeepSelection`; to deny or skip is to discard them."""


class ApprovalDecision(FrozenModel):
    """The answer to a request for approval. `decision` has no default, so that nothing is approved by accident."""

    decision: Literal["approve", "deny", "skip"]
    scope: GrantScope = "once"
    note: str = ""
    """Note of the user to the model, for example the reason of a denial."""
    input: JsonObject | None = None
    """Changed arguments, which are validated and checked against the policy again."""
    override_result: ToolResult | None = None
    """A result to use instead of running the tool (S4-73)."""
    rule: str | None = None
    """Rule to store: one of the request's `rules`, or one that the policy accepts (`TypedRuleChecker`); None for its
    `session_rule`."""
    via: str = ""
    """Name of the `[[notify]]` that the answer came through; empty for an answer here."""

    @model_validator(mode="after")
    def _reject_ignored_fields(self) -> Self:
        """Reject fields without effect for this decision, so that no caller believes that they were stored."""
        runs = self.decision == "approve" and self.override_result is None
        if not runs and (self.scope != "once" or self.rule is not None or self.input is not None):
            raise ValueError("scope, rule and input need an approval that lets the call run")
        if self.rule is not None and self.scope == "once":
            raise ValueError("a rule needs a scope longer than once")
        if self.decision == "deny" and self.override_result is not None:
            raise ValueError("a denied call has no result; skip or approve it to use override_result")
        return self


POLICY_MEMBERS = ("mode", "set_mode", "floor", "check", "grant_rule", "grant_choices", "grant")
"""Names of the attributes and methods of a `PermissionChecker`."""


class PermissionChecker(Protocol):
    """A permission policy. Evaluates the current rules and mode on each check, starts nothing, never raises."""

    @property
    def mode(self) -> PermissionMode:
        """Current mode."""
        ...

    def set_mode(self, mode: PermissionMode) -> None:
        """Change the mode for all later decisions."""
        ...

    def floor(self, tool: Tool, arguments: JsonObject) -> PermissionDecision | None:
        """Return a denial that no rule, hook or approval can override, or None."""
        ...

    def check(self, tool: Tool, arguments: JsonObject) -> PermissionDecision:
        """Return the decision by floor, rules, read-only relaxation and mode, in this order."""
        ...

    def grant_rule(self, tool: Tool, arguments: JsonObject) -> str | None:
        """Return the narrowest rule that allows this call; None if none should be stored."""
        ...

    def grant_choices(self, tool: Tool, arguments: JsonObject) -> tuple[str, ...]:
        """Return the rules that may be stored for this call, narrowest first, `grant_rule` included."""
        ...

    def grant(self, rule: str, scope: GrantScope) -> str | None:
        """Store an allow rule by the user, which overrides `ask`, never `deny`; return its file, None for memory.

        Raises:
            ConfigurationError: the rule is not valid, or its scope cannot be stored.
        """
        ...


@runtime_checkable
class TypedRuleChecker(Protocol):
    """A permission policy that also accepts rules which it did not propose."""

    def grant_refusal(self, rule: str, tool: Tool, arguments: JsonObject) -> str:
        """Return why a rule may not be stored for this call, in words for the user; empty if it may."""
        ...


@runtime_checkable
class SearchFilter(Protocol):
    """A permission policy that lets a search leave out denied paths (`PathSubject.leaves_out_denied`)."""

    def denied_below(self, tool: Tool, arguments: JsonObject) -> Callable[[str], bool]:
        """Return a function that says if a deny rule forbids reading a path below the directory of a search.

        Its argument is relative to that directory. For a call that is not about a path it always returns False.
        """
        ...


@runtime_checkable
class ChangesChecker(Protocol):
    """A permission policy that decides on what commands changed in a trial."""

    def check_changes(self, changes: ProposedChanges) -> ChangesDecision:
        """Return the decision by path rules, kinds of paths and mode; never raises."""
        ...


@runtime_checkable
class ChangesRuleChecker(Protocol):
    """A permission policy that also accepts rules on changes which it did not propose."""

    def changes_refusal(self, rule: str, changes: ProposedChanges) -> str:
        """Return why a typed rule may not be stored with an answer to the changes, in words; empty if it may."""
        ...
