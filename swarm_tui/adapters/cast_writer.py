"""Write recordings of terminals as asciicast v2, line by line, so that an incomplete recording can be played.

Standard library only: tmux runs this file by its path and sends it the output of a pane.
"""

from __future__ import annotations

import codecs
import json
import os
import sys
import time
from pathlib import Path
from typing import Final

SIZE_LIMIT: Final = 64_000_000
_BLOCK: Final = 1 << 16


class CastWriter:
    """A recording in progress."""

    def __init__(self, path: Path, started: float) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
        self._started = started
        self._size = os.fstat(self._descriptor).st_size
        # A character can be split between two writes.
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @classmethod
    def begin(cls, path: Path, columns: int, rows: int, title: str = "") -> CastWriter:
        """Start a recording in a new file; raise FileExistsError if the file exists."""
        path.parent.mkdir(parents=True, exist_ok=True)
        started = time.time()
        header: dict[str, object] = {"version": 2, "width": columns, "height": rows, "timestamp": int(started)}
        if title:
            header["title"] = title
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(json.dumps(header).encode() + b"\n")
        return cls(path, started)

    @classmethod
    def resume(cls, path: Path) -> CastWriter:
        """Continue a recording of another process."""
        with path.open("rb") as file:
            return cls(path, float(json.loads(file.readline(_BLOCK))["timestamp"]))

    def output(self, raw: bytes) -> None:
        """Record the output of a program."""
        text = self._decoder.decode(raw)
        if text:
            self._event("o", text)

    def resize(self, columns: int, rows: int) -> None:
        """Record a new size of the terminal."""
        self._event("r", f"{columns}x{rows}")

    def close(self) -> None:
        os.close(self._descriptor)

    def _event(self, kind: str, data: str) -> None:
        line = json.dumps([round(max(0.0, time.time() - self._started), 6), kind, data]).encode() + b"\n"
        if self._size + len(line) > SIZE_LIMIT:
            return
        self._size += len(line)
        os.write(self._descriptor, line)


def main(words: list[str]) -> int:
    """Record standard input until its end."""
    writer = CastWriter.resume(Path(words[0]))
    while block := os.read(sys.stdin.fileno(), _BLOCK):
        writer.output(block)
    writer.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
