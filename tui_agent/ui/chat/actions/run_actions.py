"""Actions on the run and the context window, and the prompt of `/init`."""

from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.permissions import PermissionMode
from tui_agent.ui.base.commands import hint
from tui_agent.ui.bridge.agent_bridge import NOT_READY

from .action_context import ActionContext, Handlers

FILE = "AGENTS.md"
"""File that `/init` writes."""
UNDO = "undo"
"""Argument of `/compact` that undoes the last compaction."""
UPDATE = "update"
"""Argument of `/init` that revises an existing file."""


class RunActions:
    """Start, end or compact what runs."""

    def __init__(self, context: ActionContext) -> None:
        self._context = context
        self.handlers: Handlers = {
            "chat.stop": self._stop,
            "chat.compact": self._compact,
            "chat.init": self._init,
        }
        """Actions by id of their command."""

    def _stop(self, _: str) -> None:
        if self._context.bridge.status.running:
            self._context.bridge.stop()
            self._context.say("The run ends after this step.")
        else:
            self._context.say("Nothing is running.")

    def _compact(self, focus: str) -> bool:
        if focus == UNDO:
            self._undo_compaction()
            return True
        begun = self._context.bridge.compact(focus)
        if not begun:
            busy = "The agent is working. Compact the conversation when it is done."
            self._context.say(NOT_READY if self._context.bridge.status.pending else busy, wrong=True)
        return begun

    def _undo_compaction(self) -> None:
        agent = self._context.bridge.agent
        if agent is None:
            self._context.say(NOT_READY, wrong=True)
            return
        try:
            agent.undo_compaction()
        except TuiAgentError as error:
            self._context.say(str(error), wrong=True)

    def _init(self, argument: str) -> bool:
        """Let the model write `AGENTS.md`. A mode that allows edits must not overwrite an existing file unasked."""
        bridge = self._context.bridge
        exists = bridge.has_file(FILE)
        refused = ""
        if argument not in ("", UPDATE):
            refused = f"/init writes {FILE}; /init {UPDATE} revises it."
        elif bridge.status.pending:
            refused = NOT_READY
        elif bridge.status.mode is PermissionMode.PLAN:
            other = hint("chat.cycle_mode", "chooses another mode")
            refused = f"Plan mode changes no files. {other}, to write {FILE}."
        elif exists and not argument:
            refused = f"{FILE} exists and was not changed. /init {UPDATE} lets the model revise it."
        elif argument and not exists:
            refused = f"This project has no {FILE}. /init writes one."
        if refused:
            self._context.say(refused, wrong=True)
            return False
        if bridge.status.running:
            self._context.say(f"The agent is working; it turns to {FILE} when it is done.")
        bridge.follow_up(init_prompt(revise=bool(argument)))
        return True


_WRITE_PROMPT = """\
Write AGENTS.md at the root of this project: the instructions that coding agents read before they work here."""

_REVISE_PROMPT = """\
Revise AGENTS.md at the root of this project: the instructions that coding agents read before they work here. Read it \
first. Keep what is still true, correct what the code contradicts, remove what no one needs, and add what is missing. \
Edit the file; do not replace it as a whole."""

_PROMPT_BODY = """

Look before you write: the README and contributing pages, the build and package files, the CI configuration, the \
linter and test settings, CLAUDE.md and similar instructions for other agents, and enough of the code to see how it is \
laid out. Run nothing that changes files or takes long.

Write down only what an agent cannot guess and needs in most tasks:

- The commands to set up, build, lint and test, and to run a single test. Copy them from the files; do not invent any.
- How the code is laid out, in a few lines: the main parts, what each is for, and which may depend on which.
- Conventions that the linter does not check: names, errors, tests, commit messages.
- Traps: generated files, code that must not be edited, steps that are easily forgotten.

Leave out general advice, lists of every file, and whatever the README says already; point to it instead. Mark what \
you could not verify. Aim for less than 60 lines of Markdown, with short sentences. At the end, tell me in two or \
three sentences what you wrote and what I should check."""


def init_prompt(*, revise: bool) -> str:
    """Return the prompt with which the model writes `AGENTS.md`; with `revise` for a file that exists."""
    return (_REVISE_PROMPT if revise else _WRITE_PROMPT) + _PROMPT_BODY
