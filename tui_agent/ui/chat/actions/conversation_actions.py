"""Actions on what the conversation shows: copies of answers, and the model's thinking."""

import re
from itertools import islice

from tui_agent.ui.text.clipboard import copy_text
from tui_agent.ui.transcript.answers import answer_texts, code_texts
from tui_agent.ui.transcript.conversation import Conversation

from .action_context import ActionContext, Handlers

_COPY = re.compile(r"(code)?[ \t]*([1-9][0-9]{0,5})?", re.IGNORECASE)


class ConversationActions:
    """Copy from the conversation, and show or fold its thinking."""

    def __init__(self, context: ActionContext) -> None:
        self._context = context
        self.handlers: Handlers = {"chat.copy": self._copy, "chat.thinking": lambda _: self._show_thinking()}
        """Actions by id of their command."""

    def _show_thinking(self) -> None:
        fold = self._context.state().transcript
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
        transcript = self._context.state().transcript.transcript
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
