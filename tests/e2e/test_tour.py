"""The first start on a machine, and the guided tour with one steering message and one approval."""

from .user_machine import UserMachine

WRONG = "if quantity > BULK:"
RIGHT = "if quantity >= BULK:"


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


def test_the_tour_is_watched_steered_and_approved(machine: UserMachine) -> None:
    with machine.app("--demo") as app:
        app.ready()
        app.wait_for("scripted demo, not a language model")
        app.say("fix the failing test")
        app.wait_for("✔ 3 done")

        # The tests run, and their output appears live.
        app.wait_for_row(r"[◐◓◑◒] #4 +bash  python3 -m py.* \d")
        app.wait_for_row(r"^ +\.\.")
        app.say("also show prices.py")
        app.wait_for_row(r"1 steer  “also show prices\.py” +lands after the running calls")
        assert app.wait_for_row(r"[◐◓◑◒] #4 +bash")

        app.wait_for_row(r"steered after step 2")
        app.wait_until_gone("─ queue ─")
        app.wait_for_call("✖", 4, "bash")
        app.wait_for_call("✔", 5, "read")

        app.wait_for_question("edit")
        app.wait_for_all("cart.py", f"-         {WRONG}", f"+         {RIGHT}")
        app.wait_for_call("▲", 6, "edit")
        cart = machine.sample / "cart.py"
        assert WRONG in cart.read_text("utf-8")
        app.press("y")
        app.wait_until_gone("f no, because")

        app.wait_for("All 8 tests pass.")
        app.wait_for_call("✔", 7, "bash")
        app.answer_trial("n")
        app.wait_for("You have seen:")
        app.wait_for_status("ready")
        assert RIGHT in cart.read_text("utf-8")
        app.quit()

    assert list(machine.temporary.iterdir()) == []
    assert list(machine.work.iterdir()) == []
