"""After every test of the engine, what it told is judged."""

from tests.support.validating_bus import judged as judged
