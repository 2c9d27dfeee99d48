"""Tools with typed arguments: the schema for the model and the arguments of a tool come from one pydantic class."""

import re
from abc import abstractmethod
from typing import Annotated, Generic, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from tui_agent.protocol.errors import InvalidArgumentsError, ToolError
from tui_agent.protocol.function_schema import schema_of
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.server_question import ServerQuestion
from tui_agent.protocol.tool import Accesses, Preview, Subject, Timeout, Tool, ToolContext, ToolResult, ToolSpec

SUMMARY_LIMIT = 160

_SURROGATE = re.compile("[\ud800-\udfff]")


class Arguments(BaseModel):
    """Base class of tool arguments: frozen, unknown names are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @field_validator("*")
    @classmethod
    def _sound(cls, value: object) -> object:
        """Refuse lone surrogates, which no file, path or command can contain."""
        if isinstance(value, str) and _SURROGATE.search(value):
            raise ValueError("contains a lone surrogate, which is not valid text")
        return value


Args = TypeVar("Args", bound=Arguments)


class TypedTool(Tool, Generic[Args]):
    """Base class of tools whose methods get validated arguments instead of a JSON object (S1-26).

    Subclasses implement `run` and override `call_…` methods. For invalid arguments the methods of `Tool` return their
    cautious default and never raise; only `read_only` applies to them as well.
    """

    touches: Accesses | None = None
    """Resolved paths that every call touches; None if they differ or are unknown."""
    time_limit: Timeout = "default"
    """Time limit of every call."""

    def __init__(self, name: str, description: str, model: type[Args], *, read_only: bool = False) -> None:
        """Store the description, whose first line says in one sentence what the tool does; the model has its arguments.

        `read_only` is True if no call ever changes anything.
        """
        self.spec = ToolSpec(name=name, description=description, input_schema=schema_of(model))
        self.arguments_model = model
        self._model = model
        self._read_only = read_only

    @abstractmethod
    async def run(self, args: Args, context: ToolContext) -> ToolResult:
        """Run one call and return its result.

        Raises:
            ToolError: the call failed; the model gets the message.
        """

    def call_is_read_only(self, args: Args) -> bool:
        """Return True if this call changes nothing."""
        return self._read_only

    def call_accesses(self, args: Args) -> Accesses | None:
        """Return the resolved paths this call touches; None if they are unknown.

        Raises:
            ToolError: the paths cannot be determined; counts as unknown.
        """
        return self.touches

    def call_subject(self, args: Args) -> Subject | None:
        """Return the subject that permission rules match; None if the tool's rules have no pattern."""
        return None

    def call_question(self, args: Args) -> ServerQuestion | None:
        """Return what the engine asks the user before this call runs; None for no question."""
        return None

    def call_timeout(self, args: Args) -> Timeout:
        """Return the time limit of this call."""
        return self.time_limit

    def call_summary(self, args: Args) -> str:
        """Return a summary of this call; the caller puts it on one line."""
        return ""

    async def call_preview(self, args: Args) -> Preview | None:
        """Return a preview of the effect of this call; None if there is none.

        Raises:
            ToolError: the call would fail; the user sees the message instead of a preview.
        """
        return None

    def parse(self, arguments: JsonObject) -> Args:
        """Validate the arguments of a call.

        Raises:
            InvalidArgumentsError: they are invalid; the message names each field and what was expected.
        """
        try:
            return self._model.model_validate(arguments)
        except ValidationError as error:
            problems = "; ".join(_problem(detail["loc"], detail["msg"]) for detail in error.errors())
            raise InvalidArgumentsError(f"invalid arguments for {self.name}: {problems}") from error

    async def execute(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        return await self.run(self.parse(arguments), context)

    def is_read_only(self, arguments: JsonObject) -> bool:
        args = self._parsed(arguments)
        # A call with invalid arguments is refused before it runs, so this promise still counts.
        return self._read_only if args is None else self.call_is_read_only(args)

    def interruptible(self, arguments: JsonObject) -> bool:
        return self.is_read_only(arguments)

    def accesses(self, arguments: JsonObject) -> Accesses | None:
        args = self._parsed(arguments)
        try:
            return None if args is None else self.call_accesses(args)
        except ToolError:
            return None

    def subject(self, arguments: JsonObject) -> Subject | None:
        args = self._parsed(arguments)
        return None if args is None else self.call_subject(args)

    def question(self, arguments: JsonObject) -> ServerQuestion | None:
        args = self._parsed(arguments)
        return None if args is None else self.call_question(args)

    def timeout(self, arguments: JsonObject) -> Timeout:
        args = self._parsed(arguments)
        return "default" if args is None else self.call_timeout(args)

    def summarise(self, arguments: JsonObject) -> str:
        args = self._parsed(arguments)
        if args is None:
            # The user sees what the model sent, also if no tool understands it.
            return one_line(", ".join(f"{name}={value!r}" for name, value in arguments.items()))
        return one_line(self.call_summary(args))

    async def preview(self, arguments: JsonObject) -> Preview | None:
        args = self._parsed(arguments)
        if args is None:
            return None
        return await self.call_preview(args)

    def _parsed(self, arguments: JsonObject) -> Args | None:
        try:
            return self._model.model_validate(arguments)
        except ValidationError:
            return None


def one_line(text: str, limit: int = SUMMARY_LIMIT) -> str:
    """Return `text` on one line of at most `limit` characters, with `⏎` for line breaks and `…` for a cut."""
    line = " ⏎ ".join(text.splitlines())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _problem(place: tuple[int | str, ...], words: str) -> str:
    """Format one validation error."""
    return f"{'.'.join(str(part) for part in place) or 'arguments'}: {words}"


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("must not contain a NUL character")
    return text


WordText = Annotated[str, Field(min_length=1), AfterValidator(_without_nul)]
"""Text that is passed to the system, such as a command: not empty, without NUL."""

Position = Annotated[int, BeforeValidator(lambda value: 1 if value == 0 else value)]
"""A number that counts from 1; 0 also means the first."""

PathText = WordText
"""A path in the arguments of a call: absolute, starting with `~`, or relative to the workspace."""

PlaceText = Annotated[PathText, BeforeValidator(lambda value: "." if value == "" else value)]
"""A path that may be left out; an empty one also means the workspace."""
