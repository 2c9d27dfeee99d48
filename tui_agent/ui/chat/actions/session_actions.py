"""Actions on the session and its runs: name, files, past, what the conversation shows, compaction, `/init`."""

import re
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Literal

from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.facts.change_facts import RewindOutcome
from tui_agent.protocol.permissions import PermissionMode
from tui_agent.ui.base.app_type import copy_text
from tui_agent.ui.base.commands import hint
from tui_agent.ui.bridge.agent_bridge import NOT_READY
from tui_agent.ui.chat.chat_options import ReplayRequested, SessionRequested
from tui_agent.ui.chat.screen_state import ScreenState
from tui_agent.ui.state.call_view_state import CallViewState
from tui_agent.ui.transcript.answer_fold import answer_texts, code_texts
from tui_agent.ui.transcript.conversation import Conversation

from .action_context import ActionContext, ActionGroup, Handlers

FILE = "AGENTS.md"
"""File that `/init` writes."""
UNDO = "undo"
"""Argument of `/compact` that undoes the last compaction."""
UPDATE = "update"
"""Argument of `/init` that revises an existing file."""
_COPY = re.compile(r"(code)?[ \t]*([1-9][0-9]{0,5})?", re.IGNORECASE)


class SessionActions(ActionGroup):
    """Rename, export, replay, rewind or leave a session; start, end and compact its runs; copy what it says."""

    def __init__(self, context: ActionContext, state: Callable[[], ScreenState]) -> None:
        super().__init__(context)
        self._state = state
        self.handlers: Handlers = {
            "chat.rename": self._rename,
            "chat.export": lambda file: self._start("export", self._write_export(file)),
            "chat.replay": lambda name: self._screen.post_message(ReplayRequested(name)),
            "chat.rewind": lambda _: self.rewind(),
            "chat.tasks": lambda _: self._show_tasks(),
            "chat.resume": partial(self._switch, "resume"),
            "chat.clear": partial(self._switch, "clear"),
            "chat.fork": partial(self._switch, "fork"),
            "chat.demo": partial(self._switch, "demo"),
            "chat.copy": self._copy,
            "chat.thinking": lambda _: self._show_thinking(),
            "chat.stop": lambda _: self._stop(),
            "chat.compact": self._compact,
            "chat.init": self._init,
        }

    def rewind(self, view: CallViewState | None = None) -> None:
        """Show the points to go back to; with `view`, what undoing this call's changes would do.

        Raises:
            TuiAgentError: the session is not saved, or not open yet.
        """
        bench = self._bridge.bench
        if bench is None or bench.rewind is None:
            unsaved = "This session is not saved, so there is nothing to go back to."
            nothing = self._bridge.refusal("chat.rewind") or unsaved
            raise TuiAgentError(NOT_READY if self._bridge.status.pending else nothing)
        # Pages are loaded on demand.
        from tui_agent.ui.dialogs.rewind_screen import RewindScreen

        call = (view.call_id, f"{view.name} {view.summary}".strip()) if view is not None else None
        busy = lambda: self._bridge.status.running  # noqa: E731
        self._push(RewindScreen(bench.rewind, busy, self._clock, call=call), self._report_rewind)

    def _report_rewind(self, outcome: RewindOutcome | None) -> None:
        """Say what a rewind did, and put the message it removed into the empty composer."""
        from tui_agent.ui.dialogs.rewind_screen import rewind_outcome_text

        if outcome is None:
            return
        # Never over what the user has typed meanwhile.
        if outcome.draft and not self._composer.text:
            self._composer.put_back(outcome.draft)
            self._composer.focus()
        if text := rewind_outcome_text(outcome):
            self._say(text, wrong=bool(outcome.left or outcome.failed))

    def _rename(self, title: str) -> None:
        if not title:
            raise TuiAgentError("Type a name: /rename NAME")
        self._bridge.rename(title)

    def _switch(self, kind: Literal["resume", "clear", "fork", "demo"], argument: str) -> None:
        self._screen.post_message(SessionRequested(kind, argument))

    def _show_tasks(self) -> None:
        from tui_agent.ui.dialogs.tasks_screen import TasksScreen

        page = TasksScreen(self._bench.tasks, self._bridge.session_id or "", clock=self._clock)
        self._push(page, lambda chosen: None if chosen is None else self._switch("resume", chosen))

    async def _write_export(self, file: str) -> None:
        self._say(f"The session was exported to {await self._bench.commands.export(file)}.")

    # --- the conversation ---------------------------------------------------------------------------------------------

    def _show_thinking(self) -> None:
        fold = self._state().transcript
        shown = not fold.shows_thinking
        self._screen.query_one(Conversation).show_thinking(shown)
        self._say("All thinking is shown." if shown else "Thinking is folded.")

    def _copy(self, argument: str) -> None:
        wanted = _COPY.fullmatch(argument.strip())
        if wanted is None:
            raise TuiAgentError("/copy copies the last answer, /copy 2 the one before, /copy code the last code block.")
        transcript = self._state().transcript.transcript
        is_code, number = wanted[1] is not None, int(wanted[2] or 1)
        texts = code_texts(transcript) if is_code else answer_texts(transcript)
        # From the newest on, and no further: a long session has thousands of answers.
        text = next(islice(texts, number - 1, None), None)
        if text is None:
            what = "code block" if is_code else "answer"
            count = f"no {what} yet" if number == 1 else f"fewer than {number} {what}s"
            self._say(f"Nothing was copied: this conversation has {count}.", wrong=True)
        else:
            copy_text(self._screen.app, text)

    # --- runs ---------------------------------------------------------------------------------------------------------

    def _stop(self) -> None:
        if self._bridge.status.running:
            self._bridge.stop()
            self._say("The run ends after this step.")
        else:
            self._say("Nothing is running.")

    def _compact(self, focus: str) -> bool:
        if focus == UNDO:
            self._undo_compaction()
            return True
        begun = self._bridge.compact(focus)
        if not begun:
            busy = "The agent is working. Compact the conversation when it is done."
            self._say(NOT_READY if self._bridge.status.pending else busy, wrong=True)
        return begun

    def _undo_compaction(self) -> None:
        agent = self._bridge.agent
        if agent is None:
            raise TuiAgentError(NOT_READY)
        try:
            agent.undo_compaction()
        except TuiAgentError as error:
            self._say(str(error), wrong=True)

    def _init(self, argument: str) -> None:
        """Let the model write `AGENTS.md`. A mode that allows edits must not overwrite an existing file unasked."""
        bridge = self._bridge
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
            raise TuiAgentError(refused)
        if bridge.status.running:
            self._say(f"The agent is working; it turns to {FILE} when it is done.")
        bridge.follow_up(init_prompt(revise=bool(argument)))


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
