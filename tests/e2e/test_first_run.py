"""The first start on a machine: without a key, and with the offline model."""

from .user_machine import UserMachine


def test_without_a_key_a_start_offers_the_offline_model(machine: UserMachine) -> None:
    with machine.app() as app:
        app.wait_for_all("needs a key for the model", "Take the guided tour")
        app.press("enter")
        app.ready()
        app.wait_for("scripted demo, not a language model")
        app.quit()

    with machine.app() as app:
        app.wait_for("needs a key for the model")
        app.press("down", "enter")
        assert app.wait_for_end() == 2
        assert "set ANTHROPIC_API_KEY" in app.screen.text


def test_the_first_page_lets_the_user_type_at_once(machine: UserMachine) -> None:
    with machine.app("--demo") as app:
        app.ready()
        app.wait_for_all("scripted demo, not a language model", "give me the tour")
        app.say("hello")
        app.wait_for_words("I'm a scripted demo")
        app.quit()

    with machine.app("--demo") as app:
        app.ready()
        app.wait_for_row(r"now +hello")
        app.press("tab")
        app.wait_for_row(r"› +now +hello")
        app.press("enter")
        app.wait_for_words("I'm a scripted demo")
        app.wait_for_words("── session resumed")
        app.quit()
