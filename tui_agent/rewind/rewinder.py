"""Rewind and undo for one agent and its session."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.protocol.background import run_shielded_in_thread
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.errors import AlreadyRunningError, SessionError, ToolError
from tui_agent.protocol.events import FileChanged, SessionRewinding, SessionRewound
from tui_agent.protocol.facts.change_facts import ChangedFile, FileStep, RewindOutcome, RewindPlan, RewindPoint, Scope
from tui_agent.protocol.messages import Message, UserMessage, user_message
from tui_agent.session.event_folds import interrupted_rewind
from tui_agent.session.history_fold import messages_of
from tui_agent.session.journal_reader import read_journal
from tui_agent.tools.file_states import ContentStore

from .planner import (
    call_subtree,
    carry_out,
    changes_in,
    interrupted_calls,
    order_steps,
    plan_call_undo,
    plan_rewind,
    remove_temporary,
    rewind_points,
    uncovered_targets,
    unobserved_commands,
    unrecoverable,
)
from .session_changes import changed_files, restores_start

if TYPE_CHECKING:
    from tui_agent.agent import AgentLoop

NAMED_FILES = 20
"""Most files named in a message to the model."""


@dataclass(frozen=True, slots=True)
class Rewinder:
    """Service that lists, plans and carries out rewinds, based on the journal alone.

    Its methods raise `SessionError` if the journal cannot be read, and then do nothing.
    """

    agent: "AgentLoop"
    bus: EventBus
    journal: Path
    keep: Callable[[], Awaitable[None]]
    """Returns once all published events are in the journal."""
    contents: ContentStore
    root: Path

    async def points(self) -> tuple[RewindPoint, ...]:
        """Return the moments to rewind to, newest first."""
        envelopes = await self._envelopes()
        return await asyncio.to_thread(rewind_points, envelopes)

    async def plan(self, point: RewindPoint) -> RewindPlan:
        """Plan a rewind to a moment. Changes nothing."""
        envelopes = await self._envelopes()
        return await asyncio.to_thread(self._plan, envelopes, point)

    async def plan_for_call(self, call_id: str, text: str) -> RewindPlan:
        """Plan to undo the changes of one call, which messages name `text`, and of the sub-agents that it started."""
        envelopes = await self._envelopes()
        return await asyncio.to_thread(self._plan_for_call, envelopes, call_id, text)

    async def carry_out(
        self, plan: RewindPlan, scope: Scope, overwritten: AbstractSet[Path] = frozenset()
    ) -> RewindOutcome:
        """Carry out a plan that was shown to the user, or parts of it, and publish it.

        Each file is changed whole or not at all; a failure does not stop the rest. Of the files with a conflict, those
        in `overwritten` are included.

        Raises:
            AlreadyRunningError: the agent is running; nothing was done.
            SessionError: the journal cannot be read; nothing was done.
            asyncio.CancelledError: the task was cancelled; files changed so far stay so and are published.
        """
        if self.agent.running:
            raise AlreadyRunningError
        # Before the first change: undoing this rewind goes back to here.
        from_seq = self.bus.last_seq
        messages: tuple[Message, ...] = ()
        if scope != "files":
            envelopes = [one for one in await self._envelopes() if one.seq <= plan.to_seq]
            messages = await asyncio.to_thread(messages_of, envelopes)
        chosen = order_steps(plan.chosen(scope, overwritten))
        left = (*(step.shown for step in plan.steps if step not in chosen), *plan.uncovered)
        passed_over = list(left) if scope != "conversation" else []
        done: list[str] = []
        failed: list[str] = []
        mark = secrets.token_hex(8)
        try:
            # A kill from here on leaves some files changed, and the next program must know which.
            if chosen:
                await self._announce(plan, chosen, mark)
            for step in chosen:
                try:
                    await self._do(step, done, mark)
                except ToolError as error:
                    failed.append(f"{step.shown}: {error}")
        # The model must not rely on files that are no longer as it knows them.
        except asyncio.CancelledError:
            rest = [step.shown for step in chosen if step.shown not in done]
            self.agent.apply_rewind((), _rewound(plan, "files", from_seq, done, [*passed_over, *rest]))
            raise
        self.agent.apply_rewind(messages, _rewound(plan, scope, from_seq, done, [*passed_over, *failed]))
        return RewindOutcome(tuple(done), tuple(passed_over), tuple(failed), plan.draft if scope != "files" else "")

    async def changed_files(self) -> tuple[ChangedFile, ...]:
        """Return the files that are not as they were before the session, sorted by name."""
        envelopes = await self._envelopes()
        return await asyncio.to_thread(lambda: changed_files(changes_in(envelopes), self.contents, self._shown))

    async def undo(self, text: str, steps: Sequence[FileStep]) -> RewindOutcome:
        """Undo changes of files as the steps say, and publish it; the conversation stays, and the model gets a notice.

        A file that is not in the state of its step is left alone and is among the failures of the outcome.

        Args:
            text: the changes in words, such as `the changes of cart.py`.

        Raises:
            AlreadyRunningError: the agent is running; nothing was done.
            SessionError: the journal cannot be read; nothing was done.
        """
        is_first = restores_start(steps, changes_in(await self._envelopes()))
        to_seq = 0 if is_first else self.bus.last_seq
        return await self.carry_out(RewindPlan(to_seq, text, tuple(steps), is_undo=True), "files")

    def remove_leftovers(self, envelopes: Sequence[Envelope]) -> None:
        """Remove the temporary files of a rewind that was interrupted when the session ran before. Blocks."""
        broken = interrupted_rewind(envelopes)
        if broken is None or not broken.mark:
            return
        remove_temporary({Path(change.path) for change in changes_in(envelopes)}, broken.mark)

    async def _announce(self, plan: RewindPlan, chosen: Sequence[FileStep], mark: str) -> None:
        """Publish `session.rewinding` and wait until it is in the journal, so that an interrupted rewind is known."""
        names = tuple(step.shown for step in chosen)
        what = f"undid {plan.text}" if plan.is_undo else f"rewound to before “{plan.text[:80]}”"
        words = (
            f"The program ended while the user {what}. Each of these files has either "
            f"its content from then or its latest content: {_named(names)}. Read a file again before you rely on it."
        )
        intent = SessionRewinding(
            to_seq=plan.to_seq,
            text=plan.text,
            files=names[:NAMED_FILES],
            total=len(names),
            mark=mark,
            notice=user_message(words, "notice"),
        )
        self.bus.publish(intent)
        with suppress(SessionError):  # The recorder has already reported that the journal cannot be written.
            await self.keep()

    async def _do(self, step: FileStep, done: list[str], mark: str) -> None:
        """Carry out one step to its end, even if the caller is cancelled; publish it and add its file to `done`."""
        made: list[FileChanged] = []

        def work() -> None:
            made.extend(carry_out(step, self.contents, mark))

        try:
            await run_shielded_in_thread(work)
        finally:
            for change in made:
                self.bus.publish(change)
                done.append(step.shown)

    async def _envelopes(self) -> Sequence[Envelope]:
        # Plans come from the journal alone, so it must have the newest changes.
        await self.keep()
        return (await asyncio.to_thread(read_journal, self.journal)).envelopes

    def _plan(self, envelopes: Sequence[Envelope], point: RewindPoint) -> RewindPlan:
        steps = plan_rewind(changes_in(envelopes, point.seq), self.contents, self._shown)
        now, then = messages_of(envelopes), messages_of([one for one in envelopes if one.seq <= point.seq])
        kept = {message.id for message in then}
        gone = [message for message in now if message.id not in kept]
        notes: list[str] = []
        if unseen := unobserved_commands(envelopes, point.seq):
            notes.append(
                f"{unseen} commands ran since without a comparison of the tree, because it is too large: their changes "
                "are unknown and stay"
            )
        uncovered = uncovered_targets(one for one in envelopes if one.seq > point.seq)
        notes += _uncovered_notes(uncovered)
        if cut_off := interrupted_calls(envelopes, point.seq):
            notes.append(f"the program ended during {_named(cut_off)}: its changes are unknown and stay")
        return RewindPlan(
            to_seq=point.seq,
            text=point.text if point.is_turn else f"the rewind to {point.text}",
            steps=steps,
            messages=len(gone),
            draft=point.text if point.is_turn else "",
            notes=(*notes, *_deletion_notes(steps)),
            cut_off=cut_off,
            uncovered=uncovered,
        )

    def _plan_for_call(self, envelopes: Sequence[Envelope], call_id: str, text: str) -> RewindPlan:
        calls = call_subtree(envelopes, call_id)
        steps = plan_call_undo(changes_in(envelopes), calls, self.contents, self._shown)
        last = envelopes[-1].seq if envelopes else 0
        uncovered = uncovered_targets(one for one in envelopes if getattr(one.event, "call_id", None) in calls)
        notes = (*_uncovered_notes(uncovered), *_deletion_notes(steps))
        return RewindPlan(to_seq=last, text=text, steps=steps, call_id=call_id, notes=notes, uncovered=uncovered)

    def _shown(self, path: Path) -> str:
        return str(path.relative_to(self.root) if path.is_relative_to(self.root) else path)


def _uncovered_notes(uncovered: Sequence[str]) -> tuple[str, ...]:
    """Return a note on what undone commands named and changed, and of which nothing was saved."""
    words = "too many ignored files to save them before a command that names them; they stay as they are"
    return (f"{_named(uncovered)}: {words}",) if uncovered else ()


def _deletion_notes(steps: Sequence[FileStep]) -> tuple[str, ...]:
    """Return a note about files whose deletion cannot be undone."""
    gone = [one.shown for one in steps if unrecoverable(one)]
    return (f"Too large to be saved, so deleting cannot be undone: {_named(gone)}.",) if gone else ()


def _rewound(plan: RewindPlan, scope: Scope, from_seq: int, done: Sequence[str], left: Sequence[str]) -> SessionRewound:
    """Return the event of a rewind."""
    return SessionRewound(
        to_seq=plan.to_seq,
        from_seq=from_seq,
        text=plan.text,
        conversation=scope != "files",
        removed=plan.messages if scope != "files" else 0,
        call_id=plan.call_id,
        is_undo=plan.is_undo,
        files=tuple(done),
        left=tuple(left),
        notice=_notice(plan, scope, done, left),
    )


def _notice(plan: RewindPlan, scope: Scope, done: Sequence[str], left: Sequence[str]) -> UserMessage | None:
    """Return a message for the model on files that no longer match the conversation; None if all match."""
    if scope == "both":
        if not left and not plan.cut_off:
            return None
        words = "The user rewound the session to this moment."
        if left:
            words += f" These files were not restored: {_named(left)}."
        if plan.cut_off:
            words += f" The program had ended during {_named(plan.cut_off)}; the changes of that call are unknown."
    elif scope == "conversation":
        if not plan.steps:
            return None
        names = [step.shown for step in plan.steps]
        words = (
            f"The user rewound the conversation to this moment, but these files keep later changes: {_named(names)}."
        )
    else:
        if not done:
            return None
        before = f"The user undid changes: these files are as they were before “{plan.text[:80]}”: {_named(done)}."
        words = f"The user undid {plan.text}." if plan.is_undo else before
    return user_message(f"{words} Read a file again before you rely on it.", "notice")


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED_FILES} more" if len(names) > NAMED_FILES else ""
    return ", ".join(names[:NAMED_FILES]) + more
