"""Destinations of the user's input: the agent, one call or sub-agent, a shell, or a command."""

from collections.abc import Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, TypeAlias

from textual.timer import Timer
from textual.worker import Worker

from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.prompt_references import file_mentions
from tui_agent.ui.base.commands import command
from tui_agent.ui.bridge.agent_bridge import NOT_READY
from tui_agent.ui.composer.composer import Composer
from tui_agent.ui.composer.prompt_area import PromptArea
from tui_agent.ui.composer.prompt_parser import (
    ShellCall,
    SlashCall,
    Suggestion,
    TargetedMessage,
    UnknownSlash,
    matches_in_order,
    own_command,
    parse_shell_call,
    parse_slash_call,
    parse_targeted_message,
)
from tui_agent.ui.composer.queue_strip import QueueRequest

from .actions.action_context import ActionContext
from .interrupt_keys import Interrupt, InterruptKeys
from .queue_and_attachments import AttachmentRouter, QueueRouter
from .screen_state import ScreenState

if TYPE_CHECKING:
    # The first screen must not wait until the engine is loaded.
    from tui_agent.workbench.workbench import AgentLoop, Workbench

BUSY = "The agent is working, and this command needs a run of its own. Send it when the agent is done."
FILES_FIRST = 4
"""Files in the `@` menu above the symbols."""
DRAFT_DELAY = 0.5
"""Seconds without a change after which the draft is kept."""
EntryMessage: TypeAlias = (
    Composer.Submitted
    | Composer.MentionTyped
    | Composer.FileNamed
    | Composer.PromptsWanted
    | Composer.HelpRequested
    | PromptArea.FileHighlighted
    | QueueRequest
)
"""A request of the composer or the queue."""


class InputRouter:
    """Sends what the user types, and recalls, cancels and interrupts. The results are events."""

    def __init__(
        self,
        context: ActionContext,
        entry: PromptArea,
        state: Callable[[], ScreenState],
        run: Callable[[SlashCall | UnknownSlash], bool],
    ) -> None:
        """Connect the input with its destinations; `run` says why a `/` command could not run, and returns False."""
        self._say = context.say
        self.messages = QueueRouter(context, entry, lambda: state().waiting)
        """Changes queued messages."""
        self.attachments = AttachmentRouter(context, entry, self._send, self._return)
        entry.composer.read_clipboard = self.attachments.paste
        """Attaches files."""
        self.interrupt_keys = InterruptKeys(entry, context.options.surroundings.clock, self.interrupt)
        """Separates answers to the interrupt menu from text."""
        self._bridge = context.bridge
        self._entry = entry
        self._state = state
        self._run = run
        self._show_pending_agent = context.show_pending_agent
        self._completion: Worker[None] | None = None
        self._preview_work: Worker[None] | None = None
        self._draft_timer: Timer | None = None

    def receive(self, event: EntryMessage) -> None:
        """Do what the composer or the queue asks for."""
        match event:
            case Composer.Submitted():
                self._submit(event)
            case Composer.MentionTyped():
                self._search(
                    self._offer_mentions(event.text, at_start=event.at_start) if event.text is not None else None
                )
            case Composer.PromptsWanted(text):
                self._search(self._offer_prompts(text))
            case Composer.HelpRequested():
                self._run(SlashCall(command("chat.help")))
            case PromptArea.FileHighlighted(path, line):
                self._preview(path, line)
            case Composer.FileNamed():
                self.attachments.name(event)
            case QueueRequest():
                if not self._is_refused("queue"):
                    self.messages.receive(event)

    def _is_refused(self, action: str) -> bool:
        """Say why something is impossible in this session; False if it is possible."""
        reason = self._bridge.refusal(action)
        if reason:
            self._say(reason, wrong=True)
        return bool(reason)

    def _submit(self, event: Composer.Submitted) -> None:
        """Send one input to where its first characters direct it."""
        # Before it is sent anywhere, so that ↑ also recalls what was refused.
        if self._bridge.prompts is not None:
            self._keep(self._keep_prompt(event.text))
        parsed = parse_shell_call(event.text) or parse_slash_call(event.text, self._bridge.status.commands)
        # The escape has kept it from being a command; the model gets the slash alone.
        if event.text.lstrip().startswith("\\/"):
            event.text = event.text.lstrip()[1:]
        match parsed:
            case ShellCall() as call:
                self.messages.release(event)
                self._run_shell(call)
            case SlashCall():
                self.messages.release(event)
                self._count_use(parsed.command.slash or "")
                if not self._run(parsed):
                    self._entry.composer.put_back(event.text)
            case UnknownSlash() as unknown:
                self._return(event)
                if self._bridge.status.pending:
                    # Commands of files are known only once the session is read.
                    self._say(NOT_READY, wrong=True)
                else:
                    self._run(unknown)
            case None if (bench := self._bridge.bench) is not None and bench.servers.are_named_in(event.text):
                self._entry.run_worker(self._expand(event, bench), group="servers", exit_on_error=False)
            case None if (bench := self._bridge.bench) is not None and self._asks_what_to_review(event.text, bench):
                self._count_use("review")
                self._entry.run_worker(self._choose_review(event, bench), group="review", exit_on_error=False)
            case None:
                if (own := own_command(event.text, self._bridge.status.commands)) is not None:
                    self._count_use(own.slash)
                self.attachments.submit(event)
        self._show_pending_agent()

    def _asks_what_to_review(self, text: str, bench: "Workbench") -> bool:
        return bench.definitions.asks_what_to_review(text) and not self._bridge.must_wait(text)

    async def _choose_review(self, event: Composer.Submitted, bench: "Workbench") -> None:
        """Let the user choose what `/review` reviews; outside of git there is nothing to choose."""
        revisions = await bench.diff.revisions()
        if not revisions:
            self.attachments.submit(event)
            return
        # Pages are loaded on demand.
        from tui_agent.ui.dialogs.chooser_page import WORK_TREE, ChooserPage, review_items

        def chosen(name: str | None) -> None:
            if name is None:
                self._return(event)
                return
            event.text = event.text.strip() if name == WORK_TREE else f"{event.text.strip()} {name}"
            self.attachments.submit(event)

        state = "/review NAME takes any branch, commit or range"
        self._entry.app.push_screen(ChooserPage("Review", lambda: review_items(revisions), state), chosen)

    def _count_use(self, name: str) -> None:
        """Count a command, so that the menu offers those first that are used most."""
        uses = self._entry.composer.uses
        self._entry.composer.uses = {**uses, name: uses.get(name, 0) + 1}
        if self._bridge.prompts is not None:
            self._keep(self._bridge.prompts.count_command(name))

    async def _expand(self, event: Composer.Submitted, bench: "Workbench") -> None:
        """Send an input with the prompt or the resources of tool servers that it names."""
        try:
            text = await bench.servers.expand(event.text)
        except TuiAgentError as error:
            self._return(event)
            self._say(str(error), wrong=True)
        else:
            # Files that only the server names count as pasted: it must not attach files outside the workspace.
            named = frozenset(file_mentions(text).keys() - file_mentions(event.text).keys())
            event.text, event.pasted = text, event.pasted | named
            self.attachments.submit(event)

    def _send(self, event: Composer.Submitted) -> None:
        if reason := self._bridge.refusal("send"):
            self._return(event, reason)
            return
        if own_command(event.text, self._bridge.status.commands) and self._bridge.must_wait(event.text):
            self._return(event, BUSY)
            return
        targeted = parse_targeted_message(event.text)
        reason = None if targeted is None else self._send_to_target(targeted)
        if reason:
            self._return(event, reason)
        elif reason == "":
            # It has another recipient now.
            self.messages.forget(event)
        elif not self.messages.put_back(event):
            if event.kind == "follow_up":
                self._bridge.follow_up(event.text)
            else:
                self._bridge.submit(event.text)
        self._show_pending_agent()

    def _return(self, event: Composer.Submitted, reason: str = "") -> None:
        """Put a text that was not sent back into the composer, with the reason; an edit continues."""
        composer = self._entry.composer
        if event.edited:
            composer.begin_edit(event.edited, event.text, keeps_draft=True)
        else:
            composer.put_back(event.text)
        if reason:
            self._entry.refusal.show(reason, composer.text)

    def _run_shell(self, call: ShellCall) -> None:
        if not call.command:
            self._say("Type a command after `!`. `!ls` shares its output with the model, `!!ls` does not.")
        elif self._is_refused("shell"):
            self._entry.composer.put_back(call.said)
        elif not self._bridge.run_shell(call.command, call.said, shared=call.shared):
            self._entry.composer.put_back(call.said)
            busy = "The agent is working. Your command is kept; send it when the agent is done."
            self._say(NOT_READY if self._bridge.status.pending else busy, wrong=True)

    def _send_to_target(self, message: TargetedMessage) -> str | None:
        """Send a message to one call or sub-agent.

        Returns:
            None if it is a message for the agent; empty if it was sent; else the reason why it was not: the agent must
            not receive what is for another.
        """
        if reason := self._bridge.refusal("target"):
            return reason
        if message.number is not None:
            call = self._state().ledger.numbered(message.number)
            if call is None:
                return f"Call {message.target} does not exist."
            agent = self._bridge.agent
            is_cancelled = agent is not None and agent.cancel_call(call.view.call_id, message.text)
            return "" if is_cancelled else f"Call {message.target} is not running."
        if (agent := self._bridge.agent) is None:
            return NOT_READY
        if agent.steer_child(message.target, message.text) is not None:
            return ""
        return None if self._bridge.has_file(message.target) else self._unknown_target(message.target, agent)

    def _unknown_target(self, name: str, agent: "AgentLoop") -> str:
        names = _running_sub_agents(agent)
        running = f"Running: {', '.join(f'@{name}' for name in names)}." if names else "None is running."
        return f"No sub-agent is named {name}. {running} A blank before @ sends it to the agent."

    # --- completion ---------------------------------------------------------------------------------------------------

    def _search(self, work: Coroutine[None, None, None] | None) -> None:
        """Search for suggestions; the next key cancels the search."""
        if self._completion is not None:
            self._completion.cancel()
            self._completion = None
        if work is not None:
            self._completion = self._entry.screen.run_worker(work, group="completion", exit_on_error=False)

    async def _offer_mentions(self, text: str, *, at_start: bool) -> None:
        aims = (*self._calls_to_aim_at(text), *self._agents_to_aim_at(text)) if at_start else ()
        bench = self._bridge.bench
        # `@#2` is a call, not a file.
        files = () if bench is None or text.startswith("#") else await bench.files.find(text)
        resources = tuple(self._resources_to_read(text))
        others = (*aims, *resources, *map(Suggestion.of_file, files[:FILES_FIRST]))
        more = tuple(map(Suggestion.of_file, files[FILES_FIRST:]))
        self._entry.composer.offer_mentions(text, (*others, *more))
        # The index of the symbols may still be built; the files are shown meanwhile.
        if bench is not None and (symbols := await bench.symbols.find(text)):
            named = tuple(Suggestion.of_symbol(one.name, one.path, one.first, one.last) for one in symbols)
            self._entry.composer.offer_mentions(text, (*others, *named, *more))

    def _resources_to_read(self, text: str) -> Iterator[Suggestion]:
        """Yield the resources of the tool server whose name the text begins with."""
        server, bench = text.partition(":")[0], self._bridge.bench
        for fact in bench.servers.list() if bench is not None and ":" in text else ():
            for resource in fact.resources if fact.name == server else ():
                if matches_in_order(resource, text):
                    yield Suggestion(resource, resource, f"resource of {server}")

    def _agents_to_aim_at(self, text: str) -> Iterator[Suggestion]:
        """Yield the running sub-agents whose name matches, with their task."""
        agent = self._bridge.agent
        for name, call_id in _running_sub_agents(agent).items() if agent is not None else ():
            if matches_in_order(name, text):
                call = self._state().ledger.find(call_id)
                task = call.view.summary if call is not None else ""
                yield Suggestion(f"@{name}", f"@{name}", f"steer: {task}" if task else "running sub-agent")

    def _calls_to_aim_at(self, text: str) -> Iterator[Suggestion]:
        """Yield the running calls whose number begins with the text."""
        ledger = self._state().ledger
        for place in sorted(ledger.places["running"]):
            call = ledger.calls[place]
            name = f"#{call.number}"
            if name.startswith(text):
                help_text = f"cancel {call.view.name} {call.view.summary}, and say why"
                yield Suggestion(f"@{name}", f"@{name}", help_text)

    def _preview(self, path: str, line: int) -> None:
        """Show the first lines of the highlighted file or symbol; another one cancels the reading."""
        if self._preview_work is not None:
            self._preview_work.cancel()
            self._preview_work = None
        if path:
            work = self._show_head(path, line)
            self._preview_work = self._entry.screen.run_worker(work, group="preview", exit_on_error=False)

    async def _show_head(self, path: str, line: int) -> None:
        bench = self._bridge.bench
        text = await bench.attachments.head(path, line) if bench is not None else ""
        self._entry.preview.show(path, line, text)

    async def _offer_prompts(self, text: str) -> None:
        prompts = self._bridge.prompts
        self._entry.composer.offer_prompts(text, await prompts.find(text) if prompts is not None else ())

    # --- drafts -------------------------------------------------------------------------------------------------------

    async def load_prompts(self) -> None:
        """Let ↑ recall the prompts of the project, and offer the draft that was not sent."""
        if (prompts := self._bridge.prompts) is None:
            return
        self._entry.composer.uses = await prompts.command_uses()
        self._entry.composer.remember_project(await prompts.all())
        # A draft that were put into the composer would meet the typing.
        if draft := await prompts.earlier_draft():
            self._entry.offer(f"{command('composer.search_prompts').key_text} brings back your unsent draft: {draft}")

    def note_draft(self) -> None:
        """Keep the draft once the user pauses."""
        # While the user searches, the composer holds the search, not the draft.
        if self._bridge.prompts is None or self._entry.composer.searching:
            return
        if self._draft_timer is not None:
            self._draft_timer.stop()
        self._draft_timer = self._entry.set_timer(DRAFT_DELAY, self._save_draft)

    def _save_draft(self) -> None:
        self._draft_timer = None
        if (prompts := self._bridge.prompts) is not None:
            self._keep(prompts.save_draft(self._entry.composer.draft))

    async def _keep_prompt(self, text: str) -> None:
        """Add a prompt to those of the project, once its session is known."""
        await self._bridge.opened()
        if (bench := self._bridge.bench) is not None:
            await bench.prompt_history.add(text, self._bridge.session_id)

    def _keep(self, work: Coroutine[None, None, None]) -> None:
        """Write prompts or drafts beside the screen."""
        self._entry.screen.run_worker(work, group="prompts", exit_on_error=False)

    # --- queued messages ----------------------------------------------------------------------------------------------

    def send_now(self) -> None:
        """Send the draft and the queued messages without waiting for what runs."""
        self._entry.composer.action_submit()
        # Behind the message with which the composer hands over its draft.
        self._entry.screen.call_later(self._bridge.send_now)

    def requeue_waiting_messages(self) -> None:
        """Queue the messages that waited when the session ended and that the agent no longer knows."""
        known, queue = self._bridge.status.restored_messages, self._state().waiting
        for message in queue.all:
            if message.message_id not in known:
                queue.forget(message.message_id)
                self._bridge.requeue(message.kind, message.text)
        self._entry.queue.changed()

    # --- interrupts ---------------------------------------------------------------------------------------------------

    def interrupt(self, choice: Interrupt) -> None:
        """Interrupt the run; cancelling what waits for a pending agent returns it to the composer."""
        self._entry.close_menu()
        match choice:
            case "stop":
                self._bridge.stop()
            case "now":
                self._bridge.send_now()
            case "cancel" if self._bridge.status.pending:
                if text := self._bridge.recall_all_messages():
                    self._entry.composer.put_back(text)
                self._show_pending_agent()
            case "cancel":
                self._bridge.cancel()

    def clear_or_cancel(self) -> bool:
        """Empty the composer, else cancel what runs; return False if there is neither."""
        # One step at a time: a press must not lose a draft and cancel the run as well.
        if self._entry.composer.searching:
            self._entry.composer.action_close_suggestions()
        elif self._entry.composer.editing:
            self.messages.leave()
        elif self._entry.composer.text:
            self._entry.composer.clear()
        elif self._bridge.status.running:
            self.interrupt("cancel")
        else:
            return False
        return True


def _running_sub_agents(agent: "AgentLoop") -> dict[str, str]:
    """Return the id of the call that started each running sub-agent, at any depth.

    Its key is the name by which the user steers it: a short one for the oldest of each kind, or its id for the others.
    """
    calls: dict[str, str] = {}
    waiting = [agent]
    while waiting:
        children = waiting.pop(0).children
        for agent_id, child in children.items():
            short = agent_id.rpartition("-")[0]
            name = short if short and short not in calls else agent_id
            calls[name] = child.origin.parent_call_id or ""
        waiting += children.values()
    return calls
