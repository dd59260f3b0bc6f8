"""The program on a host, at the other end of an ssh connection. It leaves no files there.

For Python 3.6 and newer, with the standard library only. `hosts.link` sends this text as the first line of input.
Then it sends requests, one JSON object per line. Each request with an id has one answer with the same id:

  {"op": "follow", "files": {KEY: [PATH, OFFSET, KIND]}}      report changes of files from now on (size, tail, whole)
  {"op": "search", "folders": {KEY: [FOLDER, PATTERNS]}}      report the matching files when they change
  {"op": "forget", "keys": [KEY]}                             stop either of these
  {"op": "taken", "files": {KEY: OFFSET}}                     how far a tail was read, which limits what is sent ahead
  {"op": "watch", "agents": FOLDER}                           report agents, terminals and processes once a second
  {"op": "read" | "find" | "probe" | "run" | "write", "id": N, ...}

Without a request it sends "hello", "beat" (each second), "news" (of followed files), "found" and "probe".
"""

import base64
import contextlib
import errno
import fnmatch
import json
import os
import select
import stat
import subprocess
import sys
import threading
import time
from typing import Any

TICK, SECOND = 0.2, 1.0
CHUNK, AHEAD, BUDGET, WHOLE = 1 << 18, 5 << 18, 1 << 20, 1 << 16
ENTRIES, RECORD_LIMIT, OUTPUT_LIMIT = 1000, 1 << 20, 1 << 24
KEPT = ("id", "name", "type", "command", "work_dir", "labels", "created_branch_name", "create_time")

lock, probing = threading.Lock(), threading.Lock()
followed: Any = {}
searched: Any = {}
told: Any = {}
watched: Any = {}


def say(**fields: Any) -> None:
    line = (json.dumps(fields) + "\n").encode()
    with lock:
        while line:
            line = line[os.write(1, line) :]


def text(raw: Any) -> Any:
    return base64.b64encode(raw).decode()


def raise_shortage(error: OSError) -> None:
    """Raise an error that hides existing files. An agent can cause others, such as EIO, for its own files."""
    if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
        raise error


def open_regular(path: Any) -> Any:
    """Open a file; return None for anything else, such as a pipe from an agent."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        raise_shortage(error)
        return None
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    return None


def status_of(path: Any) -> Any:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def read_slice(path: Any, offset: Any, limit: Any) -> Any:
    """Return the size, the offset and the content of a slice; None if there is no regular file."""
    status = status_of(path)
    if status is None:
        return None
    offset = offset if offset <= status.st_size else 0
    if not limit or offset == status.st_size:
        return status.st_size, offset, b""
    descriptor = open_regular(path)
    if descriptor is None:
        return None
    try:
        return status.st_size, offset, os.pread(descriptor, limit, offset)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def read(path: Any, offset: Any, limit: Any) -> Any:
    found = read_slice(path, offset, min(limit, 1 << 22))
    return None if found is None else [found[0], found[1], text(found[2])]


def names(folder: Any, part: Any) -> Any:
    if not set(part) & set("*?["):
        return [part]
    try:
        found = []
        for entry in os.scandir(folder):
            found.append(entry.name)
            if len(found) >= ENTRIES:
                break
    except OSError as error:
        raise_shortage(error)
        return []
    return sorted(name for name in found if fnmatch.fnmatch(name, part))


def find(root: Any, patterns: Any) -> Any:
    found = []
    for pattern in patterns:
        paths = [""]
        for part in pattern.split("/"):
            paths = [os.path.join(path, name) for path in paths for name in names(os.path.join(root, path), part)]
        for path in paths:
            try:
                status = os.lstat(os.path.join(root, path))
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode):
                found.append([path, status.st_size, status.st_mtime])
    return found


def news_of(entry: Any) -> Any:
    """Return the change of a followed file as [size, offset, content]; None if it has not changed."""
    path, offset, kind, seen, taken = entry
    status = status_of(path)
    mark = None if status is None else (status.st_size, status.st_mtime, status.st_ino)
    if kind != "tail":
        if mark == seen:
            return None
        entry[3] = mark
        return [-1, 0, ""] if status is None else read(path, 0, WHOLE if kind == "whole" else 0)
    if status is None:
        entry[3] = mark
        return None if seen in (None, "new") else [-1, 0, ""]
    if status.st_size < offset:
        entry[1] = entry[4] = offset = taken = 0
    limit = min(CHUNK, taken + AHEAD - offset)
    if status.st_size == offset and seen not in (None, "new") and status.st_size >= seen[0]:
        entry[3] = mark
        return None
    if limit <= 0:
        return None
    answer = read(path, offset, limit)
    if answer is not None:
        entry[1] = answer[1] + len(base64.b64decode(answer[2]))
        entry[3] = mark
    return answer


def look_at_files() -> None:
    """Report changes. Limit the share of each agent, so that no agent can fill the connection."""
    news, left, keys = {}, BUDGET, list(followed)
    first = told.get("first", 0) % max(1, len(keys))
    for position, key in enumerate(keys[first:] + keys[:first]):
        if left <= 0:
            told["first"] = first + position
            break
        entry = followed.get(key)
        try:
            answer = news_of(entry) if entry is not None else None
        except OSError:
            answer = None
        if answer is not None:
            news[key] = answer
            left -= len(answer[2])
    if news:
        say(t="news", files=news)


def look_into_folders() -> None:
    found = {}
    for key, entry in list(searched.items()):
        try:
            files = find(entry[0], entry[1])
        except OSError:
            continue
        if files != entry[2]:
            entry[2] = files
            found[key] = files
    if found:
        say(t="found", folders=found)


def output(words: Any, timeout: Any, cwd: Any = None, given: Any = None) -> Any:
    """Run a command in a new process group, so that a hanging child cannot keep its pipe open forever."""
    pipe = subprocess.PIPE
    stdin = subprocess.DEVNULL if given is None else pipe
    process = subprocess.Popen(words, cwd=cwd, stdin=stdin, stdout=pipe, stderr=pipe, start_new_session=True)
    try:
        out, err = process.communicate(given, timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 15)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=2)
        with contextlib.suppress(OSError):
            os.killpg(process.pid, 9)
        process.communicate()
        raise
    return process.returncode, out, err


class AgentRecords:
    """mngr's records of agents. A record is read again only if its file has changed."""

    def __init__(self) -> None:
        self.known: Any = {}

    def read(self, folder: Any) -> Any:
        """Return each agent's record by its id, with whether it is active; and the ids of unreadable records."""
        found, unreadable, known = {}, [], {}
        try:
            names = os.listdir(folder)
        except (FileNotFoundError, NotADirectoryError):
            names = []
        for name in names:
            path = os.path.join(folder, name, "data.json")
            status = status_of(path)
            if status is None:
                continue
            entry, mark = self.known.get(name), (status.st_mtime_ns, status.st_size)
            if entry is None or entry[0] != mark:
                try:
                    content = json.loads(read_slice(path, 0, RECORD_LIMIT)[2].decode())
                    if not content.get("id") or not content.get("name"):
                        raise ValueError("not a record of an agent")
                    entry = mark, {name: content.get(name) for name in KEPT}
                except (OSError, ValueError, AttributeError, TypeError, RuntimeError):
                    # While a record is being written, keep its last content.
                    if entry is None:
                        unreadable.append(name)
                        continue
            known[name] = entry
            marks = [os.path.exists(os.path.join(folder, name, mark)) for mark in ("active", "permissions_waiting")]
            found[name] = [entry[1], marks[0] and not marks[1]]
        self.known = known
        return found, unreadable


records = AgentRecords()


def probe(folder: Any, panes_words: Any, ps_words: Any) -> Any:
    """Return agents, panes, and the processes below the panes."""
    with probing:
        found, unreadable = records.read(folder)
    code, panes, error = output(panes_words, 10.0)
    ps_code, listed, _ = output(ps_words, 10.0)
    rows = [line.split(None, 3) for line in listed.decode("utf-8", "replace").splitlines()]
    rows = [row for row in rows if len(row) == 4 and row[0].isdigit() and row[1].isdigit()]
    children: Any = {}
    for row in rows:
        children.setdefault(row[1], []).append(row)
    pids = [line.split(b":", 2)[1].decode() for line in panes.splitlines() if line.count(b":") > 2]
    wanted, queue = set(pids), list(pids)
    while queue:
        for row in children.get(queue.pop(), ()):
            if row[0] not in wanted:
                wanted.add(row[0])
                queue.append(row[0])
    kept = [
        " ".join([row[0], row[1], ("Z" if row[2][0] == "Z" else "S") + ("+" if "+" in row[2] else ""), row[3]])
        for row in rows
        if row[0] in wanted
    ]
    has_us = ps_code == 0 and any(row[0] == str(os.getpid()) for row in rows)
    return {
        "agents": found,
        "unreadable": unreadable,
        "panes": text(panes),
        "panes_code": code,
        "panes_error": error.decode("utf-8", "replace")[:300],
        "processes": "\n".join(kept) if has_us else None,
    }


def write(path: Any, data: Any, mode: Any, offset: Any, is_new: Any) -> None:
    """Write a file completely, through a draft in the same folder, or a part of a large file."""
    folder = os.path.dirname(path)
    if folder and not os.path.isdir(folder):
        os.makedirs(folder)
    if offset is not None:
        with open(path, "wb" if offset == 0 else "r+b") as file:
            file.seek(offset)
            file.write(data)
        return
    draft = os.path.join(folder, "." + os.path.basename(path)[:50] + "." + os.urandom(8).hex() + ".draft")
    # The draft is private until it has its mode.
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
    os.chmod(draft, mode)
    if not is_new:
        os.replace(draft, path)
        return
    try:
        os.link(draft, path)
    finally:
        os.unlink(draft)


def answer(request: Any) -> Any:
    op = request["op"]
    if op == "read":
        return {"files": [read(*wanted) for wanted in request["files"]]}
    if op == "find":
        return {"found": [find(folder, request["patterns"]) for folder in request["folders"]]}
    if op == "probe":
        return probe(request["agents"], request["panes"], request["ps"])
    if op == "write":
        mode, offset = request.get("mode", 0o644), request.get("offset")
        write(request["path"], base64.b64decode(request["data"]), mode, offset, request.get("is_new"))
        return {}
    given = request.get("stdin")
    given = None if given is None else base64.b64decode(given)
    try:
        code, out, err = output(request["words"], request["seconds"], request.get("cwd"), given)
    except subprocess.TimeoutExpired:
        return {"overdue": True}
    limit = request.get("limit", OUTPUT_LIMIT)
    return {
        "code": code,
        "out": text(out[:limit]),
        "err": text(err[:limit]),
        "cut": len(out) > limit or len(err) > limit,
    }


def answer_safely(request: Any) -> None:
    try:
        fields = answer(request)
    except OSError as problem:
        where = str(problem.filename or request.get("path") or "")
        fields = {"problem": problem.strerror or str(problem), "errno": problem.errno, "path": where}
    except Exception as problem:
        fields = {"problem": type(problem).__name__ + ": " + str(problem), "errno": None, "path": ""}
    say(id=request["id"], **fields)


def obey(request: Any) -> None:
    op = request["op"]
    if op == "follow":
        for key, (path, offset, kind) in request["files"].items():
            followed[key] = [path, offset, kind, "new", offset]
    elif op == "search":
        for key, (folder, patterns) in request["folders"].items():
            searched[key] = [folder, patterns, None]
        look_into_folders()
    elif op == "forget":
        for key in request["keys"]:
            followed.pop(key, None)
            searched.pop(key, None)
    elif op == "taken":
        for key, offset in request["files"].items():
            if key in followed:
                followed[key][4] = offset
    elif op == "watch":
        watched.update(request)
    elif "id" in request:
        # Slow requests must not block the others.
        threading.Thread(target=answer_safely, args=(request,), daemon=True).start()


def look_once_a_second() -> None:
    look_into_folders()
    say(t="beat", at=time.time(), load=os.getloadavg()[0], processors=os.cpu_count() or 0)
    if watched:
        try:
            seen = probe(watched["agents"], watched["panes"], watched["ps"])
        except (OSError, subprocess.TimeoutExpired) as problem:
            seen = {"problem": str(problem)}
        if seen != told.get("probe"):
            told["probe"] = seen
            say(t="probe", **seen)


def main() -> None:
    say(t="hello", python=sys.version.split()[0], clock=time.time(), home=os.path.expanduser("~"))
    rest, due = b"", 0.0
    while True:
        if select.select([0], [], [], TICK)[0]:
            block = os.read(0, 1 << 20)
            if not block:
                return
            lines = (rest + block).split(b"\n")
            rest = lines.pop()
            for line in lines:
                obey(json.loads(line.decode()))
        look_at_files()
        if time.monotonic() >= due:
            due = time.monotonic() + SECOND
            look_once_a_second()


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        main()
    os._exit(0)
