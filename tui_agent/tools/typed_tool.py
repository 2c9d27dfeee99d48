"""Tools with typed arguments: a pydantic model is the schema, so what the model is shown and what a tool gets agree."""

import re
from abc import abstractmethod
from typing import Annotated, Generic, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator

from tui_agent.protocol.errors import InvalidArgumentsError, ToolError
from tui_agent.protocol.function_schema import schema_of
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.tool import Accesses, Preview, Subject, Timeout, Tool, ToolContext, ToolResult, ToolSpec

SUMMARY_LIMIT = 160
"""Most characters of a one-line summary."""

_SURROGATE = re.compile("[\ud800-\udfff]")


class Arguments(BaseModel):
    """Base of every arguments model: frozen, and a name the schema does not have is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @field_validator("*")
    @classmethod
    def _sound(cls, value: object) -> object:
        """Refuses half a surrogate pair: no file, path or command can hold it."""
        if isinstance(value, str) and _SURROGATE.search(value):
            raise ValueError("holds half a surrogate pair, which is no text")
        return value


Args = TypeVar("Args", bound=Arguments)


class TypedTool(Tool, Generic[Args]):
    """A tool whose methods get a validated arguments model instead of a JSON object (S1-26).

    Subclasses implement `run` and those `call_…` methods whose answer differs from the default. Arguments that do not
    validate get the careful answer and never raise: nothing but the constant `read_only` is said of them.
    """

    def __init__(self, name: str, description: str, model: type[Args], *, read_only: bool = False) -> None:
        """
        Args:
            name: the name calls use.
            description: words for the model; the first line says in one sentence what the tool does.
            model: the arguments; its JSON schema is the tool's.
            read_only: whether no call of this tool ever changes anything.
        """
        self.spec = ToolSpec(name=name, description=description, input_schema=schema_of(model))
        self.arguments_model = model
        self._model = model
        self._read_only = read_only

    @abstractmethod
    async def run(self, args: Args, context: ToolContext) -> ToolResult:
        """Runs one call.

        Raises:
            ToolError: the call failed; the text goes to the model.
        """

    def call_is_read_only(self, args: Args) -> bool:
        """Whether this call changes nothing."""
        return self._read_only

    def call_is_concurrency_safe(self, args: Args) -> bool:
        """Whether this call may run beside others."""
        return self.call_is_read_only(args)

    def call_accesses(self, args: Args) -> Accesses | None:
        """The resolved paths this call touches; None: not known.

        Raises:
            ToolError: they cannot be told; counts as not known.
        """
        return None

    def call_subject(self, args: Args) -> Subject | None:
        """What permission rules compare their pattern with."""
        return None

    def call_notices_changes(self, args: Args) -> bool:
        """Whether this call refuses by itself a file that changed since the model saw it."""
        return False

    def call_timeout(self, args: Args) -> Timeout:
        """How long this call may execute."""
        return "default"

    def call_summary(self, args: Args) -> str:
        """What this call is about; made one line by the caller."""
        return ""

    async def call_preview(self, args: Args) -> Preview | None:
        """What this call would do.

        Raises:
            ToolError: it would fail; the text is shown in the preview's place.
        """
        return None

    def parse(self, arguments: JsonObject) -> Args:
        """The arguments as the model holds them.

        Raises:
            InvalidArgumentsError: they do not fit; the text names each place and what was expected.
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
        return self._read_only if args is None else self.call_is_read_only(args)

    def is_concurrency_safe(self, arguments: JsonObject) -> bool:
        args = self._parsed(arguments)
        return self._read_only if args is None else self.call_is_concurrency_safe(args)

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

    def notices_changes(self, arguments: JsonObject) -> bool:
        args = self._parsed(arguments)
        return args is not None and self.call_notices_changes(args)

    def timeout(self, arguments: JsonObject) -> Timeout:
        args = self._parsed(arguments)
        return "default" if args is None else self.call_timeout(args)

    def summarise(self, arguments: JsonObject) -> str:
        args = self._parsed(arguments)
        if args is None:
            return one_line(", ".join(f"{name}={value!r}" for name, value in arguments.items()))
        return one_line(self.call_summary(args))

    async def preview(self, arguments: JsonObject) -> Preview | None:
        args = self._parsed(arguments)
        if args is None:
            return None
        try:
            return await self.call_preview(args)
        except ToolError as error:
            return Preview(kind="text", text=f"As things stand, this call would fail: {error}")

    def _parsed(self, arguments: JsonObject) -> Args | None:
        try:
            return self._model.model_validate(arguments)
        except ValidationError:
            return None


def one_line(text: str, limit: int = SUMMARY_LIMIT) -> str:
    """`text` on one line of at most `limit` characters; line breaks and cuts can be seen."""
    line = " ⏎ ".join(text.splitlines())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _problem(place: tuple[int | str, ...], words: str) -> str:
    """One validation error in words."""
    return f"{'.'.join(str(part) for part in place) or 'arguments'}: {words}"


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("cannot hold a NUL character")
    return text


WordText = Annotated[str, Field(min_length=1), AfterValidator(_without_nul)]
"""Text that is handed to the system, such as a command: not empty, without NUL."""

PathText = WordText
"""A path as a call gives it: absolute, from `~`, or relative to the workspace."""
