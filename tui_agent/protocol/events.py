"""All events: the specification of what an agent publishes.

An event is a published fact: frozen, complete, serialisable, without an answer. The bus wraps each into an `Envelope`
with its origin, number and time. A test freezes type names and fields; readers ignore unknown ones. `docs/events.md`
shows the sequences of events. Those of runs, calls and other activity are defined in three modules beside this one;
import all of them from here.
"""

from typing import Annotated, Literal

from pydantic import Field

from .activity_events import *
from .activity_events import ActivityEvent
from .messages import DroppedContent, ToolResultMessage, TrustedModel, Usage, UserMessage
from .run_events import *
from .run_events import RunEvent
from .tool_events import *
from .tool_events import CallEvent

# --- context, usage, sessions -----------------------------------------------------------------------------------------


class ContextUsage(TrustedModel):
    """Fill of the model's window; replaces the one before."""

    type: Literal["context.usage"] = "context.usage"
    tokens: int
    window: int
    source: Literal["actual", "estimate"]


class CompactionStarted(TrustedModel):
    """A compaction of the conversation begins."""

    type: Literal["compaction.started"] = "compaction.started"
    trigger: Literal["automatic", "manual"]
    strategy: str
    tokens_before: int


class CompactionEnded(TrustedModel):
    """A compaction ended. The event contains enough to repeat it on a conversation read from a journal."""

    type: Literal["compaction.ended"] = "compaction.ended"
    ok: bool
    tokens_after: int
    removed: int
    """Number of messages removed."""
    error: str | None = None
    tokens_before: int = 0
    strategy: str = ""
    """`summary`: written by a model; `digest`: made without one; `trim`: only results were truncated."""
    first_removed: str | None = None
    """Id of the first message removed."""
    last_removed: str | None = None
    replacement: UserMessage | None = None
    """Message in place of the removed ones."""
    cut: tuple[ToolResultMessage, ...] = ()
    """Truncated results, with unchanged ids."""


class ContentDropped(TrustedModel):
    """Parts of messages left the conversation because the model's server refused them. The session is usable again,
    also after a resume."""

    type: Literal["content.dropped"] = "content.dropped"
    kind: DroppedContent
    message_ids: tuple[str, ...]
    """Messages that lost all parts of this kind; see `protocol.messages.without`."""


class CompactionUndone(TrustedModel):
    """The last compaction was undone."""

    type: Literal["compaction.undone"] = "compaction.undone"
    tokens_after: int
    restored: int
    """Number of messages restored."""


class UsageUpdated(TrustedModel):
    """Tokens and cost so far."""

    type: Literal["usage.updated"] = "usage.updated"
    delta: Usage
    total: Usage
    cost: float | None = None
    model: str = ""
    """Model that the tokens of `delta` are of; empty in sessions of earlier versions."""


class CheckpointSaved(TrustedModel):
    """A snapshot was saved."""

    type: Literal["checkpoint.saved"] = "checkpoint.saved"
    key: str
    pending: tuple[str, ...] = ()


class CheckpointRestored(TrustedModel):
    """A run continues from a saved snapshot."""

    type: Literal["checkpoint.restored"] = "checkpoint.restored"
    key: str
    pending: tuple[str, ...] = ()


class SessionCreated(TrustedModel):
    """A new session began."""

    type: Literal["session.created"] = "session.created"
    id: str
    path: str | None = None
    """Path of the journal; None if the session is not saved."""
    cwd: str = ""
    version: str = ""
    branch: str = ""
    """Checked-out branch; empty outside a repository."""


class SessionLoaded(TrustedModel):
    """A saved session was resumed."""

    type: Literal["session.loaded"] = "session.loaded"
    id: str
    path: str | None = None
    cwd: str = ""
    version: str = ""
    events: int = 0
    branch: str = ""
    """Checked-out branch; empty outside a repository."""


class SessionSwitched(TrustedModel):
    """The screen switched to another session."""

    type: Literal["session.switched"] = "session.switched"
    id: str
    path: str | None = None


class SessionForked(TrustedModel):
    """A session was forked: copied up to an event."""

    type: Literal["session.forked"] = "session.forked"
    id: str
    path: str | None = None
    parent: str
    at_seq: int


class SessionRenamed(TrustedModel):
    """The title of a session changed."""

    type: Literal["session.renamed"] = "session.renamed"
    id: str
    title: str


class SessionRewinding(TrustedModel):
    """A rewind of files begins. It ends with `session.rewound`; without that event, it was interrupted."""

    type: Literal["session.rewinding"] = "session.rewinding"
    to_seq: int
    """As in `session.rewound`."""
    text: str
    """Description of the moment to rewind to."""
    files: tuple[str, ...] = ()
    """Files to change; only the first if they are many."""
    total: int = 0
    """Number of files to change."""
    mark: str = ""
    """Part of the names of its temporary files, which the next start removes if the rewind was interrupted."""
    notice: UserMessage | None = None
    """Message for the model if the rewind was interrupted; appended to the conversation in that case."""


class SessionRewound(TrustedModel):
    """The user rewound files, the conversation or both to their state right after an earlier event.

    A `file.changed` for each restored file precedes this event. Nothing is ever removed from the journal.
    """

    type: Literal["session.rewound"] = "session.rewound"
    to_seq: int
    """Number of the event whose state is restored."""
    from_seq: int
    """Number of the last event before the rewind; rewinding to it undoes this rewind."""
    text: str
    """Description of the moment rewound to."""
    conversation: bool
    """True if the conversation was rewound."""
    removed: int = 0
    """Number of messages removed from the conversation."""
    call_id: str | None = None
    """Call whose changes were undone; None for a rewind to a moment."""
    is_undo: bool = False
    """True if the user undid changes of single files on the page of changes; `text` names them, as in `the changes of
    cart.py`. `to_seq` is 0 if each file is as it was before the session, else `from_seq`."""
    files: tuple[str, ...] = ()
    """Restored files."""
    left: tuple[str, ...] = ()
    """Files that were not restored, because something else changed them since."""
    notice: UserMessage | None = None
    """Message for the model, appended to the conversation."""


class SessionSaved(TrustedModel):
    """The journal is saved up to this event."""

    type: Literal["session.saved"] = "session.saved"
    id: str
    path: str | None = None


class SessionSaveFailed(TrustedModel):
    """The journal could not be written. The conversation continues, and unsaved events stay in memory."""

    type: Literal["session.save_failed"] = "session.save_failed"
    id: str
    path: str | None = None
    error: str


class SessionRepaired(TrustedModel):
    """A damaged journal or an unfinished run was repaired on load."""

    type: Literal["session.repaired"] = "session.repaired"
    id: str
    path: str | None = None
    what: str


SessionEvent = (
    ContextUsage
    | CompactionStarted
    | CompactionEnded
    | CompactionUndone
    | ContentDropped
    | UsageUpdated
    | CheckpointSaved
    | CheckpointRestored
    | SessionCreated
    | SessionLoaded
    | SessionSwitched
    | SessionForked
    | SessionRenamed
    | SessionRewinding
    | SessionRewound
    | SessionSaved
    | SessionSaveFailed
    | SessionRepaired
)


SCHEMA_VERSION = 1
"""Version of the envelope. Older readers still read the events they know from a newer file."""

AgentEvent = Annotated[RunEvent | CallEvent | SessionEvent | ActivityEvent, Field(discriminator="type")]
"""Any event, discriminated by `type`."""
