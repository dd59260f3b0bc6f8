"""Writes whole lines to files, and never raises into the test run. Python 3.6, the standard library only."""

import contextlib
import json
import os
import time
from typing import Any

# Errors in this plugin must not affect the test run.
QUIETLY = contextlib.suppress(Exception)


def append(path: Any, **fields: Any) -> None:
    line = json.dumps(dict(fields, at=time.time())) + "\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, line.encode("utf-8"))
    finally:
        os.close(descriptor)
