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

    @property
    def price(self) -> str:
        """Its prices in words."""
        if self.input_price is None or self.output_price is None:
            return "no price"
        return f"${self.input_price:,.2f} in, ${self.output_price:,.2f} out"
