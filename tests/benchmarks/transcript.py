"""Cost of the conversation by its length: `python -m tests.benchmarks.transcript`, run by hand.

For 10, 1,000 and 10,000 messages, each with two calls: microseconds of CPU to append a message with its calls, to show
a screenful of parts without laid-out rows, and to unfold a call. Costs that do not grow differ by noise only.
"""

import gc
import random
import statistics
import time
from collections.abc import Callable

from tests.ui.row_kit import FoldWithLedger, Teller, answer, ended, queued, started, user
from tui_agent.protocol.events import AgentEvent, ToolOutput
from tui_agent.ui.transcript.call_part import CallPart
from tui_agent.ui.transcript.transcript_model import Transcript

COUNTS = (10, 1_000, 10_000)
WIDTH, HEIGHT = 100, 40
REPEATS = 200


def message(number: int) -> list[AgentEvent]:
    """Return the events of a prompt, an answer and two calls."""
    first, second = f"c{number}a", f"c{number}b"
    return [
        user(f"question {number}", f"u{number}"),
        started(f"a{number}"),
        answer(f"Answer **{number}** with some words and `code`.", f"a{number}"),
        queued(first, "bash"),
        ToolOutput(call_id=first, stream="stdout", chunk="one\ntwo\n", bytes_total=8),
        ended(first, "bash", details={"outcome": "2 lines · two"}),
        queued(second, "edit"),
        ended(second, "edit", "error"),
    ]


def microseconds(work: Callable[[], object], prepare: Callable[[], object] = lambda: None) -> float:
    """Return the median CPU time of a piece of work in microseconds; preparing it does not count."""
    times: list[float] = []
    for _ in range(REPEATS):
        prepare()
        before = time.process_time_ns()
        work()
        times.append((time.process_time_ns() - before) / 1_000)
    return statistics.median(times)


def show(transcript: Transcript, first: int) -> None:
    """Lay out and draw a screenful."""
    transcript.settle(first, first + HEIGHT)
    for row in range(first, first + HEIGHT):
        transcript.line(row)


def measure(count: int) -> tuple[float, float, float]:
    """Return the costs of appending, scrolling and unfolding in a conversation of `count` messages."""
    transcript, teller, chance = Transcript(), Teller(), random.Random(1)
    fold = FoldWithLedger(transcript)
    transcript.set_width(WIDTH)
    numbers = iter(range(10 * count + 10 * REPEATS))

    def append() -> None:
        for event in message(next(numbers)):
            fold.apply(teller.tell(event))
        fold.flush()
        show(transcript, max(0, transcript.total - HEIGHT))

    for _ in range(count):
        append()

    first = 0

    def choose() -> None:
        nonlocal first
        first = chance.randrange(max(1, transcript.total - HEIGHT))
        for row in range(first, first + HEIGHT):
            if (part := transcript.find(row)) is not None:
                part.forget()

    gc.collect()
    gc.freeze()
    scrolled = microseconds(lambda: show(transcript, first), choose)
    calls = [part for part in transcript.parts if isinstance(part, CallPart)]

    def unfold() -> None:
        # The call is among the newest, as a user reads them.
        part = chance.choice(calls[-10:])
        part.toggle()
        transcript.refresh(part)
        show(transcript, transcript.start(part))

    unfolded = microseconds(unfold)
    return microseconds(append), scrolled, unfolded


def main() -> None:
    """Print a row for each length."""
    print(f"{'messages':>10} {'append':>10} {'scroll':>10} {'unfold':>10}   microseconds")
    for count in COUNTS:
        print(f"{count:>10,} " + " ".join(f"{cost:>10,.0f}" for cost in measure(count)))


if __name__ == "__main__":
    main()
