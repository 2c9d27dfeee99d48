"""All events: the specification of what an agent publishes.

An event is a published fact: frozen, complete, serialisable, without an answer. The bus wraps each into an `Envelope`
with its origin, number and time. A test freezes type names and fields; readers ignore unknown ones. `docs/events.md`
shows the sequences of events. The classes are defined by subject in four modules; import them from here.
"""

from typing import Annotated

from pydantic import Field

from .activity_events import *
from .activity_events import ActivityEvent
from .run_events import *
from .run_events import RunEvent
from .session_events import *
from .session_events import SessionEvent
from .tool_events import *
from .tool_events import CallEvent

SCHEMA_VERSION = 1
"""Version of the envelope. Older readers still read the events they know from a newer file."""

AgentEvent = Annotated[RunEvent | CallEvent | SessionEvent | ActivityEvent, Field(discriminator="type")]
"""Any event, discriminated by `type`."""
