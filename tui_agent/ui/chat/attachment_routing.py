"""Files that the user attaches: they are read beside the screen, and messages wait for theirs, in order."""

from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import replace

from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.file_mentions import file_mentions, mention_of
from tui_agent.ui.bridge.agent_bridge import NOT_READY
from tui_agent.ui.composer.composer import Composer
from tui_agent.ui.composer.prompt_area import PromptArea

from .actions.action_context import ActionContext


class AttachmentRouter:
    """Attaches files to the draft and to messages that are sent."""

    def __init__(
        self,
        context: ActionContext,
        entry: PromptArea,
        send: Callable[[Composer.Submitted], None],
        refuse: Callable[[Composer.Submitted, str], None],
    ) -> None:
        """
        Args:
            context: the parts of the chat.
            entry: shows labels and reasons.
            send: sends a message whose files are attached.
            refuse: puts a message back into the composer, with the reason.
        """
        self._bridge = context.bridge
        self._entry = entry
        self._send = send
        self._refuse = refuse
        self._say = context.say
        self._waiting = deque[Composer.Submitted]()

    def name(self, event: Composer.FileNamed) -> None:
        """Attach a file to the draft; of lines only check that they can be attached."""
        self._work(self._attach(event))

    def submit(self, event: Composer.Submitted) -> None:
        """Send a message once its files, and those of the messages before it, are attached."""
        if not self._waiting and not file_mentions(event.text):
            self._send_checked(event)
            return
        self._waiting.append(event)
        if len(self._waiting) == 1:
            self._work(self._send_waiting())

    async def _attach(self, event: Composer.FileNamed) -> None:
        try:
            label = await self._bridge.attachments.attach(event.path, typed=event.typed)
        except TuiAgentError as error:
            self._entry.refusal.show(str(error), self._entry.composer.text)
        else:
            # Lines are read again when the message is sent, and may still be changed.
            if label and label != mention_of(event.path):
                self._entry.composer.attach(event.mention, label)

    async def _send_waiting(self) -> None:
        while self._waiting:
            event = self._waiting[0]
            try:
                text = await self._with_labels(event)
            except TuiAgentError as error:
                self._refuse(event, str(error))
            else:
                self._send_checked(replace(event, text=text))
            self._waiting.popleft()

    async def _with_labels(self, event: Composer.Submitted) -> str:
        """Return the text with a label in place of each image and PDF that it names."""
        text = event.text
        for mention, path in file_mentions(text).items():
            if self._bridge.status.pending:
                raise TuiAgentError(NOT_READY)
            label = await self._bridge.attachments.attach(path, typed=mention not in event.pasted)
            if label and label != mention_of(path):
                text = text.replace(mention, label)
        return text

    def _send_checked(self, event: Composer.Submitted) -> None:
        try:
            self._bridge.attachments.content(event.text)
        except TuiAgentError as error:
            self._refuse(event, str(error))
        else:
            missing = self._bridge.attachments.unknown_label(event.text)
            if missing is not None and not event.edited:
                # A label that was recalled with an earlier prompt, or typed.
                self._say(f"The message has no file for {missing}. To attach it, name its file with @ again.")
            self._send(event)

    def _work(self, work: Coroutine[None, None, None]) -> None:
        self._entry.screen.run_worker(work, group="attachments", exit_on_error=False)
