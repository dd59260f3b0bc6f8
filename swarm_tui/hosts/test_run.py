"""Run tests of a commit on a host, in a scratch copy of the repository there.

For Python 3.6 and newer, with the standard library only: `python3 -c` runs this text on the host. It reads one JSON
object from standard input and writes one to standard output:

  {"copy", "seed", "commit", "setup", "checkout", "python", "program", "words", "folder", "variables", "passed",
   "seconds", "own"}
  {"problem"} or {"code", "secret", "received", "output"}
"""

import base64
import contextlib
import fcntl
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any

OUTPUT_LIMIT = 1 << 20
GIT_SECONDS = 600.0
SET_UP_SECONDS = 1800.0
PARENT_POLL = 0.5

running: Any = set()
"""The process groups that `call` has started."""


class Problem(Exception):
    """The tests cannot be run."""


def call(words: Any, seconds: float, folder: Any = None, environment: Any = None, inherited: Any = ()) -> Any:
    """Run a program in a new session and kill the session afterwards. Return the exit code and the output."""
    output = bytearray()
    try:
        process = subprocess.Popen(
            words,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=inherited,
        )
    except OSError as error:
        raise Problem(f"cannot start {words[0]}: {error.strerror}") from error

    running.add(process.pid)
    pipe: Any = process.stdout

    def read() -> None:
        for block in iter(lambda: os.read(pipe.fileno(), 65536), b""):
            output.extend(block)
            # Errors are at the end of the output.
            del output[:-OUTPUT_LIMIT]

    reading = threading.Thread(target=read, daemon=True)
    reading.start()
    try:
        code = process.wait(timeout=seconds)
    except subprocess.TimeoutExpired as error:
        raise Problem(f"{os.path.basename(words[0])} did not exit within {seconds:g} s") from error
    finally:
        running.discard(process.pid)
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        reading.join(1.0)
    return code, bytes(output)


def git(wanted: Any, *words: Any) -> None:
    named = ("git", "-C", wanted["copy"], "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
    # If tests have damaged the copy, git must not act on a repository around it instead.
    environment = dict(os.environ, GIT_CEILING_DIRECTORIES=os.path.dirname(wanted["copy"]))
    code, output = call(named + words, GIT_SECONDS, None, environment)
    if code:
        raise Problem(f"git {words[0]} failed: {last_line(output)}")


def last_line(output: bytes) -> str:
    lines = [line for line in output.decode("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no output"


def stop_with(parent: Any) -> None:
    """Kill what runs, and exit, when the parent process has exited: the engine has lost this host."""
    while os.getppid() == parent:
        time.sleep(PARENT_POLL)
    for group in list(running):
        with contextlib.suppress(OSError):
            os.killpg(group, signal.SIGKILL)
    os._exit(1)


def check_out(wanted: Any) -> None:
    """Check out the commit in the copy. Create the copy if it is missing, or if tests have damaged it."""
    copy, mark = wanted["copy"], wanted["copy"] + ".ready"
    if os.path.exists(mark):
        try:
            check_out_commit(wanted)
            return
        except Problem:
            os.unlink(mark)
    call(["rm", "-rf", copy], GIT_SECONDS)
    words = ["git", "clone", "--quiet", "--shared", "--no-checkout", wanted["seed"], copy]
    code, output = call(words, GIT_SECONDS)
    if code:
        raise Problem("git clone failed: " + last_line(output))
    check_out_commit(wanted)
    if wanted["setup"]:
        environment = dict(os.environ, **wanted["passed"])
        environment["SWARM_CHECKOUT"] = wanted["checkout"]
        code, output = call(["/bin/sh", "-c", wanted["setup"]], SET_UP_SECONDS, copy, environment)
        if code:
            raise Problem(f"the set-up command failed with code {code}: {last_line(output)}")
    open(mark, "w").close()


def check_out_commit(wanted: Any) -> None:
    git(wanted, "checkout", "--quiet", "--force", "--detach", wanted["commit"])
    if not wanted["setup"]:
        git(wanted, "clean", "-ffdxq")


def run(wanted: Any) -> Any:
    # Before the connection was lost, the engine may have started a run in this copy that has not stopped yet.
    with open(wanted["copy"] + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return run_in_copy(wanted)


def run_in_copy(wanted: Any) -> Any:
    check_out(wanted)
    for folder in wanted["own"]:
        if not os.path.isdir(folder):
            os.makedirs(folder, 0o700)
    ours, theirs = socket.socketpair()
    secret, received = secrets.token_hex(16), bytearray()
    ours.sendall(secret.encode() + b"\n")
    scratch = tempfile.mkdtemp(prefix="swarm-tests-")
    try:
        fill = {"{scratch}": scratch, "{descriptor}": str(theirs.fileno())}
        variables = {name: filled(value, fill) for name, value in wanted["variables"].items()}
        dropped = [name for name in os.environ if name.startswith("PYTEST_") or name in ("TMUX", "TMUX_PANE")]
        environment = {name: value for name, value in os.environ.items() if name not in dropped}
        environment.update(wanted["passed"])
        environment.update(variables)
        words = [wanted["python"], wanted["program"]] + [filled(word, fill) for word in wanted["words"]]

        def receive() -> None:
            while len(received) < 64000000:
                block = ours.recv(65536)
                if not block:
                    return
                received.extend(block)

        receiving = threading.Thread(target=receive, daemon=True)
        receiving.start()
        folder = os.path.join(wanted["copy"], wanted["folder"])
        code, output = call(words, wanted["seconds"], folder, environment, (theirs.fileno(),))
        theirs.close()
        receiving.join(2.0)
    finally:
        # A process that outlives its test may still write there.
        shutil.rmtree(scratch, ignore_errors=True)
    return {
        "code": code,
        "secret": secret,
        "received": base64.b64encode(bytes(received)).decode(),
        "output": output.decode("utf-8", "replace"),
    }


def filled(text: str, values: Any) -> str:
    for name, value in values.items():
        text = text.replace(name, value)
    return text


def main() -> None:
    threading.Thread(target=stop_with, args=(os.getppid(),), daemon=True).start()
    try:
        answer = run(json.loads(sys.stdin.read()))
    except Problem as problem:
        answer = {"problem": str(problem)}
    except OSError as problem:
        answer = {"problem": f"{problem.filename or 'the host'}: {problem.strerror}"}
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
