"""The engine's types that the screen names. Every other file of `ui/` imports them from here.

Importing this module loads the whole engine; the first screen must not wait for that, so most files import it for type
checkers or when a page is opened.
"""

from tui_agent.agent import AgentLoop, ContextBreakdown
from tui_agent.agent.steering_queue import SteeringQueue
from tui_agent.protocol.facts.rewind_facts import FileStep, RewindOutcome, RewindPlan, RewindPoint, Scope, StepKind
from tui_agent.rewind import Rewinder

__all__ = [
    "AgentLoop",
    "ContextBreakdown",
    "FileStep",
    "RewindOutcome",
    "RewindPlan",
    "RewindPoint",
    "Rewinder",
    "Scope",
    "SteeringQueue",
    "StepKind",
]
