"""Runs every benchmark, beside its peers where it has some: `python -m tests.bench [NAME ...]`.

What each printed is kept in `tests/bench/FIGURES.md`, with the date, the machine and its load, in place of what was
there of it. One that fails, or takes too long, keeps its old figures and is named at the end.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

FIGURES: Final = Path(__file__).with_name("FIGURES.md")
ROOT: Final = Path(__file__).parents[2]
HEADING: Final = """\
# Last figures

Written by `python -m tests.bench`; [the guide](README.md) says what each measures, and what the goals are. Figures of
a busy machine are upper bounds: look at the load.
"""
BESIDE: Final = ("watch", "beside_agents", "beside_transcripts", "beside_reviews")
OWN: Final = (
    "room_latency",
    "transcript_view",
    "merge_view",
    "journal_fold",
    "time_travel",
    "patterns",
    "tries_to_screen",
    "sweep_speed",
    "report_page",
    "tutorial_check",
    "host_latency",
    "many_hosts",
)
LONG: Final = ("integrator",)
"""Not run here: they take ten minutes and more."""
BENCHMARKS: Final = (*BESIDE, *OWN)
PEERS: Final[Mapping[str, tuple[str, ...]]] = {
    "git": ("git", "--version"),
    "tmux": ("tmux", "-V"),
    "lazygit": ("lazygit", "--version"),
    "tig": ("tig", "--version"),
    "less": ("less", "--version"),
    "lnav": ("lnav", "-V"),
    "toolong": ("tl", "--version"),
}
_VERSION: Final = re.compile(r"\d+(?:\.\d+)*[a-z]?")
_SECTION: Final = re.compile(r"^## (\w+)\n(.*?^```\n)(?=\n## |\Z)", re.MULTILINE | re.DOTALL)


def sections_of(text: str) -> dict[str, str]:
    """Return what is known of each benchmark, by its name."""
    return {name: body.strip("\n") for name, body in _SECTION.findall(text)}


def page(sections: Mapping[str, str]) -> str:
    """Return the page of all figures, in the order of the benchmarks."""
    known = [(name, sections[name]) for name in BENCHMARKS if name in sections]
    return HEADING + "".join(f"\n## {name}\n\n{body.strip()}\n" for name, body in known)


def section(command: str, when: str, machine: str, load: str, output: str) -> str:
    """Return what is kept of one run."""
    return f"`{command}`, {when}, {machine}, load {load}\n\n```text\n{output.strip()}\n```"


def describe_machine() -> str:
    """Return what the figures were taken on: processors, Python, and the versions of the programs beside us."""
    found = []
    for name, words in PEERS.items():
        if shutil.which(words[0]) is None:
            continue
        told = subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        version = re.search(r"version[=,' ]+v?(\d[\w.]*)", told.stdout) or _VERSION.search(told.stdout)
        found.append(f"{name} {version.group(version.lastindex or 0)}" if version else name)
    cores = f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}"
    return ", ".join([cores, f"Python {platform.python_version()}", *found])


def measure(name: str, limit: float) -> str | None:
    """Run one benchmark; return what is kept of it, None when it failed or took too long."""
    words = [sys.executable, "-m", f"tests.bench.{name}"]
    print(f"== {name}", flush=True)
    load, when = ", ".join(f"{value:.1f}" for value in os.getloadavg()), time.strftime("%Y-%m-%d %H:%M")
    try:
        done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return None
    print(done.stdout, flush=True)
    shown = " ".join(["python", *words[1:]])
    return section(shown, when, describe_machine(), load, done.stdout) if done.returncode == 0 else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)} (default: all)")
    parser.add_argument("--limit", type=float, default=900.0, metavar="SECONDS", help="for each (900)")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]!r}")
    failed = []
    for name in arguments.names or BENCHMARKS:
        made = measure(name, arguments.limit)
        if made is None:
            failed.append(name)
            continue
        before = sections_of(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
        FIGURES.write_text(page({**before, name: made}), encoding="utf-8")
    if failed:
        print(f"no figures of: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
