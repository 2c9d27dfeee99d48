"""Key and endpoint: read as by the SDK, and never shown."""

import pytest

from tui_agent.cli.configuration.effective_settings import Credentials
from tui_agent.protocol.errors import ConfigurationError

CANARY = "sk-ant-canary-1234"


def test_representation_and_host_contain_no_secret() -> None:
    found = Credentials.of_environment(
        {"ANTHROPIC_API_KEY": CANARY, "ANTHROPIC_BASE_URL": f"https://me:{CANARY}@host:8443/{CANARY}?k={CANARY}"}, None
    )

    assert found.api_key == CANARY
    assert found.host == "https://host:8443"
    assert CANARY not in f"{found!r} {found.key_source} {found.host}"


def test_a_key_in_place_of_the_endpoint_is_not_shown() -> None:
    with pytest.raises(ConfigurationError, match="ANTHROPIC_BASE_URL is not a URL") as raised:
        Credentials.of_environment({"ANTHROPIC_BASE_URL": CANARY}, None)

    assert CANARY not in str(raised.value)


def test_without_an_endpoint_the_default_is_used() -> None:
    assert Credentials().host == "default of the Messages API"
    assert not Credentials().usable
