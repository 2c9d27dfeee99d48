"""The tool `ask_user`: the model asks the user, who chooses or answers in words of their own."""

from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, StringConstraints, model_validator

from tui_agent.protocol.messages import JsonObject, is_array, is_object
from tui_agent.protocol.server_question import FieldChoice, FieldValue, FormField, ServerQuestion
from tui_agent.protocol.tool import Accesses, ToolContext, ToolResult

from .typed_tool import Arguments, TypedTool

_DESCRIPTION = """Asks the user up to four questions and returns the answers.
Use it only for decisions that the user has to make; all questions in one call. The user may always answer in other \
words, so add no choice such as "other". Not for permission to use a tool."""

_LONGEST_CHOICE = 500
_NOBODY = "No one can answer here. Decide yourself, and say in your answer what you assumed."


def _as_text(choice: object) -> object:
    """Return a choice as text; other agents write it as an object with label and description."""
    if is_object(choice) and isinstance(choice.get("label"), str):
        return "\n".join(filter(None, (choice["label"].strip(), str(choice.get("description") or "").strip())))
    return choice


_Choice = Annotated[str, BeforeValidator(_as_text), StringConstraints(strip_whitespace=True, pattern=r"\S")]


class AskedQuestion(Arguments):
    """One question."""

    question: Annotated[str, StringConstraints(strip_whitespace=True, pattern=r"\S", max_length=1000)]
    choices: tuple[_Choice, ...] = Field(
        min_length=2, max_length=6, description="A few words each; on a second line what it leads to."
    )
    several: bool = Field(False, description="May choose several.")
    default: tuple[str, ...] = Field((), description="First lines of the choices that you recommend.")

    @property
    def labels(self) -> tuple[str, ...]:
        """The choices without their explanations."""
        return tuple(choice.partition("\n")[0].strip() for choice in self.choices)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if long := next((choice for choice in self.choices if len(choice) > _LONGEST_CHOICE), None):
            raise ValueError(f"the choice {long[:40]!r} … is longer than {_LONGEST_CHOICE} characters")
        if len(set(self.labels)) != len(self.labels):
            raise ValueError("the first lines of the choices must differ")
        if unknown := next((label for label in self.default if label not in self.labels), None):
            raise ValueError(f"the default {unknown!r} is not among the choices")
        if len(set(self.default)) > 1 and not self.several:
            raise ValueError("only a question with several answers can have several defaults")
        return self


class AskUserArguments(Arguments):
    """Arguments of the tool."""

    questions: tuple[AskedQuestion, ...] = Field(min_length=1, max_length=4)


class AskUserTool(TypedTool[AskUserArguments]):
    """Tool that returns what the user answered; it changes nothing, so it never needs permission."""

    touches = Accesses()
    # The user may take as long as they like.
    time_limit = None
    # The user talks with the main agent only.
    for_main_agent = True

    def __init__(self) -> None:
        super().__init__("ask_user", _DESCRIPTION, AskUserArguments, read_only=True)

    def call_summary(self, args: AskUserArguments) -> str:
        first, more = args.questions[0].question, len(args.questions) - 1
        return f"{first} (and {more} more)" if more else first

    def call_question(self, args: AskUserArguments) -> ServerQuestion:
        fields = tuple(_field(number, one) for number, one in enumerate(args.questions, 1))
        return ServerQuestion(server="", kind="form", fields=fields)

    async def run(self, args: AskUserArguments, context: ToolContext) -> ToolResult:
        answers = context.answers
        if answers is None:
            text = "\n".join([_NOBODY, *map(_default_line, args.questions)])
            return ToolResult.of_text(text, details={"outcome": "no one can answer"})
        lines: list[str] = []
        for number, one in enumerate(args.questions, 1):
            lines += [f"{number}. {one.question}", f"   {_answer_line(one, answers.get(str(number)))}"]
        given = [text for one in _given(args, answers) if (text := _in_words(one))]
        details: JsonObject = {"outcome": " · ".join(given) or "no choice", "answers": dict(answers)}
        return ToolResult.of_text("\n".join(["The user answered:", *lines]), details=details)


def _field(number: int, asked: AskedQuestion) -> FormField:
    return FormField(
        name=str(number),
        kind="choices" if asked.several else "choice",
        title=asked.question,
        default=asked.default if asked.several else next(iter(asked.default), None),
        choices=tuple(
            FieldChoice(value=label, description=choice.partition("\n")[2].strip())
            for label, choice in zip(asked.labels, asked.choices, strict=True)
        ),
        # The right answer may be among none of the choices.
        is_open=True,
    )


def _given(args: AskUserArguments, answers: Mapping[str, FieldValue]) -> list[FieldValue]:
    """Return the answers in the order of the questions."""
    return [answers.get(str(number)) for number in range(1, len(args.questions) + 1)]


def _in_words(value: FieldValue) -> str:
    return ", ".join(map(str, value)) if is_array(value) else "" if value is None else str(value)


def _answer_line(asked: AskedQuestion, value: FieldValue) -> str:
    """Return an answer, with a mark for words of the user's own."""
    if value is None or value == []:
        defaults = ", ".join(asked.default)
        return f"no choice; the default holds: {defaults}" if defaults else "no choice: decide yourself"
    # The model must not take the user's own words for a choice that it offered.
    own = [one for one in (value if is_array(value) else [value]) if one not in asked.labels]
    return f"{_in_words(value)}{' (in their own words)' if own else ''}"


def _default_line(asked: AskedQuestion) -> str:
    return f"- {asked.question} Default: {', '.join(asked.default) or 'none'}"
