"""Callbacks of `EventBus.on`: called in order and isolated from one another."""

import functools
from typing import Any, Union

import pytest

from tests.support.table import table
from tui_agent.protocol.bus import EventBus, EventScope
from tui_agent.protocol.envelope import Origin
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import AgentEvent, Noticed, ToolEnded, ToolOutput, ToolStarted, Warned


def notice(text: str = "x") -> Noticed:
    return Noticed(code="c", text=text)


def output(chunk: str = "x") -> ToolOutput:
    return ToolOutput(call_id="1", stream="stdout", chunk=chunk, bytes_total=1)


def started(**args: Any) -> ToolStarted:
    return ToolStarted(call_id="1", name="act", args=args, read_only=True)


async def test_callbacks_get_their_kinds_in_the_order_they_were_added() -> None:
    bus, heard = EventBus(), list[tuple[str, str]]()
    bus.on(Noticed, lambda event: heard.append(("first", event.text)))
    bus.on(Noticed, lambda event: heard.append(("second", event.text)))

    bus.publish(notice("a"))
    bus.publish(output())
    EventScope(bus, Origin(agent_id="helper")).publish(notice("b"))

    assert heard == [("first", "a"), ("second", "a"), ("first", "b"), ("second", "b")]
    bus.close()
    bus.publish(notice("c"))
    assert len(heard) == 4, "a closed bus calls no callback"


@table(
    "kinds",
    [
        (Noticed, ToolOutput),
        [Noticed, "tool.output"],
        Noticed | ToolOutput,
        Union[Noticed, ToolOutput],  # noqa: UP007 — this spelling, too
        AgentEvent,
        (AgentEvent, Noticed),
    ],
)
async def test_kinds_are_classes_names_tuples_unions_and_all(kinds: Any) -> None:
    bus, heard = EventBus(), list[str]()
    bus.on(kinds, lambda event: heard.append(event.type))

    bus.publish(notice())
    bus.publish(output())
    bus.publish(started())

    assert heard[:2] == ["notice", "tool.output"]
    assert heard[2:] == (["tool.started"] if "AgentEvent" in str(kinds) or len(heard) == 3 else [])


async def test_stopping_takes_effect_at_once_even_within_a_call() -> None:
    bus, heard = EventBus(), list[str]()

    def first(event: Noticed) -> None:
        heard.append(f"first {event.text}")
        stop_first()
        stop_second()

    stop_first = bus.on(Noticed, first)
    stop_second = bus.on(Noticed, lambda event: heard.append(f"second {event.text}"))
    bus.on(Noticed, lambda event: heard.append(f"third {event.text}"))

    bus.publish(notice("a"))
    bus.publish(notice("b"))
    stop_first()

    assert heard == ["first a", "third a", "third b"]


async def test_events_published_by_a_callback_follow_the_current_one() -> None:
    bus, heard = EventBus(), list[str]()

    def answer(event: Noticed) -> None:
        heard.append(f"first {event.text}")
        if event.text == "a":
            bus.publish(notice("b"))
            bus.on(Noticed, lambda late: heard.append(f"late {late.text}"))
            bus.publish(notice("c"))

    bus.on(Noticed, answer)
    bus.on(Noticed, lambda event: heard.append(f"second {event.text}"))
    with bus.subscribe() as subscription:
        bus.publish(notice("a"))
        seen = [envelope.event for envelope in subscription.drain()]

    assert heard == ["first a", "second a", "first b", "second b", "first c", "second c", "late c"]
    assert [event.text for event in seen if isinstance(event, Noticed)] == ["a", "b", "c"]


async def test_a_callback_that_raises_is_reported_once_and_affects_no_other() -> None:
    bus, heard = EventBus(), list[str]()

    @bus.on(AgentEvent)
    def break_down(event: AgentEvent) -> None:
        raise ValueError("broken listener")

    bus.on(Noticed, lambda event: heard.append(event.text))
    with bus.subscribe() as subscription:
        bus.publish(notice("a"), Origin(agent_id="helper"))
        bus.publish(notice("b"))
        envelopes = subscription.drain()

    warnings = [envelope for envelope in envelopes if isinstance(envelope.event, Warned)]
    assert heard == ["a", "b"]
    assert len(warnings) == 1
    warned = warnings[0].event
    assert isinstance(warned, Warned)
    assert (warned.code, warnings[0].origin.agent_id) == ("listener_failed", "helper")
    assert "broken listener" in warned.text
    assert "break_down" in warned.context["traceback"]


async def test_an_exit_from_a_callback_passes_through_and_the_bus_still_works() -> None:
    bus, heard = EventBus(), list[str]()

    def leave(event: Noticed) -> None:
        raise KeyboardInterrupt

    stop = bus.on(Noticed, leave)
    with pytest.raises(KeyboardInterrupt):
        bus.publish(notice("a"))
    stop()
    bus.on(Noticed, lambda event: heard.append(event.text))
    bus.publish(notice("b"))

    assert heard == ["b"]


async def test_a_callback_cannot_change_an_event() -> None:
    bus, seen = EventBus(), list[dict[str, Any]]()

    @bus.on(ToolStarted)
    def scribble(event: ToolStarted) -> None:
        event.args["path"] = "elsewhere"
        event.args["more"]["deep"] = True

    bus.on(ToolStarted, lambda event: seen.append(event.args))
    with bus.subscribe() as subscription:
        bus.publish(started(path="here", more={}))
        [envelope] = subscription.drain()

    assert seen == [{"path": "here", "more": {}}]
    assert isinstance(envelope.event, ToolStarted)
    assert envelope.event.args == {"path": "here", "more": {}}


async def later(event: Noticed) -> None: ...


@table(
    ("kinds", "callback", "words"),
    [
        ("tool.endd", print, r"no event of type 'tool.endd'; did you mean 'tool.ended'\?"),
        ("nothing at all", print, "no event of type 'nothing at all'$"),
        (str, print, "not str"),
        (notice(), print, "not a Noticed"),
        ((), print, r"not \(\)"),
        (None, print, "not None"),
        (Noticed | int, print, "not int"),
        (ToolEnded, "print", "a callback of EventBus.on must be a plain function of one event, got 'print'"),
        (ToolEnded, later, "not an async one; to await something, iterate over bus.subscribe"),
        (ToolEnded, functools.partial(later), "not an async one"),
    ],
)
def test_a_wrong_kind_or_callback_is_refused(kinds: Any, callback: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        EventBus().on(kinds, callback)
    if callable(callback) and callback is not print:
        with pytest.raises(ConfigurationError, match=words):
            EventBus().on(kinds)(callback)


def test_a_bus_refuses_arguments_of_the_wrong_kind() -> None:
    wrong: Any = "main"
    with pytest.raises(ConfigurationError, match=r"EventBus\.origin must be an Origin or None, got 'main'"):
        EventBus(origin=wrong)
    with pytest.raises(ConfigurationError, match=r"EventBus\.first_seq must be a whole number of at least 0"):
        EventBus(first_seq=wrong)
