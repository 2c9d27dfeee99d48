"""The guided tour as a new user takes it, with one steering message and one approval."""

from .user_machine import NARROW, UserMachine

WRONG = "if quantity > BULK:"
RIGHT = "if quantity >= BULK:"


def test_the_tour_is_watched_steered_and_approved(machine: UserMachine) -> None:
    with machine.app("--demo") as app:
        app.ready()
        app.wait_for("scripted demo, not a language model")
        app.say("fix the failing test")
        app.wait_for_all("✔ #1 read", "✔ #2 read", "✔ #3 read")

        # The tests run, and their output appears live.
        app.wait_for_row(r"[◐◓◑◒] #4 bash  python3 -m pytest .* \d")
        app.wait_for_row(r"│ +\.\.")
        app.say("also show prices.py")
        app.wait_for_row(r"1 steer  “also show prices\.py” +lands after the running calls")
        assert app.wait_for_row(r"[◐◓◑◒] #4 bash")

        app.wait_for_row(r"steered after step 2")
        app.wait_until_gone("─ queue ─")
        app.wait_for_row(r"✖ #4 bash .* s")
        app.wait_for_row(r"✔ #5 read")

        app.wait_for_question("edit")
        shown = app.wait_for_all("cart.py", f"-         {WRONG}", f"+         {RIGHT}")
        assert "▲ #6 edit" in shown
        cart = machine.sample / "cart.py"
        assert WRONG in cart.read_text("utf-8")
        app.press("y")
        app.wait_until_gone("f no, because")

        app.wait_for("All 8 tests pass.")
        app.wait_for_row(r"✔ #7 bash")
        app.answer_trial("n")
        app.wait_for("You have seen:")
        app.wait_for_status("ready")
        assert RIGHT in cart.read_text("utf-8")
        app.quit()

    assert list(machine.temporary.iterdir()) == []
    assert list(machine.work.iterdir()) == []


def test_the_tour_fits_into_a_small_window(machine: UserMachine) -> None:
    with machine.app("--demo", size=NARROW, variables={"SAMPLE_TEST_SECONDS": "0.01"}) as app:
        app.ready()
        app.say("fix the failing test")
        assert RIGHT in app.wait_for_question("edit")
        assert "more row" not in app.screen.text
        app.press("y")
        app.answer_trial("n")
        app.wait_for("You have seen:")
        app.wait_for_status("ready")
        assert RIGHT in (machine.sample / "cart.py").read_text("utf-8")
        app.quit()


def test_a_denied_edit_is_not_made_and_the_tour_ends_normally(machine: UserMachine) -> None:
    with machine.app("--demo", variables={"SAMPLE_TEST_SECONDS": "0.01"}) as app:
        app.ready()
        app.say("fix the failing test")
        app.wait_for_question("edit")
        app.press("n")
        app.wait_for_words("you denied it")
        app.wait_for("The edit was not made")
        app.wait_for_status("ready")
        assert WRONG in (machine.sample / "cart.py").read_text("utf-8")
        app.quit()


def test_a_prompt_on_the_command_line_is_sent_at_once(machine: UserMachine) -> None:
    machine.file("note.txt", "the quick brown fox\n")
    with machine.app("--demo", "show note.txt") as app:
        app.wait_for_row(r"✔ #1 read  note\.txt")
        app.wait_for("the quick brown fox")
        app.wait_for_status("ready")
        app.quit()
