"""The table of keys and commands, from which bindings, hints, the command palette and the help page are made.

No other module compares or spells key names, so the keys that are shown are the keys that work.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from textual.binding import Binding

Where: TypeAlias = Literal[
    "everywhere",
    "chat",
    "composer",
    "queue",
    "panel",
    "interrupt",
    "conversation",
    "search",
    "approval",
    "questions",
    "parts",
    "detail",
    "rewind",
    "permissions",
    "report",
    "timeline",
    "picker",
    "sessions",
    "welcome",
    "confirm",
    "trust",
    "player",
]
"""The part of the screen that a key belongs to."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command of the user."""

    id: str
    """Unique id, such as `composer.submit`; also the id of its binding in a keymap."""
    keys: tuple[str, ...]
    """Textual key names; the first one is shown. Empty for a command without a key."""
    text: str
    """One or two words for hints."""
    help: str
    """One line for the help page and the palette."""
    where: Where
    action: str = ""
    """Textual action; empty if it is the last part of the id."""
    palette: bool = False
    """True if the command palette lists it."""
    slash: str | None = None
    """Name of its `/` command, without the slash."""
    argument: str = ""
    """Argument of the `/` command for the help page, such as `[NAME]`; without `slash`, the input itself."""
    priority: bool = False
    """True if the key takes precedence over the focused widget."""

    @property
    def action_name(self) -> str:
        """The Textual action that its keys run."""
        return self.action or self.id.rpartition(".")[2]

    @property
    def key_text(self) -> str:
        """Label of its first key, such as `ctrl+y`; empty if it has none."""
        return key_label(self.keys[0]) if self.keys else ""


COMMANDS: tuple[Command, ...] = (
    # everywhere
    Command(
        "app.quit",
        ("ctrl+q",),
        "quit",
        "Quit; the session is saved",
        "everywhere",
        palette=True,
        priority=True,
        slash="quit",
    ),
    Command(
        "app.escalate",
        ("ctrl+c",),
        "clear, interrupt, quit",
        "Copy the selection, clear the composer, or interrupt; twice when idle: quit",
        "everywhere",
        priority=True,
    ),
    Command(
        "app.suspend_process",
        ("ctrl+z",),
        "suspend",
        "Suspend the program; `fg` resumes it",
        "everywhere",
        priority=True,
    ),
    Command(
        "app.command_palette",
        ("ctrl+p",),
        "commands",
        "Choose a command, mode or theme",
        "everywhere",
        priority=True,
    ),
    # chat
    Command(
        "chat.interrupt",
        ("escape",),
        "interrupt",
        "Choose how to interrupt; twice: cancel the run",
        "chat",
        palette=True,
    ),
    Command(
        "chat.cycle_mode",
        ("shift+tab",),
        "mode",
        "Next permission mode: ask, accept edits, plan",
        "chat",
        palette=True,
        priority=True,
    ),
    Command(
        "chat.next_approval",
        ("ctrl+y",),
        "answer",
        "Open the waiting question",
        "chat",
        palette=True,
        priority=True,
    ),
    Command(
        "chat.send_now",
        ("ctrl+s",),
        "send now",
        "Cancel the run and send the queued messages",
        "chat",
        palette=True,
        priority=True,
    ),
    Command(
        "chat.toggle_panel",
        ("ctrl+t",),
        "tools",
        "Go to the tool panel and back, or to the selected call; in a narrow window, open or close it",
        "chat",
        palette=True,
        priority=True,
    ),
    Command(
        "chat.show_side",
        ("alt+t",),
        "close tools",
        "Open or close the right column",
        "chat",
        "toggle_panel(True)",
        palette=True,
        priority=True,
    ),
    Command(
        "chat.page_up",
        ("pageup",),
        "scroll up",
        "Scroll the conversation one page up",
        "chat",
        "scroll('page_up')",
        priority=True,
    ),
    Command(
        "chat.page_down",
        ("pagedown",),
        "scroll down",
        "Scroll the conversation one page down",
        "chat",
        "scroll('page_down')",
        priority=True,
    ),
    Command(
        "chat.scroll_top",
        ("ctrl+home",),
        "first message",
        "Go to the first message",
        "chat",
        "scroll('top')",
        priority=True,
    ),
    Command(
        "chat.scroll_end",
        ("ctrl+end",),
        "newest message",
        "Go to the newest message",
        "chat",
        "scroll('end')",
        priority=True,
    ),
    Command(
        "chat.search",
        ("ctrl+f",),
        "search",
        "Search the conversation, including folded parts",
        "chat",
        palette=True,
        slash="search",
        priority=True,
    ),
    Command(
        "chat.copy",
        (),
        "copy",
        "Copy the last answer; 2 the one before, code the last code block",
        "chat",
        palette=True,
        slash="copy",
        argument="[code] [N]",
    ),
    Command(
        "chat.thinking",
        ("f5",),
        "thinking",
        "Show or fold all thinking of the model",
        "chat",
        "perform('chat.thinking')",
        palette=True,
        slash="thinking",
        priority=True,
    ),
    Command(
        "chat.help",
        ("f1",),
        "help",
        "Every key and command",
        "chat",
        "perform('chat.help')",
        palette=True,
        slash="help",
    ),
    Command(
        "chat.rewind",
        (),
        "go back",
        "Go back to an earlier point: files, conversation or both; shows the changes first",
        "chat",
        palette=True,
        slash="rewind",
    ),
    Command("chat.stop", (), "stop", "End the run after this step", "chat", palette=True, slash="stop"),
    Command(
        "chat.mode",
        (),
        "mode",
        "Show or set the permission mode: ask, accept_edits, plan, allow, deny",
        "chat",
        slash="mode",
        argument="[NAME]",
    ),
    Command("chat.theme", (), "theme", "Choose the colours", "chat", slash="theme", argument="[NAME]"),
    Command("chat.cost", (), "cost", "Tokens and cost of this session", "chat", palette=True, slash="cost"),
    Command(
        "chat.compact",
        (),
        "compact",
        "Compact the conversation; KEEP names what the summary must keep, undo reverts",
        "chat",
        palette=True,
        slash="compact",
        argument="[KEEP | undo]",
    ),
    Command(
        "chat.context",
        (),
        "context",
        "Contents of the model's context window, by part and call",
        "chat",
        palette=True,
        slash="context",
    ),
    Command(
        "chat.report",
        (),
        "report",
        "The last run: steps, calls, tokens, and the time that questions waited for you",
        "chat",
        palette=True,
        slash="report",
    ),
    Command(
        "chat.permissions",
        (),
        "permissions",
        "Every rule in force, with the calls it decided; add and remove rules of this session",
        "chat",
        palette=True,
        slash="permissions",
    ),
    Command(
        "chat.timeline",
        (),
        "timeline",
        "The newest run over time: model, calls and waits, with zoom; a click on the small one opens it, too",
        "chat",
        palette=True,
        slash="timeline",
    ),
    Command(
        "chat.tools",
        (),
        "list tools",
        "The tools that the model can call, with the rules that apply to them",
        "chat",
        palette=True,
        slash="tools",
    ),
    Command(
        "chat.replay",
        (),
        "replay",
        "Play a recording made with --record; q returns here",
        "chat",
        palette=True,
        slash="replay",
        argument="FILE",
    ),
    Command(
        "chat.jobs",
        (),
        "jobs",
        "List commands that a killed tui-agent left running; kill ends one or all of them",
        "chat",
        palette=True,
        slash="jobs",
        argument="[kill [PID]]",
    ),
    Command(
        "chat.export",
        (),
        "export",
        "Write this session to a new file: .md, .html or .jsonl",
        "chat",
        palette=True,
        slash="export",
        argument="[FILE]",
    ),
    Command("chat.doctor", (), "doctor", "Check what works here", "chat", palette=True, slash="doctor"),
    Command(
        "chat.model",
        (),
        "model",
        "Show the model, or use another one from the next request on; --default: in new sessions, too",
        "chat",
        slash="model",
        argument="[NAME] [--default]",
    ),
    Command(
        "chat.effort",
        (),
        "effort",
        "Show how much the model thinks, or change it from the next request on: off, low, medium, high, max, default",
        "chat",
        slash="effort",
        argument="[NAME] [--default]",
    ),
    Command(
        "chat.init",
        (),
        "init",
        "Let the model write AGENTS.md for this project; update revises an existing one",
        "chat",
        palette=True,
        slash="init",
        argument="[update]",
    ),
    Command("chat.rename", (), "rename", "Give this session a name", "chat", slash="rename", argument="NAME"),
    Command(
        "chat.resume",
        (),
        "resume",
        "Switch to another session: choose it from a list, or name it by its id or words of its title",
        "chat",
        palette=True,
        slash="resume",
        argument="[ID | WORDS]",
    ),
    Command(
        "chat.clear",
        (),
        "new session",
        "Begin a new session with an empty conversation; the present one stays saved",
        "chat",
        palette=True,
        slash="clear",
    ),
    Command(
        "chat.fork",
        (),
        "fork",
        "Continue in a copy of this session; N leaves out your last N messages",
        "chat",
        palette=True,
        slash="fork",
        argument="[N]",
    ),
    Command(
        "chat.demo",
        (),
        "demo",
        "Begin a new session with the offline model: a guided tour without key and network",
        "chat",
        slash="demo",
    ),
    # composer
    Command("composer.submit", ("enter",), "send", "Send; while the agent is working, steer it", "composer"),
    Command(
        "composer.follow_up",
        ("alt+enter",),
        "follow-up",
        "Send as a turn of its own when the agent is done",
        "composer",
    ),
    Command(
        "composer.follow_up_or_leave",
        ("tab",),
        "follow-up",
        "With text, while the agent is working: send as a follow-up; a queued message: steer or follow-up; "
        "empty: go to the next part of the screen",
        "composer",
    ),
    Command(
        "composer.new_line",
        ("shift+enter", "ctrl+j"),
        "new line",
        "New line; so does enter after a backslash",
        "composer",
    ),
    Command(
        "composer.earlier",
        ("up",),
        "earlier",
        "On the first line: edit the queued messages, the newest first; then recall earlier prompts of the project",
        "composer",
    ),
    Command("composer.later", ("down",), "later", "On the last line: recall the next text", "composer"),
    Command(
        "composer.shell",
        (),
        "shell",
        "Run a shell command and share its output with the model",
        "composer",
        argument="!COMMAND",
    ),
    Command(
        "composer.own_shell",
        (),
        "shell",
        "Run a shell command; the model does not see its output",
        "composer",
        argument="!!COMMAND",
    ),
    Command(
        "composer.to_call",
        (),
        "cancel",
        "Cancel this call and tell the model why",
        "composer",
        argument="@#3 WHY",
    ),
    Command(
        "composer.to_agent",
        (),
        "steer",
        "Steer this sub-agent; an unknown name is refused",
        "composer",
        argument="@NAME TEXT",
    ),
    Command(
        "composer.mention",
        (),
        "complete",
        "Name a file, or at the start of a message a running sub-agent; the list shows those that match",
        "composer",
        argument="@TEXT",
    ),
    Command(
        "composer.search_prompts",
        ("ctrl+r",),
        "history",
        "Search the earlier prompts of this project for the text; again: an older one; enter takes it",
        "composer",
    ),
    Command("composer.edit_draft", ("ctrl+g",), "editor", "Edit the draft in $VISUAL or $EDITOR", "composer"),
    Command("composer.word_left", ("alt+left", "alt+b"), "word left", "One word left", "composer", "cursor_word_left"),
    Command(
        "composer.word_right", ("alt+right", "alt+f"), "word right", "One word right", "composer", "cursor_word_right"
    ),
    Command("composer.undo", ("ctrl+underscore",), "undo", "Undo the last change of the text", "composer"),
    Command(
        "composer.unfold",
        ("ctrl+o",),
        "unfold",
        "Show the text of the folded paste under the cursor",
        "composer",
    ),
    Command(
        "composer.close_suggestions",
        ("escape",),
        "close",
        "Hide the suggested commands; put a queued message back as it was",
        "composer",
    ),
    # queue
    Command(
        "queue.drop",
        ("ctrl+x",),
        "drop",
        "Drop the queued message that you edit; with an empty composer: the newest one",
        "queue",
    ),
    # The app gives this key up while a dropped message can be restored; otherwise it suspends the program.
    Command("queue.undo_drop", ("ctrl+z",), "undo", "After a drop: bring the queued message back", "queue"),
    Command("queue.move_up", ("alt+up",), "earlier", "Deliver the queued message that you edit earlier", "queue"),
    Command("queue.move_down", ("alt+down",), "later", "Deliver the queued message that you edit later", "queue"),
    # interrupt menu
    Command("interrupt.cancel", ("escape",), "cancel", "Cancel the run", "interrupt", "interrupt_with('cancel')"),
    Command(
        "interrupt.stop",
        ("s",),
        "stop after this step",
        "End the run after this step",
        "interrupt",
        "interrupt_with('stop')",
    ),
    Command(
        "interrupt.now",
        ("n",),
        "send queued now",
        "Cancel the run and send the queued messages",
        "interrupt",
        "interrupt_with('now')",
    ),
    # tool panel
    Command("panel.cursor_up", ("up",), "up", "Select the row above", "panel"),
    Command("panel.cursor_down", ("down",), "down", "Select the row below", "panel"),
    Command("panel.page_up", ("pageup",), "page up", "One page up", "panel"),
    Command("panel.page_down", ("pagedown",), "page down", "One page down", "panel"),
    Command("panel.first", ("home",), "first", "Select the first call", "panel"),
    Command("panel.last", ("end",), "newest", "Select the newest call and follow", "panel"),
    Command("panel.fold", ("right", "left"), "unfold", "Show or hide the calls of this sub-agent", "panel"),
    Command("panel.widen", ("ctrl+left",), "wider", "Make the right column wider", "panel", "widen(1)"),
    Command("panel.narrow", ("ctrl+right",), "narrower", "Make it narrower", "panel", "widen(-1)"),
    Command("panel.open", ("enter",), "open", "Show the details of this call", "panel"),
    Command(
        "panel.cancel_call",
        ("ctrl+x", "delete"),
        "cancel",
        "Twice: cancel this call and tell the agent; the run continues",
        "panel",
    ),
    Command(
        "panel.extend_call",
        ("ctrl+e",),
        "+60 s",
        "Let this call run 60 seconds longer than its time limit; again: 60 more",
        "panel",
    ),
    Command("panel.revert", ("ctrl+u",), "undo", "Undo the changes this call made to files", "panel"),
    Command("panel.cycle_filter", ("f4",), "filter", "Show all calls, or those that run, failed or need you", "panel"),
    # conversation
    Command("conversation.open_part", ("enter",), "open", "Unfold or fold this part", "conversation"),
    Command(
        "conversation.open_page", ("ctrl+o",), "full screen", "Show all of this part in full screen", "conversation"
    ),
    Command("conversation.part_up", ("up",), "part above", "Choose the message or call above", "conversation"),
    Command("conversation.part_down", ("down",), "part below", "Choose the message or call below", "conversation"),
    Command(
        "conversation.next_piece",
        ("right",),
        "next piece",
        "Choose a piece of it: a code block, or the input, output or diff of a call",
        "conversation",
    ),
    Command("conversation.previous_piece", ("left",), "previous piece", "Previous piece", "conversation"),
    Command("conversation.copy", ("alt+c", "ctrl+insert"), "copy", "Copy the chosen part or piece", "conversation"),
    Command(
        "conversation.previous_part", ("shift+up",), "call above", "Previous part that can be opened", "conversation"
    ),
    Command("conversation.next_part", ("shift+down",), "call below", "Next part that can be opened", "conversation"),
    Command("conversation.line_up", ("ctrl+up",), "up", "One line up", "conversation"),
    Command("conversation.line_down", ("ctrl+down",), "down", "One line down", "conversation"),
    Command("conversation.page_up", ("pageup",), "page up", "One page up", "conversation"),
    Command("conversation.page_down", ("pagedown",), "page down", "One page down", "conversation"),
    Command("conversation.scroll_top", ("home",), "top", "To the first message", "conversation"),
    Command("conversation.scroll_end", ("end",), "end", "To the newest message, and follow", "conversation"),
    Command("conversation.next_match", ("f3",), "next", "After a search: next match", "conversation"),
    # xterm sends shift+F3 as a report of the cursor's position instead of a key.
    Command(
        "conversation.previous_match",
        ("f2", "shift+f3"),
        "previous",
        "After a search: previous match",
        "conversation",
    ),
    Command("conversation.close_search", ("escape",), "close", "After a search: clear the highlights", "conversation"),
    # search line
    Command("search.next_match", ("down",), "next", "Next match", "search"),
    Command("search.previous_match", ("up",), "previous", "Previous match", "search"),
    Command("search.close", ("escape",), "close", "Clear the highlights; enter keeps them", "search"),
    # approval dialog
    Command("approval.approve_once", ("y",), "yes, once", "Allow this call", "approval"),
    Command(
        "approval.approve_session",
        ("s",),
        "this session",
        "Allow calls like this one for this session; shows the rule first",
        "approval",
    ),
    Command(
        "approval.approve_always",
        ("p",),
        "always",
        "Allow calls like this one in this project or in all projects; shows rule and file first",
        "approval",
    ),
    Command(
        "approval.approve_with_note",
        ("Y",),
        "yes, and …",
        "Allow this call and tell the agent something; it reads it with the result",
        "approval",
    ),
    Command(
        "approval.edit_input",
        ("e",),
        "edit",
        "Edit the input of the call, or the rule that is shown",
        "approval",
    ),
    Command("approval.deny", ("n",), "no", "Deny this call", "approval"),
    Command("approval.deny_with_reason", ("f",), "no, because", "Deny this call and tell the agent why", "approval"),
    Command("approval.skip", ("k",), "skip", "Skip this call; the run continues", "approval"),
    Command(
        "approval.choose_parts",
        ("h",),
        "parts",
        "Accept some parts of a change and leave out the others; the agent reads which",
        "approval",
    ),
    Command("approval.list_all", ("a",), "all", "List all waiting questions, to answer several at once", "approval"),
    Command("approval.for_user", ("u",), "every project", "When a rule is shown: allow in every project", "approval"),
    Command("approval.narrower", ("left",), "narrower", "When a rule is shown: a narrower one", "approval"),
    Command("approval.wider", ("right",), "wider", "When a rule is shown: a wider one", "approval"),
    Command(
        "approval.run_edited",
        ("ctrl+s",),
        "allow this",
        "After editing: allow the call, or use the rule",
        "approval",
    ),
    Command(
        "approval.edit_outside", ("ctrl+g",), "editor", "While editing: open the text in $VISUAL or $EDITOR", "approval"
    ),
    Command("approval.why", ("w",), "why", "Show every rule that was checked", "approval"),
    Command("approval.not_now", ("escape",), "not now", "Decide later; the question stays open", "approval"),
    Command("approval.line_up", ("up",), "up", "One line up", "approval"),
    Command("approval.line_down", ("down",), "down", "One line down", "approval"),
    Command("approval.page_up", ("pageup",), "page up", "One page up", "approval"),
    Command("approval.page_down", ("pagedown", "space"), "more", "One page down", "approval"),
    Command("approval.scroll_top", ("home",), "top", "To the top", "approval"),
    Command("approval.scroll_end", ("end",), "end", "To the end", "approval"),
    # every question that waits
    Command("questions.approve", ("y",), "yes to these", "Allow the selected calls, once", "questions"),
    Command("questions.deny", ("n",), "no to these", "Deny the selected calls", "questions"),
    Command("questions.select", ("space",), "select", "Select or deselect this question", "questions"),
    Command("questions.select_all", ("a",), "all", "Select or deselect all questions", "questions"),
    Command("questions.select_group", ("g",), "group", "Select or deselect the questions of this group", "questions"),
    Command(
        "questions.approve_session",
        ("s",),
        "group, this session",
        "Allow the questions of this group, and calls like them for this session; shows the rule first",
        "questions",
    ),
    Command("questions.close", ("escape",), "back", "Return to one question at a time", "questions"),
    Command("questions.cursor_up", ("up", "k"), "up", "Previous question", "questions"),
    Command("questions.cursor_down", ("down", "j"), "down", "Next question", "questions"),
    Command("questions.page_up", ("pageup",), "page up", "One page up", "questions"),
    Command("questions.page_down", ("pagedown",), "more", "One page down", "questions"),
    # parts of one change
    Command(
        "parts.toggle_part",
        ("space",),
        "accept or leave out",
        "Accept this part of the change or leave it out",
        "parts",
    ),
    Command("parts.toggle_all", ("a",), "all", "Accept all parts, or none", "parts"),
    Command("parts.approve", ("y",), "yes to these", "Allow the accepted parts; without any, deny the call", "parts"),
    Command("parts.close", ("escape",), "back", "Return to the whole change", "parts"),
    Command("parts.cursor_up", ("up", "k"), "up", "Previous part", "parts"),
    Command("parts.cursor_down", ("down", "j"), "down", "Next part", "parts"),
    Command("parts.page_up", ("pageup",), "page up", "One page up", "parts"),
    Command("parts.page_down", ("pagedown",), "more", "One page down", "parts"),
    Command("parts.scroll_top", ("home",), "top", "To the top", "parts"),
    Command("parts.scroll_end", ("end",), "end", "To the end", "parts"),
    # call detail
    Command("detail.close", ("escape", "q"), "close", "Return to the conversation", "detail"),
    Command("detail.line_up", ("up", "k"), "up", "One line up", "detail"),
    Command("detail.line_down", ("down", "j"), "down", "One line down", "detail"),
    Command("detail.page_up", ("pageup",), "page up", "One page up", "detail"),
    Command("detail.page_down", ("pagedown", "space"), "page down", "One page down", "detail"),
    Command("detail.scroll_top", ("home", "g"), "top", "To the top", "detail"),
    Command("detail.scroll_end", ("end", "G"), "end", "To the end", "detail"),
    Command("detail.next_section", ("tab", "right"), "next part", "Input, output, decision, timing", "detail"),
    Command("detail.previous_section", ("shift+tab", "left"), "previous part", "Previous part", "detail"),
    Command("detail.copy", ("c",), "copy", "Copy what is shown", "detail"),
    Command("detail.revert", ("u",), "undo", "Undo the changes this call made to files", "detail"),
    # going back
    Command("rewind.cursor_up", ("up", "k"), "up", "Previous row", "rewind"),
    Command("rewind.cursor_down", ("down", "j"), "down", "Next row", "rewind"),
    Command("rewind.choose", ("enter",), "choose", "Choose this point; then carry out what is shown", "rewind"),
    Command("rewind.scope", ("tab",), "what", "Files and conversation, files only, conversation only", "rewind"),
    Command(
        "rewind.overwrite",
        ("space",),
        "this file, too",
        "Restore a file although it was changed elsewhere since; its present content is saved",
        "rewind",
    ),
    Command("rewind.close", ("escape", "q"), "back", "Return without changes", "rewind"),
    Command("rewind.page_up", ("pageup",), "page up", "One page up", "rewind"),
    Command("rewind.page_down", ("pagedown",), "more", "One page down", "rewind"),
    Command("rewind.scroll_top", ("home", "g"), "top", "To the top", "rewind"),
    Command("rewind.scroll_end", ("end", "G"), "end", "To the end", "rewind"),
    # the first page
    Command("welcome.cursor_up", ("up",), "up", "Previous offer", "welcome"),
    Command("welcome.cursor_down", ("down",), "down", "Next offer", "welcome"),
    Command(
        "welcome.choose", ("enter",), "choose", "Resume the session, or put the prompt into the composer", "welcome"
    ),
    Command("welcome.next_theme", ("right",), "theme", "At the first run: try the next theme", "welcome", "theme(1)"),
    Command("welcome.previous_theme", ("left",), "theme", "Try the previous one", "welcome", "theme(-1)"),
    Command("welcome.leave", ("escape",), "back", "Back to the composer", "welcome"),
    # sessions
    Command("sessions.choose", ("enter",), "resume", "Resume the selected session", "sessions", priority=True),
    Command("sessions.cursor_up", ("up",), "up", "Previous session", "sessions", priority=True),
    Command("sessions.cursor_down", ("down",), "down", "Next session", "sessions", priority=True),
    Command("sessions.page_up", ("pageup",), "page up", "One page up", "sessions", priority=True),
    Command("sessions.page_down", ("pagedown",), "page down", "One page down", "sessions", priority=True),
    Command(
        "sessions.toggle_all", ("tab",), "all folders", "Sessions of this folder, or of all", "sessions", priority=True
    ),
    Command("sessions.rename", ("ctrl+r",), "rename", "Rename the selected session", "sessions", priority=True),
    Command("sessions.fork", ("ctrl+f",), "copy", "Resume a copy of the selected session", "sessions", priority=True),
    Command(
        "sessions.delete",
        ("ctrl+x",),
        "delete",
        "Delete the selected session with all its files; asks first",
        "sessions",
        priority=True,
    ),
    Command("sessions.back", ("escape",), "back", "Clear the search; then go back", "sessions", priority=True),
    # questions with two answers
    Command("confirm.yes", ("y",), "yes", "Yes", "confirm"),
    Command("confirm.no", ("n", "escape"), "no", "No", "confirm"),
    # a session that is open elsewhere
    Command("picker.leave", ("escape", "q"), "quit", "Quit without choosing", "picker"),
    # permissions
    Command("permissions.cursor_up", ("up", "k"), "up", "Previous rule", "permissions"),
    Command("permissions.cursor_down", ("down", "j"), "down", "Next rule", "permissions"),
    Command("permissions.show_calls", ("enter",), "its calls", "List the calls that this rule decided", "permissions"),
    Command("permissions.add_rule", ("a",), "add", "Type a rule for this session; enter adds it", "permissions"),
    Command(
        "permissions.remove_rule", ("x", "delete"), "remove", "Remove this rule of the session at once", "permissions"
    ),
    Command("permissions.close", ("escape", "q"), "close", "Return to the conversation", "permissions"),
    Command("permissions.page_up", ("pageup",), "page up", "One page up", "permissions"),
    Command("permissions.page_down", ("pagedown", "space"), "page down", "One page down", "permissions"),
    Command("permissions.scroll_top", ("home", "g"), "top", "To the top", "permissions"),
    Command("permissions.scroll_end", ("end", "G"), "end", "To the end", "permissions"),
    # report
    Command("report.permissions", ("p",), "permissions", "Show every rule in force", "report"),
    Command("report.add_rule", ("a",), "add the rule", "Add the rule that would have saved most time", "report"),
    # timeline
    Command("timeline.zoom_in", ("plus", "equals_sign"), "zoom in", "Show half of the time", "timeline", "zoom(0.5)"),
    Command("timeline.zoom_out", ("minus",), "zoom out", "Show twice the time", "timeline", "zoom(2.0)"),
    Command("timeline.pan_left", ("left",), "earlier", "A quarter to the left", "timeline", "pan(-1)"),
    Command("timeline.pan_right", ("right",), "later", "A quarter to the right", "timeline", "pan(1)"),
    Command("timeline.whole", ("0",), "whole run", "Show the whole run", "timeline"),
    Command("timeline.follow", ("f",), "follow", "Keep the present moment in sight", "timeline"),
    Command("timeline.close", ("escape", "q"), "close", "Return to the conversation", "timeline"),
    Command("timeline.line_up", ("up", "k"), "up", "One lane up", "timeline"),
    Command("timeline.line_down", ("down", "j"), "down", "One lane down", "timeline"),
    Command("timeline.page_up", ("pageup",), "page up", "One page up", "timeline"),
    Command("timeline.page_down", ("pagedown", "space"), "page down", "One page down", "timeline"),
    Command("timeline.scroll_top", ("home", "g"), "top", "To the first call", "timeline"),
    Command("timeline.scroll_end", ("end", "G"), "end", "To the newest call", "timeline"),
    # trusting a folder
    Command("trust.refuse", ("n", "escape", "enter"), "no", "Apply none of this folder's settings", "trust"),
    Command("trust.tighten", ("t",), "yes, without allow rules", "Apply its settings, except allow rules", "trust"),
    Command("trust.accept", ("a",), "yes, allow rules too", "Apply its settings, including allow rules", "trust"),
    Command("trust.line_up", ("up", "k"), "up", "One line up", "trust"),
    Command("trust.line_down", ("down", "j"), "down", "One line down", "trust"),
    Command("trust.page_up", ("pageup",), "page up", "One page up", "trust"),
    Command("trust.page_down", ("pagedown", "space"), "more", "One page down", "trust"),
    Command("trust.leave", ("ctrl+c",), "quit", "Quit without starting", "trust", priority=True),
    # watching a recording
    Command("player.play_or_pause", ("space",), "pause", "Pause or continue; at the end, restart", "player"),
    Command("player.back", ("left",), "5 s", "Five seconds back", "player"),
    Command("player.forward", ("right",), "5 s", "Five seconds forward", "player"),
    Command("player.step_back", ("comma",), "step", "To the previous event", "player"),
    Command("player.step_forward", ("full_stop",), "step", "To the next event", "player"),
    Command("player.slower", ("left_square_bracket",), "slower", "Half the speed", "player"),
    Command("player.faster", ("right_square_bracket",), "faster", "Twice the speed", "player"),
    Command("player.first", ("home",), "start", "To the beginning", "player"),
    Command("player.last", ("end",), "end", "To the end", "player"),
    Command("player.hide", ("h",), "hide", "Hide or show this line", "player"),
    Command("player.close", ("q", "escape", "ctrl+q", "ctrl+c"), "quit", "Close the recording", "player"),
)
"""Every command with its default keys, in the order of the help page."""

_in_force: dict[str, Command] = {entry.id: entry for entry in COMMANDS}
"""Every command with the keys in force, by id. One table for the process, which one user drives."""


def use_keys(keys: Mapping[str, tuple[str, ...]]) -> None:
    """Replace the keys of some commands, by id, and restore the default keys of all others."""
    _in_force.update((entry.id, replace(entry, keys=keys.get(entry.id, entry.keys))) for entry in COMMANDS)


def has_own_keys() -> bool:
    """True if a command has other keys than its default ones."""
    return any(_in_force[entry.id].keys != entry.keys for entry in COMMANDS)


def all_commands() -> tuple[Command, ...]:
    """Return every command with the keys in force, in table order."""
    return tuple(_in_force.values())


def commands_for(where: Where) -> tuple[Command, ...]:
    """Return the commands of one part of the screen with the keys in force, in table order."""
    return tuple(command for command in _in_force.values() if command.where == where)


def bindings_for(where: Where, commands: Iterable[Command] = COMMANDS) -> list[Binding]:
    """Return Textual bindings for the default keys of one part of the screen; the app replaces them."""
    return [
        Binding(
            ",".join(command.keys),
            command.action_name,
            command.text,
            id=command.id,
            priority=command.priority,
            tooltip=command.help,
        )
        for command in commands
        if command.where == where and command.keys
    ]


def command(command_id: str) -> Command:
    """Return the command with this id, with the keys in force.

    Raises:
        KeyError: no command has this id.
    """
    return _in_force[command_id]


def hint(command_id: str, text: str | None = None) -> str:
    """Return key and text for a hint line, such as `esc interrupt`; `text` replaces the command's own."""
    found = command(command_id)
    return f"{found.key_text} {text or found.text}".lstrip()


def slash_commands() -> tuple[Command, ...]:
    """Return the `/` commands, sorted by name."""
    return tuple(sorted((entry for entry in _in_force.values() if entry.slash), key=lambda entry: entry.slash or ""))


def key_label(key: str) -> str:
    """Return the label of a Textual key name: `escape` is `esc`, `up` is an arrow."""
    return "+".join(_KEY_LABELS.get(part, part) for part in key.split("+"))


_KEY_LABELS = {
    "escape": "esc",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "pageup": "pgup",
    "pagedown": "pgdn",
    "underscore": "_",
    "slash": "/",
    "comma": ",",
    "plus": "+",
    "minus": "-",
    "equals_sign": "=",
    "full_stop": ".",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
}
