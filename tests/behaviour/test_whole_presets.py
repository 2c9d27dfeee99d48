"""Each preset as a whole: one message with one call of every outcome, and all that happens, in order."""

from itertools import pairwise

from tests.behaviour.preset_story import CALLS, events_of
from tui_agent.execution import Batched, ExecutionOptions, Sequential

IDS = list(CALLS)
QUEUED = [f"queued {name}" for name in IDS]
REPORTS = ["update look", "progress look"]


def messages(*names: str) -> list[str]:
    return [f"message {name}" for name in names]


def seen(name: str, hook: str = "allow", verdict: str = "") -> list[str]:
    """Return the lines of a hook's question and, if a verdict follows, of the decision."""
    return [f"blocked {name} on hook", f"hook {name} {hook}", *([f"judged {name} {verdict}"] if verdict else [])]


def allowed(*names: str) -> list[str]:
    return [line for name in names for line in seen(name, verdict="allow")]


def judged_first(name: str, hook: str = "allow") -> list[str]:
    return [f"judged {name} allow", *seen(name, hook)]


def waits(name: str, *on: str) -> str:
    return f"blocked {name} on group {' '.join(on)}"


def each_for_the_one_before(*names: str) -> list[str]:
    return [waits(name, before) for before, name in pairwise(names)]


ENDS_OF_HOOKED = ["end veto skipped_hook", "end skip skipped_hook, no error", "end override overridden, no error"]


def test_s0_5_s0_19_s0_28_s0_44_rust_loop_runs_all_calls_at_once_and_publishes_each_up_to_its_message() -> None:
    assert events_of(ExecutionOptions.preset("rust_loop"), finds_at=1) == [
        "batch parallel",
        *QUEUED,
        *allowed("look"),
        "start look None",
        *REPORTS,
        *allowed("fail"),
        "start fail None",
        *seen("unknown"),
        "start unknown None",
        "end unknown not_found",
        "message unknown",
        *allowed("invalid"),
        "start invalid None",
        *seen("denied", verdict="deny"),
        "end denied denied_policy",
        "message denied",
        *seen("veto", "skip"),
        "end veto skipped_hook",
        "message veto",
        *seen("skip", "skip"),
        "end skip skipped_hook, no error",
        "message skip",
        *seen("override", "override"),
        "end override overridden, no error",
        "message override",
        *allowed("act"),
        "start act None",
        "end fail error",
        "message fail",
        "end invalid ok, no error",
        "message invalid",
        "end act ok, no error",
        "message act",
        "end look ok, no error",
        "message look",
        "poll",
        "batch_ended",
    ]


def test_s0_13_s0_14_s0_15_rust_loop_in_sequence_polls_after_each_call_and_skips_the_rest() -> None:
    options = ExecutionOptions.preset("rust_loop", strategy=Sequential())

    assert events_of(options, finds_at=2) == [
        "batch sequential",
        *QUEUED,
        *each_for_the_one_before(*IDS),
        *allowed("look"),
        "start look None",
        *REPORTS,
        "end look ok, no error",
        "message look",
        "poll",
        *allowed("fail"),
        "start fail None",
        "end fail error",
        "message fail",
        "poll",
        *[line for name in IDS[2:] for line in (f"end {name} skipped_steering", f"message {name}")],
        "batch_ended",
    ]


def test_s0_6_s0_7_s0_8_rust_loop_in_batches_polls_between_them() -> None:
    options = ExecutionOptions.preset("rust_loop", strategy=Batched(3))

    assert events_of(options, finds_at=2) == [
        "batch batched:3",
        *QUEUED,
        *[waits(name, *IDS[:3]) for name in IDS[3:6]],
        *[waits(name, *IDS[3:6]) for name in IDS[6:]],
        *allowed("look"),
        "start look None",
        *REPORTS,
        *allowed("fail"),
        "start fail None",
        *seen("unknown"),
        "start unknown None",
        "end unknown not_found",
        "message unknown",
        "end fail error",
        "message fail",
        "end look ok, no error",
        "message look",
        "poll",
        *allowed("invalid"),
        "start invalid None",
        *seen("denied", verdict="deny"),
        "end denied denied_policy",
        "message denied",
        *seen("veto", "skip"),
        "end veto skipped_hook",
        "message veto",
        "end invalid ok, no error",
        "message invalid",
        "poll",
        *[line for name in IDS[6:] for line in (f"end {name} skipped_steering", f"message {name}")],
        "batch_ended",
    ]


def test_s1_3_s1_25_permissioned_checks_all_calls_before_any_runs_except_those_started_with_the_answer() -> None:
    assert events_of(ExecutionOptions.preset("permissioned"), finds_at=1) == [
        "batch auto",
        "queued look",
        *allowed("look"),
        "start look 30.0",
        *REPORTS,
        *QUEUED[1:],
        *allowed("fail"),
        *seen("denied", verdict="deny"),
        *seen("veto", "skip"),
        *seen("skip", "skip"),
        *seen("override", "override"),
        *allowed("act"),
        waits("fail", "look"),
        "end unknown not_found",
        "end invalid invalid",
        "end denied denied_policy",
        *ENDS_OF_HOOKED,
        waits("act", "fail"),
        "end look ok, no error",
        "start fail 30.0",
        "end fail error",
        "start act 30.0",
        "end act ok, no error",
        *messages(*IDS),
        "poll",
        "batch_ended",
    ]


def test_s2_4_s2_7_s2_8_s2_9_ordered_parallel_publishes_all_starts_then_all_ends_in_call_order() -> None:
    assert events_of(ExecutionOptions.preset("ordered_parallel"), finds_at=1) == [
        "batch parallel",
        *QUEUED,
        *allowed("look", "fail", "invalid"),
        *seen("denied", verdict="deny"),
        *seen("veto", "skip"),
        *seen("skip", "skip"),
        *seen("override", "override"),
        *allowed("act"),
        *[f"start {name} None" for name in IDS],
        *REPORTS,
        "end look ok, no error",
        "message look",
        "end fail error",
        "message fail",
        "end unknown not_found",
        "message unknown",
        "end invalid ok, no error",
        "message invalid",
        "end denied denied_policy",
        "message denied",
        "end veto skipped_hook",
        "message veto",
        "end skip skipped_hook, no error",
        "message skip",
        "end override overridden, no error",
        "message override",
        "end act ok, no error",
        "message act",
        "poll",
        "batch_ended",
    ]


def test_s3_1_streaming_starts_with_the_answer_checks_permission_before_hooks_and_runs_safe_calls_first() -> None:
    assert events_of(ExecutionOptions.preset("streaming"), finds_at=1) == [
        "batch auto",
        "queued look",
        *judged_first("look"),
        "start look 30.0",
        *REPORTS,
        *QUEUED[1:],
        *judged_first("fail"),
        waits("fail", "look", *IDS[2:]),
        "end unknown not_found",
        "end invalid invalid",
        "judged denied deny",
        "end denied denied_policy",
        *judged_first("veto", "skip"),
        "end veto skipped_hook",
        *judged_first("skip", "skip"),
        "end skip skipped_hook, no error",
        *judged_first("override", "override"),
        "end override overridden, no error",
        *judged_first("act"),
        waits("act", "fail"),
        "end look ok, no error",
        "start fail 30.0",
        "end fail error",
        "start act 30.0",
        "end act ok, no error",
        *messages(*IDS),
        "poll",
        "batch_ended",
    ]


def test_s4_56_s4_57_sdk_loop_in_parallel_runs_hooks_first_takes_any_arguments_and_never_polls() -> None:
    assert events_of(ExecutionOptions.preset("sdk_loop"), finds_at=1) == [
        "batch parallel",
        *QUEUED,
        *allowed("look"),
        "start look 30.0",
        *REPORTS,
        *allowed("fail"),
        "start fail 30.0",
        *seen("unknown"),
        "end unknown not_found",
        *allowed("invalid"),
        "start invalid 30.0",
        *seen("denied", verdict="deny"),
        "end denied denied_policy",
        *seen("veto", "skip"),
        "end veto skipped_hook, no error",
        *seen("skip", "skip"),
        "end skip skipped_hook, no error",
        *seen("override", "override"),
        "end override overridden, no error",
        *allowed("act"),
        "start act 30.0",
        "end fail error",
        "end invalid ok, no error",
        "end act ok, no error",
        "end look ok, no error",
        *messages(*IDS),
        "batch_ended",
    ]


def test_s4_56_sdk_loop_in_sequence_never_polls_either() -> None:
    options = ExecutionOptions.preset("sdk_loop", strategy=Sequential())

    assert events_of(options, "fail", "veto", "act", finds_at=1) == [
        "batch sequential",
        "queued fail",
        "queued veto",
        "queued act",
        *each_for_the_one_before("fail", "veto", "act"),
        *allowed("fail"),
        "start fail 30.0",
        "end fail error",
        "message fail",
        *seen("veto", "skip"),
        "end veto skipped_hook, no error",
        "message veto",
        *allowed("act"),
        "start act 30.0",
        "end act ok, no error",
        "message act",
        "batch_ended",
    ]


def test_by_default_reads_finish_and_effects_yield_to_a_steering_message() -> None:
    assert events_of(ExecutionOptions(), finds_at=1) == [
        "batch auto",
        "queued look",
        *allowed("look"),
        "start look 30.0",
        *REPORTS,
        *QUEUED[1:],
        *allowed("fail"),
        waits("fail", "look"),
        "end unknown not_found",
        "end invalid invalid",
        *seen("denied", verdict="deny"),
        "end denied denied_policy",
        *seen("veto", "skip"),
        "end veto skipped_hook",
        *seen("skip", "skip"),
        "end skip skipped_hook, no error",
        *seen("override", "override"),
        "end override overridden, no error",
        *allowed("act"),
        waits("act", "fail"),
        "end look ok, no error",
        "poll",
        "end fail skipped_steering",
        "end act skipped_steering",
        *messages(*IDS),
        "batch_ended",
    ]
