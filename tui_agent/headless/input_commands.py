"""What can be said to a headless agent on its input, one JSON object a line (interface §2)."""

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import ApprovalDecision, PermissionMode


class _Command(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class UserCommand(_Command):
    """Starts a run or, while one is on, steers it."""

    type: Literal["user"]
    text: str = Field(pattern=r"\S")


class FollowUpCommand(_Command):
    """Goes on with this once the run would end; starts one where none is on."""

    type: Literal["follow_up"]
    text: str = Field(pattern=r"\S")


class ApprovalCommand(_Command):
    """Answers the question with this id."""

    type: Literal["approval"]
    request_id: str
    decision: Literal["approve", "deny", "skip"]
    scope: Literal["once", "session", "project"] = "once"
    note: str = ""
    input: JsonObject | None = None
    """Changed arguments."""

    @property
    def answer(self) -> ApprovalDecision:
        """The decision as the agent takes it. A no is a no, whatever else was sent along: how long a yes would have
        held and what it would have run do not count then."""
        if self.decision != "approve":
            return ApprovalDecision(decision=self.decision, note=self.note)
        return ApprovalDecision(decision=self.decision, scope=self.scope, note=self.note, input=self.input)


class InterruptCommand(_Command):
    """Ends the run now; the next one may follow."""

    type: Literal["interrupt"]


class StopCommand(_Command):
    """Ends the run after this step; the next one may follow."""

    type: Literal["stop"]


class ModeCommand(_Command):
    """Another permission mode from here on."""

    type: Literal["mode"]
    mode: PermissionMode


InputCommand: TypeAlias = UserCommand | FollowUpCommand | ApprovalCommand | InterruptCommand | StopCommand | ModeCommand

_ADAPTER: TypeAdapter[InputCommand] = TypeAdapter(
    Annotated[InputCommand, Field(discriminator="type")], config=ConfigDict(defer_build=True)
)


def parse_command(line: bytes) -> InputCommand:
    """Reads one line.

    Raises:
        ConfigurationError: it is none of the orders; the text says in a few words why.
    """
    try:
        return _ADAPTER.validate_json(line)
    except ValidationError as error:
        raise ConfigurationError(_in_words(error)) from error


def _in_words(error: ValidationError) -> str:
    """The first complaints, where they are and what they are, without what was sent."""
    complaints: list[str] = []
    for complaint in error.errors(include_url=False, include_input=False)[:3]:
        place = ".".join(str(part) for part in complaint["loc"][1:])
        words = complaint["msg"].removeprefix("Value error, ")
        complaints.append(f"{place}: {words}" if place else words)
    return "; ".join(complaints)
