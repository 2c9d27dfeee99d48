"""The page about models: its example works, and its table is that of the shipped profiles."""

import re
from pathlib import Path

from tui_agent.protocol.endpoint import Endpoint
from tui_agent.providers.model_catalog import shipped_profiles
from tui_agent.settings import Locations, load_settings
from tui_agent.workbench.configuration.model_list import listed_models
from tui_agent.workbench.configuration.named_endpoints import key_of, target_of

PAGE = Path(__file__).parents[2].joinpath("docs/models.md").read_text("utf-8")


def test_the_example_configures_what_the_page_says(tmp_path: Path) -> None:
    locations = Locations(tmp_path / "config", tmp_path / "state")
    locations.config_dir.mkdir()
    locations.user_file.write_text("\n".join(re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)), "utf-8")
    settings = load_settings(locations, environment={}).settings

    target = target_of(settings, {})

    assert target is not None
    assert (target.name, target.endpoint.base_url) == ("qwen3-coder", "http://box.local:8080")
    assert key_of("box", target.endpoint, {"BOX_KEY": "k", "ANTHROPIC_API_KEY": "other"}) == ("k", None)
    assert target.endpoint.drop == shipped_profiles()["llamacpp"].endpoint.drop
    assert target.info.context_window == 65_536
    assert settings.models.small == "box/tiny"
    listed = [(fact.name, fact.window) for fact in listed_models(settings, target.info) if fact.provider == "box"]
    assert listed == [("box/qwen3-coder", 65_536), ("box/tiny", 8_192)]


def test_the_table_lists_the_shipped_profiles() -> None:
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| `(http[^`]+)` \| (?:none|`(\w+)`) \|$", PAGE, re.MULTILINE)
    shipped = {name: profile.endpoint for name, profile in shipped_profiles().items() if profile.endpoint.base_url}
    del shipped["anthropic"]

    assert rows == [(name, endpoint.base_url, endpoint.key_env or "") for name, endpoint in shipped.items()]


def test_every_key_of_an_endpoint_is_listed() -> None:
    keys = re.findall(r"^\| `(\w+)` \|[^|]+\|$", PAGE, re.MULTILINE)

    assert keys == list(Endpoint.model_fields)
