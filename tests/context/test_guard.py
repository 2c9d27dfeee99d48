"""The context guard: trigger, target, what it keeps, and undo (S4-91)."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given

from tests.support.table import table
from tests.support.transcript_checks import validate_history
from tui_agent.context import ContextGuard, ConversationHistory, GuardOptions
from tui_agent.context.compaction import HEADER, as_transcript, condensed, cut_result, safe_cuts
from tui_agent.protocol.errors import CompactionError, ConfigurationError
from tui_agent.protocol.messages import (
    AssistantMessage,
    DocumentBlock,
    ImageBlock,
    Message,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
    user_message,
)

from .conversations import sound_conversations

CUT_MARK = "were left out when the conversation was condensed"
GOAL = "Make the tests pass."


def step(number: int, *, letters: int = 400, tool: str = "read", said: str = "") -> list[Message]:
    """Return an answer with one call, and its result."""
    call = ToolCall(id=f"c{number}", name=tool, arguments={"path": f"file{number}.py"})
    blocks = (TextBlock(text=said or f"Step {number}."), call)
    return [
        AssistantMessage(content=blocks, stop_reason="tool_use"),
        ToolResultMessage(call_id=call.id, tool_name=tool, content=(TextBlock(text=f"{number}:" + "x" * letters),)),
    ]


def planning() -> list[Message]:
    """Return a step that stores the plan."""
    call = ToolCall(id="p", name="todo", arguments={"items": [{"text": "fix it", "status": "pending"}]})
    result = ToolResultMessage(call_id="p", tool_name="todo", content=(TextBlock(text="ok"),))
    return [AssistantMessage(content=(call,), stop_reason="tool_use"), result]


def long_talk(steps: int = 20, *, letters: int = 400) -> ConversationHistory:
    messages: list[Message] = [user_message(GOAL)]
    for number in range(steps):
        if number == 7:
            messages += [user_message("Leave config.py alone!", "steer"), *planning()]
        messages += step(number, letters=letters)
    return ConversationHistory(messages)


def texts(history: ConversationHistory) -> list[str]:
    return [message.text for message in history.messages()]


def guard(**options: object) -> ContextGuard:
    return ContextGuard(GuardOptions(**{"strategy": "digest", **options}))  # pyright: ignore


async def test_goal_user_messages_plan_and_last_steps_are_kept_verbatim() -> None:
    history = long_talk()
    before = list(history.messages())

    done = await guard().compact(history, history.estimated_tokens())

    after = list(history.messages())
    validate_history(after)
    assert after[0].text == GOAL
    assert after[2:] == before[-len(after) + 2 :]
    assert sum(isinstance(message, AssistantMessage) for message in after) == 4
    summed = condensed(after[1])
    assert summed is not None
    assert summed.said == ("Leave config.py alone!",)
    assert summed.plan == "- fix it, pending"
    assert "read" in summed.summary
    assert done.tokens_after <= 0.4 * done.tokens_before


async def test_old_results_are_truncated_first_which_may_be_enough() -> None:
    history = long_talk(12, letters=8_000)
    before = list(history.messages())

    done = await guard(target=0.5).compact(history, history.estimated_tokens())

    assert (done.strategy, done.removed, done.replacement) == ("trim", (), None)
    assert len(history) == len(before)
    old, last = texts(history)[:-8], texts(history)[-8:]
    assert [CUT_MARK in text for text in old if len(text) > 20 and "config" not in text] == [True] * 8
    assert last == [message.text for message in before[-8:]], "the last steps are unchanged"
    assert old[2].startswith("0:xxx")


def test_a_user_message_with_the_header_is_not_a_replacement() -> None:
    assert condensed(user_message(HEADER)) is None
    assert condensed(user_message(HEADER, "notice")) is not None


def test_attachments_of_old_results_are_named() -> None:
    image = ImageBlock(media_type="image/png", data="x" * 900)
    pdf = DocumentBlock(media_type="application/pdf", data="x" * 900, name="b.pdf", pages=1)
    cut = cut_result(ToolResultMessage(call_id="c", tool_name="read", content=(TextBlock(text="a"), image, pdf)))

    assert cut is not None
    assert cut.text == "a\n[image]\n[PDF b.pdf, 1 page]"


async def test_a_compaction_that_was_changed_since_cannot_be_undone() -> None:
    history, keeper = long_talk(), guard()
    await keeper.compact(history, history.estimated_tokens())
    history.replace_range(1, 2, [user_message("other", "notice")])

    with pytest.raises(CompactionError, match="changed since"):
        keeper.undo(history)


async def test_after_an_attempt_it_waits_for_messages_and_gives_up_after_three_failures() -> None:
    history = ConversationHistory([user_message("g" * 4_000)])
    keeper = guard()

    for number in range(3):
        assert keeper.is_due(history, 1_000)
        with pytest.raises(CompactionError, match="Nothing to compact"):
            await keeper.compact(history, 1_000)
        assert not keeper.is_due(history, 1_000), "no second attempt without new messages"
        history.append(AssistantMessage(content=(TextBlock(text=f"a{number}"),)))
        history.append(user_message("go on"))
    assert not keeper.is_due(history, 1_000), "after three failures only the user starts a compaction"


@table(("chosen", "used"), [("trim", "trim"), ("digest", "digest"), ("magic", "digest")])
async def test_a_conversation_may_choose_its_strategy(chosen: str, used: str) -> None:
    history = long_talk(letters=3_000)
    history.metadata["context_guard"] = chosen

    done = await guard(target=0.01, trigger=0.9).compact(history, history.estimated_tokens())

    assert done.strategy == used


@table("wrong", [{"trigger": 1.1}, {"target": 0.9}, {"target": 0.0}, {"keep_steps": 0}])
def test_contradictory_options_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError, match="0 < target < trigger <= 1"):
        GuardOptions(**wrong)  # pyright: ignore


@given(sound_conversations())
def test_a_safe_cut_never_separates_a_call_from_its_results(messages: Sequence[Message]) -> None:
    for place in safe_cuts(messages):
        validate_history(messages[:place])


def test_a_paused_answer_is_not_separated_from_its_continuation() -> None:
    paused = AssistantMessage(content=(TextBlock(text="First half,"),), stop_reason="pause_turn")
    rest = AssistantMessage(content=(TextBlock(text="second half."),))

    assert list(safe_cuts([user_message(GOAL), paused, rest, user_message("And?")])) == [1, 3, 4]


def test_old_usage_does_not_trigger_another_compaction() -> None:
    history, keeper = long_talk(), guard()
    history.append(AssistantMessage(content=(TextBlock(text="x"),), usage=Usage(input_tokens=90_000)))

    assert keeper.is_due(history, 100_000)
    asyncio.run(keeper.compact(history, 100_000))
    history.append(user_message("go on"))

    assert not keeper.is_due(history, 100_000)


async def test_three_compactions_with_too_little_gain_stop_automatic_ones() -> None:
    history, keeper = ConversationHistory([user_message("g" * 2_600)]), guard(trigger=0.8, target=0.2)
    attempts = 0
    for number in range(40):
        for message in step(number, letters=200):
            history.append(message)
        if keeper.is_due(history, 1_000):
            await keeper.compact(history, 1_000)
            attempts += 1

    assert attempts == 3


async def test_repeated_digests_do_not_grow() -> None:
    history, keeper, window = ConversationHistory([user_message(GOAL)]), guard(), 4_000
    sizes: list[int] = []
    number = 0
    for _ in range(25):
        while not keeper.is_due(history, window):
            for message in step(number, letters=900, said=f"I looked at {number} and found " + "things " * 12):
                history.append(message)
            number += 1
        done = await keeper.compact(history, window)
        assert done.replacement is not None
        sizes.append(len(done.replacement.text))
        assert done.tokens_after <= 0.6 * window

    assert max(sizes[5:]) < 1.2 * min(sizes[5:])
    summed = condensed(history.messages()[1])
    assert summed is not None
    assert "Step" not in summed.summary
    assert f'file{number - 5}.py"' in summed.summary, "the newest calls are kept"


async def test_many_user_messages_are_shortened_to_fit_and_short_ones_kept() -> None:
    messages: list[Message] = [user_message(GOAL)]
    for number in range(200):
        words = f"{number}: yes" if number % 2 else f"{number}: {'please do so ' * 60}end {number}"
        messages += [user_message(words), *step(number, letters=20)]
    history = ConversationHistory(messages)

    done = await guard().compact(history, 20_000)

    assert done.tokens_after < 8_000 + 2_000
    (summed,) = filter(None, map(condensed, history.messages()))
    assert summed.said[:4:2] == ("1: yes", "3: yes")
    assert summed.said[1].startswith("2: please do")
    assert summed.said[1].endswith("end 2")
    assert history.messages()[0].text == GOAL


async def test_a_failed_plan_call_is_ignored_and_an_emptied_plan_is_gone() -> None:
    def noted(number: int, items: list[str], *, failed: bool = False) -> list[Message]:
        call = ToolCall(id=f"t{number}", name="todo", arguments={"items": items})
        text = (TextBlock(text="noted"),)
        result = ToolResultMessage(call_id=call.id, tool_name="todo", content=text, is_error=failed)
        return [AssistantMessage(content=(call,), stop_reason="tool_use"), result]

    plans: list[str] = []
    for last in (noted(2, ["wrong"], failed=True), noted(2, [])):
        first = [user_message(GOAL), *noted(1, ["good"]), *last]
        history = ConversationHistory([*first, *(message for number in range(12) for message in step(number))])
        await guard().compact(history, 1_500)
        summed = condensed(history.messages()[1])
        assert summed is not None
        plans.append(summed.plan)

    assert plans == ["- good", ""]


async def test_images_of_the_user_are_kept_newest_first() -> None:
    images = [ImageBlock(media_type="image/png", data=f"{number:04}") for number in range(8)]
    messages: list[Message] = [user_message(GOAL)]
    for number, image in enumerate(images):
        said = UserMessage(content=(TextBlock(text=f"look {number}"), image), kind="steer")
        messages += [*step(number, letters=2_000), said]
    messages += [message for number in range(8, 12) for message in step(number)]
    history, keeper = ConversationHistory(messages), guard(keep_steps=3)

    await keeper.compact(history, 12_000, forced=True)

    (summed,) = filter(None, map(condensed, history.messages()))
    assert summed.said == tuple(f"look {number}\n[image]" for number in range(8))
    kept = [each for _, each in summed.words]
    assert kept == [*[()] * 6, (images[6],), (images[7],)]
    keeper.undo(history)
    assert list(history.messages()) == messages


async def test_no_summary_is_requested_if_the_result_would_not_be_shorter() -> None:
    async def summarise(transcript: str) -> str:
        raise AssertionError

    small = [AssistantMessage(content=(TextBlock(text="a"),)), user_message("b")]
    history = ConversationHistory([user_message(GOAL), *small, *step(1, letters=9_000)])

    done = await guard(strategy="summary", keep_steps=1).compact(history, 1_500, summarise)

    assert (done.strategy, len(done.cut)) == ("trim", 1)


async def test_only_as_many_of_the_last_results_are_truncated_as_needed() -> None:
    history = ConversationHistory([user_message(GOAL), *step(1, letters=12_000), *step(2, letters=4_000)])

    done = await guard(strategy="trim").compact(history, 4_000)

    assert [old.call_id for old, _ in done.cut] == ["c1"]
    assert history.messages()[-1].text == "2:" + "x" * 4_000


async def test_with_one_character_per_token_the_transcript_still_fits() -> None:
    asked: list[str] = []

    async def summarise(transcript: str) -> str:
        asked.append(transcript)
        return "Short."

    messages: list[Message] = [user_message(GOAL)]
    for number in range(60):
        messages += step(number, letters=10, said="字" * 300)
    history = ConversationHistory(messages)
    history.record_actual_usage(history.estimated_tokens() * 4)

    await guard(strategy="summary").compact(history, 16_000, summarise)

    assert len(asked[0]) < 0.6 * 16_000


def test_output_of_a_user_command_is_shortened_in_the_transcript() -> None:
    text = as_transcript([user_message("$ cat log\n" + "x" * 5_000, "command")], 100_000)

    assert text.startswith("User ran a command: $ cat log")
    assert len(text) < 700
