"""Built-in facts about models."""

from hypothesis import given
from hypothesis import strategies as st

from tests.support.table import table
from tui_agent.protocol.messages import Usage
from tui_agent.providers.model_catalog import DEMO_MODEL, default_max_tokens, model_info


@table(
    ("name", "window", "prices"),
    [
        ("claude-sonnet-4-5", 200_000, (3.0, 15.0)),
        ("claude-sonnet-4-5-20250929", 200_000, (3.0, 15.0)),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", 200_000, (3.0, 15.0)),
        ("claude-haiku-4-5@20251001", 200_000, (1.0, 5.0)),
        ("Claude-Opus-5-5", 1_000_000, (4.0, 20.0)),
        ("claude-haiku-5-5", 1_000_000, (None, None)),
        ("claude-something-9", 200_000, (None, None)),
        ("gpt-5-mini", 400_000, (None, None)),
        ("qwen3-coder:30b", 64_000, (None, None)),
    ],
)
def test_a_name_in_any_spelling_is_found(name: str, window: int, prices: tuple[float | None, float | None]) -> None:
    info = model_info(name)

    assert info.name == name
    assert info.context_window == window
    assert (info.input_price, info.output_price) == prices


def test_the_demo_is_not_a_language_model_and_costs_nothing() -> None:
    info = model_info(DEMO_MODEL)

    assert info.kind == "offline_demo"
    assert info.cost_of(Usage(input_tokens=1_000_000)) == 0


@table(
    ("name", "form"),
    [
        ("claude-haiku-4-5", "budget"),
        ("claude-opus-4-8", "adaptive"),
        ("claude-opus-5-5", "always"),
        ("llama", "budget"),
    ],
)
def test_each_generation_has_its_form_of_reasoning(name: str, form: str) -> None:
    assert model_info(name).thinking == form


@given(st.text())
def test_any_name_is_accepted(name: str) -> None:
    info = model_info(name)

    assert info.context_window > default_max_tokens(info) > 0
