"""How a conversation is made shorter: which results are cut, which range goes, and what stands in its place (P03).

Pure. A range never begins or ends between a call and its result. What a person said is kept word for word, and so are
the goal, the plan and the last steps.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tui_agent.protocol.messages import (
    AssistantMessage,
    ImageBlock,
    JsonObject,
    Message,
    TextBlock,
    ToolResultMessage,
    UserBlock,
    UserMessage,
    is_array,
    is_object,
    new_id,
)

from .tokens import CHARACTERS_PER_TOKEN, MEDIA_TOKENS
from .transcript_text import shortened

HEADER = "[The earlier part of this conversation was condensed. Nothing in it needs an answer.]"
SUMMARY = "What was done and found:\n"
PLAN = "The plan as it stood:\n"
SAID = "The person said:\n"

LEFT_OUT = "\n[…]\n"
SAID_LEFT_OUT = " […] "

LONGEST_RESULT = 1_000
"""Characters of text that an old result may keep."""

SHORTEST_SAID = 100
"""Characters of a person's message that are kept however little room there is."""

Words: TypeAlias = tuple[str, tuple[ImageBlock, ...]]
"""What a person said once: the text, with `[image]` where one stood, and the images."""


@dataclass(frozen=True, slots=True)
class CompactedRange:
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
        return tuple(text for text, _ in self.words)

    @property
    def words(self) -> tuple[Words, ...]:
        """The same with its images."""
        words: list[Words] = []
        for block in self.message.content:
            if isinstance(block, TextBlock):
                if block.text.startswith(SAID):
                    words.append((block.text.removeprefix(SAID), ()))
            elif words:
                text, images = words.pop()
                words.append((text, (*images, block)))
        return tuple(words)


def condensed(message: Message) -> CompactedRange | None:
    """The message as one that stands in place of a range; None for any other."""
    if not isinstance(message, UserMessage) or message.kind != "notice":
        return None
    first = next(iter(message.content), None)
    return CompactedRange(message) if isinstance(first, TextBlock) and first.text == HEADER else None


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
    """Where the goal ends: behind the first words of the person, up to the first that is something else; 0 where
    something else comes before them."""
    for place, message in enumerate(messages):
        if not isinstance(message, UserMessage) or not message.is_from_user:
            return place
    return len(messages)


def tail_start(messages: Sequence[Message], steps: int) -> int:
    """Where the last `steps` answers (1 or more) begin, with what they answer if a person said it; 0 where there are no
    more than that."""
    answers = [place for place, message in enumerate(messages) if isinstance(message, AssistantMessage)]
    if len(answers) <= steps:
        return 0
    begin = max((place for place in safe_cuts(messages) if place <= answers[-steps]), default=0)
    while begin and isinstance(messages[begin - 1], UserMessage):
        begin -= 1
    return begin


def cut_result(result: ToolResultMessage) -> ToolResultMessage | None:
    """An old result with its middle left out and its images named; None where there is nothing to cut, as in one that
    was cut before (P68)."""
    text = _words(result)[0]
    if len(text) <= LONGEST_RESULT and not any(isinstance(block, ImageBlock) for block in result.content):
        return None
    left_out = len(text) - LONGEST_RESULT // 2
    note = f"\n[… {left_out} characters were left out when the conversation was condensed …]\n"
    if len(text) > LONGEST_RESULT:
        text = shortened(text, LONGEST_RESULT // 2, note)
    return result.model_copy(update={"content": (TextBlock(text=text),), "details": None})


def build_replacement(
    messages: Sequence[Message], summary: str, plan: str, limit: int, *, with_goal: bool = False
) -> UserMessage:
    """The one message in place of a range.

    Args:
        messages: the range.
        summary: what was done and found in it.
        plan: the plan at its end; empty where there is none.
        limit: characters that all of it may take: of what is too long, the middle is left out.
        with_goal: whether the first words of the person in it are the goal, which stays whole.
    """
    plan = shortened(plan, limit // 8, LEFT_OUT)
    words = _fitted(list(_said_in(messages)), limit * 3 // 8, with_goal=with_goal)
    others = len(plan) + sum(len(text) for text, _ in words)
    summary = shortened(summary, max(limit - others, limit // 2), LEFT_OUT)
    texts = [HEADER, f"{SUMMARY}{summary}", *([f"{PLAN}{plan}"] if plan else [])]
    blocks: list[UserBlock] = [TextBlock(text=text) for text in texts]
    for text, images in words:
        blocks += [TextBlock(text=f"{SAID}{text}"), *images]
    return UserMessage(id=new_id("msg"), content=tuple(blocks), kind="notice", timestamp=messages[-1].timestamp)


def find_plan(messages: Sequence[Message], tool: str) -> str:
    """What is to do: the items of the last call of `tool` that did not fail, or the plan that an earlier condensation
    kept."""
    failed = {message.call_id for message in messages if isinstance(message, ToolResultMessage) and message.is_error}
    for message in reversed(messages):
        if isinstance(message, AssistantMessage):
            for call in reversed(message.tool_calls):
                if call.name == tool and call.id not in failed:
                    return "\n".join(_items(call.arguments))
        elif (earlier := condensed(message)) is not None:
            return earlier.plan
    return ""


def _said_in(messages: Sequence[Message]) -> Iterator[Words]:
    for message in messages:
        if (earlier := condensed(message)) is not None:
            yield from earlier.words
        elif isinstance(message, UserMessage) and message.is_from_user:
            yield _words(message)


def _words(message: UserMessage | ToolResultMessage) -> Words:
    texts = ("[image]" if isinstance(block, ImageBlock) else block.text for block in message.content)
    return "\n".join(texts), tuple(block for block in message.content if isinstance(block, ImageBlock))


def _fitted(words: list[Words], limit: int, *, with_goal: bool) -> list[Words]:
    """The same in at most `limit` characters: the newest images as far as they fit into half of that, and each text up
    to one length, so that the short ones stay whole."""
    goal, words = (words[:1], words[1:]) if with_goal else ([], words)
    most_images = limit // 2 // (MEDIA_TOKENS * CHARACTERS_PER_TOKEN)
    fitted: list[Words] = []
    for text, images in reversed(words):
        kept = images[max(len(images) - most_images, 0) :]
        most_images -= len(kept)
        limit -= len(kept) * MEDIA_TOKENS * CHARACTERS_PER_TOKEN
        fitted.append((text, kept))
    longest = max(_level([len(text) for text, _ in words], limit), SHORTEST_SAID)
    return [*goal, *((shortened(text, longest, SAID_LEFT_OUT), images) for text, images in reversed(fitted))]


def _level(lengths: Sequence[int], limit: int) -> int:
    """How long each may be for all together to stay within `limit`."""
    level = max(lengths, default=0)
    for place, length in enumerate(sorted(lengths)):
        share = limit // (len(lengths) - place)
        if length > share:
            return share
        limit -= length
    return level


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
