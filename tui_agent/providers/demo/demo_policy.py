"""The answers of the offline model, as a pure function of the request.

It replays the conversation since the last prompt through its goals, with the real results of the calls, and returns the
next turn. Messages of the user in between change the plan at the point where they arrived.
"""

import re
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from .demo_goals import first_line
from .demo_intents import HELP, LONGEST, understand
from .demo_transcript import DemoRequest, Exchange, Task
from .demo_turn import DemoTurn
from .guided_tour import DemoWorkspace, is_tour, with_sample_names

LABEL = "*Scripted demo, not a language model: the words are fixed, the tools and files are real.*"
"""Notice in the first answer of a conversation; the screen shows it all the time as well."""

_Steer: TypeAlias = Literal["stop", "skip", "instead", "also", "go_on", "other"]

_STOP = re.compile(r"(?:please\s+)?(?:stop|halt|abort|cancel|quit|enough|that'?s enough|never ?mind)\b.*", re.I | re.S)
_SKIP = re.compile(r"(?:please\s+)?(?:skip|next|leave (?:that|this|it) out)\b.*", re.IGNORECASE | re.DOTALL)
_GO_ON = re.compile(r"(?:please\s+)?(?:go on|continue|carry on|proceed|ok(?:ay)?|yes|good|thanks?)\b\W*", re.IGNORECASE)
_INSTEAD = re.compile(r"(?:no\b[,;]?\s*)?(?:instead\b[,:]?\s*(.+)|(.+?)[,]?\s+instead\W*)", re.IGNORECASE | re.DOTALL)
_ALSO = re.compile(r"(?:and\s+)?(?:also|additionally)\b[,:]?\s*(.+)|(.+?)[,]?\s+(?:too|as well)\W*", re.I | re.S)

_ABOUT_STEERING = "While I work, I only understand `stop`, `skip`, `instead …` and `also …` with one of my sentences."


@dataclass(frozen=True, slots=True)
class _Plan:
    """The current turn, and those that follow when its goal is finished."""

    turn: DemoTurn
    later: tuple[DemoTurn, ...] = ()

    def settled(self) -> "_Plan":
        """Return the plan with each finished turn merged into the one after it."""
        plan = self
        while not plan.turn.calls and plan.later:
            plan = _Plan(plan.later[0].after(plan.turn.text), plan.later[1:])
        return plan


def next_turn(request: DemoRequest, demo_workspace: DemoWorkspace) -> DemoTurn:
    """Return the next answer."""
    task = request.task
    plan = _opening(task, demo_workspace)
    for words in task.said:
        if _is_understood(words, demo_workspace):
            plan = _steered(plan, words, demo_workspace)
    for exchange in task.exchanges:
        plan = _after(plan.settled(), exchange, demo_workspace)
    turn = _possible(plan.settled().turn, request.tools)
    labelled = not task.first or task.exchanges or HELP in turn.text
    return turn if labelled else turn.after(LABEL)


def _opening(task: Task, demo_workspace: DemoWorkspace) -> _Plan:
    words = task.prompt
    if _STOP.fullmatch(words) or _SKIP.fullmatch(words):
        return _Plan(DemoTurn("Nothing is running, so there is nothing to stop or skip."))
    goals = understand(words, demo_workspace) or understand(_bare(words), demo_workspace)
    if goals is None:
        return _Plan(DemoTurn(f"I don't understand that. {HELP}"))
    return _Plan(goals[0], tuple(goals[1:]))


def _after(plan: _Plan, exchange: Exchange, demo_workspace: DemoWorkspace) -> _Plan:
    """Return the plan after the results of the calls and the messages of the user."""
    turn = plan.turn
    if turn.waits is None:
        return plan
    if exchange.said and any(outcome.postponed for outcome in exchange.outcomes):
        following = turn.after("Now for the calls that waited for your message.")
    else:
        following = turn.waits.proceed(exchange.outcomes)
    tour = any(map(is_tour, (turn, *plan.later)))
    plan = replace(plan, turn=following)
    for words in exchange.said:
        plan = _steered(plan, words, with_sample_names(demo_workspace) if tour else demo_workspace)
    return plan


def _steered(plan: _Plan, words: str, demo_workspace: DemoWorkspace) -> _Plan:
    """Return the plan after a message of the user."""
    kind, rest = _steer_of(words)
    quoted = f"You wrote “{first_line(words)}”"
    if kind == "stop":
        return _Plan(DemoTurn(f"{quoted}: stopping here. Finished steps stay; the rest is not done."))
    if kind == "go_on":
        return plan
    if kind == "skip":
        waits = plan.settled().turn.waits
        if waits is None:
            return replace(plan, turn=DemoTurn(f"{plan.turn.text}\n\nThere was nothing left to skip."))
        return replace(plan.settled(), turn=waits.skip().after(f"{quoted}."))
    goals = understand(rest, demo_workspace)
    if goals is None:
        words = f"{quoted}, which I don't understand, so I'll continue. {_ABOUT_STEERING}"
        return replace(plan, turn=plan.turn.after(words))
    if kind == "also":
        return _Plan(
            goals[0].after(f"{quoted}: I'll do that first, then continue."), (*goals[1:], plan.turn, *plan.later)
        )
    return _Plan(goals[0].after(f"{quoted}: I'll drop my current task and do that."), tuple(goals[1:]))


def _steer_of(words: str) -> tuple[_Steer, str]:
    """Return the kind of a message during a run, and the request in it."""
    plain = words.strip()
    if len(plain) > LONGEST:
        return "other", plain
    if _STOP.fullmatch(plain):
        return "stop", ""
    if _SKIP.fullmatch(plain):
        return "skip", ""
    if _GO_ON.fullmatch(plain):
        return "go_on", ""
    if match := _INSTEAD.fullmatch(plain):
        return "instead", match[1] or match[2]
    if match := _ALSO.fullmatch(plain):
        return "also", match[1] or match[2]
    return "other", plain


def _is_understood(words: str, demo_workspace: DemoWorkspace) -> bool:
    """Return True if a text is a message for the model, and not an attachment such as a file."""
    kind, rest = _steer_of(words)
    return kind in ("stop", "skip") or bool(rest and understand(rest, demo_workspace))


def _bare(words: str) -> str:
    """Return a prompt without a word that only makes sense during a run, such as `also`."""
    return _steer_of(words)[1] or words


def _possible(turn: DemoTurn, tools: frozenset[str]) -> DemoTurn:
    """Return the turn, or a refusal if the request has not all tools it needs."""
    missing = sorted({call.name for call in turn.calls} - tools | (turn.tools - tools if turn.calls else set()))
    if not missing:
        return turn
    names = ", ".join(f"`{name}`" for name in missing)
    return DemoTurn(f"I cannot do that: this session has no tool named {names}.")
