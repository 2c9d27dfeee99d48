"""The page of models that the user can choose, grouped by endpoint."""

from collections.abc import Sequence
from itertools import groupby

from textual.content import Content

from tui_agent.protocol.amounts import tokens_text
from tui_agent.protocol.facts.model_facts import ModelFact
from tui_agent.ui.text.sanitiser import one_line, visible

_WINDOW = 8
_PRICE = 26


def models_text(models: Sequence[ModelFact], width: int) -> Content:
    """Return a row for each model with window and price for a million tokens; a mark shows the current one."""
    room = max(16, width - _WINDOW - _PRICE - 4)
    name_width = min(room, max(len(visible(model.name)) for model in models) + 2)
    rows: list[Content] = []
    for provider, group in groupby(models, key=lambda model: model.provider):
        rows += [Content(""), Content.styled(one_line(visible(provider), width), "$primary bold")]
        rows += [_row(model, name_width) for model in group]
    more = "/model NAME uses another one from the next request on, --default in new sessions, too."
    return Content("\n").join([*rows[1:], Content(""), Content.styled(more, "$text-muted")])


def _row(model: ModelFact, name_width: int) -> Content:
    mark, style = ("●", "$text bold") if model.is_current else (" ", "$text")
    name = one_line(visible(model.name), name_width - 1)
    return Content.assemble(
        (f"{mark} ", "$accent"),
        (f"{name:<{name_width}}", style),
        (f"{tokens_text(model.window):>{_WINDOW}}  {model.price}", "$text-muted"),
    )
