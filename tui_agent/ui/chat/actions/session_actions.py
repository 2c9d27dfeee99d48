"""Actions on the session: its name, its files, what it went through, and what its conversation shows."""

import re
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Literal

from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.facts.rewind_facts import RewindOutcome
from tui_agent.ui.bridge.agent_bridge import NOT_READY
from tui_agent.ui.chat.app_requests import ReplayRequested, SessionRequested
from tui_agent.ui.chat.screen_state import ScreenState
from tui_agent.ui.state.call_view_state import CallViewState
from tui_agent.ui.text.clipboard import copy_text
from tui_agent.ui.transcript.answers import answer_texts, code_texts
from tui_agent.ui.transcript.conversation import Conversation

from .action_context import ActionContext, Handlers

_COPY = re.compile(r"(code)?[ \t]*([1-9][0-9]{0,5})?", re.IGNORECASE)


class SessionActions:
    """Rename, export, replay, rewind or leave a session."""

    def __init__(self, context: ActionContext) -> None:
        self._context = context
        self.handlers: Handlers = {
            "chat.rename": self._rename,
            "chat.export": self._export,
            "chat.replay": self._replay,
            "chat.rewind": lambda _: self.rewind(),
            "chat.resume": partial(self._switch, "resume"),
            "chat.clear": partial(self._switch, "clear"),
            "chat.fork": partial(self._switch, "fork"),
            "chat.demo": partial(self._switch, "demo"),
        }
        """Actions by id of their command."""

    async def work_tree(self) -> tuple[str, bool] | None:
        """Return the branch and True if files are changed; None if that is not known.

        Raises:
            TuiAgentError: the session is still being read.
        """
        if (bench := self._context.bridge.bench) is None:
            raise TuiAgentError(self._context.bridge.no_bench)
        return await bench.commands.work_tree()

    def rewind(self, view: CallViewState | None = None) -> None:
        """Show the points to go back to; with `view`, what undoing this call's changes would do."""
        bench = self._context.bridge.bench
        if bench is None or bench.rewind is None:
            unsaved = "This session is not saved, so there is nothing to go back to."
            nothing = self._context.bridge.refusal("chat.rewind") or unsaved
            self._context.say(NOT_READY if self._context.bridge.status.pending else nothing, wrong=True)
            return
        # Pages are loaded on demand.
        from tui_agent.ui.dialogs.rewind_screen import RewindScreen

        call = (view.call_id, f"{view.name} {view.summary}".strip()) if view is not None else None
        clock = self._context.options.surroundings.clock
        screen = RewindScreen(bench.rewind, lambda: self._context.bridge.status.running, clock, call=call)
        self._context.screen.app.push_screen(screen, self._report_rewind)

    def _report_rewind(self, outcome: RewindOutcome | None) -> None:
        """Say what a rewind did, and put the message it removed into the empty composer."""
        from tui_agent.ui.dialogs.rewind_screen import rewind_outcome_text

        if outcome is None:
            return
        if outcome.draft and not self._context.composer.text:
            self._context.composer.put_back(outcome.draft)
            self._context.composer.focus()
        if text := rewind_outcome_text(outcome):
            self._context.say(text, wrong=bool(outcome.left or outcome.failed))

    def _rename(self, title: str) -> bool:
        if title:
            self._context.bridge.rename(title)
        else:
            self._context.say("Type a name: /rename NAME", wrong=True)
        return bool(title)

    def _switch(self, kind: Literal["resume", "clear", "fork", "demo"], argument: str) -> None:
        self._context.screen.post_message(SessionRequested(kind, argument))

    def _export(self, file: str) -> None:
        self._context.start("export", self._write_export(file))

    async def _write_export(self, file: str) -> None:
        if (bench := self._context.bench()) is None:
            return
        try:
            self._context.say(f"The session was exported to {await bench.commands.export(file)}.")
        except TuiAgentError as error:
            self._context.say(str(error), wrong=True)

    def _replay(self, name: str) -> None:
        self._context.screen.post_message(ReplayRequested(name))


class ConversationActions:
    """Copy from the conversation, and show or fold its thinking."""

    def __init__(self, context: ActionContext, state: Callable[[], ScreenState]) -> None:
        self._context = context
        self._state = state
        self.handlers: Handlers = {"chat.copy": self._copy, "chat.thinking": lambda _: self._show_thinking()}
        """Actions by id of their command."""

    def _show_thinking(self) -> None:
        fold = self._state().transcript
        shown = not fold.shows_thinking
        self._context.screen.query_one(Conversation).show_thinking(shown)
        self._context.say("All thinking is shown." if shown else "Thinking is folded.")

    def _copy(self, argument: str) -> bool:
        wanted = _COPY.fullmatch(argument.strip())
        if wanted is None:
            self._context.say(
                "/copy copies the last answer, /copy 2 the one before, /copy code the last code block.", wrong=True
            )
            return False
        transcript = self._state().transcript.transcript
        is_code, number = wanted[1] is not None, int(wanted[2] or 1)
        texts = code_texts(transcript) if is_code else answer_texts(transcript)
        text = next(islice(texts, number - 1, None), None)
        if text is None:
            what = "code block" if is_code else "answer"
            count = f"no {what} yet" if number == 1 else f"fewer than {number} {what}s"
            self._context.say(f"Nothing was copied: this conversation has {count}.", wrong=True)
        else:
            copy_text(self._context.screen.app, text)
        return True
