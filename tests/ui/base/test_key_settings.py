"""The user's own keys: names of keys, conflicts, and what becomes of entries that cannot be applied."""

from tests.support.table import table
from tui_agent.ui.base.commands import COMMANDS
from tui_agent.ui.base.key_settings import check_keys, key_name


@table(
    ("text", "name"),
    [
        ("ctrl+k", "ctrl+k"),
        ("Ctrl+K", "ctrl+k"),
        ("shift+ctrl+up", "ctrl+shift+up"),
        ("esc", "escape"),
        ("pgdn", "pagedown"),
        ("alt+enter", "alt+enter"),
        ("K", "K"),
        ("shift+k", "K"),
        ("/", "slash"),
        ("slash", "slash"),
        (",", "comma"),
        ("+", "plus"),
        ("ctrl++", "ctrl+plus"),
        (" ", "space"),
        ("f13", "f13"),
    ],
)
def test_keys_are_understood_as_users_write_them(text: str, name: str) -> None:
    assert key_name(text) == name


@table("text", ["", "foo", "ctlr+k", "ctrl+foo", "ctrl+ctrl+k", "ctrl+k,ctrl+l", "ctrl+", "é\x1b"])
def test_a_misspelt_key_has_no_name(text: str) -> None:
    assert key_name(text) is None


@table("key", sorted({key for entry in COMMANDS for key in entry.keys}))
def test_every_key_of_the_table_is_its_own_name(key: str) -> None:
    assert key_name(key) == key


@table(
    ("command_id", "keys", "text"),
    [
        ("chat.serch", ("f5",), "no command has this name; did you mean `chat.search`?"),
        ("chat.search", ("ctlr+k",), 'no key is called "ctlr+k"; did you mean "ctrl+k"?'),
        ("chat.search", ("k",), '"k" types or edits text here; add ctrl or alt, or use a function key'),
        ("chat.search", ("left",), '"left" types or edits text here; add ctrl or alt, or use a function key'),
        ("chat.search", ("ctrl+i",), 'terminals send "ctrl+i" as tab'),
        ("chat.search", ("ctrl+t",), '"ctrl+t" is already the key of `chat.toggle_panel` (tools)'),
        ("panel.open", ("ctrl+f",), '"ctrl+f" is already the key of `chat.search` (search)'),
        ("approval.deny", ("s",), '"s" is already the key of `approval.approve_session` (this session)'),
        ("chat.cost", ("f5",), "this command is not bound to a key"),
        ("composer.submit", (), "this command needs a key"),
    ],
)
def test_an_entry_that_cannot_be_applied_keeps_the_default_keys(
    command_id: str, keys: tuple[str, ...], text: str
) -> None:
    checked = check_keys({command_id: keys, "detail.copy": ("x",)})

    assert [(problem.command_id, problem.text) for problem in checked.problems] == [(command_id, text)]
    assert checked.keys == {"detail.copy": ("x",)}


@table(
    ("wanted", "applied"),
    [
        ({"chat.search": ("ctrl+t",), "chat.toggle_panel": ("ctrl+f",)}, ("chat.search", "chat.toggle_panel")),
        # Half of a swap would leave one key with two meanings.
        ({"chat.search": ("ctrl+t",), "chat.toggle_panel": ("nothing",)}, ()),
        ({"chat.search": ("f5",), "chat.help": ("f5",)}, ()),
        # Dialogs and the conversation never act at the same time.
        ({"approval.deny": ("x",), "detail.copy": ("x",)}, ("approval.deny", "detail.copy")),
    ],
)
def test_entries_are_checked_against_one_another(wanted: dict[str, tuple[str, ...]], applied: tuple[str, ...]) -> None:
    checked = check_keys(wanted)

    assert tuple(checked.keys) == applied
    assert {problem.command_id for problem in checked.problems} == wanted.keys() - set(applied)
