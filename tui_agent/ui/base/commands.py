"""The one table of keys and commands: bindings, hints, the command palette and the help page are made from it.

Nothing else in the screen compares or spells key names, so that what is shown and what works cannot differ.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
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
    "detail",
    "rewind",
    "picker",
    "trust",
    "player",
]
"""The part of the screen a key belongs to."""


@dataclass(frozen=True, slots=True)
class Command:
    """One thing a person can ask for."""

    id: str
    """Unique, such as `composer.submit`; also the id under which a keymap finds its binding."""
    keys: tuple[str, ...]
    """Textual key names; the first one is shown. Empty: only in the palette or as a `/` command."""
    text: str
    """A word or two, for hints."""
    help: str
    """One line, for the help page and the palette."""
    where: Where
    action: str = ""
    """Textual action; empty: the last part of the id."""
    palette: bool = False
    """Whether the command palette offers it."""
    slash: str | None = None
    """Its name as a `/` command, without the slash."""
    argument: str = ""
    """What may follow the `/` command, for help: `[NAME]`; without one, what is typed instead of a key."""
    priority: bool = False
    """Whether it comes before what the focused widget would do with the key."""

    @property
    def action_name(self) -> str:
        """The Textual action the keys run."""
        return self.action or self.id.rpartition(".")[2]

    @property
    def key_text(self) -> str:
        """Its first key in words for hints, such as `ctrl+y`; empty where it has none."""
        return key_label(self.keys[0]) if self.keys else ""


COMMANDS: tuple[Command, ...] = (
    # everywhere
    Command(
        "app.quit",
        ("ctrl+q",),
        "quit",
        "Leave; the session is kept",
        "everywhere",
        palette=True,
        priority=True,
        slash="quit",
    ),
    Command(
        "app.escalate",
        ("ctrl+c",),
        "clear, interrupt, quit",
        "Copy the selection, or clear the composer, or interrupt; twice when idle: quit",
        "everywhere",
        priority=True,
    ),
    Command(
        "app.suspend_process",
        ("ctrl+z",),
        "suspend",
        "Put the program to sleep; `fg` wakes it",
        "everywhere",
        priority=True,
    ),
    # chat
    Command(
        "chat.interrupt",
        ("escape",),
        "interrupt",
        "Ask how to interrupt; a second time: cancel what runs and stop",
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
        "Open the question that waits for you",
        "chat",
        palette=True,
        priority=True,
    ),
    Command(
        "chat.send_now",
        ("ctrl+s",),
        "send now",
        "Cancel what runs and send the waiting messages at once",
        "chat",
        palette=True,
        priority=True,
    ),
    Command(
        "chat.toggle_panel",
        ("ctrl+t",),
        "tools",
        "Go to the tool panel and back; in a narrow window open and close it",
        "chat",
        palette=True,
        slash="tools",
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
        "Find something in the conversation, also in what is folded",
        "chat",
        palette=True,
        slash="search",
        priority=True,
    ),
    Command("chat.help", ("f1",), "help", "Every key and command", "chat", palette=True, slash="help"),
    Command(
        "chat.rewind",
        (),
        "go back",
        "Go back to an earlier moment: files, conversation or both; shows first what would happen",
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
        "Shorten the conversation now; the summary keeps what you name; undo: as it was",
        "chat",
        palette=True,
        slash="compact",
        argument="[KEEP | undo]",
    ),
    Command(
        "chat.context",
        (),
        "context",
        "What fills the model's window, by part and by call",
        "chat",
        palette=True,
        slash="context",
    ),
    Command(
        "chat.report", (), "report", "The last run: steps, calls, times, tokens", "chat", palette=True, slash="report"
    ),
    Command(
        "chat.replay",
        (),
        "replay",
        "Watch a recording that --record made; q leads back here",
        "chat",
        palette=True,
        slash="replay",
        argument="FILE",
    ),
    Command(
        "chat.jobs",
        (),
        "jobs",
        "Show commands that still run because tui-agent was killed; kill: end one or all of them",
        "chat",
        palette=True,
        slash="jobs",
        argument="[kill [PID]]",
    ),
    Command("chat.rename", (), "rename", "Give this session a name", "chat", slash="rename", argument="NAME"),
    # composer
    Command("composer.submit", ("enter",), "send", "Send; while the agent works: steer it", "composer"),
    Command(
        "composer.follow_up",
        ("alt+enter",),
        "follow-up",
        "Send once the agent is done with what it does now",
        "composer",
    ),
    Command(
        "composer.follow_up_or_leave",
        ("tab",),
        "follow-up",
        "With text, while the agent works: the same as a follow-up; empty: go to the next part of the screen",
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
        "On the first line: what was sent before; empty: take back the last waiting message",
        "composer",
    ),
    Command("composer.later", ("down",), "later", "On the last line: what was sent after", "composer"),
    Command("composer.shell", (), "shell", "Run it; the model reads what it gives", "composer", argument="!COMMAND"),
    Command("composer.own_shell", (), "shell", "Run it, for your eyes only", "composer", argument="!!COMMAND"),
    Command(
        "composer.to_call",
        (),
        "cancel",
        "Cancel this call, and tell the model why",
        "composer",
        argument="@#3 WHY",
    ),
    Command("composer.to_agent", (), "steer", "Steer that sub-agent", "composer", argument="@NAME TEXT"),
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
        "Hide the commands that fit",
        "composer",
    ),
    # queue
    Command("queue.drop", ("ctrl+x",), "drop", "Empty composer: throw the last waiting message away", "queue"),
    # interrupt menu
    Command(
        "interrupt.cancel", ("escape",), "cancel", "Cancel what runs and stop", "interrupt", "interrupt_with('cancel')"
    ),
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
        "Cancel what runs and send what waits",
        "interrupt",
        "interrupt_with('now')",
    ),
    # tool panel
    Command("panel.cursor_up", ("up", "k"), "up", "Select the row above", "panel"),
    Command("panel.cursor_down", ("down", "j"), "down", "Select the row below", "panel"),
    Command("panel.page_up", ("pageup",), "page up", "One page up", "panel"),
    Command("panel.page_down", ("pagedown",), "page down", "One page down", "panel"),
    Command("panel.first", ("home", "g"), "first", "Select the first call", "panel"),
    Command("panel.last", ("end", "G"), "newest", "Select the newest call and follow", "panel"),
    Command("panel.open", ("enter", "space"), "open", "Everything about this call", "panel"),
    Command("panel.cancel_call", ("x",), "cancel", "Cancel this call; the agent goes on and is told", "panel"),
    Command("panel.revert", ("u",), "take back", "Take back what this call changed in files", "panel"),
    Command("panel.cycle_filter", ("f",), "filter", "Show all, running, failed, or those that need you", "panel"),
    # conversation
    Command("conversation.open_part", ("enter",), "open", "Open or close it, or go to its calls", "conversation"),
    Command(
        "conversation.previous_part", ("shift+up",), "part above", "The part above that can be opened", "conversation"
    ),
    Command(
        "conversation.next_part", ("shift+down",), "part below", "The next part that can be opened", "conversation"
    ),
    Command("conversation.line_up", ("up", "k"), "up", "One line up", "conversation"),
    Command("conversation.line_down", ("down", "j"), "down", "One line down", "conversation"),
    Command("conversation.page_up", ("pageup",), "page up", "One page up", "conversation"),
    Command("conversation.page_down", ("pagedown", "space"), "page down", "One page down", "conversation"),
    Command("conversation.scroll_top", ("home", "g"), "top", "To the first message", "conversation"),
    Command("conversation.scroll_end", ("end", "G"), "end", "To the newest message, and follow", "conversation"),
    Command("conversation.search", ("slash",), "search", "Find something, also in what is folded", "conversation"),
    Command("conversation.next_match", ("n",), "next", "After a search: the next match", "conversation"),
    Command("conversation.previous_match", ("N",), "before", "After a search: the match before", "conversation"),
    Command("conversation.close_search", ("escape",), "close", "After a search: take the marks away", "conversation"),
    # search line
    Command("search.next_match", ("down",), "next", "The next match", "search"),
    Command("search.previous_match", ("up",), "before", "The match before", "search"),
    Command("search.close", ("escape",), "close", "Take the marks away; enter keeps them", "search"),
    # approval dialog
    Command("approval.approve_once", ("y",), "yes, once", "Allow this call", "approval"),
    Command(
        "approval.approve_session",
        ("s",),
        "this session",
        "Allow calls like this one until the program ends; the rule is shown first",
        "approval",
    ),
    Command(
        "approval.approve_always",
        ("p",),
        "always",
        "Allow calls like this one in this project, or in every one; rule and file are shown first",
        "approval",
    ),
    Command("approval.edit_input", ("e",), "edit", "Change what the call is given, then allow it", "approval"),
    Command("approval.deny", ("n",), "no", "Deny this call", "approval"),
    Command("approval.deny_with_reason", ("f",), "no, because", "Deny it and tell the agent why", "approval"),
    Command("approval.skip", ("k",), "skip", "Skip this call; the run goes on", "approval"),
    Command("approval.list_all", ("a",), "all", "Every question that waits, to answer several at once", "approval"),
    Command(
        "approval.for_user", ("u",), "every project", "Always, when the rule is shown: in every project", "approval"
    ),
    Command("approval.narrower", ("left",), "narrower", "When a rule is shown: one that allows less", "approval"),
    Command("approval.wider", ("right",), "wider", "When a rule is shown: one that allows more", "approval"),
    Command("approval.run_edited", ("ctrl+s",), "allow this", "After editing: allow the call as it is now", "approval"),
    Command("approval.why", ("w",), "why", "Show every rule that was looked at", "approval"),
    Command("approval.not_now", ("escape",), "not now", "Decide later; ctrl+y opens it again", "approval"),
    Command("approval.line_up", ("up",), "up", "One line up", "approval"),
    Command("approval.line_down", ("down",), "down", "One line down", "approval"),
    Command("approval.page_up", ("pageup",), "page up", "One page up", "approval"),
    Command("approval.page_down", ("pagedown", "space"), "more", "One page down", "approval"),
    Command("approval.scroll_top", ("home",), "top", "To the top", "approval"),
    Command("approval.scroll_end", ("end",), "end", "To the end", "approval"),
    # every question that waits
    Command("questions.approve", ("y",), "yes to these", "Allow the selected calls, once", "questions"),
    Command("questions.deny", ("n",), "no to these", "Deny the selected calls", "questions"),
    Command("questions.select", ("space",), "select", "Select this question, or no longer", "questions"),
    Command("questions.select_all", ("a",), "all", "Select all questions, or none", "questions"),
    Command("questions.close", ("escape",), "back", "Back to one question at a time", "questions"),
    Command("questions.cursor_up", ("up", "k"), "up", "The question above", "questions"),
    Command("questions.cursor_down", ("down", "j"), "down", "The question below", "questions"),
    Command("questions.page_up", ("pageup",), "page up", "One page up", "questions"),
    Command("questions.page_down", ("pagedown",), "more", "One page down", "questions"),
    # call detail
    Command("detail.close", ("escape", "q"), "close", "Back to the conversation", "detail"),
    Command("detail.line_up", ("up", "k"), "up", "One line up", "detail"),
    Command("detail.line_down", ("down", "j"), "down", "One line down", "detail"),
    Command("detail.page_up", ("pageup",), "page up", "One page up", "detail"),
    Command("detail.page_down", ("pagedown", "space"), "page down", "One page down", "detail"),
    Command("detail.scroll_top", ("home", "g"), "top", "To the top", "detail"),
    Command("detail.scroll_end", ("end", "G"), "end", "To the end", "detail"),
    Command("detail.next_section", ("tab", "right"), "next part", "Input, output, decision, timing", "detail"),
    Command("detail.previous_section", ("shift+tab", "left"), "part before", "The part before", "detail"),
    Command("detail.copy", ("c",), "copy", "Copy what is shown", "detail"),
    Command("detail.revert", ("u",), "take back", "Take back what this call changed in files", "detail"),
    # going back
    Command("rewind.cursor_up", ("up", "k"), "up", "The row above", "rewind"),
    Command("rewind.cursor_down", ("down", "j"), "down", "The row below", "rewind"),
    Command("rewind.choose", ("enter",), "choose", "This moment; then: do what is shown", "rewind"),
    Command("rewind.scope", ("tab",), "what", "Files and conversation, files only, conversation only", "rewind"),
    Command(
        "rewind.overwrite",
        ("space",),
        "this file, too",
        "Take a file back although somebody else changed it since; what it is now is kept",
        "rewind",
    ),
    Command("rewind.close", ("escape", "q"), "back", "Back; nothing is done", "rewind"),
    Command("rewind.page_up", ("pageup",), "page up", "One page up", "rewind"),
    Command("rewind.page_down", ("pagedown",), "more", "One page down", "rewind"),
    Command("rewind.scroll_top", ("home", "g"), "top", "To the top", "rewind"),
    Command("rewind.scroll_end", ("end", "G"), "end", "To the end", "rewind"),
    # choosing a session
    Command("picker.leave", ("escape", "q"), "leave", "Leave without choosing a session", "picker"),
    # trusting a folder
    Command("trust.refuse", ("n", "escape", "enter"), "no", "Apply nothing of this folder's settings", "trust"),
    Command("trust.tighten", ("t",), "yes, without allow rules", "Apply its settings; its rules only tighten", "trust"),
    Command("trust.accept", ("a",), "yes, allow rules too", "Apply its settings with every allow rule", "trust"),
    Command("trust.line_up", ("up", "k"), "up", "One line up", "trust"),
    Command("trust.line_down", ("down", "j"), "down", "One line down", "trust"),
    Command("trust.page_up", ("pageup",), "page up", "One page up", "trust"),
    Command("trust.page_down", ("pagedown", "space"), "more", "One page down", "trust"),
    Command("trust.leave", ("ctrl+c",), "leave", "Leave without starting", "trust", priority=True),
    # watching a recording
    Command("player.play_or_pause", ("space",), "pause", "Pause, or go on; at the end: from the beginning", "player"),
    Command("player.back", ("left",), "5 s", "Five seconds back", "player"),
    Command("player.forward", ("right",), "5 s", "Five seconds on", "player"),
    Command("player.step_back", ("comma",), "step", "To the moment something happened before", "player"),
    Command("player.step_forward", ("full_stop",), "step", "To the moment something happens next", "player"),
    Command("player.slower", ("left_square_bracket",), "slower", "Half the speed", "player"),
    Command("player.faster", ("right_square_bracket",), "faster", "Twice the speed", "player"),
    Command("player.first", ("home",), "start", "To the beginning", "player"),
    Command("player.last", ("end",), "end", "To the end", "player"),
    Command("player.hide", ("h",), "hide", "Hide this line, or show it again", "player"),
    Command("player.close", ("q", "escape", "ctrl+q", "ctrl+c"), "quit", "Leave the recording", "player"),
)
"""Every command, in the order of the help page."""


def commands_for(where: Where) -> tuple[Command, ...]:
    """The commands of one part of the screen, in table order."""
    return tuple(command for command in COMMANDS if command.where == where)


def bindings_for(where: Where, commands: Iterable[Command] = COMMANDS) -> list[Binding]:
    """Textual bindings for one part of the screen; what has no key has no binding."""
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
    """The command with this id.

    Raises:
        KeyError: there is none.
    """
    return _by_id()[command_id]


def hint(command_id: str, text: str | None = None) -> str:
    """Key and word for a hint line, such as `esc interrupt`; `text` replaces the word."""
    found = command(command_id)
    return f"{found.key_text} {text or found.text}"


def slash_commands() -> tuple[Command, ...]:
    """The commands that can be typed with a slash, by name."""
    return tuple(sorted((entry for entry in COMMANDS if entry.slash), key=lambda entry: entry.slash or ""))


def key_label(key: str) -> str:
    """A Textual key name in the words of a person: `escape` is `esc`, `up` is an arrow."""
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
    "full_stop": ".",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
}


@cache
def _by_id() -> dict[str, Command]:
    return {entry.id: entry for entry in COMMANDS}
