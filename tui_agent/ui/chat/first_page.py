"""The first page: what this is, the last sessions, what the folder brings, and prompts to start with.

It is part of the chat, so typing goes to the composer; its offers are chosen with the mouse, or with tab and enter.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from textual import getters
from textual.binding import BindingType
from textual.content import Content
from textual.events import Click
from textual.widget import Widget

from tui_agent.protocol.background import run_service
from tui_agent.protocol.facts.screen_facts import FirstPage
from tui_agent.ui.base.app_type import any_app
from tui_agent.ui.base.choice_texts import CYCLED_MODES, MODES
from tui_agent.ui.base.commands import bindings_for, command, hint
from tui_agent.ui.text.sanitiser import one_line, visible

from .chat_options import SessionRequested, SessionService, ThemeRequested

MOTTO = "See everything. Steer at any time. Allow what happens."
FIRST_RUN = "It asks before it changes anything."
_MOST_WIDTH = 72
_MODE_WIDTH = max(len(mode.words) for mode in CYCLED_MODES) + 2


@dataclass(frozen=True, slots=True)
class _Row:
    text: Content
    rank: int
    """In a low window, rows with the highest rank are left out first."""
    choose: Callable[[], None] | None = None
    """Action of an offer; None for other rows."""
    is_theme: bool = False


class Welcome(Widget, can_focus=True):
    """The page, shown until the first message."""

    app = getters.app(any_app)
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("welcome")]
    DEFAULT_CSS = """
    Welcome {
        width: 1fr;
        height: 1fr;
        content-align: left middle;
        color: $text-muted;
    }
    """

    def __init__(
        self,
        label: str,
        ideas: Sequence[str],
        *,
        service: SessionService | None = None,
        use_draft: Callable[[str], object] = str,
        leave: Callable[[], object] = str,
        themes: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        """Create the page; without a `service` it has only the ideas."""
        super().__init__(id="welcome")
        self._label = label
        self._service = service
        self._use_draft = use_draft
        self._leave = leave
        self._themes = themes
        self.page = FirstPage(starters=tuple(ideas))
        """The content; at first only the ideas."""
        self._place = 0
        self._theme = ""
        self._kept = ""

    def on_mount(self) -> None:
        """Collect what the page shows, once the screen is painted."""
        if self._service is not None:
            self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        self.run_worker(self._fill(), group="first page", exit_on_error=False)

    async def _fill(self) -> None:
        if self._service is not None and (page := await run_service("first page", self._service.first_page())):
            self.page = page
            self.refresh()

    # --- offers -------------------------------------------------------------------------------------------------------

    @property
    def _offers(self) -> list[_Row]:
        return [row for row in self._rows() if row.choose is not None]

    def action_cursor_up(self) -> None:
        """Select the offer above; above the first one is the composer's end of the list."""
        self._place = max(0, self._place - 1)
        self.refresh()

    def action_cursor_down(self) -> None:
        """Select the offer below."""
        self._place = min(len(self._offers) - 1, self._place + 1) if self._offers else 0
        self.refresh()

    def action_choose(self) -> None:
        """Do what the selected offer says."""
        offers = self._offers
        if offers and (choose := offers[min(self._place, len(offers) - 1)].choose) is not None:
            choose()

    def action_leave(self) -> None:
        self._leave()

    def action_theme(self, step: int) -> None:
        """Try the next or previous theme, while the row of themes is selected."""
        offers, names = self._offers, list(self._themes())
        if offers and names and offers[min(self._place, len(offers) - 1)].is_theme:
            now = names.index(self._theme_name) if self._theme_name in names else 0
            self._theme, self._kept = names[(now + step) % len(names)], ""
            self.post_message(ThemeRequested(self._theme))
            self.refresh()

    def on_click(self, event: Click) -> None:
        """Do what the offer under the mouse says."""
        rows = self._fitting(self._rows(), self.size.height)
        place = event.y - (self.size.height - len(rows)) // 2
        if 0 <= place < len(rows) and (choose := rows[place].choose) is not None:
            choose()

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def _resume(self, session_id: str) -> None:
        self.post_message(SessionRequested("resume", session_id))

    def _start_with(self, prompt: str) -> None:
        self._use_draft(prompt)
        self._leave()

    def _keep(self) -> None:
        if self._service is not None:
            self.run_worker(self._write_theme(self._service.keep_theme(self._theme_name)), exit_on_error=False)

    async def _write_theme(self, work: Awaitable[str]) -> None:
        path = await run_service("keeping a theme", work, lambda reason: self.notify(reason, severity="warning"))
        if path is not None:
            self._kept = path
            self.refresh()

    @property
    def _theme_name(self) -> str:
        return self._theme or self.app.theme

    # --- rows ---------------------------------------------------------------------------------------------------------

    def render(self) -> Content:
        rows = self._fitting(self._rows(), max(1, self.size.height))
        width = max(1, self.size.width - 4)
        texts = [row.text.truncate(width, ellipsis=True) for row in rows]
        # All rows begin in one column: the block is in the middle, not each row.
        block = max(text.cell_length for text in texts)
        margin = " " * max(0, (self.size.width - block) // 2)
        return Content("\n").join([Content(margin) + text for text in texts])

    @staticmethod
    def _fitting(rows: list[_Row], height: int) -> list[_Row]:
        """Return the rows without the least important ones."""
        rows = list(rows)
        while len(rows) > max(1, height):
            rank = max(row.rank for row in rows)
            # From below, so that headings stay above what is left of their rows.
            last = max(place for place, row in enumerate(rows) if row.rank == rank)
            del rows[last]
        return rows

    def _rows(self) -> list[_Row]:
        page, width = self.page, max(1, min(_MOST_WIDTH, self.size.width - 4))
        rows = [*self._head(width), *self._offer_rows(width)]
        number = sum(row.choose is not None for row in rows)
        if page.is_first_run:
            key = command("chat.cycle_mode").key_text
            rows += [_Row(Content(""), 8), _Row(Content.assemble(("Modes", "$text bold"), f"  {key} switches"), 6)]
            for mode in CYCLED_MODES:
                rows.append(_Row(Content.assemble((f"  {mode.words:<{_MODE_WIDTH}}", "$text"), MODES[mode]), 6))
            if self._service is not None:
                rows += [_Row(Content(""), 8), _Row(self._theme_row(number, width), 5, self._keep, is_theme=True)]
            if page.key:
                rows.append(_Row(Content(f"  key: {one_line(page.key, width)}"), 7))
        if number and self._service is not None:
            rows += [_Row(Content(""), 9), _Row(Content(f"  {_hint()}"), 4)]
        return rows

    def _head(self, width: int) -> list[_Row]:
        page = self.page
        rows = [_Row(Content.assemble(("❯ ", "$accent bold"), ("tui-agent", "$text bold")), 0)]
        if self._label:
            rows.append(_Row(Content.styled(f"  {one_line(self._label, width)}", "$warning"), 1))
        rows.append(_Row(Content(f"  {FIRST_RUN if page.is_first_run else MOTTO}"), 3 if page.is_first_run else 6))
        if page.facts:
            rows.append(_Row(Content(f"  {one_line(visible(' · '.join(page.facts)), width)}"), 7))
        return rows

    def _offer_rows(self, width: int) -> list[_Row]:
        page = self.page
        ages = max([cell_len(one.age) for one in page.sessions], default=0)
        sessions = [
            (f"{one.age:>{ages}}  ", one_line(visible(one.title), max(1, width - ages - 4)), one.session_id)
            for one in page.sessions
        ]
        starters = [("", one_line(visible(starter), width - 2), starter) for starter in page.starters]
        block = max([cell_len(f"{age}{text}") for age, text, _ in (*sessions, *starters)], default=0)
        rows: list[_Row] = []
        number = 0
        for heading, entries, act, rank in (
            ("Resume", sessions, self._resume, 4),
            ("Start with" if self._service is not None else "You could say", starters, self._start_with, 5),
        ):
            if entries:
                rows += [_Row(Content(""), 8), _Row(Content.styled(heading, "$text bold"), rank)]
            for age, text, value in entries:
                row = self._offer(age, text, block, number)
                rows.append(_Row(row, rank, lambda value=value, act=act: act(value)))
                number += 1
        return rows

    def _offer(self, age: str, text: str, block: int, number: int) -> Content:
        """Return an offer as one row of a block, as wide as the others."""
        # The bar of the cursor is as wide for each offer, so that it moves only up and down.
        padding = " " * max(0, block - cell_len(f"{age}{text}"))
        if self.has_focus and number == self._place:
            style = "$block-cursor-foreground on $block-cursor-background"
            return Content.styled(f"› {age}{text}{padding}", style)
        return Content.assemble("  ", age, (f"{text}{padding}", "$primary"))

    def _theme_row(self, number: int, width: int) -> Content:
        if self._kept:
            text = f"theme: {self._theme_name}, kept in {self._kept}"
        else:
            others = f"{command('welcome.previous_theme').key_text} {hint('welcome.next_theme', 'tries another')}"
            text = f"theme: ‹ {self._theme_name} ›   {others}, {hint('welcome.choose', 'keeps it')}"
        return self._offer("", one_line(visible(text), width), 0, number)


def _hint() -> str:
    """Return the keys that choose an offer."""
    names = ("composer.follow_up_or_leave", "welcome.cursor_up", "welcome.cursor_down")
    keys = " ".join(command(name).key_text for name in names)
    return f"{keys} {hint('welcome.choose')} · or type what you want"
