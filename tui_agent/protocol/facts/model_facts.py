"""Models that the user can choose, for lists and menus."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ModelFact:
    """One model that the user can choose."""

    provider: str
    """Its endpoint, as a heading."""
    name: str
    """Its name for `/model`."""
    window: int
    """Context window in tokens."""
    input_price: float | None = None
    """US dollars for a million input tokens; None if unknown."""
    output_price: float | None = None
    is_current: bool = False
    """True for the model of the next request."""
    is_assumed: bool = False
    """True if nothing tells its window, so that a small one is assumed."""

    @property
    def window_text(self) -> str:
        """Its context window in words."""
        return f"{self.window:,} tokens{' (assumed)' if self.is_assumed else ''}"

    @property
    def price(self) -> str:
        """Its prices in words."""
        if self.input_price is None or self.output_price is None:
            return "no price"
        return f"${self.input_price:,.2f} in, ${self.output_price:,.2f} out"


@dataclass(frozen=True, slots=True)
class SideAnswer:
    """The model's answer to a request beside the conversation."""

    text: str
    model: str
    stop_reason: str
    cost: float | None = None
    """Dollars; None if the model's price is unknown."""
