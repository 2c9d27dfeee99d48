"""Base of all views of styled rows: draws only visible rows, and supports selection."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import cast

from rich.segment import Segment
from rich.style import Style
from textual import getters
from textual.css.styles import RenderStyles
from textual.dom import DOMNode
from textual.geometry import Region, Size
from textual.reactive import Reactive
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from tui_agent.ui.base.app_type import any_app
from tui_agent.ui.base.steady_widgets import SteadyScrollView

from .line import Line
from .sanitiser import without_silent
from .styled_lines import copied_text, styled_over, width_of_runs
from .terminal_output import SGR, Palette, output_style

STYLES = (
    *("strong", "emphasis", "struck", "code", "link", "address", "heading-1", "heading-2", "heading-3", "quote"),
    *("quote-bar", "marker", "rule", "muted", "code-ground", "code-keyword", "code-string", "code-number"),
    *("code-comment", "code-name", "code-type", "added", "removed", "added-word", "removed-word", "line-number"),
    *("you", "assistant", "steer", "thinking", "calls", "notice", "warning", "error", "success", "caret"),
    *("cursor", "found", "found-here", "chip", "label", "key", "exact"),
    *("tool-read", "tool-change", "tool-run", "tool-agent", "tool-other"),
)
"""Style names of a `Line`; each is a class `line--NAME` in the stylesheet."""

_CLASSES = frozenset(f"line--{name}" for name in STYLES)

MOST_STRIPS = 200
"""Most rows whose cells are kept, a few screens of them: with what Textual derives from it, each takes 15 kB."""
MAX_STYLES = 4_096
"""Most style names whose colours are kept: output may have any number of colours."""
SELECTED = "selected"
"""Style that the screen itself defines."""


class LineView(SteadyScrollView, can_focus=True, inherit_bindings=False):
    """Rows of `Line`s. A subclass provides the rows, this class their colours."""

    app = getters.app(any_app)
    ALLOW_SELECT = True
    DEFAULT_CSS = """
    LineView {
        background: $background;
        color: $text;
        overflow-x: hidden;
        overflow-y: scroll;
        scrollbar-size-vertical: 1;
        & > .line--strong, & > .line--label { text-style: bold; }
        & > .line--emphasis { text-style: italic; }
        & > .line--struck { text-style: strike; }
        & > .line--muted, & > .line--address, & > .line--notice, & > .line--calls { color: $text-muted; }
        & > .line--code { color: $warning; }
        & > .line--link { color: $link-color; text-style: underline; }
        & > .line--heading-1 { color: $primary; text-style: bold underline; }
        & > .line--heading-2, & > .line--assistant { color: $primary; text-style: bold; }
        & > .line--heading-3 { text-style: bold; }
        & > .line--quote, & > .line--thinking { color: $text-muted; text-style: italic; }
        & > .line--quote-bar, & > .line--rule { color: $border-blurred; }
        & > .line--marker, & > .line--caret, & > .line--cursor { color: $primary; }
        & > .line--code-ground { background: $panel; }
        & > .line--code-keyword { color: $accent; }
        & > .line--code-string { color: $success; }
        & > .line--code-number { color: $warning; }
        & > .line--code-comment { color: $text-muted; text-style: italic; }
        & > .line--code-name { color: $primary; }
        & > .line--code-type { color: $warning; }
        & > .line--added { background: $success 12%; }
        & > .line--removed { background: $error 12%; }
        & > .line--added-word { background: $success 32%; color: $text; }
        & > .line--removed-word { background: $error 32%; color: $text; }
        & > .line--line-number { color: $text-disabled; }
        & > .line--you, & > .line--steer { color: $accent; text-style: bold; }
        & > .line--steer { text-style: none; }
        & > .line--warning { color: $warning; }
        & > .line--error { color: $error; }
        & > .line--success { color: $success; }
        & > .line--found { background: $warning 35%; }
        & > .line--found-here { background: $warning; color: $background; }
        & > .line--chip { background: $primary; color: $background; text-style: bold; }
        & > .line--key { color: $primary; text-style: bold; }
        & > .line--exact { color: $text; }
        & > .line--tool-read, & > .line--tool-other { color: $text; text-style: bold; }
        & > .line--tool-change { color: $accent; text-style: bold; }
        & > .line--tool-run { color: $primary; text-style: bold; }
        & > .line--tool-agent { color: $accent; text-style: bold italic; }
        &:nocolor {
            & > .line--added-word, & > .line--removed-word { text-style: bold underline; }
        }
        &:ansi {
            & > .line--added, & > .line--added-word { background: transparent; color: $success; }
            & > .line--removed, & > .line--removed-word { background: transparent; color: $error; }
            & > .line--added-word, & > .line--removed-word { text-style: reverse; }
            & > .line--found { background: transparent; text-style: reverse; }
            & > .line--chip, & > .line--found-here { background: transparent; color: $primary; text-style: reverse; }
        }
    }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self._styles: dict[str, Style] = {}
        self._strips: dict[int, tuple[Line, Strip]] = {}
        self._palette: Palette | None = None

    @property
    def row_width(self) -> int:
        """Cells of a row."""
        return self.scrollable_content_region.width

    @property
    def row_count(self) -> int:
        """Number of visible rows."""
        return self.scrollable_content_region.height

    @abstractmethod
    def line_at(self, row: int) -> Line | None:
        """Return a row to draw, counted from 0 at the top of all rows; None below the last one."""

    def render_line(self, y: int) -> Strip:
        row = y + self.scroll_offset.y
        line = self.line_at(row)
        if line is None:
            return Strip.blank(self.size.width, self.style_named(""))
        selection = self.text_selection
        span = selection.get_span(row) if selection is not None else None
        if span is not None:
            end = len(line.plain) if span[1] == -1 else span[1]
            runs = styled_over(line.painted, max(span[0], line.indent), end, SELECTED)
            line = Line(runs, line.joint, line.indent, line.fill)
        return self._strip(line, row)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Return the selected text without margins, with its lines as before wrapping."""
        first = selection.start.y if selection.start is not None else 0
        last = selection.end.y if selection.end is not None else int(self.virtual_size.height) - 1
        return copied_text(list(self._selected(selection, first, last))), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()

    def get_component_styles(self, *names: str) -> RenderStyles:
        """Return the styles of the classes of style names, worked out when a row with one is first drawn."""
        # Textual would apply it to all component classes at every change of the widget's style, and most of them are
        # never drawn.
        for name in names:
            if name not in self._component_styles and name in _CLASSES:
                part = DOMNode(classes=name)
                # Textual has no public way to apply a stylesheet to a part of a widget.
                part._attach(self)  # pyright: ignore[reportPrivateUsage]
                self.app.stylesheet.apply(part)  # pyright: ignore[reportUnknownMemberType]
                self._component_styles[name] = part.styles
        return super().get_component_styles(*names)

    def notify_style_update(self) -> None:
        """Drop cached colours after a change of theme or focus."""
        super().notify_style_update()
        self._component_styles.clear()
        self._styles.clear()
        self._strips.clear()
        self._palette = None

    def style_named(self, name: str) -> Style:
        """Return the colours of a style name."""
        found = self._styles.get(name)
        if found is None:
            words = name.split()
            components = [f"line--{word}" for word in words if word != SELECTED and not word.startswith(SGR)]
            found = self.get_visual_style(*components).rich_style if components else self.rich_style
            if SGR in name:
                found += self._output_style(words, components)
            if SELECTED in words:
                found += self.screen.get_component_rich_style("screen--selection", partial=True)
            if len(self._styles) >= MAX_STYLES:
                self._styles.clear()
            self._styles[name] = found
        return found

    def _output_style(self, words: Sequence[str], components: Sequence[str]) -> Style:
        """Return the colours of a program's output over those of its components."""
        visual, (_, ground) = self.get_visual_style(*components), self.background_colors
        if visual.background is not None:
            ground += visual.background
        text = ground + visual.foreground if visual.foreground is not None else ground.get_contrast_text()
        if self.app.current_theme.ansi:
            return output_style(words, None, text, ground)
        if self._palette is None:
            self._palette = Palette.of_theme(self.app.theme_variables)
        return output_style(words, self._palette, text, ground)

    def set_rows(self, total: int) -> None:
        """Set the number of rows without a layout: nothing around the view moves."""
        if self.count_rows(total):
            self._scroll_update(self.virtual_size)

    def count_rows(self, total: int) -> bool:
        """Set the number of rows and draw the scrollbar later; return False if nothing changed."""
        size = Size(self.row_width, total)
        if size == self.virtual_size:
            return False
        # Read from a class, a descriptor has two possible types, of which pyright must know one.
        self.set_reactive(cast("Reactive[Size]", Widget.virtual_size), size)
        return True

    def refresh_rows(self, first: int) -> None:
        """Draw the visible rows from the row `first` of all rows on."""
        y = max(0, first - self.scroll_offset.y)
        if y < self.size.height:
            # Without the scrollbar, which is drawn when it looks different.
            self.refresh(Region(0, y, self.scrollable_content_region.width, self.size.height - y))

    def _strip(self, line: Line, row: int) -> Strip:
        """Return a row as cells, with the offsets that a selection needs."""
        width = self.drawn_width
        cached = self._strips.get(row)
        if cached is not None and cached[0].looks_like(line) and cached[1].cell_length == width:
            return cached[1]
        segments = [Segment(without_silent(text), self.style_named(style)) for text, style in line.painted]
        strip = Strip(segments, width_of_runs(line.runs))
        # Offsets tell the screen which character the mouse selects.
        strip = strip.crop_extend(0, width, self.style_named(line.fill)).apply_offsets(0, row)
        self._strips[row] = (line, strip)
        if len(self._strips) > MOST_STRIPS:
            del self._strips[next(iter(self._strips))]
        return strip

    def _selected(self, selection: Selection, first: int, last: int) -> Iterable[tuple[Line, int, int | None]]:
        for row in range(first, last + 1):
            line, span = self.line_at(row), selection.get_span(row)
            if line is not None and span is not None:
                yield line, span[0], None if span[1] == -1 else span[1]


def forget_drawn_styles() -> None:
    """Drop the sequences of styles that were drawn, of which the framework keeps 16,384.

    Each place of a text has a style of its own, for selections.
    """
    Strip.render_ansi.cache_clear()
