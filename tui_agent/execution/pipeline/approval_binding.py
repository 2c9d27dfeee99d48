"""What an approval counts for: the call as it was shown and what stood where it leads, no more (C43, P53, safety 6)."""

from tui_agent.execution.digest import call_digest
from tui_agent.execution.execution_services import Engine
from tui_agent.execution.untrusted_calls import call_or_default

from .call_state import CallState
from .target_identity import identity_of, replaced_paths, with_identities, without_paths


def show(state: CallState) -> str:
    """Notes what stands where the call leads, as a person is about to be shown; gives the digest of the call."""
    state.shown = with_identities(_targets(state))
    return _digest(state)


def approval_mismatch(engine: Engine, state: CallState) -> str | None:
    """Why the approval that was given does not count any more, in words; empty where none was; None: it counts.

    A file that a call of ours put there, or whose change the tool itself refuses, is as good as the one shown.
    """
    if state.approved is None:
        return ""
    if state.approved != _digest(state):
        return "what it would touch changed since"
    replaced = replaced_paths(state.shown)
    if not replaced:
        return None
    targets = _targets(state)
    notices = call_or_default(state.known_tool.notices_changes, state.arguments, otherwise=False)
    known = [place for place in replaced if place in targets and (notices or _is_ours(engine, place))]
    state.shown = without_paths(state.shown, known)
    others = [place for place in replaced if place not in known]
    return f"{others[0]} was replaced since" if others else None


def _is_ours(engine: Engine, place: str) -> bool:
    found = identity_of(place)
    return found is not None and engine.own_files.get(place) == found


def _targets(state: CallState) -> tuple[str, ...]:
    return state.decision.targets if state.decision is not None else ()


def _digest(state: CallState) -> str:
    schema = call_or_default(lambda: state.known_tool.spec.input_schema, otherwise=dict[str, object]())
    return call_digest(state.call.name, state.arguments, _targets(state), schema)
