"""The app's first frame, as the prelude of the next start shows it."""

from typing import Any

from rich.color import ColorSystem
from rich.style import Style
from textual.strip import Strip
from textual.widgets import TextArea

from tui_agent.prelude.start_frame import StartFrame
from tui_agent.ui.base.app_type import AnyScreen


def first_frame(screen: AnyScreen, composer: TextArea) -> StartFrame | None:
    """Return what the screen with the composer shows; None if something was typed or another screen covers it."""
    place, app = composer.content_region, screen.app
    if app.screen is not screen or composer.text or place.height != 1:
        return None
    # Textual offers neither in public.
    compositor: Any = getattr(screen, "_compositor")  # noqa: B009
    colours: ColorSystem = getattr(app.console, "_color_system") or ColorSystem.TRUECOLOR  # noqa: B009
    strips: list[Strip] = compositor.render_strips()
    cursor = [segment.style or Style() for segment in strips[place.y].crop(place.x, place.x + 1)]
    text, *under = (f"\x1b[{Strip.render_ansi(style, colours)}m" for style in (composer.rich_style, *cursor))
    rows = [strip.render(app.console) for strip in strips]
    return StartFrame(rows, screen.size.width, (place.y, place.x, place.width), text, "".join(under))
