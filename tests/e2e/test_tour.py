"""The guided tour as a new user takes it, with one steering message and one approval."""

from .script import step
from .user_machine import NARROW, UserMachine

WRONG = "if quantity > BULK:"
RIGHT = "if quantity >= BULK:"


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


def test_the_tour_fits_into_a_small_window_and_a_denied_edit_is_not_made(machine: UserMachine) -> None:
    machine.file("note.txt", "the quick brown fox\n")
    quick = {"SAMPLE_TEST_SECONDS": "0.01"}
    with machine.app("--demo", "show note.txt", size=NARROW, variables=quick) as app:
        with step("a prompt on the command line is sent at once"):
            app.wait_for_words("the quick brown fox")
            app.wait_for_status("ready")
        with step("the tour fits into a small window"):
            app.say("fix the failing test")
            assert RIGHT in app.wait_for_question("edit")
            assert "more row" not in app.screen.text
            app.press("y")
            app.answer_trial("n")
            app.wait_for("You have seen:")
            app.wait_for_status("ready")
            assert RIGHT in (machine.sample / "cart.py").read_text("utf-8")
        with step("a denied edit is not made, and the tour ends normally"):
            app.say("fix the failing test")
            app.wait_for_question("edit")
            app.press("n")
            app.wait_for("The edit was not made")
            app.wait_for_status("ready")
            assert [WRONG in path.read_text("utf-8") for path in machine.temporary.rglob("cart.py")] == [True]
        app.quit()
