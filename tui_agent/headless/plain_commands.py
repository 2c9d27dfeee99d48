"""Input of plain mode: typed lines are answers, commands or messages.

A line answers only a question that was written a moment ago, so that a line typed before it never does.
"""

import asyncio
import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from tui_agent.protocol.amounts import money_text
from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import ApprovalDecision, PermissionMode
from tui_agent.protocol.pipes import LineReader
from tui_agent.protocol.server_question import ServerQuestion
from tui_agent.protocol.trial import ProposedChanges

from .command_handler import PromptQueue
from .plain_mode_output import OpenQuestion, PlainReporter

if TYPE_CHECKING:
    from tui_agent.workbench.workbench import Workbench

READING_SECONDS = 0.5
"""Seconds after a question before a line can answer it."""
QUIT_SECONDS = 2.0
"""Seconds within which a second ctrl+c quits."""

HELP = (
    "While nothing runs, a line starts a run. While the agent works, a line steers it.",
    "/follow TEXT  send TEXT as a turn of its own when the agent is done",
    "/cancel       cancel the run",
    "/stop         end the run after this step",
    "/mode NAME    set the permission mode: ask, accept_edits, plan, allow, deny",
    "/btw QUESTION ask something beside the conversation; the agent does not see it",
    "/add-dir PATH let a folder count as part of the workspace for this session",
    "/help         show this list",
    "/quit         quit; the session is saved",
    "ctrl+c cancels the run; while nothing runs, or twice, it quits.",
)
_DENIAL = re.compile(r"(?:n|no)(?:[\s,:;.]+(?P<reason>.*))?", re.IGNORECASE | re.DOTALL)


_FILES = re.compile(r"f(?:iles)?((?:[\s,]+\S+)*)", re.IGNORECASE)
_ONE_ANSWER = re.compile(r"1?\s*=\s*\S|\d[\d\s,]*$")
_PREFIX = re.compile(r"^1?\s*=\s*")
_NUMBERED_ANSWERS = re.compile(r"\d\s*=\s*\S")
"""Beginnings of an answer to one question of the agent, and to several."""


def _form_values(question: ServerQuestion, text: str) -> JsonObject:
    """Return the values of a typed form."""
    fields = {field.name: field for field in question.fields}
    values: JsonObject = {}
    for part in filter(None, map(str.strip, text.split(";"))):
        name, _, value = (half.strip() for half in part.partition("="))
        if name not in fields:
            raise ValueError(f"it has no field {name}")
        values[name] = fields[name].read(value)
    return dict(question.content(values))


def _answers(question: ServerQuestion, text: str) -> bool:
    """Return True if a line is an answer to a question of the agent, and not a message."""
    if text.lower() in ("y", "yes"):
        return True
    if question.kind == "plan":
        return text.lower() == "s"
    return bool((_ONE_ANSWER if len(question.fields) == 1 else _NUMBERED_ANSWERS).match(text))


def _defaults(question: ServerQuestion) -> JsonObject:
    return {
        field.name: list(field.default) if isinstance(field.default, tuple) else field.default
        for field in question.fields
        if field.default
    }


class PlainCommands:
    """Executes typed lines one after another, until the input ends or the user quits."""

    def __init__(
        self,
        bench: "Workbench",
        prompts: PromptQueue,
        reporter: PlainReporter,
        say: Callable[..., object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._commands = [command.usage for command in bench.definitions.commands]
        self._bench = bench
        self._agent = bench.agent
        self._prompts = prompts
        self._reporter = reporter
        self._say = say
        self._clock = clock
        self._asked_to_quit = float("-inf")
        self._open_asides: set[asyncio.Task[None]] = set()

    async def serve(self, lines: LineReader) -> bool:
        """Execute every line; return True if the user quit, and False at the end of the input."""
        async with asyncio.TaskGroup() as self._side_tasks:
            while (line := await lines.next()) is not None:
                text = line.decode("utf-8", "replace").strip()
                if text == "/quit":
                    # A copy: each task removes itself when it ends.
                    for aside in tuple(self._open_asides):
                        aside.cancel()
                    return True
                try:
                    if text:
                        await self._handle(text)
                except TuiAgentError as error:
                    self._say(f"error: {error}")
        return False

    def absorbs_interrupt(self) -> bool:
        """Cancel the run, or ask for a second ctrl+c; return False if this is the second one."""
        now = self._clock()
        # Only soon after the first: a ctrl+c that ends a later run must not quit.
        if now - self._asked_to_quit <= QUIT_SECONDS:
            return False
        self._asked_to_quit = now
        if self._agent.running:
            self._agent.abort("interrupted by the user")
            self._say("Cancelling the run. ctrl+c again quits.")
        else:
            self._say("ctrl+c again quits.")
        return True

    async def _handle(self, text: str) -> None:
        # The oldest one, which is that of the last prompt on the screen.
        question = next(iter(self._reporter.questions.values()), None)
        if text.startswith("/"):
            await self._command(text)
        elif text.startswith("!"):
            self._say("Shell commands (`!`) need the full screen. Begin with a blank and a word to send this text.")
        elif question is None or not self._answer(question, text):
            await self._send(text)

    def _answer(self, question: OpenQuestion, text: str) -> bool:
        """Answer a question; return False if the line is a message."""
        request, word = question.request, text.lower()
        # A blank or a comma has to follow: "not yet" is a message and denies nothing.
        denial = _DENIAL.fullmatch(text)
        if word == "w":
            self._say(*(request.trace or (request.reason or "no rule was checked",)), *self._reporter.prompt())
            return True
        if request.question is not None and not request.question.server and _answers(request.question, text):
            if (decision := self._agents_answer(request.question, text)) is None:
                return True
        elif request.question is not None and request.question.fields and (word in ("y", "yes") or "=" in text):
            if (decision := self._form_answer(request.question, text)) is None:
                return True
        elif word in ("y", "yes"):
            decision = ApprovalDecision(decision="approve")
        # Only where a rule was shown: what a yes means must have been readable.
        elif word == "a" and request.session_rule:
            decision = ApprovalDecision(decision="approve", scope="session", rule=None)
        elif word in ("k", "skip"):
            decision = ApprovalDecision(decision="skip")
        elif request.changes is not None and (chosen := _FILES.fullmatch(text)) is not None:
            if (decision := self._part_to_keep(request.changes, chosen[1])) is None:
                return True
        elif denial is not None:
            decision = ApprovalDecision(decision="deny", note=(denial["reason"] or "").strip())
        elif word == "a":
            self._say("No rule can be stored for this call.", *self._reporter.prompt())
            return True
        else:
            return False
        # A line that was on its way cannot be meant for a question that the user has not read.
        if self._clock() - question.written_at < READING_SECONDS:
            self._say("The question has only just come, so this did not answer it.", *self._reporter.prompt())
        elif not self._agent.resolve_approval(request.request_id, decision):
            self._say("This question was already settled. Your answer changed nothing.")
        return True

    def _part_to_keep(self, changes: ProposedChanges, words: str) -> ApprovalDecision | None:
        """Return the answer that keeps some files; None, and a message, if the line does not name any."""
        paths = changes.paths
        named = [
            paths[int(word) - 1] if word.isdecimal() and 0 < int(word) <= len(paths) else word for word in words.split()
        ]
        if named and all(name in paths for name in named):
            return ApprovalDecision(decision="approve", input={"paths": named})
        numbers = "; ".join(f"{number} {path}" for number, path in enumerate(paths, start=1))
        self._say(f"Type f and the numbers or names of what to keep: {numbers}", *self._reporter.prompt())
        return None

    def _agents_answer(self, question: ServerQuestion, text: str) -> ApprovalDecision | None:
        """Return the answer to a question of the agent; None, and a message, if the line is not one."""
        try:
            if question.kind == "plan":
                values: JsonObject = {"mode": "accept_edits" if text.lower() == "s" else "ask"}
            elif text.lower() in ("y", "yes"):
                values = _defaults(question)
            elif len(question.fields) == 1:
                field = question.fields[0]
                values = {field.name: field.read(_PREFIX.sub("", text))}
            else:
                values = _form_values(question, text)
        except ValueError as error:
            self._say(f"The answer was not sent: {error}.", *self._reporter.prompt())
            return None
        return ApprovalDecision(decision="approve", input=values)

    def _form_answer(self, form: ServerQuestion, text: str) -> ApprovalDecision | None:
        """Return the answer to a form of a tool server; None, and a message, if the line is not one."""
        try:
            if "=" in text:
                return ApprovalDecision(decision="approve", input=_form_values(form, text))
            names = ", ".join(field.name for field in form.fields)
            self._say(f"Type the answer as NAME=VALUE; NAME=VALUE. The names: {names}", *self._reporter.prompt())
        except ValueError as error:
            self._say(f"The form was not sent: {error}.", *self._reporter.prompt())
        return None

    async def _command(self, text: str) -> None:
        name, _, argument = text[1:].partition(" ")
        match name, argument.strip():
            case "help", _:
                self._say(*HELP, *self._commands)
            case "follow", argument if argument and self._agent.running:
                self._bench.prompts.follow_up(argument)
            case "follow", argument if argument:
                await self._start(argument)
            case "cancel", _ if self._agent.running:
                self._agent.abort("interrupted by the user")
            case "stop", _ if self._agent.running:
                self._agent.stop()
            case (("cancel" | "stop"), _):
                self._say("Nothing is running.")
            case "mode", mode if mode in {one.value for one in PermissionMode}:
                self._agent.set_mode(PermissionMode(mode), "user")
            case "add-dir", path if path:
                await self._bench.folders.add(path)
            case "btw", question if question:
                aside = self._side_tasks.create_task(self._ask_aside(question))
                self._open_asides.add(aside)
                aside.add_done_callback(self._open_asides.discard)
            # After the built-in names, which files cannot replace.
            case _ if any(text.split()[0] == one.split()[0] for one in self._commands):
                await self._send(text)
            case _:
                self._say(f"Unknown command: {text}", *HELP, *self._commands)

    async def _ask_aside(self, question: str) -> None:
        try:
            answer = await self._bench.aside(question, lambda _: None)
        except TuiAgentError as error:
            self._say(f"error: no answer to the side question: {error}")
        else:
            cost = money_text(answer.cost) or "cost unknown"
            self._say(f"Beside the conversation ({answer.model}, {cost}):", *answer.text.splitlines())

    async def _send(self, text: str) -> None:
        if self._agent.running:
            self._bench.prompts.steer(text)
        else:
            await self._start(text)

    async def _start(self, text: str) -> None:
        """Queue a prompt and wait until its run starts, so that the next line finds it running."""
        self._prompts.put(text)
        await self._prompts.begun()
