"""Planning of a rewind, by comparing the recorded changes with the files on the disk; and restoring of one file.

The present content of a file is stored first, and nothing else is replaced.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from tui_agent.protocol.diffs import NO_DIFF, NOTHING, Diff
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.events import (
    ChangesKept,
    FileChanged,
    FileState,
    MessageEnded,
    MessageStarted,
    SessionRewound,
    ToolData,
    ToolEnded,
    ToolStarted,
)
from tui_agent.protocol.facts.change_facts import FileStep, RewindPoint, StepKind
from tui_agent.protocol.messages import UserMessage
from tui_agent.protocol.tool import EFFECTS_DATA
from tui_agent.session.event_folds import active_events
from tui_agent.session.history_fold import ROOT_AGENT
from tui_agent.tools.atomic_write import replace_file, temporary_name
from tui_agent.tools.file_states import (
    CONTENT_LIMIT,
    ContentStore,
    TreeChange,
    content_of,
    diff_between,
    read_file_state,
    same_file,
)
from tui_agent.tools.pinned_directory import ResolvedPath, pinned_directory

NOT_KEPT = "its earlier content was not saved: the file was too large, or the session's limit was reached"
NOT_KNOWN = "its earlier content was not recorded"
CHANGED_SINCE = "someone else changed it since"
CHANGED_BETWEEN = "someone else changed it in between; that change would be lost"
CHANGED_LATER = "a later call changed it again; that change would be lost"
NOT_COMPARED = "it is too large to be compared with the content the agent left"

DIFF_SHOWN = 40_000


def changes_in(envelopes: Iterable[Envelope], after: int = 0) -> list[FileChanged]:
    """Return all changes of files after the event with number `after`, in order.

    Those of sub-agents and of earlier rewinds are included.
    """
    return [event for one in envelopes if isinstance(event := one.event, FileChanged) and one.seq > after]


def unobserved_commands(envelopes: Iterable[Envelope], after: int) -> int:
    """Return the number of commands after event `after` whose changes are unknown: the tree was not compared."""
    unknown: set[str] = set()
    for envelope in envelopes:
        match envelope.event:
            case ToolEnded(call_id=call_id, details={"files_changed": None}) if envelope.seq > after:
                unknown.add(call_id)
            # The tree may be compared only after the call has ended, as for a command in the background.
            case ToolData(call_id=call_id, kind=kind, data={"files_changed": int()}) if kind == EFFECTS_DATA:
                unknown.discard(call_id)
            case _:
                pass
    return len(unknown)


def uncovered_targets(envelopes: Iterable[Envelope]) -> tuple[str, ...]:
    """Return the paths that commands of these events named and changed, but whose content was not saved; each once."""
    found: dict[str, None] = {}
    for envelope in envelopes:
        match envelope.event:
            case (
                ToolEnded(details={"not_covered": [*names]}) | ToolData(kind="effects", data={"not_covered": [*names]})
            ):
                found |= dict.fromkeys(map(str, names))
            case _:
                pass
    return tuple(found)


def interrupted_calls(envelopes: Iterable[Envelope], after: int) -> tuple[str, ...]:
    """Return tool and summary of each call after event `after` that was interrupted and may have changed something."""
    started: dict[str, ToolStarted] = {}
    untouched: set[str] = set()
    found: list[str] = []
    for envelope in envelopes:
        match envelope.event:
            case ToolStarted(read_only=False) as event if envelope.seq > after:
                started[event.call_id] = event
                # Of a trial nothing is in the workspace before it is kept.
                untouched |= {event.call_id} if event.place != "outside" else set()
            case ChangesKept(call_id=call_id):
                untouched.discard(call_id)
            case ToolEnded(status="interrupted", call_id=call_id) if call_id in untouched:
                pass
            case ToolEnded(status="interrupted", call_id=call_id) if call_id in started:
                begun = started.pop(call_id)
                found.append(f"{begun.name} {begun.summary}".strip())
            case _:
                pass
    return tuple(found)


def call_subtree(envelopes: Iterable[Envelope], call_id: str) -> frozenset[str]:
    """Return the ids of a call, of the call whose trial it adopted, and of all calls of sub-agents below it."""
    found = {call_id}
    for envelope in envelopes:
        if isinstance(envelope.event, ToolStarted) and envelope.event.call_id in found and envelope.event.adopted_from:
            found.add(envelope.event.adopted_from)
        own = getattr(envelope.event, "call_id", None)
        if isinstance(own, str) and envelope.origin.parent_call_id in found:
            found.add(own)
    return frozenset(found)


def rewind_points(envelopes: Sequence[Envelope]) -> tuple[RewindPoint, ...]:
    """Return the moments before each user message in the conversation and before each rewind, newest first."""
    points = [*_turns(active_events(envelopes)), *_rewinds(envelopes)]
    points.sort(key=lambda point: point.seq, reverse=True)
    changes = [(one.seq, one.event) for one in envelopes if isinstance(one.event, FileChanged)]
    counted: list[RewindPoint] = []
    paths: set[str] = set()
    added = removed = 0
    for point in points:
        # Both lists go from the newest to the oldest, so each change is counted once.
        while changes and changes[-1][0] > point.seq:
            _, change = changes.pop()
            paths.add(change.path)
            added += change.added
            removed += change.removed
        counted.append(RewindPoint(point.seq, point.time, point.text, point.is_turn, len(paths), added, removed))
    return tuple(counted)


def _turns(path: Iterable[Envelope]) -> list[RewindPoint]:
    """Return the moments before the messages of the user."""
    begun: dict[str, int] = {}
    points: list[RewindPoint] = []
    for envelope in path:
        if envelope.origin.agent_id != ROOT_AGENT:
            continue
        match envelope.event:
            case MessageStarted(role="user", message_id=message_id):
                begun.setdefault(message_id, envelope.seq)
            case MessageEnded(message=UserMessage() as message) if message.is_from_user:
                # Before its first event, or the rewind would keep a message that begins and never ends.
                seq = begun.get(message.id, envelope.seq) - 1
                points.append(RewindPoint(seq, envelope.ts, message.text))
            case _:
                pass
    return points


def _rewinds(envelopes: Iterable[Envelope]) -> list[RewindPoint]:
    """Return the moments before each rewind."""
    return [
        RewindPoint(event.from_seq, envelope.ts, event.text, is_turn=False)
        for envelope in envelopes
        if isinstance(event := envelope.event, SessionRewound)
    ]


# --- plans ------------------------------------------------------------------------------------------------------------


def _diff(step: FileStep, contents: ContentStore, old: FileState | None, new: FileState | None) -> Diff:
    """Return the diff of two states of a step's file; empty if a content is missing."""
    before, after = (_bytes_in(state, step, contents) for state in (old, new))
    if before is None or after is None:
        return NO_DIFF
    names = NOTHING if old is None else f"a/{step.shown}", NOTHING if new is None else f"b/{step.shown}"
    return (diff_between(before, after, names) or NO_DIFF).shortened(DIFF_SHOWN)


def _bytes_in(state: FileState | None, step: FileStep, contents: ContentStore) -> bytes | None:
    """Return the content of a step's file in a state; None if it is missing."""
    found = content_of(state, contents)
    if found is None and state is not None and state == step.now and not state.is_link:
        # What the disk has need not be saved to be compared.
        with suppress(OSError):
            return step.path.read_bytes() if os.path.getsize(step.path) == state.size else None
    return found


def plan_rewind(
    changes: Iterable[FileChanged], contents: ContentStore, shown: Callable[[Path], str]
) -> tuple[FileStep, ...]:
    """Return the steps that bring every file back to its state before these changes. Blocks.

    Sorted by name; a file that is as it was has no step. Planning adds nothing to the contents.

    Args:
        changes: all changes of the session after an event.
        shown: returns the name of a file for messages.
    """
    steps = [_step(Path(path), ours, (), contents, shown) for path, ours in by_path(changes).items()]
    return tuple(sorted(filter(None, steps), key=lambda step: step.shown))


def plan_call_undo(
    changes: Sequence[FileChanged], calls: frozenset[str], contents: ContentStore, shown: Callable[[Path], str]
) -> tuple[FileStep, ...]:
    """Return the steps that undo the changes of these calls, sorted by name. Blocks.

    Args:
        changes: all changes of the session.
        calls: ids of the calls.
        shown: returns the name of a file for messages.
    """
    steps: list[FileStep] = []
    for path, recorded in by_path(changes).items():
        places = [place for place, change in enumerate(recorded) if change.call_id in calls]
        if places:
            ours, later = recorded[places[0] : places[-1] + 1], recorded[places[-1] + 1 :]
            step = _step(Path(path), ours, later, contents, shown)
            steps.extend([step] if step is not None else [])
    return tuple(sorted(steps, key=lambda step: step.shown))


def by_path(changes: Iterable[FileChanged]) -> dict[str, list[FileChanged]]:
    """Return the changes of each file, in order."""
    found: dict[str, list[FileChanged]] = {}
    for change in changes:
        found.setdefault(change.path, []).append(change)
    return found


def _step(
    path: Path,
    ours: Sequence[FileChanged],
    later: Sequence[FileChanged],
    contents: ContentStore,
    shown: Callable[[Path], str],
) -> FileStep | None:
    """Return the step that undoes `ours`; None if there is nothing to do."""
    first, last = ours[0], ours[-1]
    target, left = first.before, last.after
    try:
        now = read_file_state(path, None)
    except OSError as error:
        return FileStep(path, shown(path), "stuck", None, target, problem=f"cannot be read: {error.strerror or error}")
    if first.known and same_file(now, target):
        return None
    step = FileStep(path, shown(path), kind_of_step(now, target), now, target)
    if not first.known:
        return replace(step, kind="stuck", problem=NOT_KNOWN)
    if content_of(target, contents) is None:
        return replace(step, kind="stuck", problem=NOT_KEPT)
    # First, because a gap counts even if the file looks like the agent's now: the user's words may be inside.
    if gap := _gap(ours):
        return replace(step, problem=CHANGED_BETWEEN, diff=_diff(step, contents, gap[0].after, gap[1].before))
    if later and same_file(later[-1].after, now):
        return replace(step, problem=CHANGED_LATER, diff=_diff(step, contents, left, now))
    if not last.known or not same_file(now, left):
        compared = left is None or now is None or (left.digest and now.digest)
        return replace(step, problem=CHANGED_SINCE if compared else NOT_COMPARED, diff=_diff(step, contents, left, now))
    return replace(step, diff=_diff(step, contents, now, target))


def _gap(changes: Sequence[FileChanged]) -> tuple[FileChanged, FileChanged] | None:
    """Return the first two changes between which someone else changed the file, or may have."""
    for one, other in pairwise(changes):
        if not (one.known and other.known and same_file(one.after, other.before)):
            return one, other
    return None


def kind_of_step(now: FileState | None, target: FileState | None) -> StepKind:
    """Return the kind of the step from one state of a file to another; None is a missing file."""
    if target is None:
        return "delete"
    return "create" if now is None else "restore"


# --- one file ---------------------------------------------------------------------------------------------------------


def carry_out(step: FileStep, contents: ContentStore, mark: str = "") -> tuple[FileChanged, ...]:
    """Carry out one step and return its event; none if the file already has its target state. Blocks.

    By `mark`, temporary files are found if the program is killed.

    Raises:
        ToolError: the step was not carried out: the file is not in the state that was shown to the user, or cannot be
            stored or written.
    """
    try:
        now = read_file_state(step.path, contents)
        if same_file(now, step.target):
            return ()
        if not same_file(now, step.now):
            raise ToolError("it changed after the page was shown; it was not touched")
        if now is not None and not now.kept and (step.kind != "delete" or step.is_conflict):
            raise ToolError("its present content cannot be saved, so it was not replaced")
        content = content_of(step.target, contents)
        if content is None:
            raise ToolError("its saved content is damaged or missing")
        if now is None and step.target is not None:
            _remove_empty_directory(step.path)
        if step.target is None:
            _delete(step.path)
        elif step.target.is_link or (now is not None and now.is_link):
            _put(step.path, step.target, content, mark)
        else:
            _write(step.path, step.shown, step.target, content, mark)
    except OSError as error:
        raise ToolError(error.strerror or str(error)) from error
    counts = NO_DIFF if step.problem else Diff(counts=(step.diff.added, step.diff.removed))
    return (FileChanged.model_validate(TreeChange(step.path, now, step.target).event_data(counts)),)


def unrecoverable(step: FileStep) -> bool:
    """Return True if a step deletes a file that is too large to be saved."""
    return step.kind == "delete" and step.now is not None and step.now.size > CONTENT_LIMIT


def remove_temporary(paths: Iterable[Path], mark: str) -> None:
    """Remove the temporary files of steps at some paths that were carried out with a mark. Blocks."""
    for path in paths:
        with suppress(OSError, ToolError), pinned_directory(path.parent) as directory:
            os.unlink(temporary_name(path.name, mark), dir_fd=directory)


def order_steps(steps: Sequence[FileStep]) -> tuple[FileStep, ...]:
    """Return the steps in the order to carry them out: deletions first, inner paths before outer ones."""
    # A file can take the place of a directory only once everything in it is gone.
    gone = [step for step in steps if step.target is None]
    return (
        *sorted(gone, key=lambda step: step.path, reverse=True),
        *(step for step in steps if step.target is not None),
    )


def _delete(path: Path) -> None:
    with pinned_directory(path.parent) as directory:
        os.unlink(path.name, dir_fd=directory)


def _remove_empty_directory(path: Path) -> None:
    """Remove a directory at the path of a former file if it contains nothing but directories."""
    with suppress(FileNotFoundError), pinned_directory(path.parent) as directory:
        if not stat.S_ISDIR(os.stat(path.name, dir_fd=directory, follow_symlinks=False).st_mode):
            return
        if any(files for _, _, files, _ in os.fwalk(path.name, dir_fd=directory)):
            raise ToolError("it is a directory now, and not an empty one")
        # By descriptors: a link that appears meanwhile must not lead the deletion elsewhere.
        for _, names, _, held in os.fwalk(path.name, topdown=False, dir_fd=directory):
            for name in names:
                os.rmdir(name, dir_fd=held)
        os.rmdir(path.name, dir_fd=directory)


def _write(path: Path, shown: str, target: FileState, content: bytes, mark: str) -> None:
    """Write the content and mode of a regular file."""
    place = ResolvedPath(path)
    before: os.stat_result | None = None
    try:
        with pinned_directory(path.parent) as directory:
            before = os.stat(path.name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        pass
    replace_file(place, content, before, shown, mark)
    with pinned_directory(path.parent) as directory:
        status = os.stat(path.name, dir_fd=directory, follow_symlinks=False)
        if stat.S_ISREG(status.st_mode) and stat.S_IMODE(status.st_mode) != target.mode:
            # A change of mode by name would follow a link that appeared meanwhile.
            descriptor = os.open(path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
            try:
                os.fchmod(descriptor, target.mode)
            finally:
                os.close(descriptor)


def _put(path: Path, target: FileState, content: bytes, mark: str) -> None:
    """Create a symbolic link, or a file in place of one, atomically."""
    temporary = temporary_name(path.name, mark)
    with pinned_directory(path.parent, create=True) as directory:
        try:
            if target.is_link:
                os.symlink(os.fsdecode(content), temporary, dir_fd=directory)
            else:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                with open(os.open(temporary, flags, 0o600, dir_fd=directory), "wb") as file:
                    file.write(content)
                    os.fchmod(file.fileno(), target.mode)
            os.rename(temporary, path.name, src_dir_fd=directory, dst_dir_fd=directory)
        except OSError as error:
            if error.errno != errno.ENOENT:
                os.unlink(temporary, dir_fd=directory)
            raise
