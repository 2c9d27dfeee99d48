"""The page of settings: each with value, origin and meaning, changed in place in the user's file."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tui_agent.protocol.amounts import count_text
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.facts.page_facts import SettingFact, SettingFacts
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.sanitiser import one_line, visible
from tui_agent.ui.text.styled_lines import clipped, wrapped

from .chooser_page import ChooserPage, choices
from .list_page import ListPage

if TYPE_CHECKING:
    from tui_agent.workbench.live_settings import SessionSettings

_LABEL = 9
"""Cells of the labels of the selected setting."""
_NARROW = 50
"""Columns below which a row has no origin."""
_VALUE = 14
"""Fewest cells of a value."""


class SettingsPage(ListPage[SettingFact, None]):
    """The page; letters search."""

    WHERE = "settings"
    KEYS = ("change", "reset", "close")
    SEARCHES = True
    DETAIL_ROWS = 9

    def __init__(
        self,
        settings: "SessionSettings",
        texts: Callable[[], Mapping[str, Mapping[str, str]]],
    ) -> None:
        """Create the page; `texts` returns what each choice of a setting does, by its key."""
        super().__init__("Settings", key=lambda item: item.key)
        self._settings = settings
        self._texts = texts
        self._facts = SettingFacts((), "", b"")
        self._problem = ""
        self._refused = ""
        """Reason why the last change was refused, until the cursor moves."""
        self._is_busy = False

    def on_mount(self) -> None:
        self._start(self._read())

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        # A second change would begin from the content before the first one.
        self._is_busy = True
        self.run_worker(work, group="settings", exit_on_error=False)

    async def _read(self) -> None:
        """Show the settings as they are now; a broken file leaves those before."""
        try:
            self._facts, self._problem = await self._settings.read(), ""
        except ConfigurationError as error:
            self._problem = str(error)
        finally:
            self._is_busy = False
        self.use(self._facts.settings)

    async def _change(self, item: SettingFact, typed: str | None) -> None:
        """Store a value, read all again, and say when it takes effect; a refused one changes nothing."""
        self._refused = ""
        try:
            # An editor may have changed the file meanwhile; then nothing is written.
            await self._settings.change(item.key, typed, seen=self._facts.content)
        except ConfigurationError as error:
            # Someone else may have changed the file; the page shows what it has now.
            await self._read()
            self.say("Nothing was changed.", "warning")
            self._refused = str(error)
            self.show()
            return
        if self.is_asking:
            self.end_asking()
        await self._read()
        when = "It takes effect at the next start" if item.is_late else "It takes effect now"
        done = f"{item.key} is back at its default" if typed is None else f"{item.key} is saved"
        self.say(f"{done}. {when}.", "success")

    # --- keys ---------------------------------------------------------------------------------------------------------

    def action_change(self) -> None:
        """Turn a switch, choose a value, or ask for one."""
        item = self.selected
        if item is None or self._is_busy:
            return
        if item.refusal:
            self.say(item.refusal, "warning")
        elif item.kind == "switch":
            self._start(self._change(item, "false" if item.typed == "true" else "true"))
        elif texts := self._choices_of(item):
            items = choices(texts, item.typed)
            page = ChooserPage(item.key, lambda: items, item.meaning, selected=item.typed)
            self.app.push_screen(
                page, lambda chosen: None if chosen is None else self._start(self._change(item, chosen))
            )
        else:
            hint = {"number": "a number", "list": "values with commas between them"}.get(item.kind, "a text")
            self.ask(item.key, lambda typed: self._typed_value(item, typed), text=item.typed, hint=hint, keys=_ASK_KEYS)
            self.say(f"{item.meaning} Empty: the default.", "muted")

    def action_reset(self) -> None:
        """Remove the selected setting from the user's file."""
        item = self.selected
        if item is None or self._is_busy:
            return
        if item.is_stored and item.kind != "table":
            self._start(self._change(item, None))
        else:
            self.say(item.refusal or "Your file does not set it.", "warning")

    def _typed_value(self, item: SettingFact, typed: str) -> None:
        if self._is_busy:
            return
        # An empty text removes a stored value, and none is stored.
        if not typed.strip() and not item.is_stored:
            self.end_asking()
            self.say("")
        else:
            self._start(self._change(item, typed if typed.strip() else None))

    def _choices_of(self, item: SettingFact) -> Mapping[str, str]:
        return self._texts().get(item.key) or dict.fromkeys(item.choices, "")

    # --- what is shown ------------------------------------------------------------------------------------------------

    def item_row(self, item: SettingFact, place: int, width: int) -> Line:
        name_width = min(width // 2, 2 + max(len(one.key) for one in self.all_items))
        source = f"  {item.source}" if width >= _NARROW else ""
        room = max(_VALUE, width - name_width - 2 - _SOURCE) if source else max(1, width - name_width - 2)
        at_cursor, own = place == self.rows.cursor, item.source != "default"
        value = f"{one_line(visible(item.value), room):<{room}}"
        runs: list[Run] = [
            self.cursor_sign(place),
            (f"{one_line(item.key, name_width - 1):<{name_width}}", "strong" if at_cursor else ""),
        ]
        runs += [(value, "" if own else "muted"), (source if own else "", "muted")]
        return Line(clipped(runs, width))

    def search_text(self, item: SettingFact) -> str:
        return f"{item.key} {item.value} {item.source} {item.meaning}"

    def search_name(self, item: SettingFact) -> str:
        return item.key

    def detail_rows(self, item: SettingFact, width: int) -> Sequence[Line]:
        rows = [*wrapped([(item.key, "strong")], width), *wrapped([(item.meaning, "muted")], width), Line()]
        pairs = [("value", item.value), ("default", item.default), ("origin", item.origin or item.source)]
        if item.value == item.default:
            del pairs[1]
        if not item.refusal:
            pairs.append(("change", "at the next start" if item.is_late else "takes effect now"))
        for label, text in pairs:
            rows += wrapped([(f"{label:<{_LABEL}}", "muted"), (visible(text), "")], width)
        if item.refusal:
            rows += [Line(), *wrapped([(visible(item.refusal), "warning")], width)]
        # In a low window, the answer comes before all else.
        refused = [*wrapped([(visible(self._refused), "error")], width), Line()] if self._refused else []
        return [*refused, *rows]

    def cursor_moved(self) -> None:
        self._refused = ""
        super().cursor_moved()

    def summary(self) -> Run:
        if self._problem:
            return visible(self._problem), "error"
        own = sum(item.is_stored for item in self.all_items)
        return f"{count_text(own, 'setting')} in {visible(self._facts.file)}" if self.all_items else "", "muted"

    def counts(self, name: str) -> bool:
        item = self.selected
        match name:
            case "change":
                return item is not None and not item.refusal
            case "reset":
                return item is not None and item.is_stored and item.kind != "table"
            case _:
                return True


_ASK_KEYS = ("save", "cancel")
_SOURCE = 13
"""Cells of the column of origins."""
