"""Final answers with a type: the instruction to the model, the check, and the single repair turn."""

from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, field_validator
from typing_extensions import TypedDict

from tests.agent.harness import ScriptedTool
from tests.support.table import table
from tui_agent.agent import AgentLoop, AgentLoopConfig, OutputFormat, RunReport
from tui_agent.agent.output_format import MAX_ERRORS
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.messages import UserMessage
from tui_agent.protocol.reports import INVALID_OUTPUT, OutputError, RunLimitError
from tui_agent.providers import ScriptedProvider, call, reply
from tui_agent.providers.scripted_provider import Step


class City(BaseModel):
    """Place."""

    name: str
    people: int = Field(ge=0)


@dataclass
class Point:
    """Place on a map."""

    x: int
    y: int


class Size(TypedDict):
    """Size."""

    width: int


class Colour(Enum):
    """One of two."""

    RED = "red"
    BLUE = "blue"


BERN = City(name="Bern", people=140_000)
JSON = BERN.model_dump_json()


def loop_of(*steps: Step, output_type: Any = City, **options: Any) -> tuple[AgentLoop, ScriptedProvider]:
    model = ScriptedProvider(steps)
    return AgentLoop(AgentLoopConfig(provider=model, output=OutputFormat(output_type), **options)), model


# --- checks -----------------------------------------------------------------------------------------------------------


@table(
    "text",
    [
        JSON,
        f"\n  {JSON}\n",
        f"```json\n{JSON}\n```",
        f"Here it is:\n\n```\n{JSON}\n```\nGood?",
        f"```python\nprint()\n```\n```json\n{JSON}\n```",
        f"The answer is {JSON}.",
        '{"name": "Bern", "people": "140000"}',
    ],
)
def test_a_value_is_found_in_the_answer(text: str) -> None:
    assert OutputFormat(City).read(text) == BERN
    assert OutputFormat(City).problem(text) is None


@table(
    ("output_type", "text", "value"),
    [
        (Point, '{"x": 1, "y": 2}', Point(1, 2)),
        (Size, '{"width": 3}', {"width": 3}),
        (list[City], f"[{JSON}]", [BERN]),
        (list[City], f"They are [{JSON}, {JSON}]", [BERN, BERN]),
        (int, "42", 42),
        (bool, "true", True),
        (str, '"quoted"', "quoted"),
        (str, "plain words", "plain words"),
        (Literal["yes", "no"], '"yes"', "yes"),
        (Literal["yes", "no"], " yes ", "yes"),
        (Colour, "blue", Colour.BLUE),
        (City | Point, '{"x": 1, "y": 2}', Point(1, 2)),
    ],
)
def test_any_type_that_pydantic_knows_will_do(output_type: Any, text: str, value: object) -> None:
    assert OutputFormat(output_type).read(text) == value


def test_a_long_list_of_problems_is_cut() -> None:
    problem = OutputFormat(list[City]).problem("[" + ",".join(["{}"] * 50) + "]")

    assert problem is not None
    assert problem.splitlines()[MAX_ERRORS:] == [f"- and {100 - MAX_ERRORS} more errors"]


def test_a_validator_that_crashes_is_a_problem() -> None:
    class Odd(BaseModel):
        n: int

        @field_validator("n")
        @classmethod
        def check(cls, n: int) -> int:
            raise KeyError("odd")

    assert OutputFormat(Odd).problem('{"n": 1}') == "- KeyError: 'odd'"


@table("text", ["[" * 2_000_000, "```" * 500_000, '{"a":' * 500_000, "{" * 1_000_000 + "}" * 1_000_000])
def test_hostile_text_is_a_problem_like_any_other(text: str) -> None:
    assert OutputFormat(City).problem(text) is not None


@pytest.mark.parametrize("output_type", [object(), type("Plain", (), {})])
def test_an_unsupported_type_is_refused(output_type: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"output_type .* cannot be read from JSON"):
        OutputFormat(output_type)


# --- runs -------------------------------------------------------------------------------------------------------------


async def test_an_invalid_answer_is_repaired_once() -> None:
    loop, model = loop_of("It is Bern.", JSON)

    report = await loop.run("Which city?")

    notice = model.requests[1].messages[-1]
    assert isinstance(notice, UserMessage)
    assert notice.kind == "notice"
    assert "does not fit the required JSON schema:\n- Invalid JSON" in notice.text
    assert (report.reason, report.step_count, report.final_text) == ("done", 2, JSON)


async def test_a_second_invalid_answer_ends_the_run_and_is_kept() -> None:
    loop, _ = loop_of("It is Bern.", "Bern!", JSON)

    report = await loop.run("Which city?")

    assert (report.reason, report.error_kind, report.final_text) == ("error", INVALID_OUTPUT, "Bern!")
    assert report.error is not None
    assert report.error.startswith("The final answer does not fit City, not even after a repair:\n- Invalid JSON")
    with pytest.raises(OutputError, match="does not fit City"):
        report.raise_for_reason()


async def test_the_next_run_has_its_own_repair() -> None:
    loop, _ = loop_of("no", "no", "no", JSON)

    first, second = await loop.run("Which city?"), await loop.run("Once more.")

    assert (first.reason, second.reason) == ("error", "done")


async def test_only_the_final_answer_is_checked() -> None:
    loop, model = loop_of(reply("Let me look.", call("look")), JSON, tools=[ScriptedTool("look", read_only=True)])

    report = await loop.run("Which city?")

    assert (report.reason, len(model.requests)) == ("done", 2)


async def test_a_repair_counts_as_a_step() -> None:
    loop, _ = loop_of("It is Bern.", JSON, max_steps=1)

    report = await loop.run("Which city?")

    assert report.reason == "max_steps"
    with pytest.raises(RunLimitError):
        report.raise_for_reason()


async def test_a_truncated_answer_is_repaired() -> None:
    loop, _ = loop_of(reply(JSON[:10], stop_reason="max_tokens"), JSON)

    assert (await loop.run("Which city?")).reason == "done"


async def test_a_tool_that_ends_the_run_leaves_no_output() -> None:
    output = OutputFormat(City)
    loop, _ = loop_of(reply("I end.", call("look")), tools=[ScriptedTool("look", terminate=True)])

    report = RunReport[City].of(await loop.run("Which city?"), output)

    assert report.reason == "done"
    with pytest.raises(OutputError, match="does not fit City"):
        _ = report.output
