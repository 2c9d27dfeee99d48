"""Pure functions that shorten a conversation: find a range, truncate old results, build the replacement message.

A conversation as plain text is the transcript that a model summarises, or the digest that is made without a model.

A range never begins or ends between a call and its result. The user's messages, the goal, the plan and the last steps
are kept.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tui_agent.protocol.messages import (
    AssistantMessage,
    DocumentBlock,
    ImageBlock,
    JsonObject,
    Message,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    UserBlock,
    UserMessage,
    is_array,
    is_object,
    new_id,
)
from tui_agent.protocol.tool_result import ACCEPTED_PLAN

from .tokens import CHARACTERS_PER_TOKEN, estimate_content

# Saved sessions contain these four texts, and `condensed` recognises its messages by them: do not change them.
HEADER = "[The earlier part of this conversation was condensed. Nothing in it needs an answer.]"
SUMMARY = "What was done and found:\n"
PLAN = "The plan as it stood:\n"
ACCEPTED = "The user accepted this plan:\n\n"
SAID = "The person said:\n"

LEFT_OUT = "\n[…]\n"
SAID_LEFT_OUT = " […] "

LONGEST_RESULT = 1_000
"""Characters of text that `cut_result` leaves of a result."""

SHORTEST_SAID = 100
"""Characters of a user message that are kept even if the limit is exceeded."""

Attachment: TypeAlias = ImageBlock | DocumentBlock
Words: TypeAlias = tuple[str, tuple[Attachment, ...]]
"""One user message: its text, with `[image]` and the like for each attachment, and the attachments."""


@dataclass(frozen=True, slots=True)
class CompactedRange:
    """A message that replaces a range of the conversation."""

    message: UserMessage

    @property
    def summary(self) -> str:
        """Summary of the range: actions and findings."""
        return _text_behind(self.message, SUMMARY)

    @property
    def plan(self) -> str:
        """The plan at the end of the range; empty if there was none."""
        return _text_behind(self.message, PLAN)

    @property
    def said(self) -> tuple[str, ...]:
        """Texts of the user messages in the range."""
        return tuple(text for text, _ in self.words)

    @property
    def words(self) -> tuple[Words, ...]:
        """Texts and attachments of the user messages in the range."""
        words: list[Words] = []
        for block in self.message.content:
            if isinstance(block, TextBlock):
                if block.text.startswith(SAID):
                    words.append((block.text.removeprefix(SAID), ()))
            elif words:
                text, attached = words.pop()
                words.append((text, (*attached, block)))
        return tuple(words)


def condensed(message: Message) -> CompactedRange | None:
    """Return the message as a replacement of a range; None for any other message."""
    if not isinstance(message, UserMessage) or message.kind != "notice":
        return None
    first = next(iter(message.content), None)
    return CompactedRange(message) if isinstance(first, TextBlock) and first.text == HEADER else None


def safe_cuts(messages: Sequence[Message]) -> Iterator[int]:
    """Yield the indices at which a valid conversation may be split: not between a call and its results, nor after a
    paused answer."""
    for place in range(1, len(messages) + 1):
        before = messages[place - 1]
        paused = isinstance(before, AssistantMessage) and (before.stop_reason == "pause_turn" or before.tool_calls)
        behind_results = place == len(messages) or not isinstance(messages[place], ToolResultMessage)
        if behind_results and not paused:
            yield place


def goal_end(messages: Sequence[Message]) -> int:
    """Return the index after the goal, which is the user messages that open the conversation; 0 if none do."""
    for place, message in enumerate(messages):
        if not isinstance(message, UserMessage) or not message.is_from_user:
            return place
    return len(messages)


def tail_start(messages: Sequence[Message], steps: int) -> int:
    """Return the index at which the last `steps` answers (1 or more) begin, with the user messages right before them; 0
    if there are no more answers than that."""
    answers = [place for place, message in enumerate(messages) if isinstance(message, AssistantMessage)]
    if len(answers) <= steps:
        return 0
    begin = max((place for place in safe_cuts(messages) if place <= answers[-steps]), default=0)
    while begin and isinstance(messages[begin - 1], UserMessage):
        begin -= 1
    return begin


def cut_result(result: ToolResultMessage) -> ToolResultMessage | None:
    """Return the result without the middle of its text and its attachments, which it names; None if it is short enough,
    as after an earlier cut."""
    text = _words(result)[0]
    if len(text) <= LONGEST_RESULT and all(isinstance(block, TextBlock) for block in result.content):
        return None
    left_out = len(text) - LONGEST_RESULT // 2
    note = f"\n[… {left_out} characters were left out when the conversation was condensed …]\n"
    if len(text) > LONGEST_RESULT:
        text = shortened(text, LONGEST_RESULT // 2, note)
    accepted = (result.details or {}).get(ACCEPTED_PLAN)
    details = {ACCEPTED_PLAN: accepted} if accepted else None
    return result.model_copy(update={"content": (TextBlock(text=text),), "details": details})


def build_replacement(
    messages: Sequence[Message], summary: str, plan: str, limit: int, *, with_goal: bool = False
) -> UserMessage:
    """Return the message that replaces a range.

    Args:
        messages: the range.
        summary: its actions and findings.
        plan: the plan at its end; empty if there is none.
        limit: maximum characters of the replacement; the middle of longer parts is left out.
        with_goal: True if the first user message of the range is the goal, which is never shortened.
    """
    plan = shortened(plan, limit // 8, LEFT_OUT)
    words = _fitted(list(_said_in(messages)), limit * 3 // 8, with_goal=with_goal)
    others = len(plan) + sum(len(text) for text, _ in words)
    summary = shortened(summary, max(limit - others, limit // 2), LEFT_OUT)
    texts = [HEADER, f"{SUMMARY}{summary}", *([f"{PLAN}{plan}"] if plan else [])]
    blocks: list[UserBlock] = [TextBlock(text=text) for text in texts]
    for text, attached in words:
        blocks += [TextBlock(text=f"{SAID}{text}"), *attached]
    return UserMessage(id=new_id("msg"), content=tuple(blocks), kind="notice", timestamp=messages[-1].timestamp)


def find_plan(messages: Sequence[Message], tool: str) -> str:
    """Return the plan: the items of the last successful call of `tool`, or the plan of an earlier replacement message,
    and the plan that the user accepted last; empty if there is neither."""
    accepted, items = _accepted_plan(messages), _listed_plan(messages, tool).partition(ACCEPTED)[0].rstrip()
    return f"{items}\n\n{ACCEPTED}{accepted}".strip() if accepted else items


def _accepted_plan(messages: Sequence[Message]) -> str:
    """Return the plan that the user accepted last; empty if there is none."""
    for message in reversed(messages):
        if isinstance(message, ToolResultMessage) and (text := (message.details or {}).get(ACCEPTED_PLAN)):
            return str(text)
        if (earlier := condensed(message)) is not None:
            return earlier.plan.partition(ACCEPTED)[2]
    return ""


def _listed_plan(messages: Sequence[Message], tool: str) -> str:
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
    attached = tuple(block for block in message.content if not isinstance(block, TextBlock))
    return "\n".join(map(block_text, message.content)), attached


def _fitted(words: list[Words], limit: int, *, with_goal: bool) -> list[Words]:
    """Fit the user messages into `limit` characters.

    Attachments may use half of the limit, newest first. Texts are cut to a common length, so that short ones stay
    whole.
    """
    goal, words = (words[:1], words[1:]) if with_goal else ([], words)
    room = limit // 2
    fitted: list[Words] = []
    for text, attached in reversed(words):
        kept: list[Attachment] = []
        for block in reversed(attached):
            size = estimate_content([block]) * CHARACTERS_PER_TOKEN
            if size <= room:
                room, limit = room - size, limit - size
                kept.insert(0, block)
        fitted.append((text, tuple(kept)))
    longest = max(_level([len(text) for text, _ in words], limit), SHORTEST_SAID)
    return [*goal, *((shortened(text, longest, SAID_LEFT_OUT), attached) for text, attached in reversed(fitted))]


def _level(lengths: Sequence[int], limit: int) -> int:
    """Return the common maximum length that keeps the sum of all lengths within `limit`."""
    level = max(lengths, default=0)
    for place, length in enumerate(sorted(lengths)):
        share = limit // (len(lengths) - place)
        if length > share:
            return share
        limit -= length
    return level


def _items(arguments: JsonObject) -> list[str]:
    """Return a line for each entry of the lists in a call's arguments."""
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


RESULT_LETTERS = 600
"""Maximum characters of one result in a transcript."""

ARGUMENT_LETTERS = 160
DIGEST_LINES = 60
"""Maximum lines of a digest; the newest are kept."""


def shortened(text: str, limit: int, note: str = "…") -> str:
    """Return the head and the tail of a text, `limit` characters in all, with `note` between them.

    A text is left whole up to `limit` plus the length of the note, so that shortening twice equals shortening once.
    """
    if len(text) <= limit + len(note):
        return text
    tail = limit // 3
    return f"{text[: limit - tail]}{note}{text[len(text) - tail :]}"


def as_transcript(messages: Iterable[Message], limit: int) -> str:
    """Return the conversation line by line; above `limit` characters without its middle."""
    text = "\n".join(line for message in messages for line in _lines(message))
    return shortened(text, limit, "\n\n[… a part in the middle is left out …]\n\n")


def digest(messages: Sequence[Message], limit: int) -> str:
    """Return a list of the agent's messages, shortened, and of its calls with their outcome, newest last.

    Keeps the newest lines, at most `limit` characters and `DIGEST_LINES` lines.
    """
    failed = {message.call_id for message in messages if isinstance(message, ToolResultMessage) and message.is_error}
    lines: list[str] = []
    for message in messages:
        if isinstance(message, AssistantMessage):
            if message.text.strip():
                lines.append(f"- said: {_in_one_line(message.text, ARGUMENT_LETTERS)}")
            lines += [f"- {_call(call)}{' (failed)' if call.id in failed else ''}" for call in message.tool_calls]
    kept = 0
    for line in reversed(lines[-DIGEST_LINES:]):
        limit -= len(line) + 1
        if limit < 0:
            break
        kept += 1
    head = [f"- … {len(lines) - kept} earlier lines are left out"] if kept < len(lines) else []
    return "\n".join([*head, *lines[len(lines) - kept :]]) or "- only user messages"


def _lines(message: Message) -> Iterator[str]:
    match message:
        case UserMessage(kind="command"):
            yield f"User ran a command: {shortened(_plain_text(message), RESULT_LETTERS, ' […] ')}"
        case UserMessage():
            yield f"{'Notice' if message.kind == 'notice' else 'User'}: {_plain_text(message)}"
        case AssistantMessage():
            if message.text.strip():
                yield f"Agent: {message.text}"
            yield from (f"→ {_call(call)}" for call in message.tool_calls)
        case ToolResultMessage():
            failed = " (error)" if message.is_error else ""
            yield f"← {message.tool_name}{failed}: {shortened(_plain_text(message), RESULT_LETTERS, ' […] ')}"


def _plain_text(message: UserMessage | ToolResultMessage) -> str:
    return "\n".join(map(block_text, message.content))


def block_text(block: UserBlock) -> str:
    """Return a text, or words in place of an image or a document."""
    match block:
        case ImageBlock():
            return "[image]"
        case DocumentBlock():
            return block.label
        case _:
            return block.text


def _call(call: ToolCall) -> str:
    arguments = json.dumps(call.arguments, ensure_ascii=False, default=str)
    return f"{call.name} {_in_one_line(arguments, ARGUMENT_LETTERS)}"


def _in_one_line(text: str, limit: int) -> str:
    return shortened(" ".join(text.split()), limit)
