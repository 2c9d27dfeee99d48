"""Between stages 11 and 12: keep, ask about or discard the changes of a command that ran in a trial.

The policy decides, and asks the user where no rule or mode does; then a part is kept and the rest discarded. A question
survives the end of the program: then the layer waits, and a resumed session asks again (`ToolContext.resumed_from`).
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

from pydantic import ValidationError

from tui_agent.execution.approval_gate import ApprovalAnswer, call_digest, changes_digest, rule_to_store
from tui_agent.execution.contained_calls import Crash, contained, kind_of, try_call
from tui_agent.execution.execution_services import ExecutionServices
from tui_agent.execution.outcomes import Outcome, cancelled, changes_waiting, failure, with_partial
from tui_agent.protocol.cancellation import PROGRAM_QUIT
from tui_agent.protocol.diffs import Diff
from tui_agent.protocol.events import ChangesDiscarded, ChangesKept, ChangesProposed, ToolBlockedOn, Warned
from tui_agent.protocol.messages import JsonObject, TextBlock
from tui_agent.protocol.permissions import ApprovalRequest, ChangesChecker, ChangesDecision, ChangesRuleChecker
from tui_agent.protocol.tool import DataUpdate, Preview, ToolResult
from tui_agent.protocol.trial import (
    MOST_FILES,
    REPOSITORY,
    KeepSelection,
    KeptChanges,
    PendingChanges,
    ProposedChanges,
    ProposedFile,
)

from .approval_stage import MAX_QUESTIONS, store_rule, timed_answer
from .call_state import CallState
from .run_tool import prepare_for_effects

_NAMED = 8
"""Most paths that a note names one by one."""


@dataclass(slots=True)
class _Verdict:
    """Decision about the changes."""

    selection: KeepSelection | None = None
    """The part to keep; None: nothing."""
    by_user: bool = False
    reason: str = ""
    """Reason why something is discarded."""
    rule: str | None = None
    """Rule that was stored."""
    halts: bool = False


@dataclass(slots=True)
class _Settling:
    """The stage of one call."""

    services: ExecutionServices
    state: CallState
    pending: PendingChanges
    proposed: ProposedChanges
    outcome: Outcome
    result: str = ""
    """The call's result as JSON."""
    is_recorded: bool = False
    is_published: bool = False

    @property
    def call_id(self) -> str:
        return self.state.received.call.id


async def settle_changes(
    services: ExecutionServices, state: CallState, pending: PendingChanges, outcome: Outcome
) -> Outcome:
    """Keep, ask about or discard the changes that the tool proposed; return its outcome with what became of them.

    The tool has ended, and with it its time limit. Only the user or the end of the run ends the wait for an answer.
    """
    state.turns.give_back(state)
    proposed = _proposed(pending)
    if isinstance(proposed, Crash):
        await _discard(state)
        note = f"[discarded: everything (what the command changed cannot be shown: {proposed.text})]"
        return replace(outcome, result=_with_text(outcome.result, note))
    settling = _Settling(services, state, pending, proposed, outcome)
    if proposed.is_empty:
        await _discard(state)
        return outcome
    was_stopped = state.stopping is not None and outcome.status != "timeout"
    if not was_stopped:
        # A command that ran out of time was stopped, too, but its changes can be kept.
        state.stopping = None
    verdict = _Verdict()
    try:
        if not was_stopped:
            verdict = await _verdict(settling)
    except asyncio.CancelledError:
        state.stopping = await _stopped(settling, state.stopping or cancelled("", started=True))
        raise
    state.phase, execution = "ran", state.run.execution
    if execution is None:
        # Its message was discarded; another call may adopt the command and its changes.
        return state.stopping or outcome
    if state.stopping is None:
        settled = await _apply(settling, verdict)
    else:
        settled = await _stopped(settling, outcome if was_stopped else state.stopping)
    execution.proposal = None
    return settled


async def _discard(state: CallState) -> None:
    if state.run.execution is not None:
        await state.run.execution.discard_proposal()


async def _verdict(settling: _Settling) -> _Verdict:
    """Return what to do with the changes; meaningless if the call was stopped meanwhile."""
    state = settling.state
    state.phase = "settling"
    run = state.token.parent or state.token
    if run.is_set():
        state.cancel(run.reason)
        return _Verdict()
    try:
        verdict = await state.unless_stopped(_decide(settling))
    except TimeoutError:
        if state.stopping is None:
            raise
        return _Verdict()
    if state.stopping is None and verdict.selection is not None:
        refusal = await prepare_for_effects(settling.services, state)
        if refusal is not None and state.stopping is None:
            return _Verdict(reason=refusal.result.text)
    return verdict


async def _decide(settling: _Settling) -> _Verdict:
    """Wait until the message is complete and for the call's turn, ask the policy and, if it must be, the user."""
    services, state = settling.services, settling.state
    await state.turns.until_complete()
    decision = check_changes(services, settling.proposed)
    settling.result = settling.outcome.result.model_dump_json()
    waits = decision.decision == "ask" or not state.turns.may_settle(state)
    if waits and not state.run.discards:
        # First of all: from the moment the changes wait, they must survive.
        settling.is_recorded = not isinstance(await contained(settling.pending.record(settling.result)), Crash)
    _publish_proposed(settling)
    if waits:
        await state.turns.take_settling(state)
        # What was kept meanwhile may be in conflict with it.
        await contained(settling.pending.refresh())
        proposed = _proposed(settling.pending)
        settling.proposed = settling.proposed if isinstance(proposed, Crash) else proposed
        decision = check_changes(services, settling.proposed)
    if state.run.discards or decision.decision == "deny":
        return _Verdict(reason=state.run.discards or decision.reason)
    return await _ask(settling, decision) if decision.decision == "ask" else _by_policy(settling, decision)


def _proposed(pending: PendingChanges) -> ProposedChanges | Crash:
    return try_call(lambda: pending.proposed)


def check_changes(services: ExecutionServices, proposed: ProposedChanges) -> ChangesDecision:
    """Return the policy's decision on what a command changed in a trial.

    A proposal with a problem, or with nothing that can be kept, is denied without asking the policy; `source` is then
    `floor`. For a policy without `check_changes` the decision is to ask about everything, for one that fails to deny.
    """
    keepable = _keepable(proposed)
    if proposed.problem or not keepable:
        why = proposed.problem or "nothing of it can be kept"
        return ChangesDecision(decision="deny", source="floor", reason=why)
    if not isinstance(services.policy, ChangesChecker):
        reason = "a command changed files"
        return ChangesDecision(decision="ask", source="mode", reason=reason, asked=keepable)
    answer = try_call(services.policy.check_changes, proposed)
    if not isinstance(answer, Crash):
        return answer
    reason = f"the permission policy failed, so nothing is kept ({kind_of(answer)}: {answer.text})"
    return ChangesDecision(decision="deny", source="invalid", reason=reason)


def _keepable(proposed: ProposedChanges) -> tuple[str, ...]:
    """Return everything that an answer can keep."""
    entries = (*proposed.files, *proposed.trees)
    repository = (REPOSITORY,) if proposed.repository else ()
    return (*(entry.path for entry in entries if entry.sort != "refused"), *repository)


def _by_policy(settling: _Settling, decision: ChangesDecision, reason: str = "") -> _Verdict:
    """Return what the policy keeps without an answer, which is nothing protected."""
    proposed = settling.proposed
    needs_answer = {entry.path for entry in (*proposed.files, *proposed.trees) if entry.sort == "protected"}
    # A policy may be anyone's code, so its answer is not taken at its word.
    paths = tuple(path for path in decision.kept if path not in needs_answer and path in _keepable(proposed))
    reason = reason or ("" if len(paths) == len(_keepable(proposed)) else decision.reason)
    return _Verdict(KeepSelection(paths=paths) if paths else None, reason=reason)


async def _ask(settling: _Settling, decision: ChangesDecision) -> _Verdict:
    """Ask the user until there is an answer that fits the changes."""
    for _ in range(MAX_QUESTIONS):
        request = _request(settling, decision)
        answer = await _answer_to(settling, request)
        # Again after the wait: a rule or the mode may have changed what this answer means.
        decision = check_changes(settling.services, settling.proposed)
        if answer.by == "policy" and decision.decision == "allow":
            return _by_policy(settling, decision)
        if answer.by in ("nobody", "timeout"):
            return _by_policy(settling, decision, answer.decision.note)
        if answer.by == "policy" and answer.decision.decision == "deny":
            return _Verdict(reason=decision.reason if decision.decision == "deny" else answer.decision.note)
        if answer.by != "policy" and (verdict := await _by_user(settling, request, answer)) is not None:
            return verdict
    return _Verdict(reason="no answer fitted the changes")


def _request(settling: _Settling, decision: ChangesDecision) -> ApprovalRequest:
    services, state, proposed = settling.services, settling.state, settling.proposed
    prepared, call = state.accepted, state.received.call
    schema = prepared.tool.spec.input_schema
    rules = decision.rules
    return ApprovalRequest(
        call_id=call.id,
        # By the arguments as the model sent them: no hook is asked again in a resumed session.
        digest=changes_digest(call_digest(call.name, call.arguments, schema=schema), proposed),
        tool=prepared.tool.name,
        args=prepared.arguments,
        summary=prepared.summary,
        reason=decision.reason,
        preview=preview_of(proposed),
        session_rule=rules[0] if rules else None,
        rules=rules,
        agent=services.agent,
        changes=proposed,
    )


async def _answer_to(settling: _Settling, request: ApprovalRequest) -> ApprovalAnswer:
    services, state = settling.services, settling.state
    async with services.gate.preparing:
        services.publisher.publish(ToolBlockedOn(call_id=settling.call_id, what="approval"))
    judge, may_store = partial(check_changes, services, settling.proposed), partial(_may_store, settling)
    return await timed_answer(services, state, request, judge, may_store)


async def _by_user(settling: _Settling, request: ApprovalRequest, answer: ApprovalAnswer) -> _Verdict | None:
    """Return what the user decided; None, after a warning, if the answer does not fit the changes."""
    decision, proposed = answer.decision, settling.proposed
    said = f" The user said: {decision.note}" if decision.note else ""
    if decision.override_result is not None:
        settling.outcome = settling.outcome.with_result(decision.override_result)
    if decision.decision == "skip":
        return _Verdict(None, by_user=True, reason=f"the user skipped the question.{said}" if said else "skipped")
    if decision.decision == "deny":
        # As for a denied call: a bare no ends the turn.
        halts = settling.services.options.on_reject == "stop_turn" and not decision.note
        return _Verdict(None, by_user=True, reason=f"the user did not want them.{said}", halts=halts)
    selection = _selected(proposed, decision.input)
    if isinstance(selection, str):
        text = f"The answer about the changes of {request.tool} does not fit them: {selection}. Nothing was kept yet."
        settling.services.publisher.publish(
            Warned(code="bad_selection", text=text, context={"call_id": settling.call_id})
        )
        return None
    if decision.note:
        settling.state.approval.notes += (f"The user said: {decision.note}",)
    rule = None
    if decision.scope != "once":
        rule = rule_to_store(request, decision, partial(_may_store, settling))
        done = "The changes are kept"
        if not await store_rule(settling.services, settling.call_id, rule, decision.scope, done):
            rule = None
    return _Verdict(selection, by_user=True, reason="not chosen by the user", rule=rule)


def _may_store(settling: _Settling, rule: str) -> bool:
    """Return True if the policy accepts a rule that it did not propose."""
    policy = settling.services.policy
    return isinstance(policy, ChangesRuleChecker) and not policy.changes_refusal(rule, settling.proposed)


def _selected(proposed: ProposedChanges, answer: JsonObject | None) -> KeepSelection | str:
    """Return the part that an answer keeps, or why it does not fit. Without a choice of its own, an answer keeps all,
    but replaces nothing that changed in the workspace meanwhile (`KeepSelection.overwrite`)."""
    if answer is None:
        return KeepSelection(paths=_keepable(proposed))
    try:
        selection = KeepSelection.model_validate(answer)
    except ValidationError as error:
        return f"{'.'.join(map(str, error.errors()[0]['loc']))}: {error.errors()[0]['msg']}"
    keepable, texts = set(_keepable(proposed)), {file.path for file in proposed.files if file.is_text}
    # An answer from outside may name anything; only what was proposed can be kept.
    named = {*selection.paths, *selection.overwrite, *selection.texts}
    if unknown := sorted((named - keepable) | (selection.texts.keys() - texts)):
        return f"{', '.join(unknown[:5])} cannot be kept"
    if stray := sorted((selection.texts.keys() | set(selection.overwrite)) - set(selection.paths)):
        return f"{', '.join(stray[:5])} is not among the paths to keep"
    return selection


async def _apply(settling: _Settling, verdict: _Verdict) -> Outcome:
    """Keep the chosen part and discard the rest; publish both, and add them to the result."""
    pending, selection = settling.pending, verdict.selection
    if selection is None or not selection.paths:
        kept = await contained(pending.discard())
    else:
        kept = await _keep(settling, selection, verdict)
    if isinstance(kept, Crash):
        problem = f"the changes could not be {'kept' if selection else 'removed'}: {kept.text}"
        everything = (*_keepable(settling.proposed),)
        kept = KeptChanges(discarded=everything, problems=(problem,) if selection else ())
    # Each problem names its path, so the reason of the whole would only repeat it.
    is_explained = selection is not None and set(kept.discarded) <= set(selection.paths) and bool(kept.problems)
    reason = "" if is_explained else verdict.reason
    if kept.discarded or not kept.kept:
        _publish_discarded(settling, kept, reason)
    outcome = _with_note(settling, kept, reason if kept.discarded or not kept.kept else "")
    return replace(outcome, halts="stopped") if verdict.halts else outcome


async def _keep(settling: _Settling, selection: KeepSelection, verdict: _Verdict) -> KeptChanges | Crash:
    """Keep a part, and publish it before the files that it changed, which the tool reports meanwhile."""
    channel, kept = settling.state.run.channel, KeptChanges()
    changed: list[DataUpdate] = channel.collect() if channel is not None else []
    try:
        result = "" if settling.is_recorded else settling.result
        answer = await contained(settling.pending.keep(selection, result))
        if isinstance(answer, Crash):
            return answer
        kept = answer
        return answer
    finally:
        # Also if the task was cancelled: what is in the workspace must be known to undo and rewind.
        paths = kept.kept or tuple(str(update.data.get("path", "")) for update in changed)
        if paths:
            settling.services.publisher.publish(
                ChangesKept(
                    call_id=settling.call_id,
                    layer=settling.proposed.layer,
                    paths=paths[:MOST_FILES],
                    count=count_files(settling.proposed, paths),
                    by="user" if verdict.by_user else "policy",
                    rule=verdict.rule,
                )
            )
        settling.services.record_own_files(str(update.data.get("path", "")) for update in changed)
        if channel is not None:
            channel.release()


async def _stopped(settling: _Settling, stopping: Outcome) -> Outcome:
    """Return the outcome of a call that was stopped: its changes are gone, unless they wait for the next session."""
    state, ran = settling.state, settling.outcome
    reason = state.token.reason.rstrip(".") or "cancelled"
    if state.run.execution is not None:
        # It is decided on here, and must not be discarded a second time.
        state.run.execution.proposal = None
    # Unrecorded, no later session could find the layer.
    if settling.is_recorded and reason.startswith(PROGRAM_QUIT) and not state.run.discards:
        return changes_waiting(ran.result)
    _publish_proposed(settling)
    kept = await contained(settling.pending.discard())
    # What could not be removed is not in the workspace either.
    kept = KeptChanges(discarded=_keepable(settling.proposed)) if isinstance(kept, Crash) else kept
    _publish_discarded(settling, kept, reason)
    if stopping is not ran:
        text = f"Cancelled: {reason}. The command had ended, and none of its changes were kept."
        settling.outcome = with_partial(failure("cancelled", text, "cancelled"), ran.result)
    return _with_note(settling, kept, reason)


def _publish_proposed(settling: _Settling) -> None:
    if not settling.is_published:
        settling.is_published = True
        settling.services.publisher.publish(ChangesProposed(call_id=settling.call_id, changes=settling.proposed))


def _publish_discarded(settling: _Settling, kept: KeptChanges, reason: str) -> None:
    told = "; ".join(filter(None, (reason, *kept.problems[:3])))
    settling.services.publisher.publish(
        ChangesDiscarded(
            call_id=settling.call_id,
            layer=settling.proposed.layer,
            paths=kept.discarded[:MOST_FILES],
            count=count_files(settling.proposed, kept.discarded),
            reason=told,
        )
    )


def _with_note(settling: _Settling, kept: KeptChanges, reason: str) -> Outcome:
    """Return the outcome with what became of the changes: for the model at its end, for the screen in its details."""
    outcome, proposed = settling.outcome, settling.proposed
    changes: JsonObject = {
        "layer": proposed.layer,
        "kept": list(kept.kept[:MOST_FILES]),
        "discarded": list(kept.discarded[:MOST_FILES]),
        "kept_count": count_files(proposed, kept.kept),
        "discarded_count": count_files(proposed, kept.discarded),
        "reason": reason,
    }
    details: JsonObject = {**(outcome.result.details or {}), "changes": changes}
    result = _with_text(outcome.result, f"[{changes_note(proposed, kept, reason)}]")
    return replace(outcome, result=result.model_copy(update={"details": details}))


def _with_text(result: ToolResult, text: str) -> ToolResult:
    return result.model_copy(update={"content": (*result.content, TextBlock(text=text))})


def changes_note(proposed: ProposedChanges, kept: KeptChanges, reason: str) -> str:
    """Return what became of the changes: `kept: a.py, b.py; discarded: c.py (reason)`, and each problem."""
    parts: list[str] = []
    if kept.kept:
        parts.append(f"kept: {_named(proposed, kept.kept)}")
    if kept.discarded or not kept.kept:
        why = f" ({reason.rstrip('.')})" if reason else ""
        parts.append(f"discarded: {_named(proposed, kept.discarded)}{why}")
    never = [f"{file.path} is never kept: {file.note}" for file in proposed.files if file.sort == "refused"]
    lines = ["; ".join(parts), *kept.problems[:_NAMED], *never[:_NAMED]]
    return "\n".join(lines)


def count_files(proposed: ProposedChanges, paths: Iterable[str]) -> int:
    """Return the number of changed files that paths of a proposal stand for, the repository's own not counted."""
    trees = {tree.path: tree.files for tree in proposed.trees}
    return sum(trees.get(path, 1) for path in paths if path != REPOSITORY)


def _named(proposed: ProposedChanges, paths: tuple[str, ...]) -> str:
    trees = {tree.path: f"{tree.path} ({_files(tree.files)})" for tree in proposed.trees}
    names = [trees.get(path, path) for path in paths if path != REPOSITORY]
    if len(names) > _NAMED:
        # A build may change thousands of files, and the model reads every word of this.
        names = [_files(count_files(proposed, paths))]
    if REPOSITORY in paths:
        names.append(
            f"in the repository: {'; '.join(proposed.repository)}" if proposed.repository else "the repository"
        )
    return ", ".join(names) or "everything"


def _files(count: int) -> str:
    return f"{count:,} file{'' if count == 1 else 's'}"


def preview_of(proposed: ProposedChanges) -> Preview:
    """Return the changes as one diff with notes, for front ends that know no more."""
    notes = [line for file in proposed.files if (line := _note_of(file))]
    notes += [f"{tree.path}: {_files(tree.files)}" for tree in proposed.trees]
    notes += [f"in the repository: {line}" for line in proposed.repository]
    return Preview(
        kind="diff",
        text=Diff.joined(file.diff for file in proposed.files),
        note="\n".join(notes),
    )


def _note_of(file: ProposedFile) -> str:
    """Return what the diff of a file does not show; empty if it shows all."""
    said = [
        file.runs_later,
        file.note,
        f"in conflict: {file.conflict}" if file.conflict else "",
        "cut" if file.has_more else "",
    ]
    words = "; ".join(filter(None, said))
    if file.sort == "refused":
        return f"never kept: {file.path} ({words})"
    if file.sort == "protected":
        return f"protected: {file.path} {file.kind}{f' ({words})' if words else ''}"
    if words or not file.diff:
        return f"{file.path} {file.kind}{f' ({words})' if words else ''}"
    return ""
