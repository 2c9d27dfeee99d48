"""The text area where the user types. It accepts input at any time, and nothing else changes its draft."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar, Literal

from textual import on
from textual.binding import BindingType
from textual.events import Key, Paste
from textual.message import Message
from textual.widgets import TextArea

from tui_agent.protocol.prompt_references import PromptCommand, file_mentions
from tui_agent.ui.base.app_type import AnyScreen
from tui_agent.ui.base.command_type import Command
from tui_agent.ui.base.commands import bindings_for, command, first_keys

from .paste_collapse import CollapsingPasteArea, unescape_hidden
from .prompt_parser import (
    Suggestion,
    matches_in_order,
    mention_before,
    pasted_media_path,
    suggestions,
)
from .queue_strip import QueueRequest
from .vim_keys import VimKeys, VimMode

SubmitKind = Literal["submit", "follow_up"]
"""Send now, steering a run if there is one, or as a turn of its own."""
MAX_HISTORY_ENTRIES = 1_000
"""Texts that the history keeps."""


def _no_prompt() -> Suggestion:
    back = command("composer.close_suggestions").key_text
    return Suggestion("", f"No earlier prompt contains this text. {back} returns to your draft.", kind="note")


class PromptHistory:
    """Sent texts, newest last, to be recalled with the arrow keys."""

    def __init__(self) -> None:
        self._entries: list[str] = []
        self._past = 0
        self._place: int | None = None
        self._draft = ""

    @property
    def browsing(self) -> bool:
        """True while an earlier text is shown in place of the draft."""
        return self._place is not None

    def add(self, text: str) -> None:
        """Add a sent text, unless it equals the last one."""
        if text.strip() and (not self._entries or self._entries[-1] != text):
            self._entries.append(text)
            self._limit()
        self.leave()

    def begin_with(self, texts: Iterable[str]) -> None:
        """Replace the texts that were sent before this start of the session."""
        past = [text for text, _ in groupby(texts) if text.strip()]
        # The text on display stays where it is while older ones come in before it.
        if self._place is not None:
            self._place = max(0, self._place + len(past) - self._past)
        self._entries[: self._past] = past
        self._past = len(past)
        self._limit()

    def _limit(self) -> None:
        """Drop the oldest texts beyond the limit."""
        gone = max(0, len(self._entries) - MAX_HISTORY_ENTRIES)
        del self._entries[:gone]
        self._past = max(0, self._past - gone)
        if self._place is not None:
            self._place = max(0, self._place - gone)

    def leave(self) -> None:
        """Stop browsing: the text shown is the draft from now on."""
        self._place = None

    def earlier(self, current: str) -> str | None:
        """Return the text sent before the one shown, or None; the first call keeps `current` as the draft."""
        if self._place is None:
            self._draft = current
        place = (len(self._entries) if self._place is None else self._place) - 1
        if place < 0:
            return None
        self._place = place
        return self._entries[place]

    def later(self) -> str | None:
        """Return the text sent after the one shown, at the end the draft; None if no earlier one is shown."""
        if self._place is None:
            return None
        if self._place + 1 < len(self._entries):
            self._place += 1
            return self._entries[self._place]
        self._place = None
        return self._draft


class Composer(CollapsingPasteArea):
    """A text area with a history that sends on Enter and suggests `/` commands, files and sub-agents."""

    DEFAULT_CSS = """
    Composer {
        height: auto;
        min-height: 1;
        border: none;
        padding: 0;
        background: transparent;
        color: $text;
        scrollbar-size-vertical: 1;

        &:focus {
            border: none;
        }

        & .paste-area--escape {
            color: $warning;
        }

        & .text-area--placeholder {
            color: $text-disabled;
        }

        &:nocolor .text-area--cursor {
            text-style: reverse;
        }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("composer"), *bindings_for("queue")]

    @dataclass
    class Submitted(Message):
        """The user sent a text."""

        text: str
        kind: SubmitKind
        edited: str = ""
        """Id of the queued message that the text replaces."""
        pasted: frozenset[str] = frozenset()
        """Mentions in the text, such as `@logo.png`, that were pasted and not typed."""

    @dataclass
    class Suggested(Message):
        """The suggestions for the text have changed; there may be none."""

        entries: tuple[Suggestion, ...]
        chosen: int = 0

    @dataclass
    class MentionTyped(Message):
        """The user types behind an `@`: answer with `offer_mentions`."""

        text: str | None
        """Text between the `@` and the cursor; None if the user no longer types there."""
        at_start: bool = False
        """True if the `@` begins the message, so that it may name a sub-agent."""

    @dataclass
    class FileNamed(Message):
        """The user named a file to be attached: answer with `attach`."""

        mention: str
        """The part of the text that names it."""
        path: str
        typed: bool
        """True if the user typed the path."""

    @dataclass
    class PromptsWanted(Message):
        """The user searches the earlier prompts: answer with `offer_prompts`."""

        text: str

    @dataclass
    class HelpRequested(Message):
        """The user wants to see all keys."""

    @dataclass
    class EditorRequested(Message):
        """The user wants to edit the draft in an editor."""

        text: str

    @dataclass
    class ModeChanged(Message):
        """The mode of the vim keys changed."""

        mode: VimMode

    def __init__(self, placeholder: str) -> None:
        super().__init__(placeholder)
        self.id = "composer"
        self.vim: VimKeys | None = None
        """The keys of vim; None if the user does not want them."""
        self.busy = False
        """True while the agent is working, so that Tab sends a follow-up."""
        self.waiting = 0
        """Number of queued messages."""
        self.own_commands: tuple[PromptCommand, ...] = ()
        """The `/` commands of the user's and the project's files."""
        self.offers: Callable[[Command], bool] = lambda _: True
        """Returns False for a built-in command that does nothing here."""
        self.uses: Mapping[str, int] = {}
        """Uses of each `/` command by the user, by name."""
        self.yielded_keys: frozenset[str] = frozenset()
        """Keys that belong to the interrupt menu while it is open."""
        self.editing = ""
        """Id of the queued message that is being edited; empty if the text is a new one."""
        self.dropped = 0
        """Number of dropped messages that the undo key brings back before it does anything else."""
        self.last_key: Key | None = None
        """The last key pressed here, so that the screen does not type it a second time."""
        self._pasted_files: set[str] = set()
        self.read_clipboard: Callable[[], object] | None = None
        """Called for a paste; answers with `attach_here`, or with `paste_text` if the clipboard has no image."""
        self._edited_from = ""
        """The text of the queued message when the edit began."""
        self._draft_aside = ""
        """The text that makes room for an edit."""
        self._history = PromptHistory()
        self._project_texts: tuple[str, ...] = ()
        self._session_texts: tuple[str, ...] = ()
        self._draft_left = ""
        """The text, with labels and escapes, before the user began to browse the history."""
        self._suggested: tuple[Suggestion, ...] = ()
        self._suggested_for = ""
        self._chosen = 0
        self._mention: str | None = None
        self._draft_before_search: str | None = None

    @property
    def can_undo_drop(self) -> bool:
        """True while the undo key restores a dropped message: the user is here, and has typed nothing since."""
        return self.has_focus and self.dropped > 0

    @property
    def searching(self) -> bool:
        """True while the text is a search in the earlier prompts."""
        return self._draft_before_search is not None

    def remember(self, texts: Iterable[str]) -> None:
        """Replace the history of earlier starts of the session; `texts` are oldest first."""
        self._session_texts = tuple(texts)
        self._fill_history()

    def remember_project(self, texts: Iterable[str]) -> None:
        """Replace the history of the project, which comes before that of the session; `texts` are oldest first."""
        self._project_texts = tuple(texts)
        self._fill_history()

    def _fill_history(self) -> None:
        # The prompts of this session are in the history of the project, too.
        own = frozenset(self._session_texts)
        self._history.begin_with((*(text for text in self._project_texts if text not in own), *self._session_texts))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable closing and undoing while there is something to close or undo; the keys have other meanings, too."""
        if action == "close_suggestions":
            return bool(self._suggested) or self.searching or bool(self.editing)
        if action == "undo_drop":
            return self.can_undo_drop
        return super().check_action(action, parameters)

    async def on_key(self, event: Key) -> None:
        """Leave the yielded keys to the screen, and update the suggestions."""
        self.last_key = event
        # A letter of the menu that arrives here was pressed before the menu opened.
        if event.key in self.yielded_keys and not event.is_printable:
            event.prevent_default()
        elif self._is_vim_key(event):
            event.prevent_default()
            event.stop()
        # The change event of the last letter may still be queued.
        self._suggest()

    # --- vim ----------------------------------------------------------------------------------------------------------

    def use_vim_keys(self, wanted: bool) -> None:
        """Use the keys of vim, or no longer."""
        if wanted != (self.vim is not None):
            self.vim = VimKeys(self, self.action_earlier, self.action_later) if wanted else None
            self.post_message(self.ModeChanged("insert"))

    def type_text(self) -> None:
        """Let the next keys type text."""
        if self.vim is not None and self.vim.mode != "insert":
            self.vim.insert()
            self.post_message(self.ModeChanged("insert"))

    def _is_vim_key(self, event: Key) -> bool:
        """Handle a key in the present mode; return False if it keeps its usual meaning."""
        # The menu closes first; the next escape leads to normal mode.
        if self.vim is None or (event.key == "escape" and (self._suggested or self.searching)):
            return False
        before = self.vim.mode
        handled = self.vim.press(event.key, event.character if event.is_printable else None)
        if self.vim.mode != before:
            self.post_message(self.ModeChanged(self.vim.mode))
        return handled

    def action_submit(self) -> None:
        """Send the chosen command or the draft; complete a mention; take a prompt; after a backslash, begin a line."""
        chosen = self._suggested[self._chosen] if self._suggested else None
        if self.searching:
            self._take_prompt()
        elif chosen is not None and chosen.kind == "command":
            self._send(chosen.text, "submit")
        elif chosen is not None and chosen.kind == "key":
            self.clear()
            self.post_message(self.HelpRequested())
        elif chosen is not None and chosen.text != f"@{self._mention}":
            self._complete_mention(chosen)
        elif self._ends_in_backslash():
            self.action_new_line()
        else:
            self._send(self.draft, "submit")

    def action_follow_up(self) -> None:
        """Send the draft as a turn of its own; take a prompt; if nothing runs, begin a new line.

        Terminals that were set up for other programs send the same bytes for Shift+Enter.
        """
        if self.searching:
            self._take_prompt()
        elif not self.busy and not self.editing:
            self.action_new_line()
        else:
            self._send(self.draft, "follow_up")

    def action_follow_up_or_leave(self) -> None:
        """Complete a command or mention; change the kind of a queued message; send a follow-up; leave the composer."""
        if self.searching:
            self._take_prompt()
        elif self._suggested and self._suggested[self._chosen].kind == "command":
            self.show(f"{self._suggested[self._chosen].text} ")
        elif self._suggested and self._suggested[self._chosen].kind == "key":
            self.action_submit()
        elif self._suggested:
            self._complete_mention(self._suggested[self._chosen])
        elif self.editing:
            self.post_message(QueueRequest("kind"))
        elif not self.text.strip():
            self.screen.focus_next()
        elif self.busy:
            self.action_follow_up()

    def action_new_line(self) -> None:
        """Begin a new line, and remove the backslash that asked for it."""
        start, end = sorted(self.selection)
        if self._ends_in_backslash():
            start = (start[0], start[1] - 1)
        self.change("\n", start, end)

    def action_earlier(self) -> None:
        """Move to the row or suggestion above; on the first row walk through queued messages, then earlier texts."""
        if self._suggested:
            self._choose(self._chosen - 1)
        elif self._row() > 0:
            self.action_cursor_up()
        elif self.editing and not self._is_edit_unchanged:
            self.action_cursor_line_start()
        elif self.editing or (not self.text and self.waiting):
            self.post_message(QueueRequest("earlier"))
        else:
            self.recall_earlier()

    def recall_earlier(self) -> None:
        """Recall the text that was sent before the one shown."""
        if not self._history.browsing:
            # With its labels and escapes, which the history resolves.
            self._draft_left = self.text
        if (text := self._history.earlier(self.text)) is not None:
            self.show(text)

    def action_later(self) -> None:
        """Move to the row or suggestion below; on the last row walk through queued messages or later texts."""
        if self._suggested:
            self._choose(self._chosen + 1)
        elif self._row() < self.wrapped_document.height - 1:
            self.action_cursor_down()
        elif self.editing:
            if self._is_edit_unchanged:
                self.post_message(QueueRequest("later"))
            else:
                self.action_cursor_line_end()
        elif (text := self._history.later()) is not None:
            if self._history.browsing:
                self.show(text)
            else:
                self._show_as_is(self._draft_left)

    def action_drop(self) -> None:
        """Drop the message that is being edited, or the newest queued one; with other text, cut the selection."""
        if self.text and (not self.editing or not self.selection.is_empty):
            self.action_cut()
        elif self.editing or self.waiting:
            self.post_message(QueueRequest("drop"))

    def action_undo_drop(self) -> None:
        """Queue the message that was dropped last."""
        self.post_message(QueueRequest("undo"))

    def action_move_up(self) -> None:
        """Deliver the message that is being edited earlier; without one, edit the newest."""
        if self.editing or (not self.text and self.waiting):
            self.post_message(QueueRequest("up"))

    def action_move_down(self) -> None:
        """Deliver the message that is being edited later."""
        if self.editing:
            self.post_message(QueueRequest("down"))

    # --- files -------------------------------------------------------------------------------------------------------

    def on_paste(self, event: Paste) -> None:
        """Attach the image or PDF whose path is pasted; the base class inserts the text."""
        self._pasted_files |= file_mentions(event.text).keys()
        path = pasted_media_path(event.text)
        if path is not None:
            self.post_message(self.FileNamed(event.text.strip(), path, typed=False))

    def action_paste(self) -> None:
        """Attach the image of the desktop's clipboard; without one, insert the text that was copied here."""
        if self.read_clipboard is not None:
            self.read_clipboard()
        else:
            self.paste_text()

    def paste_text(self) -> None:
        """Insert the text that was copied here."""
        super().action_paste()

    def attach_here(self, label: str) -> None:
        """Insert the label of an attached image at the cursor."""
        # The cursor steps over the label of an image, and one key deletes it, as for a collapsed paste.
        self._labels.keep(label)
        self.insert(label)

    def attach(self, mention: str, label: str) -> None:
        """Replace the part of the text that names a file by its label, unless the text has changed."""
        lines = enumerate(self.text.split("\n"))
        found = next(((row, line.index(mention)) for row, line in lines if mention in line), None)
        if found is not None:
            row, column = found
            cursor = self.cursor_location
            self._labels.keep(label)
            self.replace(label, found, (row, column + len(mention)))
            if cursor[0] == row and cursor[1] >= column:
                self.move_cursor((row, max(column, cursor[1] - len(mention)) + len(label)))

    def _name_file(self, mention: str, *, typed: bool) -> None:
        for name, path in file_mentions(mention).items():
            # A directory is listed only when the message is sent.
            if not path.endswith("/"):
                self.post_message(self.FileNamed(name, path, typed and name not in self._pasted_files))

    # --- editing a queued message -------------------------------------------------------------------------------------

    @property
    def _is_edit_unchanged(self) -> bool:
        """True if leaving the edit loses nothing; an emptied message is put back as it was."""
        return not self.text.strip() or self.draft == self._edited_from

    def begin_edit(self, message_id: str, text: str, *, keeps_draft: bool) -> None:
        """Show a queued message for an edit; the present text returns later if `keeps_draft`, else it belongs to it."""
        typed = self.text
        self._draft_aside = typed if keeps_draft else ""
        self.editing, self._edited_from = message_id, text
        self.show(text)
        if typed and not keeps_draft:
            self.change(unescape_hidden(typed), self.document.end, self.document.end)

    def end_edit(self) -> None:
        """End the edit, and show the draft from before."""
        if self.editing:
            self.editing, draft = "", self._draft_aside
            self._draft_aside = ""
            self._show_as_is(draft)

    def action_close_suggestions(self) -> None:
        """Hide the suggestions, else end the search or the edit of a queued message."""
        if self.editing and not self._suggested and not self.searching:
            self.post_message(QueueRequest("leave"))
            return
        self._mention = None
        # The question mark was a key that opened the menu, and no text.
        if self.text == "?":
            self.clear()
        if (draft := self._draft_before_search) is not None:
            self._draft_before_search = None
            self._show_as_is(draft)
            # Otherwise the draft that returns would open a menu of its own.
            self._suggested_for = self.text
        self._offer(())

    def action_edit_draft(self) -> None:
        """Open the draft in the user's editor."""
        self.post_message(self.EditorRequested(self.draft))

    def action_search_prompts(self) -> None:
        """Search the earlier prompts for the text; again: choose an older one."""
        if not self.searching:
            self._draft_before_search = self.text
            self._mention = None
            self._offer(())
            self.post_message(self.PromptsWanted(self.draft))
        elif self._suggested:
            self._choose(self._chosen + 1)

    def offer_prompts(self, text: str, prompts: tuple[str, ...]) -> None:
        """Show the earlier prompts that contain a text, unless it has changed meanwhile."""
        # The answer to an earlier text may come late.
        if self.searching and text == self.draft:
            self._offer(tuple(map(Suggestion.of_prompt, prompts)) or (_no_prompt(),))

    def _take_prompt(self) -> None:
        """Put the chosen prompt into the composer and end the search; without one, the search continues."""
        chosen = self._suggested[self._chosen] if self._suggested else _no_prompt()
        if chosen.kind == "prompt":
            self._draft_before_search = None
            self.change(chosen.text, (0, 0), self.document.end)
            self._suggested_for = self.text
            self._offer(())

    @on(TextArea.Changed)
    def _text_changed(self) -> None:
        self._suggest()

    def _send(self, text: str, kind: SubmitKind) -> None:
        if text.strip():
            self._history.add(text)
            edited = self.editing
            if edited:
                self.end_edit()
            else:
                self.clear()
            # The next message begins in insert mode, as after a start.
            self.type_text()
            pasted, self._pasted_files = frozenset(self._pasted_files), set()
            # Frames wait a moment, so that the message leaves first.
            AnyScreen.pace.note_message()
            self.post_message(self.Submitted(text.strip("\n"), kind, edited, pasted))

    def _suggest(self) -> None:
        """Update the suggestions, once for each text."""
        if self.text == self._suggested_for:
            return
        self._suggested_for = self.text
        if self.searching:
            self.post_message(self.PromptsWanted(self.draft))
            return
        (row, column), before = self.cursor_location, self._mention
        line = self.document.get_line(row)
        mention = self._mention = mention_before(line, column)
        # A blank ends a typed mention; before that, its name may still grow.
        if before is not None and mention is None and line[:column].endswith(f"@{before} "):
            self._name_file(f"@{before}", typed=True)
        if mention is None:
            self._offer(self._commands())
        else:
            # Until the answer comes, those that still match stay, so that the menu does not flicker.
            self._offer(tuple(entry for entry in self._suggested if matches_in_order(entry.text, f"@{mention}")))
        if mention is not None or before is not None:
            at_start = mention is not None and (row, column) == (0, len(mention) + 1)
            self.post_message(self.MentionTyped(mention, at_start))

    def _commands(self) -> tuple[Suggestion, ...]:
        """Return the commands that the text may become; for a lone `?`, the keys that one needs first."""
        if self.text == "?":
            return tuple(map(Suggestion.of_key, first_keys()))
        found = suggestions(self.text, self.own_commands, offers=self.offers, uses=self.uses)
        return tuple(map(Suggestion.of_command, found))

    def offer_mentions(self, mention: str, entries: tuple[Suggestion, ...]) -> None:
        """Show files and sub-agents for the text behind an `@`, unless it has changed meanwhile."""
        if mention == self._mention and self.text == self._suggested_for:
            chosen = self._suggested[self._chosen] if self._suggested else None
            self._offer(entries)
            # More entries for the same text come later, when the user may have chosen one.
            if chosen in entries and self._chosen != (place := entries.index(chosen)):
                self._choose(place)

    def _complete_mention(self, chosen: Suggestion) -> None:
        """Replace the `@` and the text behind it by a suggestion and a blank."""
        row, column = self.cursor_location
        start = (row, column - len(self._mention or "") - 1)
        # After a directory the user may type the name of a file in it.
        gap = "" if chosen.path.endswith("/") else " "
        self.change(f"{chosen.text}{gap}", start, (row, column))
        self._name_file(chosen.text, typed=False)

    def _offer(self, entries: tuple[Suggestion, ...]) -> None:
        if entries != self._suggested:
            self._suggested, self._chosen = entries, 0
            self.post_message(self.Suggested(entries))

    def _choose(self, place: int) -> None:
        self._chosen = place % len(self._suggested)
        self.post_message(self.Suggested(self._suggested, self._chosen))

    def _ends_in_backslash(self) -> bool:
        """Return True if the cursor is behind a backslash at the end of its line."""
        row, column = self.cursor_location
        line = self.document.get_line(row)
        return self.selection.is_empty and column == len(line) and line.endswith("\\")

    def _row(self) -> int:
        """Return the row of the cursor, with wrapped lines counted as drawn."""
        return self.wrapped_document.location_to_offset(self.cursor_location).y
