"""Write `docs/images/tour-moves.svg`: twenty seconds of a recorded session, as a picture that moves.

`python docs/make_animation.py` replays `docs/recordings/wide.jsonl` and looks at the screen several times a second. A
row that stands still is drawn once; one that moved up is drawn from the same definition.
"""

import argparse
import asyncio
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tui_agent.ui.app.replay_app import ReplayApp
from tui_agent.ui.base.terminal_environment import TerminalEnvironment, WorkingDirectory
from tui_agent.ui.replay.replay_screen import ReplayScreen
from tui_agent.ui.replay.replay_timeline import ReplayTimeline
from tui_agent.workbench.sessions.replay_source import read_source

RECORDING = Path(__file__).parent / "recordings" / "wide.jsonl"
PICTURE = Path(__file__).parent / "images" / "tour-moves.svg"

SIZE = (110, 30)
"""Columns and rows."""
RATE = 4
"""Looks at the screen in a second."""
REST = 2.5
"""Seconds for which the last screen remains until the picture repeats."""
CELL, LINE, FONT = 8.4, 18.0, 14
"""Width and height of a cell, and size of the letters, in pixels."""
EDGE = 8
"""Pixels around the screen."""

Frame = Sequence[Sequence[tuple[int, str]]]
"""For each row of a screen its pieces: the column where one begins, and its drawing."""


async def frames() -> tuple[list[Frame], str]:
    """Return the screens of the session in order, and the colour behind them."""
    source = read_source(RECORDING)
    timeline = ReplayTimeline(source.envelopes, source.stamps)
    app = ReplayApp(
        lambda options: ReplayScreen(
            timeline, replace(options, place=WorkingDirectory("~/shop", "main")), clock=lambda: 0.0
        ),
        surroundings=TerminalEnvironment(reduced_motion=True),
    )
    looks: list[Frame] = []
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        app.replay.action_hide()
        for number in range(int(timeline.length * RATE) + 1):
            app.replay.seek(min(number / RATE, timeline.length))
            while app.replay.play_state.looking:
                await pilot.pause()
            await pilot.pause(0.15)
            strips = app.screen._compositor.render_strips()
            looks.append([list(pieces(strip)) for strip in strips])
        background = app.screen.background_colors[1].hex
    return looks, background


def pieces(strip: Strip) -> Iterable[tuple[int, str]]:
    """Yield the parts of a row left and right of the column's border, so that one can move without the other."""
    column, part, begin = 0, list[Segment](), 0
    for segment in Segment.simplify(strip):
        text = segment.text
        if text.startswith("│") and column > SIZE[0] // 2 and part:
            yield begin, drawing(part)
            part, begin = [], column
        part.append(segment)
        column += cell_len(text)
    yield begin, drawing(part)


def drawing(segments: Iterable[Segment]) -> str:
    """Return the elements of one part of a row, which begins at the left edge."""
    shapes: list[str] = []
    x = 0.0
    for text, style, _ in segments:
        width = cell_len(text) * CELL
        own = style or Style()
        front, back = (own.bgcolor, own.color) if own.reverse else (own.color, own.bgcolor)
        if back is not None and not back.is_default:
            fill = back.get_truecolor().hex
            shapes.append(f'<rect x="{x:.1f}" width="{width:.1f}" height="{LINE + 0.5}" fill="{fill}"/>')
        if text.strip():
            left = len(text) - len(text.lstrip())
            inner = text.strip()
            marks = [f'fill="{front.get_truecolor().hex}"'] if front is not None and not front.is_default else []
            marks += ['font-weight="bold"'] * bool(own.bold) + ['font-style="italic"'] * bool(own.italic)
            marks += ['text-decoration="underline"'] * bool(own.underline)
            place = f'x="{x + left * CELL:.1f}" y="{LINE * 0.75}" textLength="{cell_len(inner) * CELL:.1f}"'
            shapes.append(f"<text {' '.join((place, *marks))}>{escape(inner, quote=False)}</text>")
        x += width
    return "".join(shapes)


def picture(looks: Sequence[Frame], background: str) -> str:
    """Return the moving picture."""
    length = len(looks) / RATE + REST
    shown: dict[tuple[int, int, str], list[list[int]]] = {}
    for number, look in enumerate(looks):
        for row, parts in enumerate(look):
            for column, shapes in parts:
                if shapes:
                    spans = shown.setdefault((row, column, shapes), [])
                    if spans and spans[-1][1] == number:
                        spans[-1][1] = number + 1
                    else:
                        spans.append([number, number + 1])
    names = {shapes: f"r{number}" for number, shapes in enumerate(dict.fromkeys(key[2] for key in shown))}
    width, height = SIZE[0] * CELL + 2 * EDGE, SIZE[1] * LINE + 2 * EDGE
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'font-family="ui-monospace,Menlo,Consolas,DejaVu Sans Mono,monospace" font-size="{FONT}" '
        'xml:space="preserve" style="white-space:pre" fill="#e0e0e0"><title>tui-agent at work</title>',
        f'<rect width="100%" height="100%" rx="8" fill="{background}"/><defs>',
        *(f'<g id="{name}">{shapes}</g>' for shapes, name in names.items()),
        "</defs>",
    ]
    for (row, column, shapes), spans in shown.items():
        place = f'href="#{names[shapes]}" x="{EDGE + column * CELL:.1f}" y="{EDGE + row * LINE:.1f}"'
        if spans == [[0, len(looks)]]:
            lines.append(f"<use {place}/>")
            continue
        lines.append(f'<use {place} visibility="hidden">{_visible(spans, len(looks), length)}</use>')
    return "\n".join((*lines, "</svg>", ""))


def _visible(spans: Sequence[Sequence[int]], looks: int, length: float) -> str:
    """Return the animation that shows a part of a row while it is on the screen."""
    values, times = ["hidden"], [0.0]
    for begin, end in spans:
        if begin == 0:
            values[0] = "visible"
        else:
            values.append("visible")
            times.append(begin / RATE / length)
        if end < looks:
            values.append("hidden")
            times.append(end / RATE / length)
    at = ";".join(f"{time:.4f}".rstrip("0").rstrip(".") for time in times)
    return (
        f'<animate attributeName="visibility" calcMode="discrete" dur="{length}s" repeatCount="indefinite" '
        f'values="{";".join(values)}" keyTimes="{at}"/>'
    )


def main() -> None:
    """Write the picture."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    os.environ["COLORTERM"] = "truecolor"
    PICTURE.write_text(picture(*asyncio.run(frames())), "utf-8")


if __name__ == "__main__":
    main()
