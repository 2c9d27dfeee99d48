"""How a conversation is made shorter: which results are cut, which range goes, and what stands in its place (P03).

Pure. A range never begins or ends between a call and its result. What a person said is kept word for word, and so are
the goal, the plan and the last steps.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tui_agent.protocol.messages import (
    AssistantMessage,
    ImageBlock,
    JsonObject,
    Message,
    TextBlock,
    ToolResultMessage,
    UserMessage,
    is_array,
    is_object,
    new_id,
)

from .transcript_text import shortened

HEADER = "[The earlier part of this conversation was condensed. Nothing in it needs an answer.]"
SUMMARY = "What was done and found:\n"
PLAN = "The plan as it stood:\n"
SAID = "The person said:\n"

LONGEST_RESULT = 1_000
"""Characters of text that an old result may keep."""

CUT_MARK = "characters were left out when the conversation was condensed"
"""Part of the note in a result that was cut; one that has it is not cut again (P68)."""


@dataclass(frozen=True, slots=True)
class Condensed:
    """What stands in place of a range."""

    message: UserMessage

    @property
    def summary(self) -> str:
        """What was done and found."""
        return _text_behind(self.message, SUMMARY)

    @property
    def plan(self) -> str:
        """The plan, as far as one was known."""
        return _text_behind(self.message, PLAN)

    @property
    def said(self) -> tuple[str, ...]:
        """Everything the person said in it."""
        texts = (block.text for block in self.message.content if isinstance(block, TextBlock))
        return tuple(text.removeprefix(SAID) for text in texts if text.startswith(SAID))


def condensed(message: Message) -> Condensed | None:
    """The message as one that stands in place of a range; None for any other."""
    if not isinstance(message, UserMessage) or message.kind != "notice":
        return None
    first = next(iter(message.content), None)
    return Condensed(message) if isinstance(first, TextBlock) and first.text == HEADER else None


def safe_cuts(messages: Sequence[Message]) -> Iterator[int]:
    """The places before which a valid conversation may be parted: never behind a call that has a result to come, nor
    inside an answer that paused."""
    for place in range(1, len(messages) + 1):
        before = messages[place - 1]
        paused = isinstance(before, AssistantMessage) and (before.stop_reason == "pause_turn" or before.tool_calls)
        behind_results = place == len(messages) or not isinstance(messages[place], ToolResultMessage)
        if behind_results and not paused:
            yield place


def goal_end(messages: Sequence[Message]) -> int:
    """Where the goal ends: behind the first words of the person, up to the first that is something else."""
    for place, message in enumerate(messages):
        if not isinstance(message, UserMessage) or not message.is_said:
            return place
    return len(messages)


def tail_begin(messages: Sequence[Message], steps: int) -> int:
    """Where the last `steps` answers (1 or more) begin, with what they answer if a person said it; 0 where there are no
    more than that."""
    answers = [place for place, message in enumerate(messages) if isinstance(message, AssistantMessage)]
    if len(answers) <= steps:
        return 0
    begin = max((place for place in safe_cuts(messages) if place <= answers[-steps]), default=0)
    while begin and isinstance(messages[begin - 1], UserMessage) and condensed(messages[begin - 1]) is None:
        begin -= 1
    return begin


def cut_result(result: ToolResultMessage) -> ToolResultMessage | None:
    """An old result with its middle left out and its images named; None where there is nothing to cut."""
    text = "\n".join("[image]" if isinstance(block, ImageBlock) else block.text for block in result.content)
    has_image = any(isinstance(block, ImageBlock) for block in result.content)
    too_long = len(text) > LONGEST_RESULT and CUT_MARK not in text
    if not too_long and not has_image:
        return None
    if too_long:
        kept = LONGEST_RESULT // 2
        text = shortened(text, kept, f"\n[… {len(text) - kept} {CUT_MARK} …]\n")
    return result.model_copy(update={"content": (TextBlock(text=text),), "details": None})


def replacement_of(messages: Sequence[Message], summary: str, plan: str, said_limit: int) -> UserMessage:
    """The one message in place of a range.

    Args:
        messages: the range.
        summary: what was done and found in it.
        plan: the plan at its end; empty where there is none.
        said_limit: characters that the person's words may take; longer ones lose their middle.
    """
    said = list(_said_in(messages))
    while said and sum(map(len, said)) > said_limit:
        longest = max(range(len(said)), key=lambda place: len(said[place]))
        if len(said[longest]) <= LONGEST_RESULT:
            break
        said[longest] = shortened(said[longest], max(len(said[longest]) // 2, LONGEST_RESULT), " […] ")
    blocks = [HEADER, f"{SUMMARY}{summary}", *([f"{PLAN}{plan}"] if plan else []), *(f"{SAID}{text}" for text in said)]
    return UserMessage(
        id=new_id("msg"),
        content=tuple(TextBlock(text=text) for text in blocks),
        kind="notice",
        timestamp=messages[-1].timestamp,
    )


def plan_in(messages: Sequence[Message], tool: str) -> str:
    """What is to do: the items of the last call of `tool`, or the plan that an earlier condensation kept."""
    for message in reversed(messages):
        if isinstance(message, AssistantMessage):
            for call in reversed(message.tool_calls):
                if call.name == tool and (lines := _items(call.arguments)):
                    return "\n".join(lines)
        elif (earlier := condensed(message)) is not None and earlier.plan:
            return earlier.plan
    return ""


def _said_in(messages: Sequence[Message]) -> Iterator[str]:
    for message in messages:
        if (earlier := condensed(message)) is not None:
            yield from earlier.said
        elif isinstance(message, UserMessage) and message.is_said:
            yield "\n".join("[image]" if isinstance(block, ImageBlock) else block.text for block in message.content)


def _items(arguments: JsonObject) -> list[str]:
    """Each entry of the lists in a call's arguments, a line each."""
    lines: list[str] = []
    for value in arguments.values():
        for item in value if is_array(value) else []:
            if is_object(item):
                lines.append("- " + ", ".join(str(part) for part in item.values()))
            else:
                lines.append(f"- {item if isinstance(item, str) else json.dumps(item, default=str)}")
    return lines


def _text_behind(message: UserMessage, label: str) -> str:
    texts = (block.text for block in message.content if isinstance(block, TextBlock))
    return next((text.removeprefix(label) for text in texts if text.startswith(label)), "")
