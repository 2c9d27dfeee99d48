"""Commands to a headless agent on standard input, one JSON object a line."""

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import ApprovalDecision, PermissionMode


class _Command(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class UserCommand(_Command):
    """Start a run or, during a run, steer it."""

    type: Literal["user"]
    text: str = Field(pattern=r"\S")


class FollowUpCommand(_Command):
    """Queue a turn after the current one; without a run, start one."""

    type: Literal["follow_up"]
    text: str = Field(pattern=r"\S")


class ApprovalCommand(_Command):
    """Answer the request for approval with this id."""

    type: Literal["approval"]
    request_id: str
    decision: Literal["approve", "deny", "skip"]
    scope: Literal["once", "session", "project"] = "once"
    note: str = ""
    input: JsonObject | None = None
    """Changed arguments."""

    @property
    def answer(self) -> ApprovalDecision:
        """The decision for the agent. For `deny` and `skip`, `scope` and `input` are ignored: clients may send them
        with
        every decision."""
        if self.decision != "approve":
            return ApprovalDecision(decision=self.decision, note=self.note)
        return ApprovalDecision(decision=self.decision, scope=self.scope, note=self.note, input=self.input)


class InterruptCommand(_Command):
    """End the run now; another run may follow."""

    type: Literal["interrupt"]


class StopCommand(_Command):
    """End the run after this step; another run may follow."""

    type: Literal["stop"]


class ModeCommand(_Command):
    """Change the permission mode."""

    type: Literal["mode"]
    mode: PermissionMode


InputCommand: TypeAlias = UserCommand | FollowUpCommand | ApprovalCommand | InterruptCommand | StopCommand | ModeCommand

_ADAPTER: TypeAdapter[InputCommand] = TypeAdapter(
    Annotated[InputCommand, Field(discriminator="type")], config=ConfigDict(defer_build=True)
)


def parse_command(line: bytes) -> InputCommand:
    """Parse one line.

    Raises:
        ConfigurationError: the line is not a valid command; the text has the reason.
    """
    try:
        return _ADAPTER.validate_json(line)
    except ValidationError as error:
        raise ConfigurationError(_in_words(error)) from error


def _in_words(error: ValidationError) -> str:
    """Return the first three errors with their fields, without the input."""
    complaints: list[str] = []
    for complaint in error.errors(include_url=False, include_input=False)[:3]:
        place = ".".join(str(part) for part in complaint["loc"][1:])
        words = complaint["msg"].removeprefix("Value error, ")
        complaints.append(f"{place}: {words}" if place else words)
    return "; ".join(complaints)
