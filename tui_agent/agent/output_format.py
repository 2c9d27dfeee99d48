"""The type that a final answer must fit: its schema for the model, its check, and the report that holds the value.

The model is asked for JSON in its text, because every server that speaks the Messages API can do that; an answer that
does not fit is sent back once, with the errors in it.
"""

import inspect
import json
from collections.abc import Iterator
from typing import Generic

from pydantic import PrivateAttr, TypeAdapter, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, PydanticUserError
from typing_extensions import TypeVar

from tui_agent.execution.contained_calls import Crash, try_call
from tui_agent.execution.validation import schema_complaints
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.reports import AgentRunReport, OutputError

OutputT = TypeVar("OutputT", covariant=True, default=str)

MAX_ERRORS = 10
"""Most validation errors named in a repair message."""

_INSTRUCTIONS = """\
# Final answer
Give your final answer as one JSON value and nothing else: no text around it, no code fence. It must fit this JSON \
schema:

{schema}"""

_REPAIR = """\
Your answer does not fit the required JSON schema:
{problem}

Give the whole answer again as one JSON value that fits the schema, and nothing else."""

_FENCE = "```"
_NOT_JSON = "json_invalid"


class OutputFormat(Generic[OutputT]):
    """The type of final answers: a pydantic model, a dataclass, or any other type that pydantic can read."""

    answer_schema: JsonObject | None = None
    """The schema to which the endpoint holds the model; None: it is not asked to."""

    def __init__(self, output_type: type[OutputT]) -> None:
        """
        Raises:
            ConfigurationError: pydantic cannot read the type from JSON, or cannot describe it by a schema.
        """
        self.name: str = output_type.__name__ if inspect.isclass(output_type) else str(output_type)
        """The type's name, for messages."""
        try:
            self._adapter: TypeAdapter[OutputT] = TypeAdapter(output_type)
            self.schema: JsonObject = self._adapter.json_schema()
            """The JSON schema that the model is shown."""
        except (PydanticSchemaGenerationError, PydanticInvalidForJsonSchema, PydanticUserError) as error:
            why = str(error).partition("\n")[0]
            raise ConfigurationError(f"output_type {self.name} cannot be read from JSON: {why}") from error

    @property
    def instructions(self) -> str:
        """The part of the system prompt that asks for this format."""
        return _INSTRUCTIONS.format(schema=json.dumps(self.schema, ensure_ascii=False))

    def read(self, text: str) -> OutputT:
        """Return the value in an answer: the whole text as JSON, its last code fence, or the JSON value in it.

        Raises:
            ValidationError: no value in it fits.
            Exception: anything else that a validator of the type raises.
        """
        worst: ValidationError | None = None
        for candidate in _candidates(text):
            try:
                return self._adapter.validate_json(candidate)
            except ValidationError as error:
                if worst is None or _is_no_json(worst):
                    worst = error
        if self.schema.get("type") == "string" and (worst is None or _is_no_json(worst)):
            # One word for an enumeration, without its quotation marks.
            return self._adapter.validate_python(text.strip())
        assert worst is not None, "the text itself is always a candidate"
        raise worst

    def problem(self, text: str) -> str | None:
        """Return why an answer does not fit, a line for each error; None if it fits."""
        read = try_call(self.read, text)
        if not isinstance(read, Crash):
            return None
        if not isinstance(read.error, ValidationError):
            return f"- {type(read.error).__name__}: {read.text}"
        errors = read.error.errors(include_url=False, include_context=False, include_input=False)
        lines = [f"- {_place(error['loc'])}{error['msg']}" for error in errors[:MAX_ERRORS]]
        more = len(errors) - MAX_ERRORS
        return "\n".join([*lines, *([f"- and {more} more errors"] if more > 0 else [])])

    def repair_text(self, problem: str) -> str:
        """Return the message that asks the model to repair its answer."""
        return _REPAIR.format(problem=problem)


class SchemaFormat(OutputFormat[object]):
    """A JSON schema that final answers must match; the endpoint holds the model to it where it can."""

    def __init__(self, schema: JsonObject) -> None:
        """
        Raises:
            ConfigurationError: it is not a JSON schema.
        """
        self.name = "the JSON schema"
        self.schema = self.answer_schema = schema
        # Found out now, because each answer would fail against a broken schema.
        checked = try_call(schema_complaints, schema, None)
        if isinstance(checked, Crash):
            raise ConfigurationError(f"not a valid JSON schema: {checked.text.partition(chr(10))[0]}")

    def read(self, text: str) -> object:
        """Return the value in an answer: the whole text as JSON, its last code fence, or the JSON value in it.

        Raises:
            ValueError: no value in it matches.
        """
        value, problem = self._best(text)
        if problem:
            raise ValueError(problem)
        return value

    def problem(self, text: str) -> str | None:
        """Return why an answer does not match, a line for each error; None if it matches."""
        return self._best(text)[1] or None

    def _best(self, text: str) -> tuple[object, str]:
        """Return the value that matches, or the first one, with its problem; the problem is empty if it matches."""
        first: tuple[object, str] | None = None
        for candidate in _candidates(text):
            try:
                value = json.loads(candidate, parse_constant=_refuse_constant)
            except (ValueError, RecursionError):
                continue
            lines = schema_complaints(self.schema, value)
            more = [f"and {len(lines) - MAX_ERRORS} more errors"] if len(lines) > MAX_ERRORS else []
            found = value, "\n".join(f"- {line}" for line in (*lines[:MAX_ERRORS], *more))
            if not lines:
                return found
            # The complaint is about the likeliest candidate, not the last that was tried.
            first = first or found
        return first or (None, "- it is not JSON")


def _refuse_constant(name: str) -> object:
    """Refuse `NaN` and `Infinity`, which are no JSON.

    Raises:
        ValueError: always.
    """
    raise ValueError(name)


class RunReport(AgentRunReport, Generic[OutputT]):
    """A run's report with the value of its final answer."""

    _format: "OutputFormat[OutputT] | None" = PrivateAttr(default=None)

    @classmethod
    def of(cls, report: AgentRunReport, output_format: OutputFormat[OutputT] | None) -> "RunReport[OutputT]":
        """Return a report that reads its final text in this format; None: plain text."""
        typed = cls.model_construct(**dict(report))
        typed._format = output_format
        return typed

    @property
    def output(self) -> OutputT:
        """The final answer as a value of the agent's `output_type`; without one, the final text.

        Raises:
            RunError: the run ended early, see `raise_for_reason`; it has no output.
            OutputError: the run ended, by a tool's request, with an answer that does not fit.
        """
        self.raise_for_reason()
        if self._format is None:
            text: OutputT = self.final_text  # pyright: ignore[reportAssignmentType] - without a type OutputT is str.
            return text
        problem = self._format.problem(self.final_text)
        if problem is not None:
            raise OutputError(self, f"the final answer does not fit {self._format.name}:\n{problem}")
        return self._format.read(self.final_text)


def _candidates(text: str) -> Iterator[str]:
    """Yield the parts of an answer that may be its JSON value, the most likely first."""
    text = text.strip()
    # The most literal reading first: an answer that is JSON as a whole needs no guess.
    yield text
    end = text.rfind(_FENCE)
    # The last fence: models show their drafts before the result.
    start = text.rfind(_FENCE, 0, max(end, 0))
    if start >= 0:
        yield text[start + len(_FENCE) : end].partition("\n")[2]
    opened = min((place for place in map(text.find, "{[") if place >= 0), default=-1)
    closed = max(map(text.rfind, "}]"))
    if 0 <= opened < closed:
        yield text[opened : closed + 1]


def _is_no_json(error: ValidationError) -> bool:
    return any(one["type"] == _NOT_JSON for one in error.errors(include_url=False, include_input=False))


def _place(location: tuple[int | str, ...]) -> str:
    return f"{'.'.join(map(str, location))}: " if location else ""
