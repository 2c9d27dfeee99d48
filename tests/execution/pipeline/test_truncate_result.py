import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.execution.kit import ScriptedTool
from tests.execution.stage_kit import Stand
from tests.support.validating_bus import ValidatingBus
from tui_agent.execution import ExecutionOptions
from tui_agent.execution.json_coercion import fit_for_journal
from tui_agent.execution.outcomes import Outcome
from tui_agent.execution.pipeline.finish_call import add_notes_and_truncate, cut_middle, reads_archive, truncate
from tui_agent.protocol.events import Warned
from tui_agent.protocol.messages import DocumentBlock, TextBlock
from tui_agent.protocol.tool import Accesses, ToolResult
from tui_agent.protocol.visible_text import whole_count

LIMIT = 500


async def fitted(
    result: ToolResult, archive: Path | None = None, limit: int | None = LIMIT
) -> tuple[Outcome, list[Any]]:
    bus = ValidatingBus(whole=False)
    with bus.subscribe() as subscription:
        outcome = await truncate(Outcome("ok", result), call_id="c/1", limit=limit, archive_dir=archive, publisher=bus)
        return outcome, [envelope.event for envelope in subscription.drain()]


async def test_a_write_error_is_published_and_the_model_still_gets_head_and_tail(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")

    outcome, events = await fitted(ToolResult.of_text("x" * 1000), blocked)

    assert outcome.whole_size == 1000
    assert outcome.persisted_path is None
    assert [event.code for event in events if isinstance(event, Warned)] == ["archive_failed"]


async def test_lone_surrogates_in_documents_are_replaced() -> None:
    document = DocumentBlock(media_type="text/plain", data="a \ud83d b", name="caf\udce9.txt")

    outcome, _ = await fitted(fit_for_journal(ToolResult(content=(TextBlock(text="ascii"), document))))

    assert outcome.result.content[1] == DocumentBlock(media_type="text/plain", data="a \ufffd b", name="caf\ufffd.txt")


pieces = st.text(max_size=5) | st.sampled_from(
    ["\n", "e\u0301", "👩\u200d👧", "\u200d", "❤\ufe0f", " " * 40, "[… 3 of 4 …]"]
)
texts = st.builds(
    lambda parts, times: "".join(parts) * times, st.lists(pieces, min_size=1, max_size=12), st.integers(1, 400)
)


@given(texts)
def test_a_truncated_text_is_never_too_long_and_keeps_both_ends(text: str) -> None:
    cut = cut_middle(text, LIMIT, "kept in a file") if len(text) > LIMIT else text

    assert len(cut) <= LIMIT
    if len(text) > LIMIT:
        left_out = re.search(r"\n(\[… ([\d,]+) of [\d,]+ characters .*; kept in a file …\])\n", cut)
        assert left_out is not None
        head, tail = cut[: left_out.start()], cut[left_out.end() :]
        assert text.startswith(head)
        assert text.endswith(tail)
        assert int(left_out[2].replace(",", "")) == len(text) - len(head) - len(tail)
        missing = text.count("\n") - head.count("\n") - tail.count("\n")
        assert whole_count(left_out[1]) in (missing, max(0, missing - 1))


@pytest.mark.parametrize("joined", ["e\u0301", "👩\u200d👧", "❤\ufe0f", "👍🏽"])
@pytest.mark.parametrize("shift", range(6))
def test_no_character_is_cut_in_two(joined: str, shift: int) -> None:
    text = "x" * shift + joined * 600

    cut = cut_middle(text, LIMIT, "kept")
    head = cut.partition("\n[…")[0]
    tail = cut.rpartition("…]\n")[2]

    assert (len(head) - shift) % len(joined) == 0
    assert len(tail) % len(joined) == 0


def test_a_call_that_reads_the_archive_is_recognised(tmp_path: Path) -> None:
    inside = ScriptedTool(paths=lambda arguments: Accesses(reads=frozenset({tmp_path / "c.txt"})))
    outside = ScriptedTool(paths=lambda arguments: Accesses(reads=frozenset({tmp_path.parent / "c.txt"})))

    assert reads_archive(inside, {}, tmp_path)
    assert not reads_archive(outside, {}, tmp_path)
    assert not reads_archive(inside, {}, None)
    assert not reads_archive(ScriptedTool(), {}, tmp_path)


async def test_a_link_at_the_path_of_the_archive_is_not_followed(tmp_path: Path) -> None:
    result = ToolResult.of_text("x" * 1000)
    first, _ = await fitted(result, tmp_path / "archive")
    kept, target = Path(first.persisted_path or ""), tmp_path / "mine"
    target.write_text("untouched")
    kept.unlink()
    kept.symlink_to(target)

    again, events = await fitted(result, tmp_path / "archive")

    assert again.persisted_path is None
    assert [event.code for event in events if isinstance(event, Warned)] == ["archive_failed"]
    assert target.read_text() == "untouched"


async def test_an_archived_result_is_neither_truncated_nor_archived_again(tmp_path: Path) -> None:
    options = ExecutionOptions(result_limit=500, archive_dir=tmp_path)
    long = Outcome("ok", ToolResult.of_text("x" * 1000))
    reading = ScriptedTool(paths=lambda arguments: Accesses(reads=frozenset({tmp_path / "c.txt"})))

    again, first = Stand(reading, options=options), Stand(options=options)
    once_more = await add_notes_and_truncate(again.services, again.state, long)
    archived = await add_notes_and_truncate(first.services, first.state, long)

    assert (once_more.whole_size, once_more.persisted_path) == (None, None)
    assert once_more.result.text == "x" * 1000
    assert archived.persisted_path is not None
