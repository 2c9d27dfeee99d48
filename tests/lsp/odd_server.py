"""A language server written by hand, with odd habits by flag. Each line with BAD is an error, with ODD a warning.

Flags: `--hold FILE` reports nothing before the file exists; `--die` ends at each change, `--die-once FILE` at the first
one, `--never-start` before the first answer; `--unversioned` names no versions; `--silent` reports nothing; `--strange`
reports first that there is nothing, then broken entries, too; `--child FILE` starts a program in a session of its
own and writes its id; `--try-to-write FILE` writes a file; `--noise` writes what is not a message after each answer.
"""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

ARGS = sys.argv[1:]
TEXTS: dict[str, str] = {}
WRITING = threading.Lock()


def value_of(flag: str) -> Path | None:
    return Path(ARGS[ARGS.index(flag) + 1]) if flag in ARGS else None


def send(*messages: dict[str, Any]) -> None:
    bodies = [json.dumps({"jsonrpc": "2.0", **message}).encode() for message in messages]
    with WRITING:
        # In one write, so that a reader has all of them, however busy the machine is.
        sys.stdout.buffer.write(b"".join(b"Content-Length: %d\r\n\r\n" % len(body) + body for body in bodies))
        sys.stdout.buffer.flush()


def problems(uri: str, found: list[Any], **version: int) -> dict[str, Any]:
    return {"method": "textDocument/publishDiagnostics", "params": {"uri": uri, "diagnostics": found, **version}}


def receive() -> dict[str, Any] | None:
    length = 0
    while line := sys.stdin.buffer.readline().strip():
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return json.loads(sys.stdin.buffer.read(length)) if length else None


def place(uri: str, line: int, start: int, end: int) -> dict[str, Any]:
    return {"uri": uri, "range": {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}}


def report(uri: str, version: int) -> None:
    held, text = value_of("--hold"), TEXTS[uri]
    if "--silent" in ARGS:
        return
    while held is not None and not held.exists():
        time.sleep(0.01)
    found: list[Any] = [{"range": None, "severity": "high", "message": 1}, "not an object", None]
    for number, line in enumerate(text.split("\n")):
        for word, severity in (("BAD", 1), ("ODD", 2), ("HINT", 4)):
            if word in line:
                where = place(uri, number, line.index(word), line.index(word) + 3)["range"]
                found.append({"range": where, "severity": severity, "message": f"{word} in\u00a0it", "code": number})
    if "--strange" in ARGS:
        uri = unquote(uri)
        send(problems(uri, [], version=version), problems(uri, found, version=version))
    else:
        send(problems(uri, found[3:], **({} if "--unversioned" in ARGS else {"version": version})))


def words_at(uri: str, position: dict[str, int]) -> str:
    """Return the word at a position, whose columns count UTF-16 units."""
    line = TEXTS[uri].split("\n")[position["line"]].encode("utf-16-le")
    return line[2 * position["character"] :].decode("utf-16-le").split("(")[0].split()[0]


def answer(method: str, params: dict[str, Any]) -> Any:
    if method == "initialize":
        offered = ("definitionProvider", "referencesProvider", "hoverProvider", "workspaceSymbolProvider")
        return {"capabilities": {"textDocumentSync": 1, **dict.fromkeys(offered, True)}}
    if method == "textDocument/definition":
        found = words_at(params["textDocument"]["uri"], params["position"])
        lines = {uri: text.split("\n")[0] for uri, text in TEXTS.items()}
        columns = {uri: len(line.partition(found)[0].encode("utf-16-le")) // 2 for uri, line in lines.items()}
        return [place(uri, 0, columns[uri], 0) for uri, line in lines.items() if found in line]
    if method == "textDocument/references":
        uri = params["textDocument"]["uri"]
        return [place(uri, number, 0, 3) for number in range(300)]
    if method == "textDocument/hover":
        return {"contents": [{"language": "x", "value": words_at(params["textDocument"]["uri"], params["position"])}]}
    if method == "workspace/symbol":
        return [{"name": "found", "kind": 12, "location": place(uri, 0, 0, 1)} for uri in TEXTS]
    return None


def main() -> None:
    if (child := value_of("--child")) is not None:
        started = subprocess.Popen(["sleep", "600"], start_new_session=True)
        child.write_text(str(started.pid), "utf-8")
    if "--never-start" in ARGS:
        sys.exit("no licence found")
    if (target := value_of("--try-to-write")) is not None:
        try:
            target.write_text("written", "utf-8")
        except OSError as error:
            print(error, file=sys.stderr)
    while (message := receive()) is not None:
        method, params = message.get("method"), message.get("params")
        if method == "exit":
            return
        if "id" in message and method is not None:
            send({"id": message["id"], "result": answer(method, params)})
            if "--noise" in ARGS:
                sys.stdout.buffer.write(b"x" * 100_000)
                sys.stdout.buffer.flush()
        elif method in ("textDocument/didOpen", "textDocument/didChange"):
            document = params["textDocument"]
            TEXTS[document["uri"]] = document.get("text") or params["contentChanges"][-1]["text"]
            once = value_of("--die-once")
            if "--die" in ARGS or (once is not None and not once.exists()):
                if once is not None:
                    once.touch()
                os._exit(3)
            threading.Thread(target=report, args=(document["uri"], document["version"]), daemon=True).start()
        elif method == "workspace/didChangeWatchedFiles":
            for change in params["changes"]:
                path = Path(unquote(urlsplit(change["uri"]).path))
                if path.exists():
                    TEXTS.setdefault(change["uri"], path.read_text("utf-8"))


main()
