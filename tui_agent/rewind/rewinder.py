"""Goes back, for one agent and the session it is kept in."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.errors import AlreadyRunningError, SessionError, ToolError
from tui_agent.protocol.events import FileChanged, SessionRewinding, SessionRewound
from tui_agent.protocol.messages import Message, UserMessage, user_message
from tui_agent.session.history_fold import messages_of
from tui_agent.session.journal_reader import read_journal
from tui_agent.tools.content_store import CONTENT_LIMIT, ContentStore
from tui_agent.tools.file_states import NO_DIFF, TreeChange
from tui_agent.tools.shielded_thread import run_shielded_in_thread
from tui_agent.tools.unified_diff import Diff

from .file_history import call_subtree, changes_in, interrupted_calls, rewind_points, unobserved_commands
from .planner import plan_call_undo, plan_rewind
from .restore import carry_out, order_steps
from .rewind_plan import FileStep, RewindOutcome, RewindPlan, RewindPoint, Scope

NAMED_FILES = 20
"""Files that are named to the model."""


class Agent(Protocol):
    """What is asked of an agent loop."""

    @property
    def running(self) -> bool:
        """Whether a run goes on."""
        ...

    def apply_rewind(self, messages: Sequence[Message], event: SessionRewound) -> None:
        """Puts the conversation back, and tells it."""
        ...


@dataclass(frozen=True, slots=True)
class Rewinder:
    """Finds out what one can go back to, and does it. Everything it knows stands in the journal."""

    agent: Agent
    bus: EventBus
    journal: Path
    keep: Callable[[], Awaitable[None]]
    """Returns once everything told so far is in the journal."""
    contents: ContentStore
    root: Path
    """The workspace, resolved."""

    async def points(self) -> tuple[RewindPoint, ...]:
        """The moments one can go back to, the newest first.

        Raises:
            SessionError: the journal cannot be read.
        """
        envelopes = await self._envelopes()
        return await asyncio.to_thread(rewind_points, envelopes)

    async def plan(self, point: RewindPoint) -> RewindPlan:
        """What going back to a moment would do.

        Raises:
            SessionError: the journal cannot be read.
        """
        envelopes = await self._envelopes()
        return await asyncio.to_thread(self._plan, envelopes, point)

    async def plan_for_call(self, call_id: str, text: str) -> RewindPlan:
        """What taking back the changes of one call would do.

        Args:
            call_id: the call; the sub-agents it started are taken back with it.
            text: names it.

        Raises:
            SessionError: the journal cannot be read.
        """
        envelopes = await self._envelopes()
        return await asyncio.to_thread(self._plan_for_call, envelopes, call_id, text)

    async def carry_out(
        self, plan: RewindPlan, scope: Scope, overwritten: AbstractSet[Path] = frozenset()
    ) -> RewindOutcome:
        """Goes back, and tells it. Every file is changed whole or not at all; what fails keeps no other from its turn.

        Args:
            plan: what was shown.
            scope: what goes back.
            overwritten: files that go back although somebody else changed them.

        Raises:
            AlreadyRunningError: a run goes on; nothing was done.
            SessionError: the journal cannot be read; nothing was done.
        """
        if self.agent.running:
            raise AlreadyRunningError
        from_seq = self.bus.last_seq
        messages: tuple[Message, ...] = ()
        if scope != "files":
            envelopes = [one for one in await self._envelopes() if one.seq <= plan.to_seq]
            messages = await asyncio.to_thread(messages_of, envelopes)
        chosen = order_steps(plan.chosen(scope, overwritten))
        passed_over = [step.shown for step in plan.steps if step not in chosen] if scope != "conversation" else []
        done: list[str] = []
        failed: list[str] = []
        try:
            if chosen:
                await self._publish_intent(plan, chosen)
            for step in chosen:
                try:
                    await self._do(step, done)
                except ToolError as error:
                    failed.append(f"{step.shown}: {error}")
        except asyncio.CancelledError:
            rest = [step.shown for step in chosen if step.shown not in done]
            self.agent.apply_rewind((), _rewound_event(plan, "files", from_seq, done, [*passed_over, *rest]))
            raise
        self.agent.apply_rewind(messages, _rewound_event(plan, scope, from_seq, done, [*passed_over, *failed]))
        return RewindOutcome(tuple(done), tuple(passed_over), tuple(failed), plan.draft if scope != "files" else "")

    async def _publish_intent(self, plan: RewindPlan, chosen: Sequence[FileStep]) -> None:
        """Has on record what is about to change (P82); where nothing can be kept, that was told, and it goes on."""
        names = tuple(step.shown for step in chosen)
        words = (
            f"The program ended while the person went back to before “{plan.text[:80]}”: some of these files may hold "
            f"what they held then, the others what they held last: {_named(names)}. Read a file again before you rely "
            "on it."
        )
        intent = SessionRewinding(
            to_seq=plan.to_seq,
            text=plan.text,
            files=names[:NAMED_FILES],
            total=len(names),
            notice=user_message(words, "notice"),
        )
        self.bus.publish(intent)
        with suppress(SessionError):
            await self.keep()

    async def _do(self, step: FileStep, done: list[str]) -> None:
        """One step, told also if the caller is cancelled meanwhile; puts the file among `done` if it was changed."""
        made: list[TreeChange] = []

        def work() -> None:
            made.extend(carry_out(step, self.contents))

        try:
            await run_shielded_in_thread(work)
        finally:
            for change in made:
                self.bus.publish(_file_changed_event(change, step))
                done.append(step.shown)

    async def _envelopes(self) -> Sequence[Envelope]:
        await self.keep()
        return (await asyncio.to_thread(read_journal, self.journal)).envelopes

    def _plan(self, envelopes: Sequence[Envelope], point: RewindPoint) -> RewindPlan:
        steps = plan_rewind(changes_in(envelopes), point.seq, self.contents, self._shown)
        now, then = messages_of(envelopes), messages_of([one for one in envelopes if one.seq <= point.seq])
        kept = {message.id for message in then}
        gone = [message for message in now if message.id not in kept]
        notes: list[str] = []
        if unseen := unobserved_commands(envelopes, point.seq):
            words = "the tree was too large to be compared: what it changed is not known"
            notes.append(f"{unseen} commands ran since, but {words}")
        if cut_off := interrupted_calls(envelopes, point.seq):
            notes.append(
                f"the program ended in the middle of {_named(cut_off)}: what that changed is not known, and stays"
            )
        return RewindPlan(
            to_seq=point.seq,
            text=point.text if point.is_turn else f"going back to {point.text}",
            steps=steps,
            messages=len(gone),
            draft=point.text if point.is_turn else "",
            notes=(*notes, *_deletion_note(steps)),
            cut_off=cut_off,
        )

    def _plan_for_call(self, envelopes: Sequence[Envelope], call_id: str, text: str) -> RewindPlan:
        calls = call_subtree(envelopes, call_id)
        steps = plan_call_undo(changes_in(envelopes), calls, self.contents, self._shown)
        last = envelopes[-1].seq if envelopes else 0
        return RewindPlan(to_seq=last, text=text, steps=steps, call_id=call_id, notes=_deletion_note(steps))

    def _shown(self, path: Path) -> str:
        return str(path.relative_to(self.root) if path.is_relative_to(self.root) else path)


def _deletion_note(steps: Sequence[FileStep]) -> tuple[str, ...]:
    """A note about files that cannot be had again once they are deleted."""
    gone = [one.shown for one in steps if one.kind == "delete" and one.now is not None and one.now.size > CONTENT_LIMIT]
    return (f"Too large to be kept, so that deleting cannot be undone: {_named(gone)}.",) if gone else ()


def _file_changed_event(change: TreeChange, step: FileStep) -> FileChanged:
    counts = NO_DIFF if step.problem else Diff("", step.added, step.removed)
    return FileChanged.model_validate(change.event_data(counts))


def _rewound_event(
    plan: RewindPlan, scope: Scope, from_seq: int, done: Sequence[str], left: Sequence[str]
) -> SessionRewound:
    """What is told of a going back."""
    return SessionRewound(
        to_seq=plan.to_seq,
        from_seq=from_seq,
        text=plan.text,
        conversation=scope != "files",
        removed=plan.messages if scope != "files" else 0,
        call_id=plan.call_id,
        files=tuple(done),
        left=tuple(left),
        notice=_notice(plan, scope, done, left),
    )


def _notice(plan: RewindPlan, scope: Scope, done: Sequence[str], left: Sequence[str]) -> UserMessage | None:
    """What the model has to know: how the files differ from what the conversation says. None where they do not."""
    if scope == "both":
        if not left and not plan.cut_off:
            return None
        words = "The person went back to this moment."
        if left:
            words += f" These files could not go back with it: {_named(left)}."
        if plan.cut_off:
            words += f" The program had ended in the middle of {_named(plan.cut_off)}: nobody knows what that changed."
    elif scope == "conversation":
        if not plan.steps:
            return None
        names = [step.shown for step in plan.steps]
        words = f"The person went back to this moment, but left these files as they became later: {_named(names)}."
    else:
        if not done:
            return None
        words = f"The person took back changes: {_named(done)} hold what they held before “{plan.text[:80]}”."
    return user_message(f"{words} Read a file again before you rely on it.", "notice")


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED_FILES} more" if len(names) > NAMED_FILES else ""
    return ", ".join(names[:NAMED_FILES]) + more
