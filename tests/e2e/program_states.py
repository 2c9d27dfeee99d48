"""States of the program, and how to reach them; for tests of its exit."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .script import Reply, call, calls, fails, says, text_block, until
from .user_machine import PROMPT_SIGN, App, UserMachine

ALLOWED = ("--permission-mode", "allow")
LONG_ANSWERS = [says(f"{'word ' * 2_000}\n\nThe answer to {question}.") for question in ("one", "two", "three")]


@dataclass(frozen=True)
class State:
    """One state of the program."""

    name: str
    reach: Callable[[App], None]
    """Brings a program that accepts input into the state."""
    script: Callable[[UserMachine], Sequence[Reply]] = lambda _: ()
    arguments: tuple[str, ...] = ()
    prepare: Callable[[UserMachine], None] = lambda _: None
    begins: bool = True
    """True if the program accepts input before; False if a dialog comes first."""

    def enter(self, app: App) -> None:
        """Bring a newly started program into the state."""
        if self.begins:
            app.ready()
        self.reach(app)


def _rest(app: App) -> None:
    app.wait_for_status("ready")


def _said(words: str) -> Callable[[App], None]:
    def reach(app: App) -> None:
        app.say("go on")
        app.wait_for_words(words)

    return reach


def _with_status(status: str) -> Callable[[App], None]:
    def reach(app: App) -> None:
        app.say("go on")
        app.wait_for_status(status)

    return reach


def _in_a_command(app: App) -> None:
    app.say("go on")
    app.wait_for_row(r"^ +begun")


def _at_a_question(app: App) -> None:
    app.say("go on")
    app.wait_for_question("write")


def _compacting(app: App) -> None:
    for question in ("one", "two", "three"):
        app.say(question)
        app.wait_for_words(f"The answer to {question}.")
        app.wait_for_status("ready")
    app.say("/compact")
    app.wait_for_status("compacting")


def _on_help(app: App) -> None:
    app.press("f1")
    app.wait_for("esc close")


def _going_back(app: App) -> None:
    app.say("go on")
    app.wait_for_words("Changed it.")
    app.wait_for_status("ready")
    app.say("/rewind")
    app.wait_for("go on")
    app.press("enter")
    app.wait_for("new.txt")


def _picking(app: App) -> None:
    app.wait_for("Resume which session?")


def _trusting(app: App) -> None:
    app.wait_for_all("its own settings")


def _starting(app: App) -> None:
    app.wait_for(lambda screen: PROMPT_SIGN in screen.text)


def _bring_settings(machine: UserMachine) -> None:
    (machine.work / ".tui-agent").mkdir()
    (machine.work / ".tui-agent/config.toml").write_text('[permissions]\nrules = [["deny", "bash(make:*)"]]\n', "utf-8")


def _talk(machine: UserMachine) -> None:
    machine.run("-p", "--demo", "hello")


def _endless(machine: UserMachine) -> Sequence[Reply]:
    """Return a command with children in sessions of their own."""
    tag = machine.tag
    command = f"setsid sleep {tag}.1 & (nohup sleep {tag}.2 &) ; echo begun; trap '' TERM; sleep {tag}"
    return [calls(call("bash", command=command)), says("Still here.")]


def _write(_: UserMachine) -> Sequence[Reply]:
    return [calls(call("write", path="new.txt", content="x\n")), says("Changed it.")]


def _overloaded(_: UserMachine) -> Sequence[Reply]:
    return [fails(529, "overloaded_error", **{"retry-after": "50"})]


def _half(_: UserMachine) -> Sequence[Reply]:
    return [calls(text_block("The first half of a"), until("never"))]


STATES = {
    state.name: state
    for state in (
        State("idle", _rest),
        State("starting", _starting, begins=False),
        State("streaming", _said("The first half of a"), _half),
        State("command", _in_a_command, _endless, ALLOWED),
        State("question", _at_a_question, _write),
        State("compacting", _compacting, lambda _: [*LONG_ANSWERS, calls(until("never"))]),
        State("retrying", _with_status("retrying"), _overloaded),
        State("help", _on_help),
        State("rewind", _going_back, _write, ALLOWED),
        State("picker", _picking, arguments=("--resume",), prepare=_talk, begins=False),
        State("trust", _trusting, prepare=_bring_settings, begins=False),
    )
}
